//! The operator's guide: the how-to files whose commands the scenarios run, in the order in which an operator follows them.

use std::fs;

use anyhow::{Context, Result};

use crate::workspace;

/// How to install Crossplane, the function and every API, and how to operate, upgrade and uninstall them.
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

/// How to build the packages and install one API, and how to build packages for a group of your own.
pub const INSTALLATION: &[&str] = &["docs/how-to/install.md", "docs/how-to/use-your-own-api-group.md"];

/// The pipelines that run `paved`.
pub const PIPELINES: &[&str] = &["docs/how-to/ci-pipelines.md"];

/// The text of these files, one after the other.
pub fn text(files: &[&str]) -> Result<String> {
    let read = |file: &&str| {
        fs::read_to_string(workspace::root().join(file)).with_context(|| format!("reading {file}"))
    };
    Ok(files.iter().map(read).collect::<Result<Vec<_>>>()?.join("\n"))
}
