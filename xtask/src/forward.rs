//! Tasks of the crate `e2e`, which has what they need.

use std::{env, ffi::OsString, os::unix::process::CommandExt, process::Command};

use anyhow::{Context, Result};

use crate::workspace;

/// What is handed on.
#[derive(clap::Args)]
pub struct Args {
    /// Flags of the task.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    flags: Vec<OsString>,
}

/// Becomes cargo, which builds and becomes that crate's program: Ctrl-C and the exit code are its own.
pub fn run(task: &str, args: &Args) -> Result<()> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["run", "--quiet", "--bin", "e2e", "--manifest-path"]);
    command.arg(workspace::root().join("Cargo.toml")).args(["--", task]).args(&args.flags);
    Err(command.exec()).context("starting cargo")
}
