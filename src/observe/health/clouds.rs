//! The health that a cloud reports.

use super::{Health, State};
use crate::reason::Reason;
use crate::value::{Object, text};

/// States in the cloud that make a resource unusable, although its provider reports it ready.
/// Providers built with upjet set `Ready` as soon as they can read a resource. Each entry has the
/// first label of the group, the kind and the field of `status.atProvider`. GKE, Cloud SQL and AKS
/// have no such field.
pub(crate) const CLOUD_STATES: [(&str, &str, &str, &[&str], State); 5] = [
    ("eks", "Cluster", "status", &["FAILED"], State::Failed),
    ("eks", "NodeGroup", "status", &["CREATE_FAILED", "DELETE_FAILED", "DEGRADED"], State::Failed),
    (
        "rds",
        "Instance",
        "status",
        &[
            "failed",
            "inaccessible-encryption-credentials",
            "inaccessible-encryption-credentials-recoverable",
            "incompatible-create",
            "incompatible-network",
            "incompatible-option-group",
            "incompatible-parameters",
            "incompatible-restore",
            "insufficient-capacity",
            "restore-error",
            "storage-full",
        ],
        State::Failed,
    ),
    ("rds", "Instance", "status", &["stopping", "stopped"], State::Waiting),
    (
        "ec2",
        "Instance",
        "instanceState",
        &["shutting-down", "stopping", "stopped", "terminated"],
        State::Waiting,
    ),
];

/// The health of a resource that is unusable according to its cloud.
pub(super) fn cloud_state(object: &Object) -> Option<Health> {
    let service = text(object, &["apiVersion"])?.split('.').next()?;
    let kind = text(object, &["kind"])?;
    let of_kind =
        CLOUD_STATES.iter().filter(|(group, name, ..)| (*group, *name) == (service, kind));
    of_kind.into_iter().find_map(|(_, _, field, states, state)| {
        let found = text(object, &["status", "atProvider", field])?;
        let known = states.iter().find(|known| **known == found)?;
        Some(match state {
            State::Failed => {
                let message = format!(
                    "its cloud reports the state {known}. The cloud's console has the cause"
                );
                Health::pending(State::Failed, Reason::Failed, message)
            }
            _ => Health::pending(
                *state,
                Reason::Unavailable,
                format!("its cloud reports the state {known}"),
            ),
        })
    })
}
