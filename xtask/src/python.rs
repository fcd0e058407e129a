//! Programs from PyPI, each in a virtual environment that is made once and kept in the target folder.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::workspace;

/// moto: AWS's APIs on loopback.
pub const MOTO: &str = "moto[server]==5.2.5";

/// schemathesis: requests that are made up from the description of an API.
pub const SCHEMATHESIS: &str = "schemathesis==4.32.5";

/// A program of the virtual environment that has `requirement`, as in `moto[server]==5.2.5`: another version has another one. It is
/// made where it is not there yet; whoever wants it meanwhile waits.
pub fn program(requirement: &str, name: &str) -> Result<PathBuf> {
    let kept: String = requirement.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let all = workspace::target().join("tmp");
    fs::create_dir_all(&all).with_context(|| format!("making {}", all.display()))?;
    let lock = File::create(all.join(format!("{kept}.lock"))).context("making a lock")?;
    lock.lock().context("waiting for a virtual environment")?;
    let home = all.join(kept);
    let whole = home.join("whole");
    if !whole.exists() {
        run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&home))?;
        run(Command::new(home.join("bin/python")).args(["-m", "pip", "install", "--quiet", requirement]))?;
        fs::write(whole, "").context("marking a virtual environment as whole")?;
    }
    Ok(home.join("bin").join(name))
}

fn run(command: &mut Command) -> Result<()> {
    let done = command.output().with_context(|| format!("{command:?}; Python 3 is needed"))?;
    ensure!(done.status.success(), "{command:?}: {}", String::from_utf8_lossy(&done.stderr));
    Ok(())
}
