//! `paved ssh`: makes workspaces reachable for OpenSSH and the programs that use it.

mod block;
mod config;
mod entry;
mod known_hosts;

use std::path::PathBuf;

use crate::Console;
use crate::cli::{Ssh, SshCommand};
use crate::failure::Failure;

/// Runs the command that the flags select.
pub(crate) async fn run(args: &Ssh, console: &mut Console<'_>) -> Result<(), Failure> {
    match &args.command {
        SshCommand::Config(args) => config::run(args, console).await,
        SshCommand::KnownHosts(args) => known_hosts::run(args, console).await,
        SshCommand::Name(words) => {
            let name = words.first().map(|word| word.to_string_lossy()).unwrap_or_default();
            Err(Failure::Usage(format!(
                "found {name:?}; allowed: config, known-hosts. To open a shell, run `paved connect \
                 NAME`, or after `paved ssh config` also `ssh NAME.paved`"
            )))
        }
    }
}

/// The user's folder of OpenSSH.
fn folder() -> Result<PathBuf, Failure> {
    let home = std::env::home_dir().filter(|home| !home.as_os_str().is_empty());
    let home = home.ok_or_else(|| Failure::Usage("no home directory. Set $HOME".to_owned()))?;
    Ok(home.join(".ssh"))
}
