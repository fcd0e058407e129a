//! Tasks of the crates `e2e` and `demo`, which have what they need.

use std::{ffi::OsString, os::unix::process::CommandExt, process::Command};

use anyhow::{Context, Result};

use crate::workspace;

/// What is handed on.
#[derive(clap::Args)]
pub struct Args {
    /// Flags of the task.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    flags: Vec<OsString>,
}

/// Builds a crate's program and those that it starts, and becomes the first of them: Ctrl-C and the exit code are its own.
pub fn run(programs: &[&str], task: Option<&str>, args: &Args) -> Result<()> {
    let folder = workspace::build(programs)?;
    let program = programs.first().map(|program| folder.join(program)).context("no program is named")?;
    let mut command = Command::new(&program);
    Err(command.args(task).args(&args.flags).exec())
        .with_context(|| format!("starting {}", program.display()))
}
