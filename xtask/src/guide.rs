//! The operator's guide: the how-to files with the commands that the scenarios run, in the order
//! that an operator follows.

use std::fs;

use anyhow::{Context, Result};

use crate::workspace;

/// How to install Crossplane and the chart, and how to operate, upgrade and uninstall them.
pub const OPERATIONS: &[&str] = &[
    "docs/how-to/install.md",
    "docs/how-to/configure-providers.md",
    "docs/how-to/grant-access.md",
    "docs/how-to/run-the-function.md",
    "docs/how-to/observe.md",
    "docs/how-to/troubleshoot.md",
    "docs/how-to/prepare-the-apis.md",
    "docs/how-to/change-settings.md",
    "docs/how-to/upgrade.md",
    "docs/how-to/delete.md",
    "docs/how-to/uninstall.md",
];

/// How to build the packages, also for another API group.
pub const INSTALLATION: &[&str] =
    &["docs/how-to/build-the-packages.md", "docs/how-to/use-your-own-api-group.md"];

/// How to use a shared PostgreSQL server. Tests run its query.
pub const SHARED_POSTGRESQL: &str = "docs/how-to/use-a-shared-postgresql-server.md";

/// How to verify a release.
pub const VERIFICATION: &str = "docs/how-to/verify-a-release.md";

/// The pipelines that run `paved`.
pub const PIPELINES: &[&str] = &["docs/how-to/ci-pipelines.md"];

/// The text of these files, one after the other.
pub fn text(files: &[&str]) -> Result<String> {
    let read = |file: &&str| {
        fs::read_to_string(workspace::root().join(file)).with_context(|| format!("reading {file}"))
    };
    Ok(files.iter().map(read).collect::<Result<Vec<_>>>()?.join("\n"))
}

/// The shell blocks of a document, without those with other marks, for example `console`.
pub fn blocks(document: &str) -> Vec<String> {
    let block = |rest: &str| rest.split("```").next().unwrap_or_default().to_owned();
    document.split("```sh\n").skip(1).map(block).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::path::{Path, PathBuf};

    use super::*;

    #[test]
    fn links_in_documents_resolve() {
        let root = workspace::root();
        let mut pages = pages_below(&root.join("docs"));
        pages.extend(["README.md", "CONTRIBUTING.md"].map(|page| root.join(page)));
        let mut broken = Vec::new();
        for page in &pages {
            let text = fs::read_to_string(page).unwrap();
            let links = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
            for link in links.filter(|link| !link.contains("://")) {
                let (path, heading) = link.split_once('#').unwrap_or((link, ""));
                let target =
                    if path.is_empty() { page.clone() } else { page.parent().unwrap().join(path) };
                if !target.exists() || !(heading.is_empty() || has_heading(&target, heading)) {
                    broken.push(format!("{}: {link}", page.display()));
                }
            }
        }
        assert!(broken.is_empty(), "{}", broken.join("\n"));
    }

    fn pages_below(folder: &Path) -> Vec<PathBuf> {
        let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let pages = |path: PathBuf| if path.is_dir() { pages_below(&path) } else { vec![path] };
        paths
            .flat_map(pages)
            .filter(|path| path.extension().is_some_and(|end| end == "md"))
            .collect()
    }

    /// Whether a page has a heading with this anchor, as GitHub derives it.
    fn has_heading(page: &Path, anchor: &str) -> bool {
        let is_kept = |c: &char| c.is_alphanumeric() || [' ', '-', '_'].contains(c);
        let anchor_of = |heading: &str| {
            heading
                .trim_start_matches('#')
                .trim()
                .to_lowercase()
                .chars()
                .filter(is_kept)
                .collect::<String>()
        };
        let text = fs::read_to_string(page).unwrap();
        text.lines()
            .any(|line| line.starts_with('#') && anchor_of(line).replace(' ', "-") == anchor)
    }
}
