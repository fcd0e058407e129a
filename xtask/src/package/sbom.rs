//! The components of a binary, as a CycloneDX SBOM.
//!
//! Cargo.lock has the digests of crates. `paved-portal` embeds its pages, so npm's packages are
//! included. The SBOM has no serial number and no time, so the same sources give the same SBOM.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::{Value, json};

use super::crates::{Crate, Graph};
use super::npm::{self, Pages};

/// Version of the CycloneDX schema.
const SPEC: &str = "1.6";

/// Writes the SBOM of a graph, by the lock files below a root, and returns its file.
pub fn write(root: &Path, graph: &Graph, output: &Path) -> Result<PathBuf> {
    let file = output.join(format!("{}.cdx.json", graph.root.name));
    let pages = if graph.embeds_pages() { npm::pages(root)? } else { Pages::default() };
    let bill = bill(graph, &digests(root)?, &pages)?;
    fs::write(&file, serde_json::to_vec_pretty(&bill)?)
        .with_context(|| format!("writing {}", file.display()))?;
    Ok(file)
}

fn bill(
    graph: &Graph,
    digests: &BTreeMap<(String, String), String>,
    pages: &Pages,
) -> Result<Value> {
    let crates = graph.needs.keys().filter(|found| **found != graph.root);
    let crates =
        crates.map(|found| component(found, digests, "library")).collect::<Result<Vec<_>>>()?;
    let needs = |(found, needed): (&Crate, &BTreeSet<Crate>)| {
        let mut needed: Vec<_> = needed.iter().map(Crate::reference).collect();
        if found.embeds_pages() {
            needed.extend_from_slice(&pages.needed);
        }
        json!({"ref": found.reference(), "dependsOn": needed})
    };
    let needs: Vec<_> = graph.needs.iter().map(needs).collect();
    let components = [crates.as_slice(), pages.components.as_slice()].concat();
    let dependencies = [needs.as_slice(), pages.dependencies.as_slice()].concat();
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": SPEC,
        "version": 1,
        "metadata": {"component": component(&graph.root, digests, "application")?},
        "components": components,
        "dependencies": dependencies,
    }))
}

fn component(
    found: &Crate,
    digests: &BTreeMap<(String, String), String>,
    kind: &str,
) -> Result<Value> {
    let mut component = json!({
        "type": kind,
        "bom-ref": found.reference(),
        "name": found.name,
        "version": found.version,
    });
    if !found.license.is_empty() {
        component["licenses"] = json!([{"expression": found.license}]);
    }
    if !found.repository.is_empty() {
        component["externalReferences"] = json!([{"type": "vcs", "url": found.repository}]);
    }
    if !found.ours {
        let digest = digests.get(&(found.name.clone(), found.version.clone()));
        let digest =
            digest.with_context(|| format!("Cargo.lock has no digest of {}", found.reference()))?;
        component["purl"] = json!(found.reference());
        component["hashes"] = json!([{"alg": "SHA-256", "content": digest}]);
    }
    Ok(component)
}

/// The digests of all crates that come from a registry, by name and version.
fn digests(root: &Path) -> Result<BTreeMap<(String, String), String>> {
    #[derive(Deserialize)]
    struct Lock {
        package: Vec<Locked>,
    }
    #[derive(Deserialize)]
    struct Locked {
        name: String,
        version: String,
        checksum: Option<String>,
    }
    let file = root.join("Cargo.lock");
    let text = fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
    let lock: Lock =
        toml::from_str(&text).with_context(|| format!("reading {}", file.display()))?;
    let digest = |locked: Locked| Some(((locked.name, locked.version), locked.checksum?));
    Ok(lock.package.into_iter().filter_map(digest).collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::workspace;

    const TREE: &str = "0 app v0.1.0 (/somewhere/app)|Apache-2.0|https://example.org/app\n\
        1 serde v1.0.0|MIT / Apache-2.0|https://example.org/serde\n\
        2 core v2.0.0||\n\
        1 other v3.0.0|MIT|https://example.org/other\n\
        2 serde v1.0.0|MIT / Apache-2.0|https://example.org/serde (*)\n";

    fn bill_of(tree: &str) -> Result<Value> {
        let digests = [("serde", "1.0.0"), ("core", "2.0.0"), ("other", "3.0.0")];
        let digests =
            digests.map(|(name, version)| ((name.to_owned(), version.to_owned()), "ab".repeat(32)));
        let pages = Pages { needed: vec!["pkg:npm/react@19.0.0".to_owned()], ..Pages::default() };
        bill(&Graph::read(tree)?, &digests.into(), &pages)
    }

    #[test]
    fn bill_has_components_and_their_dependents() {
        let bill = bill_of(TREE).unwrap();
        assert_eq!(bill["metadata"]["component"]["bom-ref"], "app@0.1.0");
        let names: Vec<_> = bill["components"]
            .as_array()
            .unwrap()
            .iter()
            .map(|found| found["purl"].clone())
            .collect();
        assert_eq!(
            names,
            ["pkg:cargo/core@2.0.0", "pkg:cargo/other@3.0.0", "pkg:cargo/serde@1.0.0"]
        );
        assert_eq!(bill["components"][2]["licenses"], json!([{"expression": "MIT OR Apache-2.0"}]));
        let other = json!({"ref": "pkg:cargo/other@3.0.0", "dependsOn": ["pkg:cargo/serde@1.0.0"]});
        assert!(bill["dependencies"].as_array().unwrap().contains(&other), "{bill}");
        assert!(!bill.to_string().contains("somewhere"), "{bill}");
    }

    #[test]
    fn portal_needs_the_packages_of_its_pages() {
        let bill =
            bill_of("0 app v0.1.0 (/x)|MIT|\n1 paved-portal v0.1.0 (/y)|MIT|\n2 core v2.0.0||\n")
                .unwrap();
        let portal = json!({"ref": "paved-portal@0.1.0", "dependsOn": ["pkg:cargo/core@2.0.0", "pkg:npm/react@19.0.0"]});
        assert!(bill["dependencies"].as_array().unwrap().contains(&portal), "{bill}");
    }

    #[test]
    fn pages_are_in_the_bill_of_their_program() {
        let folder = tempfile::tempdir().unwrap();
        for (package, embeds) in [("paved", true), ("function-paved-road", false)] {
            let graph = Graph::for_package(workspace::root(), package).unwrap();
            let bill = fs::read_to_string(write(workspace::root(), &graph, folder.path()).unwrap())
                .unwrap();
            assert_eq!(bill.contains("pkg:npm/react@"), embeds, "{package}");
        }
    }

    #[test]
    fn a_crate_that_is_not_locked_is_an_error() {
        let error = bill_of("0 app v0.1.0 (/x)|MIT|\n1 stray v9.0.0|MIT|\n").unwrap_err();
        assert_eq!(error.to_string(), "Cargo.lock has no digest of pkg:cargo/stray@9.0.0");
    }
}
