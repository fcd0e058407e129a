//! Kinds of add-ons in a cluster: Argo CD and Knative.

use serde_json::{Value, json};

use super::manner::{Id, MANAGED, Manner};
use super::{State, set_condition};
use crossplane::json::set;

/// Healthy after its repository was synchronized to the cluster.
pub(super) const APPLICATION: Manner = Manner {
    rounds: 2,
    id: Id::None,
    tell: |application, state, _, _| {
        let (health, sync) = match state {
            State::Ready => ("Healthy", "Synced"),
            State::Creating | State::Waiting(_) => ("Progressing", "OutOfSync"),
            State::Failed(_) => ("Degraded", "Synced"),
        };
        set(application, &["status", "health", "status"], json!(health));
        set(application, &["status", "sync", "status"], json!(sync));
    },
    ..MANAGED
};

/// Ready after the operator has deployed its components.
pub(super) const KNATIVE: Manner = Manner {
    rounds: 2,
    id: Id::None,
    tell: |serving: &mut Value, state, world, _| {
        let now = world.now().to_string();
        let (status, reason, message) = match state {
            State::Ready => ("True", "", ""),
            State::Creating | State::Waiting(_) => ("False", "NotReady", "Waiting on deployments"),
            State::Failed(why) => ("False", "Error", why.as_str()),
        };
        for kind in ["DeploymentsAvailable", "InstallSucceeded", "Ready"] {
            set_condition(serving, &now, kind, status, reason, message);
        }
    },
    ..MANAGED
};
