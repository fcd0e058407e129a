//! The registry, the organisation, the version and the Function of the releases, in documents, in the chart and
//! in the metadata of packages. The organisation is the last segment of the registry's path.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use function_paved_road::manifests::{self, REGISTRY};
use regex_lite::{Captures, Regex};

use crate::workspace;

/// A file or folder with documents, except the reference, which has no registry.
const PLACES: [&str; 7] = [
    "Cargo.toml",
    "README.md",
    "docs/getting-started",
    "docs/how-to",
    "docs/contributing",
    "deploy/chart",
    "package/function/crossplane.yaml",
];

/// The path of one of our packages behind a registry, or the variable of a shell block.
const MENTION: &str = concat!(
    r"\b[a-z0-9-]+(?:\.[a-z0-9-]+)+(?::[0-9]+)?(?:/[a-z0-9._-]+)*?",
    r"(?<package>/function-paved-road:|/configuration-|/paved-portal\b|/charts/paved-road\b)",
    r"|REGISTRY=(?<value>[a-z0-9][a-z0-9./:_-]*)|(?m:^registry: (?<chart>[a-z0-9./:_-]+))"
);

/// The repository of the source, without a scheme. Its name is the project's.
const REPOSITORY: &str = r"\bgithub\.com/[A-Za-z0-9-]+/paved-road\b";

/// The name of the installed Function, which follows from the registry's path.
const INSTALLED: &str = r"\b[a-z0-9-]+-function-paved-road\b";

/// A release version after the name of a package, of an archive or of a variable.
const VERSION: &str = concat!(
    r"(?<before>function-paved-road:v|configuration-[$a-zA-Z-]+:v|\$name:v|\.xpkg\):v",
    r"|paved-portal:v|paved-road-|/paved(?::|/v)|RELEASE=v|(?m:^paved ))",
    r"[0-9]+\.[0-9]+\.[0-9]+"
);

/// The documents that name the registry, the repository or the version, with today's, by their
/// paths from the root.
///
/// # Errors
/// A document is unreadable.
pub(super) fn documents() -> Result<Vec<(String, String)>> {
    let root = workspace::root();
    let mention = Regex::new(MENTION).context("the pattern of a registry")?;
    let repository = Regex::new(REPOSITORY).context("the pattern of the repository")?;
    let version = Regex::new(VERSION).context("the pattern of a version")?;
    let installed = Regex::new(INSTALLED).context("the pattern of the installed Function")?;
    let patterns = [&mention, &repository, &version, &installed];
    let mut found = Vec::new();
    for place in PLACES {
        for file in documents_below(&root.join(place))? {
            let text =
                fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
            if patterns.iter().any(|pattern| pattern.is_match(&text)) {
                let path = file.strip_prefix(root)?.display().to_string();
                let text = with_registry(&text, &mention, REGISTRY);
                let text = with_organisation(&text, &repository, REGISTRY);
                let text = with_function(&text, &installed, REGISTRY);
                found.push((path, with_version(&text, &version, env!("CARGO_PKG_VERSION"))));
            }
        }
    }
    Ok(found)
}

fn with_registry(text: &str, mention: &Regex, registry: &str) -> String {
    let replacement = |found: &Captures<'_>| match found.name("package") {
        Some(package) => format!("{registry}{}", package.as_str()),
        None if found.name("value").is_some() => format!("REGISTRY={registry}"),
        None => format!("registry: {registry}"),
    };
    mention.replace_all(text, replacement).into_owned()
}

fn with_organisation(text: &str, repository: &Regex, registry: &str) -> String {
    let organisation = registry.rsplit('/').next().unwrap_or_default();
    repository.replace_all(text, format!("github.com/{organisation}/paved-road")).into_owned()
}

fn with_function(text: &str, installed: &Regex, registry: &str) -> String {
    installed.replace_all(text, manifests::installed_function(registry)).into_owned()
}

fn with_version(text: &str, pattern: &Regex, version: &str) -> String {
    pattern
        .replace_all(text, |found: &Captures<'_>| format!("{}{version}", &found["before"]))
        .into_owned()
}

/// Documents, the chart's metadata and its default values. The values of its checks have a mirror
/// on purpose.
fn documents_below(path: &Path) -> Result<Vec<PathBuf>> {
    if path.is_file() {
        return Ok(vec![path.to_owned()]);
    }
    let is_document = |file: &Path| {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        file.is_dir() || name.ends_with(".md") || name == "values.yaml" || name == "Chart.yaml"
    };
    let mut files = Vec::new();
    for entry in fs::read_dir(path).with_context(|| format!("reading {}", path.display()))? {
        let file = entry?.path();
        if is_document(&file) {
            files.extend(documents_below(&file)?);
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn registry_is_replaced_in_each_form() {
        let mention = Regex::new(MENTION).unwrap();
        for (before, after) in [
            (
                "package: old.example.org/a/function-paved-road:v1",
                "ghcr.io/x/function-paved-road:v1",
            ),
            (
                "`old.example.org/a/configuration-stock-pool-claims`",
                "ghcr.io/x/configuration-stock",
            ),
            ("registry: old.example.org/a\n", "registry: ghcr.io/x\n"),
            ("oci://127.0.0.1:5000/a/charts/paved-road", "oci://ghcr.io/x/charts/paved-road"),
            ("export REGISTRY=old.example.org/a\n", "export REGISTRY=ghcr.io/x\n"),
        ] {
            let found = with_registry(before, &mention, "ghcr.io/x");
            assert!(found.contains(after), "{found}");
            assert!(!found.contains("old."), "{found}");
        }
    }

    #[test]
    fn organisation_follows_the_registry() {
        let repository = Regex::new(REPOSITORY).unwrap();
        for (before, after) in [
            (
                "git clone https://github.com/old/paved-road\n",
                "https://github.com/acme/paved-road\n",
            ),
            ("source: github.com/old/paved-road", "github.com/acme/paved-road"),
            ("https://github.com/crossplane/crossplane", "github.com/crossplane/crossplane"),
        ] {
            let found = with_organisation(before, &repository, "ghcr.io/acme");
            assert!(found.ends_with(after), "{found}");
        }
    }

    #[test]
    fn installed_function_follows_the_registry() {
        let installed = Regex::new(INSTALLED).unwrap();
        let found = with_function("name: old-function-paved-road\n", &installed, "ghcr.io/a/b.c");
        assert_eq!(found, "name: a-b-c-function-paved-road\n");
        for other in ["name: function-paved-road", "ghcr.io/x/function-paved-road:v1"] {
            assert_eq!(with_function(other, &installed, "ghcr.io/a"), other);
        }
    }

    #[test]
    fn version_is_replaced_in_each_form() {
        let pattern = Regex::new(VERSION).unwrap();
        for before in [
            "$REGISTRY/function-paved-road:v0.1.0",
            "registry.example.org/a/configuration-$api-$FLAVOUR:v0.1.0",
            "$(basename $package .xpkg):v0.1.0",
            "RELEASE=v0.1.0",
            "paved-road-0.1.0.tgz",
            "https://example.org/paved/v0.1.0/paved.tar.gz",
            "paved 0.1.0\n",
        ] {
            assert_eq!(with_version(before, &pattern, "9.8.7"), before.replace("0.1.0", "9.8.7"));
        }
        for other in ["an upgrade from v0.1.0", "provider-helm:v1.0.6", "/paved-gateway:v1.2.3"] {
            assert_eq!(with_version(other, &pattern, "9.8.7"), other);
        }
    }

    #[test]
    fn other_texts_stay() {
        let mention = Regex::new(MENTION).unwrap();
        for text in [
            "crossplane xpkg push $REGISTRY/function-paved-road:v0.1.0",
            "target/packages/function-paved-road-amd64.xpkg",
            "xpkg.crossplane.io/crossplane-contrib/provider-helm:v1.0.0",
            "https://github.com/crossplane-contrib/function-patch-and-transform",
            "image: registry.example.org/ci/paved:0.1.0",
        ] {
            assert_eq!(with_registry(text, &mention, "ghcr.io/x"), text);
        }
    }
}
