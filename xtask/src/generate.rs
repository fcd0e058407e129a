//! `generate`: writes all files that are generated from the types, or checks that they are up to
//! date.

mod protocol;
pub mod reference;
mod registry;

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use clap::Args as ClapArgs;
use function_paved_road::apis::{APIS, Flavour};
use function_paved_road::manifests;
use serde_json::Value;

use crate::package::{activation, rbac};

/// Flags of `cargo xtask generate`.
#[derive(Debug, ClapArgs)]
pub struct Args {
    /// Write no files, and fail if a generated file is outdated.
    #[arg(long)]
    check: bool,
}

/// Writes the generated files below `root`, or compares them.
pub fn run(args: &Args, root: &Path) -> Result<()> {
    let files = files()?;
    if args.check {
        return check(&files, root);
    }
    for (path, content) in &files {
        let path = root.join(path);
        let folder = path.parent().context("a generated file has no folder")?;
        std::fs::create_dir_all(folder)
            .with_context(|| format!("could not create {}", folder.display()))?;
        std::fs::write(&path, content)
            .with_context(|| format!("could not write {}", path.display()))?;
    }
    println!("{} files are up to date", files.len());
    Ok(())
}

fn check(files: &BTreeMap<String, String>, root: &Path) -> Result<()> {
    let differs = |(path, content): &(&String, &String)| {
        std::fs::read_to_string(root.join(path)).map_or(true, |found| found != **content)
    };
    let stale: Vec<&String> = files.iter().filter(differs).map(|(path, _)| path).collect();
    if !stale.is_empty() {
        bail!("outdated: {stale:?}; run `cargo xtask generate`");
    }
    println!("{} generated files are up to date", files.len());
    Ok(())
}

/// Every generated file by its path from the repository's root.
fn files() -> Result<BTreeMap<String, String>> {
    let mut files = BTreeMap::new();
    for flavour in Flavour::ALL {
        let folder = match flavour {
            Flavour::Claims => "",
            Flavour::Namespaced => "namespaced/",
        };
        let group = flavour.default_group();
        for api in APIS {
            let name = api.info().name;
            files.insert(
                format!("{folder}xrd/{name}.yaml"),
                yaml(&[manifests::xrd(*api, flavour, group)])?,
            );
            let composition = manifests::example_composition(*api, flavour, group);
            files
                .insert(format!("examples/{name}/{folder}composition.yaml"), yaml(&[composition])?);
            for (file, function) in [
                ("functions.yaml", manifests::function()),
                ("functions-dev.yaml", manifests::local_function()),
            ] {
                files.insert(format!("examples/{name}/{folder}{file}"), yaml(&[function])?);
            }
        }
        let compositions: Vec<Value> =
            APIS.iter().map(|api| manifests::composition(*api, flavour, group)).collect();
        let compositions = format!("{COMPOSITIONS}{}", yaml(&compositions)?);
        files.insert(format!("{folder}composition.yaml"), compositions);
    }
    files.insert(
        "package/function/input/paved-road.fn.crossplane.io_settings.yaml".to_owned(),
        yaml(&[manifests::input()])?,
    );
    let groups = Flavour::ALL.map(|flavour| (flavour, flavour.default_group()));
    let policies = manifests::policy::policies(&groups, manifests::policy::CROSSPLANE);
    files.insert("package/policy.yaml".to_owned(), yaml(&policies)?);
    files.insert(activation::CLAIMS.to_owned(), yaml(&activation::claims()?)?);
    for (path, documents) in rbac::files()? {
        files.insert(path, yaml(&documents)?);
    }
    files.insert(protocol::FILE.to_owned(), protocol::messages()?);
    files.insert("docs/reference/apis.md".to_owned(), manifests::reference());
    files.extend(reference::pages()?);
    files.extend(registry::documents()?);
    Ok(files)
}

/// The head of the Compositions of all APIs.
const COMPOSITIONS: &str = "\
# The Compositions of the five APIs, one document each. Their Settings are in the EnvironmentConfig
# `paved-road`, which a cluster must have. To render an example, use examples/*/composition.yaml,
# which has Settings of its own.
";

/// A YAML stream with a header that names its source.
fn yaml(documents: &[Value]) -> Result<String> {
    let mut text = String::from("# Generated from the types by `cargo xtask generate`.\n");
    for (index, document) in documents.iter().enumerate() {
        if index > 0 {
            text.push_str("---\n");
        }
        text.push_str(&serde_saphyr::to_string(document)?);
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_files_follow_the_types() -> Result<()> {
        run(&Args { check: true }, crate::workspace::root())
    }
}
