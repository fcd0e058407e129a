//! Commands on the platform of a cluster.

use std::time::Duration;

use clap::{Args, Subcommand};

use super::Access;
use super::cluster::duration;

const UNINSTALL_HELP: &str = "\
The command removes, in this order: the APIs (Configurations, or XRDs and Compositions), the
function, its runtime configs, the roles and policies, and the Settings. Crossplane, the providers,
the portal and the controller stay. If the command is interrupted, run it again.

Examples:
  paved platform uninstall               list the objects, and remove them after a question
  paved platform uninstall --yes         for a script
  paved platform uninstall --providers --yes
                                         also remove unused providers

Exit codes:
  0    done
  1    usage: a bad flag, or an environment exists
  5    timed out
  6    no access: the cluster does not answer, or denies access
  130  stopped by Ctrl-C or SIGTERM";

/// Commands of `paved platform` that need a cluster.
#[derive(Debug, Subcommand)]
pub(crate) enum PlatformCommand {
    /// Remove Paved Road from a cluster without environments.
    #[command(after_help = UNINSTALL_HELP)]
    Uninstall(Uninstall),
}

/// Flags of `paved platform uninstall`.
#[derive(Args, Debug)]
pub(crate) struct Uninstall {
    /// Uninstall without confirmation.
    #[arg(short, long)]
    pub(crate) yes: bool,

    /// Also remove our providers that are not used: by another package, or by objects of their kinds.
    #[arg(long)]
    pub(crate) providers: bool,

    /// Time limit, for example 90s or 10m [default: 10m].
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) timeout: Option<Duration>,

    #[command(flatten)]
    pub(crate) access: Access,
}
