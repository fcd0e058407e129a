//! Programs from npm.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::workspace;

/// Installs what a folder's package-lock.json names into its `node_modules`, where that is not there yet; whoever wants it meanwhile
/// waits.
pub fn install(folder: &Path) -> Result<()> {
    let _lock = lock()?;
    let wanted = fs::read(folder.join("package-lock.json"))
        .with_context(|| format!("reading {}", folder.join("package-lock.json").display()))?;
    // A copy of what was installed lies beside it.
    let installed = folder.join("node_modules/.installed");
    if fs::read(&installed).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    let mut command = Command::new("npm");
    command.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]).current_dir(folder);
    let done = command.output().context("starting npm; Node.js is needed")?;
    ensure!(done.status.success(), "{command:?}: {}", String::from_utf8_lossy(&done.stderr));
    fs::write(installed, wanted).context("marking packages as installed")
}

/// The turn to use npm, for as long as it is held.
pub(crate) fn lock() -> Result<File> {
    let all = workspace::target().join("tmp");
    fs::create_dir_all(&all).with_context(|| format!("making {}", all.display()))?;
    let lock = File::create(all.join("npm.lock")).context("making a lock")?;
    lock.lock().context("waiting for npm")?;
    Ok(lock)
}
