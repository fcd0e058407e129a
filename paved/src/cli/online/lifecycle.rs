//! Flags of the commands that change the lifecycle of environments.

use clap::Args;
use function_paved_road::lifecycle::Span;
use jiff::Timestamp;
use paved_client::cluster::{InvalidSelector, Selector};

use super::{Access, Patience, Planning};

pub(super) const EXTEND_HELP: &str = "\
A renewal moves the expiry. If the environment expires later anyway, the command changes nothing.
Settings can have a maximum, and then a longer renewal is shortened. A renewal also starts an
environment that was stopped by its expiry.

Examples:
  paved extend ada 4h                                expire in 4 hours
  paved extend ada --until 2026-11-25T18:00:00Z      expire at this time
  paved extend ada --max                             expire as late as Settings allow

Exit codes:
  0    done, or the environment expires later anyway
  1    usage: a bad flag, a name that does not exist, or an environment that cannot be renewed
  2    rejected by the API server, with every reason
  6    no access: the cluster does not answer, or denies access
  130  stopped by Ctrl-C or SIGTERM";

pub(super) const KEEP_HELP: &str = "\
The command sets spec.lifecycle.ttl to never. If the claim is in Git, change it there instead.

Exit codes:
  0    done, or the environment has no time to live already
  1    usage: a bad flag, a name that does not exist, or an environment that cannot be changed
  2    rejected by the API server, with every reason
  3    rejected by the composition: Settings have a maximum
  6    no access: the cluster does not answer, or denies access
  130  stopped by Ctrl-C or SIGTERM";

pub(super) const STOP_HELP: &str = "\
A stop keeps disks and databases, but not an instance store. If one of the named environments cannot
be stopped, none is stopped. With --select or --all, a note names each environment that cannot be
stopped. If the API server rejects one stop, the other environments are still stopped.

Examples:
  paved stop ada                              stop an environment
  paved stop ada gpuws/grace                  stop several environments
  paved stop --select team=vision             stop all environments with a label
  paved stop --select team=vision -A          in all namespaces
  paved stop --all                            stop all environments of the namespace

Exit codes:
  0    done, or the environments are stopped already
  1    usage: a bad flag, a name that does not exist, or an environment that cannot be changed
  2    rejected by the API server, with every reason
  3    rejected by the composition: the environment cannot be stopped
  6    no access: the cluster does not answer, or denies access
  130  stopped by Ctrl-C or SIGTERM";

pub(super) const START_HELP: &str = "\
A start renews the environment by its time to live.

Examples:
  paved start ada                             start an environment
  paved start ada --wait --timeout 15m        and wait until it runs

Exit codes:
  0    done; with --wait, the environment runs
  1    usage: a bad flag, a name that does not exist, or an environment that cannot be changed
  2    rejected by the API server, with every reason
  3    rejected by the composition: the spec or the platform's Settings are invalid
  4    provisioning failed: a resource is rejected and no other resource changes for --patience,
       or the environment is being deleted
  5    timed out
  6    no access: the cluster does not answer, or denies access
  7    no capacity: the cloud cannot start the environment now
  130  stopped by Ctrl-C or SIGTERM";

/// Flags of `paved extend`.
#[derive(Args, Debug)]
pub(crate) struct Extend {
    /// Environment: NAME, or KIND/NAME if the name is ambiguous.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    /// Time from now to the expiry, for example 30m, 4h or 14d.
    #[arg(value_name = "TIME", value_parser = span, allow_hyphen_values = true,
        required_unless_present_any = ["until", "max"], conflicts_with_all = ["until", "max"])]
    pub(crate) length: Option<Span>,

    /// Expiry (RFC 3339), for example 2026-11-25T18:00:00Z.
    #[arg(long, value_name = "TIME", value_parser = time, allow_hyphen_values = true,
        conflicts_with = "max")]
    pub(crate) until: Option<Timestamp>,

    /// Expire as late as Settings allow.
    #[arg(long)]
    pub(crate) max: bool,

    #[command(flatten)]
    pub(crate) access: Access,
}

/// Flags of `paved keep`.
#[derive(Args, Debug)]
pub(crate) struct Keep {
    /// Environment: NAME, or KIND/NAME if the name is ambiguous.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    #[command(flatten)]
    pub(crate) access: Access,
}

/// Flags of `paved stop`.
#[derive(Args, Debug)]
pub(crate) struct Stop {
    /// Environments: NAME, or KIND/NAME if a name is ambiguous.
    #[arg(value_name = "NAME", required_unless_present_any = ["select", "all"])]
    pub(crate) names: Vec<String>,

    /// Stop all environments with these labels, for example team=vision,stage!=prod.
    #[arg(short = 'l', long, value_name = "LABELS", value_parser = selector,
        conflicts_with = "names")]
    pub(crate) select: Option<Selector>,

    /// Stop all environments of the namespace.
    #[arg(long, conflicts_with_all = ["names", "select"])]
    pub(crate) all: bool,

    /// Select environments in all namespaces.
    #[arg(short = 'A', long, conflicts_with_all = ["names", "namespace"])]
    pub(crate) all_namespaces: bool,

    /// Stop without a question.
    #[arg(short, long)]
    pub(crate) yes: bool,

    #[command(flatten)]
    pub(crate) planning: Planning,

    #[command(flatten)]
    pub(crate) access: Access,
}

/// Flags of `paved start`.
#[derive(Args, Debug)]
pub(crate) struct Start {
    /// Environment: NAME, or KIND/NAME if the name is ambiguous.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    /// Wait until the environment is ready and runs, or has failed.
    #[arg(long)]
    pub(crate) wait: bool,

    #[command(flatten)]
    pub(crate) patience: Patience,

    #[command(flatten)]
    pub(crate) access: Access,
}

/// Parses the length of a renewal, for example `8h`.
fn span(text: &str) -> Result<Span, &'static str> {
    if text == "never" {
        return Err("use paved keep for an environment that never expires");
    }
    finite_span(text)
}

/// Parses a length of time, for example `8h`.
pub(super) fn finite_span(text: &str) -> Result<Span, &'static str> {
    match text.parse() {
        Ok(Span::Never) | Err(_) => {
            Err("allowed: a whole number with a unit (s, m, h, d or w), for example 30m, 8h or 14d")
        }
        Ok(span) => Ok(span),
    }
}

fn selector(text: &str) -> Result<Selector, String> {
    text.parse().map_err(|error| match error {
        InvalidSelector::Empty => format!("{error}. Use --select LABEL=VALUE, or --all"),
        _ => error.to_string(),
    })
}

fn time(text: &str) -> Result<Timestamp, &'static str> {
    text.parse().map_err(|_| "allowed: a time (RFC 3339), for example 2026-11-25T18:00:00Z")
}
