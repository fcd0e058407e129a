//! Programs from npm.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::workspace;

/// The versions that Vite and ESLint support. `.ci/run` checks for the same versions.
const WANTED: &str = "Node.js 20.19, 22.13, or 24 and later";

/// Installs the packages of a folder's package-lock.json into its `node_modules`, if they are not
/// installed yet. Other callers wait until this is done.
pub fn install(folder: &Path) -> Result<()> {
    let _lock = lock()?;
    let wanted = fs::read(folder.join("package-lock.json"))
        .with_context(|| format!("reading {}", folder.join("package-lock.json").display()))?;
    // A copy of the lock file of the last installation.
    let installed = folder.join("node_modules/.installed");
    if fs::read(&installed).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    check_version()?;
    let mut command = Command::new("npm");
    command.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]).current_dir(folder);
    let done =
        command.output().with_context(|| format!("starting npm, which comes with {WANTED}"))?;
    ensure!(done.status.success(), "{command:?}: {}", String::from_utf8_lossy(&done.stderr));
    fs::write(installed, wanted).context("marking packages as installed")
}

/// Fails unless the Node.js on the PATH can build the pages.
fn check_version() -> Result<()> {
    let found = Command::new("node").arg("--version").output();
    let found = found.with_context(|| format!("could not start node. Install {WANTED}"))?;
    let version = String::from_utf8_lossy(&found.stdout);
    ensure!(is_wanted(version.trim()), "found node {}. Install {WANTED}", version.trim());
    Ok(())
}

/// Whether the pages can be built with this version of Node.js: `v20.19.0`.
fn is_wanted(version: &str) -> bool {
    let mut numbers = version.trim_start_matches('v').split('.').map(str::parse::<u32>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => {
            matches!((major, minor), (20, 19..) | (22, 13..) | (24.., _))
        }
        _ => false,
    }
}

/// A lock for the use of npm. Dropping it releases the lock.
pub(crate) fn lock() -> Result<File> {
    let all = workspace::target().join("tmp");
    fs::create_dir_all(&all).with_context(|| format!("making {}", all.display()))?;
    let lock = File::create(all.join("npm.lock")).context("making a lock")?;
    lock.lock().context("waiting for npm")?;
    Ok(lock)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debians_node_is_too_old() {
        for good in ["v20.19.0", "v20.20.2", "v22.13.1", "v24.0.0", "v26.10.0"] {
            assert!(is_wanted(good), "{good}");
        }
        for bad in ["", "v18.20.4", "v20.18.0", "v21.7.3", "v22.12.0", "v23.11.0", "node"] {
            assert!(!is_wanted(bad), "{bad}");
        }
    }
}
