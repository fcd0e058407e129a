//! The crates in a binary.
//!
//! `cargo tree` lists exactly the crates of one binary of the workspace. `cargo metadata`, which
//! other tools use, mixes the features of all binaries. It is only used for the folders of the
//! sources.

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
    /// The name.
    pub name: String,
    /// The version, without a leading letter.
    pub version: String,
    /// An SPDX expression.
    pub license: String,
    /// The address of its sources.
    pub repository: String,
    /// Whether it is a crate of the workspace, which is in no registry.
    pub ours: bool,
}

/// The crates of a binary or an image, and their dependencies.
pub struct Graph {
    /// The binary's crate, or the image.
    pub root: Crate,
    /// Each crate, including the root, with its direct dependencies.
    pub needs: BTreeMap<Crate, BTreeSet<Crate>>,
}

impl Graph {
    /// The crates of a package's binary, by the Cargo.lock below a root.
    pub fn for_package(root: &Path, package: &str) -> Result<Self> {
        let edges = "normal,no-proc-macro";
        let line = " {p}|{l}|{r}";
        let arguments =
            ["--package", package, "--edges", edges, "--prefix", "depth", "--format", line];
        Self::read(&cargo(root, "tree", &arguments, "--target")?)
    }

    /// The crates of an image: the crate of its binary, and crates with data in the image.
    pub fn for_image(root: &Path, image: &str, crates: &[&str]) -> Result<Self> {
        let graphs = crates
            .iter()
            .map(|found| Self::for_package(root, found))
            .collect::<Result<Vec<_>>>()?;
        Self::all(image, graphs)
    }

    /// Whether the portal's pages are embedded.
    pub fn embeds_pages(&self) -> bool {
        self.needs.keys().any(Crate::embeds_pages)
    }

    /// The third-party crates, with the folders of their sources.
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

    /// Combines graphs below a new root, which has the version and the license of the first graph's
    /// root.
    fn all(name: &str, graphs: Vec<Self>) -> Result<Self> {
        let first = graphs.first().context("a program without crates")?.root.clone();
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

    /// Parses the output of `cargo tree`: a line for each crate, after its depth. A crate depends
    /// on the following crates that are one level deeper.
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
        Ok(Self { root: path.into_iter().next().context("cargo tree printed no output")?, needs })
    }
}

impl Crate {
    /// Parses `serde v1.0.228|MIT OR Apache-2.0|https://…`. `(…)` after the version is the folder
    /// of a crate of ours. `(*)` at the end means that its dependencies were listed before.
    fn read(line: &str) -> Option<Self> {
        let mut parts = line.trim_end_matches(" (*)").splitn(3, '|');
        let (package, license) = (parts.next()?, parts.next()?);
        let mut words = package.split(' ');
        Some(Self {
            name: words.next()?.to_owned(),
            version: words.next()?.strip_prefix('v')?.to_owned(),
            // Old manifests separate licenses with a slash instead of OR.
            license: license.replace('/', " OR ").split_whitespace().collect::<Vec<_>>().join(" "),
            repository: parts.next()?.to_owned(),
            ours: words.next().is_some(),
        })
    }

    /// Whether the portal's pages are embedded.
    pub fn embeds_pages(&self) -> bool {
        self.ours && self.name == "paved-portal"
    }

    /// The reference in an SBOM: a package URL for crates in a registry.
    pub fn reference(&self) -> String {
        let scheme = if self.ours { "" } else { "pkg:cargo/" };
        format!("{scheme}{}@{}", self.name, self.version)
    }
}

/// The folders of the sources of crates, by name and version.
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
        serde_json::from_str(&metadata).context("reading the output of cargo metadata")?;
    let folder = |package: Package| {
        let folder = package.manifest_path.parent()?.to_owned();
        Some(((package.name, package.version), folder))
    };
    Ok(metadata.packages.into_iter().filter_map(folder).collect())
}

/// The output of a cargo command for the workspace below a root. `flag` names both architectures
/// for this command.
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
    fn image_depends_on_all_its_content() {
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
