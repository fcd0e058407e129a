//! The licenses of third-party packages in a program. Their texts are in each archive and image
//! with the program.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::Args;
use super::component::Component;
use super::crates::Graph;
use super::npm;

/// The name of the file.
pub const FILE: &str = "THIRD-PARTY.txt";

/// The path in an image.
pub const IN_IMAGE: &str = "licenses/THIRD-PARTY.txt";

/// The first letters of the names of license and notice files, in lower case.
const NAMES: [&str; 6] = ["copying", "copyright", "licence", "license", "notice", "unlicense"];

/// A folder in which all files are licenses, by the REUSE specification.
const FOLDER: &str = "LICENSES";

const ABOUT: &str = "\
The packages from crates.io and npm in this program, each with its license and its source.
Their license texts are below. Each text is there once, after the packages that include it.";

const WITHOUT: &str = "Packages without a license text:";

const RULE: &str =
    "--------------------------------------------------------------------------------";

/// The file for a program. npm's packages exist because the build of the program has installed
/// them. A debug program has none of them, because it reads the pages at runtime.
pub fn text(args: &Args, graph: &Graph) -> Result<String> {
    let root = args.place.root();
    let mut components = graph.components(root)?;
    if graph.embeds_pages() && !args.debug {
        components.extend(npm::components(root)?);
    }
    from_components(&components)
}

fn from_components(components: &[Component]) -> Result<String> {
    let (mut with, mut without) = (BTreeSet::new(), BTreeSet::new());
    let mut packages: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for component in components {
        let texts = texts(&component.folder)?;
        let list = if texts.is_empty() { &mut without } else { &mut with };
        list.insert(component.line());
        for text in texts {
            packages.entry(text).or_default().insert(component.called());
        }
    }
    let mut texts: Vec<_> = packages.into_iter().map(|(text, packages)| (packages, text)).collect();
    texts.sort();
    let mut file = format!("{ABOUT}\n\n{}\n", lines(with));
    if !without.is_empty() {
        writeln!(file, "\n{WITHOUT}\n\n{}", lines(without))?;
    }
    for (packages, text) in texts {
        writeln!(file, "\n{RULE}\n{}\n\n{text}", lines(packages))?;
    }
    Ok(file)
}

fn lines(all: BTreeSet<String>) -> String {
    all.into_iter().collect::<Vec<_>>().join("\n")
}

/// The license texts in a package. Subfolders may have third-party code with its own license.
/// `node_modules` has other packages.
fn texts(package: &Path) -> Result<BTreeSet<String>> {
    let mut texts = BTreeSet::new();
    let mut left = vec![package.to_owned()];
    while let Some(folder) = left.pop() {
        let entries =
            fs::read_dir(&folder).with_context(|| format!("reading {}", folder.display()))?;
        for entry in entries {
            let entry = entry?;
            let (path, kind) = (entry.path(), entry.file_type()?);
            if kind.is_dir() && entry.file_name() != "node_modules" {
                left.push(path);
            } else if kind.is_file() && is_license(&path) {
                let text =
                    fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
                texts.insert(normal(&text));
            }
        }
    }
    texts.remove("");
    Ok(texts)
}

fn is_license(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let among_licenses = || file.parent().is_some_and(|folder| folder.ends_with(FOLDER));
    NAMES.iter().any(|start| name.starts_with(start)) || among_licenses()
}

/// Normalizes line endings, trailing blanks and surrounding empty lines, so that equal texts are
/// recognized.
fn normal(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let lines: Vec<_> = text.trim_start_matches('\u{feff}').lines().map(str::trim_end).collect();
    lines.join("\n").trim_matches('\n').to_owned()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::Value;

    use super::*;
    use crate::package::sbom;
    use crate::workspace;

    /// A package with these files.
    fn component(name: &str, home: &Path, files: &[(&str, &str)]) -> Component {
        let folder = home.join(name);
        fs::create_dir(&folder).unwrap();
        for (path, content) in files {
            let file = folder.join(path);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, content).unwrap();
        }
        let (name, version) = (name.to_owned(), "1.0.0".to_owned());
        let source = format!("https://example.org/{name}");
        Component { name, version, license: "MIT".to_owned(), source, folder }
    }

    #[test]
    fn each_license_text_follows_its_packages_once() {
        let home = tempfile::tempdir().unwrap();
        let files: [(&str, &[(&str, &str)]); 4] = [
            (
                "two",
                &[
                    ("LICENSE.md", "\u{feff}Do what\r\nyou want.  \r\n\r\n"),
                    ("src/lib.rs", "fn main() {}"),
                ],
            ),
            (
                "one",
                &[("licence", "\nDo what\nyou want.\n"), ("c/mimic/Copying", "Copyright Mimic\n")],
            ),
            (
                "three",
                &[("README", "Mine."), ("NOTICE", "\n"), ("node_modules/one/LICENSE", "Theirs.")],
            ),
            ("four", &[("LICENSES/MIT.txt", "  Copyright Four\n")]),
        ];
        let components = files.map(|(name, files)| component(name, home.path(), files));
        let expected = format!(
            "{ABOUT}\n\n\
             four 1.0.0: MIT, https://example.org/four\n\
             one 1.0.0: MIT, https://example.org/one\n\
             two 1.0.0: MIT, https://example.org/two\n\n\
             {WITHOUT}\n\n\
             three 1.0.0: MIT, https://example.org/three\n\n\
             {RULE}\nfour 1.0.0\n\n  Copyright Four\n\n\
             {RULE}\none 1.0.0\n\nCopyright Mimic\n\n\
             {RULE}\none 1.0.0\ntwo 1.0.0\n\nDo what\nyou want.\n"
        );
        assert_eq!(from_components(&components).unwrap(), expected);
    }

    #[test]
    fn package_without_files_is_an_error() {
        let home = tempfile::tempdir().unwrap();
        let component =
            Component { folder: home.path().join("gone"), ..component("here", home.path(), &[]) };
        let error = from_components(&[component]).unwrap_err().to_string();
        assert!(error.starts_with("reading ") && error.ends_with("gone"), "{error}");
    }

    #[test]
    fn every_package_of_the_bill_is_named_and_no_folder() {
        let (root, home) = (workspace::root(), tempfile::tempdir().unwrap());
        let graph = Graph::for_package(root, "paved").unwrap();
        let mut components = graph.components(root).unwrap();
        // Tests may run without npm's packages.
        fs::create_dir(home.path().join("web")).unwrap();
        let lock = "web/package-lock.json";
        fs::copy(root.join(lock), home.path().join(lock)).unwrap();
        let pages = npm::components(home.path()).unwrap();
        for page in &pages {
            fs::create_dir_all(&page.folder).unwrap();
        }
        components.extend(pages);
        let text = from_components(&components).unwrap();

        let bill = fs::read_to_string(sbom::write(root, &graph, home.path()).unwrap()).unwrap();
        let bill: Value = serde_json::from_str(&bill).unwrap();
        // Crates of the workspace have no package URL.
        let others =
            bill["components"].as_array().unwrap().iter().filter(|one| one.get("purl").is_some());
        let others: Vec<_> = others.collect();
        assert!(others.len() > 300, "{}", others.len());
        for one in others {
            let name = one["name"].as_str().unwrap();
            let line = format!("\n{name} {}: ", one["version"].as_str().unwrap());
            assert!(text.contains(&line), "{name} is missing");
        }
        assert!(text.contains("\nPermission is hereby granted"));
        let folders: BTreeSet<_> =
            components.iter().filter_map(|one| one.folder.parent()?.to_str()).collect();
        for folder in folders {
            assert!(!text.contains(folder), "{folder}");
        }
    }
}
