//! Flags of `paved controller`.

use clap::Args;

use super::Access;

pub(super) const HELP: &str = "\
Each flag has an environment variable PAVED_CONTROLLER_<FLAG>, except --dry-run and the flags that
select the cluster. --namespace is the namespace of the Lease.

Examples:
  paved controller --dry-run                  show what the controller would do now
  paved controller --notify https://events.example.org/paved-road

Exit codes:
  0  stopped by a signal, or done with --dry-run
  1  usage: a bad flag, an unreadable file, or an address that is in use
  6  no access: the cluster does not answer, or denies a right that the controller needs";

/// Flags of `paved controller`.
#[derive(Args, Debug)]
pub(crate) struct Controller {
    #[command(flatten)]
    pub(crate) flags: paved_controller::Flags,

    #[command(flatten)]
    pub(crate) access: Access,
}
