//! The operator's guide: the how-to files with the commands that the scenarios run, in the order
//! that an operator follows.

use std::fs;

use anyhow::{Context, Result};

use crate::workspace;

/// How to install Crossplane, the function and every API, and how to operate, upgrade and uninstall
/// them.
pub const OPERATIONS: &[&str] = &[
    "docs/how-to/install-every-api.md",
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

/// How to build the packages and install one API, and how to build packages for another API group.
pub const INSTALLATION: &[&str] =
    &["docs/how-to/install.md", "docs/how-to/use-your-own-api-group.md"];

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

    use std::os::unix::fs::PermissionsExt;
    use std::path::{Path, PathBuf};
    use std::process::Command;

    use super::*;

    /// Lists Configurations, and writes its other calls into a file.
    const KUBECTL: &str = "#!/bin/bash\n\
        if [[ $1 == get ]]; then printf '%s\\n' $CONFIGURATIONS; else echo \"$@\" >>calls; fi\n";

    #[test]
    fn upgrade_finds_configurations_by_their_packages() {
        let page = text(&["docs/how-to/upgrade.md"]).unwrap();
        let block = blocks(&page).into_iter().find(|block| block.contains("RELEASE=")).unwrap();
        let block = block.lines().skip(1).collect::<Vec<_>>().join("\n");
        let folder = tempfile::tempdir().unwrap();
        let kubectl = folder.path().join("kubectl");
        fs::write(&kubectl, KUBECTL).unwrap();
        fs::set_permissions(&kubectl, fs::Permissions::from_mode(0o755)).unwrap();
        let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap());
        let installed = "gpu-workspace=r.io:5000/a/configuration-gpu-workspace-claims:v0.1.0 \
                         pool=r.io:5000/a/ours/configuration-stock-pool-claims@sha256:12 \
                         other=r.io:5000/a/configuration-stock-pool-namespaced:v0.1.0 \
                         foreign=r.io:5000/b/configuration-network-claims:v1.0.0";
        let status = Command::new("bash")
            .args(["-euo", "pipefail", "-c", &block])
            .current_dir(folder.path())
            .envs([("PATH", path.as_str()), ("CONFIGURATIONS", installed), ("RELEASE", "v9")])
            .envs([("REGISTRY", "r.io:5000/a"), ("FLAVOUR", "claims"), ("FUNCTION", "function")])
            .status();
        assert!(status.unwrap().success());
        let calls = fs::read_to_string(folder.path().join("calls")).unwrap();
        let patched: Vec<_> =
            calls.lines().filter(|call| call.starts_with("patch configurations")).collect();
        let command = |name: &str, package: &str| {
            let package = format!("{{\"spec\":{{\"package\":\"r.io:5000/a/{package}:v9\"}}}}");
            let kind = "configurations.pkg.crossplane.io";
            format!("patch {kind} {name} --type=merge --patch={package}")
        };
        assert_eq!(
            patched,
            [
                command("gpu-workspace", "configuration-gpu-workspace-claims"),
                command("pool", "ours/configuration-stock-pool-claims"),
            ]
        );
    }

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
