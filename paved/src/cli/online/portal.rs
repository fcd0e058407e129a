//! Flags of `paved portal`.

use clap::Args;

use super::Access;

pub(super) const HELP: &str = "\
Each flag has two other forms: the environment variable PAVED_PORTAL_<FLAG>, and `flag: value` in
the file that --config names. --kubeconfig, --context, --namespace, --as and --print-openapi are
flags only. Flags override the environment. The environment overrides the file.

Examples:
  paved portal --auth none                    serve this machine with your kubeconfig's rights
  paved portal --config portal.yaml --listen 0.0.0.0:8443
  paved portal --print-openapi >openapi.json

Exit codes:
  0  stopped by a signal
  1  usage: a bad flag, an unreadable file, or an address that is in use
  6  no access: the cluster does not answer, or denies a right that the portal needs";

/// Flags of `paved portal`.
#[derive(Args, Debug)]
pub(crate) struct Portal {
    #[command(flatten)]
    pub(crate) flags: paved_portal::Flags,

    #[command(flatten)]
    pub(crate) access: Access,
}
