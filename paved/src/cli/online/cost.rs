//! Flags of `paved cost`.

use clap::{Args, ValueEnum};

use super::Access;

pub(super) const HELP: &str = "\
The prices are estimates from list prices, or from the platform team's Settings. A month has 730
hours. A stopped environment counts with its price while stopped.

Examples:
  paved cost                        the environments of the namespace
  paved cost -A --by owner          all environments that you may list, by owner
  paved cost -A -o json             for a report

Exit codes:
  0    done
  1    usage: a bad flag
  6    no access: the cluster does not answer, or denies access
  130  stopped by Ctrl-C or SIGTERM";

/// Flags of `paved cost`.
#[derive(Args, Debug)]
pub(crate) struct Cost {
    /// Add up environments in all namespaces.
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    pub(crate) all_namespaces: bool,

    /// Groups of the sums [default: all three].
    #[arg(long, value_name = "WHAT")]
    pub(crate) by: Option<By>,

    /// Output format [default: tables].
    #[arg(short, long, value_name = "FORMAT")]
    pub(crate) output: Option<CostFormat>,

    #[command(flatten)]
    pub(crate) access: Access,
}

/// Groups of environments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum By {
    /// By owner.
    Owner,
    /// By namespace, with budgets.
    Namespace,
    /// By kind.
    Kind,
}

/// Output format of sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CostFormat {
    /// One JSON object.
    Json,
}
