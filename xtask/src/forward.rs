//! Tasks of the crate `e2e`, which has what they need.

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

/// Builds that crate's program and those that it starts, and becomes it: Ctrl-C and the exit code are its own.
pub fn run(task: &str, args: &Args) -> Result<()> {
    let program = workspace::build(&["e2e", "function", "paved"])?.join("e2e");
    let mut command = Command::new(&program);
    Err(command.arg(task).args(&args.flags).exec()).with_context(|| format!("starting {}", program.display()))
}
