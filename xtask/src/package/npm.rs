//! The packages of npm in the portal's pages, from package-lock.json.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::Deserialize;
use serde_json::{Value, json};

use super::component::Component;

/// The packages in the pages, in the form of an SBOM.
#[derive(Default)]
pub struct Pages {
    /// Each package.
    pub components: Vec<Value>,
    /// The dependencies of each package.
    pub dependencies: Vec<Value>,
    /// The direct dependencies of the pages.
    pub needed: Vec<String>,
}

/// The packages in web/package-lock.json, without those that only build or test the pages.
pub fn pages(root: &Path) -> Result<Pages> {
    locked(root, Lock::pages)
}

/// The same packages, with their folders after npm's installation.
pub fn components(root: &Path) -> Result<Vec<Component>> {
    locked(root, |lock| Ok(lock.components(&root.join("web"))))
}

fn locked<T>(root: &Path, what: impl FnOnce(&Lock) -> Result<T>) -> Result<T> {
    let file = root.join("web/package-lock.json");
    let read = || what(&Lock::read(&fs::read_to_string(&file)?)?);
    read().with_context(|| format!("reading {}", file.display()))
}

#[derive(Deserialize)]
struct Lock {
    /// Packages by their folder, for example `node_modules/react`. The pages themselves have an
    /// empty folder.
    packages: BTreeMap<String, Package>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Package {
    #[serde(default)]
    version: String,
    integrity: Option<String>,
    /// An SPDX expression.
    license: Option<String>,
    #[serde(default)]
    dev: bool,
    /// Required only by development tools or as an optional dependency, so it is not in the pages.
    #[serde(default)]
    dev_optional: bool,
    #[serde(default)]
    optional: bool,
    #[serde(default)]
    dependencies: BTreeMap<String, String>,
}

impl Lock {
    fn read(text: &str) -> Result<Self> {
        Ok(serde_json::from_str(text)?)
    }

    fn pages(&self) -> Result<Pages> {
        let mut pages = Pages::default();
        if let Some(package) = self.packages.get("") {
            pages.needed = self.needed("", package);
        }
        for (place, package) in self.included() {
            let reference = package.reference(place);
            pages.components.push(package.component(place).with_context(|| reference.clone())?);
            let needed = self.needed(place, package);
            pages.dependencies.push(json!({"ref": reference, "dependsOn": needed}));
        }
        Ok(pages)
    }

    fn components(&self, installed: &Path) -> Vec<Component> {
        let component = |(place, package): (&String, &Package)| Component {
            name: name(place).to_owned(),
            version: package.version.clone(),
            license: package.license.clone().unwrap_or_default(),
            source: format!("https://www.npmjs.com/package/{}/v/{}", name(place), package.version),
            folder: installed.join(place),
        };
        self.included().map(component).collect()
    }

    /// The packages in the pages.
    fn included(&self) -> impl Iterator<Item = (&String, &Package)> {
        self.packages.iter().filter(|(place, package)| !place.is_empty() && package.is_in())
    }

    /// The references of a package's dependencies. Like Node.js, this searches the package's own
    /// `node_modules` first, and then the outer ones.
    fn needed(&self, place: &str, package: &Package) -> Vec<String> {
        let found = package.dependencies.keys().filter_map(|name| {
            let mut around = Some(place);
            while let Some(folder) = around {
                let inside = if folder.is_empty() { String::new() } else { format!("{folder}/") };
                let place = format!("{inside}node_modules/{name}");
                if let Some(found) = self.packages.get(&place) {
                    return Some(found.reference(&place));
                }
                let outer = || folder.rsplit_once("/node_modules/").map_or("", |(outer, _)| outer);
                around = (!folder.is_empty()).then(outer);
            }
            None
        });
        found.collect()
    }
}

impl Package {
    /// Whether the package is in the pages.
    fn is_in(&self) -> bool {
        !(self.dev || self.dev_optional || self.optional)
    }

    /// A package URL: `pkg:npm/%40mantine/core@9.7.4`.
    fn reference(&self, place: &str) -> String {
        format!("pkg:npm/{}@{}", name(place).replace('@', "%40"), self.version)
    }

    fn component(&self, place: &str) -> Result<Value> {
        let reference = self.reference(place);
        let mut component = json!({
            "type": "library",
            "bom-ref": reference,
            "name": name(place),
            "version": self.version,
            "purl": reference,
            "hashes": [{"alg": "SHA-512", "content": self.digest()?}],
        });
        if let Some(license) = &self.license {
            component["licenses"] = json!([{"expression": license}]);
        }
        Ok(component)
    }

    /// The digest in hexadecimal digits, as in SBOMs. npm writes `sha512-` and Base64.
    fn digest(&self) -> Result<String> {
        let mut digests = self.integrity.iter().flat_map(|all| all.split(' '));
        let digest = digests.find_map(|one| one.strip_prefix("sha512-"));
        let mut hex = String::new();
        for byte in STANDARD.decode(digest.context("has no SHA-512")?)? {
            write!(hex, "{byte:02x}")?;
        }
        Ok(hex)
    }
}

/// The name of a package, from its folder.
fn name(place: &str) -> &str {
    place.rsplit_once("node_modules/").map_or(place, |(_, name)| name)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::workspace;

    #[test]
    fn bill_has_loaded_packages_without_build_tools() {
        let pages = pages(workspace::root()).unwrap();
        let by_name: BTreeMap<_, _> =
            pages.components.iter().map(|one| (one["name"].as_str().unwrap(), one)).collect();
        let mantine = by_name["@mantine/core"];
        assert_eq!(
            mantine["purl"],
            json!(format!("pkg:npm/%40mantine/core@{}", mantine["version"].as_str().unwrap()))
        );
        assert_eq!(mantine["licenses"], json!([{"expression": "MIT"}]));
        assert_eq!(mantine["hashes"][0]["content"].as_str().unwrap().len(), 128);
        assert!(by_name.contains_key("react"));
        for tool in ["vitest", "vite", "typescript", "@babel/core"] {
            assert!(!by_name.contains_key(tool), "{tool}");
        }
        assert!(
            pages.needed.iter().any(|one| one.starts_with("pkg:npm/react@")),
            "{:?}",
            pages.needed
        );
    }

    #[test]
    fn nested_package_is_needed_by_its_parent() {
        let lock = r#"{"packages": {
            "": {"dependencies": {"one": "1", "two": "1"}},
            "node_modules/one": {"version": "1.0.0", "integrity": "sha512-AAE=", "dependencies": {"two": "2"}},
            "node_modules/one/node_modules/two": {"version": "2.0.0", "integrity": "sha512-AAE="},
            "node_modules/two": {"version": "1.0.0", "integrity": "sha1-AA== sha512-/wA="}
        }}"#;
        let pages = Lock::read(lock).unwrap().pages().unwrap();
        assert_eq!(pages.needed, ["pkg:npm/one@1.0.0", "pkg:npm/two@1.0.0"]);
        let one = json!({"ref": "pkg:npm/one@1.0.0", "dependsOn": ["pkg:npm/two@2.0.0"]});
        assert_eq!(pages.dependencies[0], one);
        let hashes = |index: usize| pages.components[index]["hashes"][0]["content"].clone();
        assert_eq!([hashes(0), hashes(2)], ["0001", "ff00"]);
    }
}
