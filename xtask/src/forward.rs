//! The tasks that are programs of other crates: `e2e`, and `paved demo`.

use std::{ffi::OsString, os::unix::process::CommandExt, process::Command};

use anyhow::{Context, Result};

use crate::workspace;

/// The flags of another program.
#[derive(clap::Args)]
pub struct Args {
    /// Flags of the task.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    flags: Vec<OsString>,
}

/// Builds the programs, and replaces this process with the first of them. So Ctrl-C and the exit
/// code belong to that program.
pub fn run(programs: &[&str], task: Option<&str>, args: &Args) -> Result<()> {
    let folder = workspace::build(programs)?;
    let program =
        programs.first().map(|program| folder.join(program)).context("no program is named")?;
    let mut command = Command::new(&program);
    Err(command.args(task).args(&args.flags).exec())
        .with_context(|| format!("starting {}", program.display()))
}
