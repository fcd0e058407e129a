//! The crates that a binary is made of.
//!
//! `cargo tree` tells exactly which go into one binary of the workspace: `cargo metadata`, from
//! which other tools read, mixes the features of all of them. The latter tells where their sources
//! lie.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use super::Architecture;
use super::component::Component;

/// A crate, as `cargo tree` prints it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Crate {
    /// Its name.
    pub name: String,
    /// Its version, without a letter in front.
    pub version: String,
    /// An SPDX expression.
    pub license: String,
    /// The address of its sources.
    pub repository: String,
    /// One of the workspace, which no registry has.
    pub ours: bool,
}

/// The crates of one binary or image, and who needs whom.
pub struct Graph {
    /// What the others are in.
    pub root: Crate,
    /// Each crate, the root too, with those that it needs itself.
    pub needs: BTreeMap<Crate, BTreeSet<Crate>>,
}

impl Graph {
    /// The crates of a package's binary, as the sources below a root lock them.
    pub fn for_package(root: &Path, package: &str) -> Result<Self> {
        let edges = "normal,no-proc-macro";
        let line = " {p}|{l}|{r}";
        let arguments =
            ["--package", package, "--edges", edges, "--prefix", "depth", "--format", line];
        Self::read(&cargo(root, "tree", &arguments, "--target")?)
    }

    /// Those of an image that is made of some crates: one of ours, whose binary is in it, and
    /// others whose data are.
    pub fn for_image(root: &Path, image: &str, crates: &[&str]) -> Result<Self> {
        let graphs = crates
            .iter()
            .map(|found| Self::for_package(root, found))
            .collect::<Result<Vec<_>>>()?;
        Self::all(image, graphs)
    }

    /// Whether the portal's pages are in it.
    pub fn embeds_pages(&self) -> bool {
        self.needs.keys().any(Crate::embeds_pages)
    }

    /// The crates of others, with the folders that their sources lie in.
    pub fn components(&self, root: &Path) -> Result<Vec<Component>> {
        let folders = folders(root)?;
        let component = |found: &Crate| {
            let folder = folders.get(&(found.name.clone(), found.version.clone()));
            let folder =
                folder.with_context(|| format!("cargo metadata has no {}", found.reference()))?;
            Ok(Component {
                name: found.name.clone(),
                version: found.version.clone(),
                license: found.license.clone(),
                source: found.repository.clone(),
                folder: folder.clone(),
            })
        };
        self.needs.keys().filter(|found| !found.ours).map(component).collect()
    }

    /// Several under a root of another name, with the version and the licence of the first.
    fn all(name: &str, graphs: Vec<Self>) -> Result<Self> {
        let first = graphs.first().context("nothing is in it")?.root.clone();
        let root = Crate { name: name.to_owned(), ours: true, ..first };
        let mut needs: BTreeMap<Crate, BTreeSet<Crate>> = BTreeMap::new();
        for graph in graphs {
            needs.entry(root.clone()).or_default().insert(graph.root);
            for (found, needed) in graph.needs {
                needs.entry(found).or_default().extend(needed);
            }
        }
        Ok(Self { root, needs })
    }

    /// A line per crate, with its depth in front; who stands one less deep above it needs it.
    pub fn read(tree: &str) -> Result<Self> {
        let mut path: Vec<Crate> = Vec::new();
        let mut needs: BTreeMap<Crate, BTreeSet<Crate>> = BTreeMap::new();
        for line in tree.lines().filter(|line| !line.is_empty()) {
            let (depth, found) =
                line.split_once(' ').with_context(|| format!("no depth in {line:?}"))?;
            let found = Crate::read(found).with_context(|| format!("no crate in {line:?}"))?;
            path.truncate(depth.parse()?);
            if let Some(above) = path.last() {
                needs.entry(above.clone()).or_default().insert(found.clone());
            }
            needs.entry(found.clone()).or_default();
            path.push(found);
        }
        Ok(Self { root: path.into_iter().next().context("cargo tree printed nothing")?, needs })
    }
}

impl Crate {
    /// `serde v1.0.228|MIT OR Apache-2.0|https://…`; `(…)` after the version is where one of ours
    /// lies, `(*)` at the end that what it needs was listed above.
    fn read(line: &str) -> Option<Self> {
        let mut parts = line.trim_end_matches(" (*)").splitn(3, '|');
        let (package, license) = (parts.next()?, parts.next()?);
        let mut words = package.split(' ');
        Some(Self {
            name: words.next()?.to_owned(),
            version: words.next()?.strip_prefix('v')?.to_owned(),
            // The way of old manifests to say OR.
            license: license.replace('/', " OR ").split_whitespace().collect::<Vec<_>>().join(" "),
            repository: parts.next()?.to_owned(),
            ours: words.next().is_some(),
        })
    }

    /// Whether the portal's pages are in it.
    pub fn embeds_pages(&self) -> bool {
        self.ours && self.name == "paved-portal"
    }

    /// What a bill calls it: a package URL, where a registry has it.
    pub fn reference(&self) -> String {
        let scheme = if self.ours { "" } else { "pkg:cargo/" };
        format!("{scheme}{}@{}", self.name, self.version)
    }
}

/// Where the sources of crates lie, by name and version.
fn folders(root: &Path) -> Result<BTreeMap<(String, String), PathBuf>> {
    #[derive(Deserialize)]
    struct Metadata {
        packages: Vec<Package>,
    }
    #[derive(Deserialize)]
    struct Package {
        name: String,
        version: String,
        manifest_path: PathBuf,
    }
    let metadata = cargo(root, "metadata", &["--format-version", "1"], "--filter-platform")?;
    let metadata: Metadata =
        serde_json::from_str(&metadata).context("reading what cargo metadata printed")?;
    let folder = |package: Package| {
        let folder = package.manifest_path.parent()?.to_owned();
        Some(((package.name, package.version), folder))
    };
    Ok(metadata.packages.into_iter().filter_map(folder).collect())
}

/// What a command of cargo's prints of the workspace below a root, for both architectures, which a
/// flag of its own names.
fn cargo(root: &Path, command: &str, arguments: &[&str], flag: &str) -> Result<String> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args([command, "--locked"]).args(arguments).current_dir(root);
    for architecture in [Architecture::Amd64, Architecture::Arm64] {
        cargo.args([flag, architecture.target()]);
    }
    let answer = cargo.output().context("starting cargo")?;
    ensure!(
        answer.status.success(),
        "cargo {command}: {}",
        String::from_utf8_lossy(&answer.stderr)
    );
    Ok(String::from_utf8(answer.stdout)?)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    const TREE: &str = "0 app v0.1.0 (/somewhere/app)|Apache-2.0|https://example.org/app\n\
        1 serde v1.0.0|MIT / Apache-2.0|https://example.org/serde\n\
        2 core v2.0.0||\n";

    #[test]
    fn an_image_needs_all_that_is_in_it() {
        let data = "0 core v2.0.0||\n1 other v3.0.0|MIT|https://example.org/other\n";
        let graphs = vec![Graph::read(TREE).unwrap(), Graph::read(data).unwrap()];
        let graph = Graph::all("image", graphs).unwrap();
        let needed = |name: &str| {
            let (_, needed) = graph.needs.iter().find(|(found, _)| found.name == name).unwrap();
            needed.iter().map(|found| found.name.as_str()).collect::<Vec<_>>()
        };
        assert_eq!((graph.root.name.as_str(), graph.root.version.as_str()), ("image", "0.1.0"));
        assert_eq!(needed("image"), ["app", "core"]);
        assert_eq!((needed("serde"), needed("core")), (vec!["core"], vec!["other"]));
    }
}
