//! Kinds of add-ons in a cluster: Argo CD and Knative.

use serde_json::{Value, json};

use super::kind_behaviour::{DEFAULT, Id, KindBehaviour};
use super::{State, set_condition};
use crossplane::json::set;

/// Healthy after its repository was synchronized to the cluster.
pub(super) const APPLICATION: KindBehaviour = KindBehaviour {
    rounds: 2,
    id: Id::None,
    set_status: |application, state, _, _| {
        let (health, sync) = match state {
            State::Ready => ("Healthy", "Synced"),
            State::Creating | State::Waiting(_) => ("Progressing", "OutOfSync"),
            State::Failed(_) => ("Degraded", "Synced"),
        };
        set(application, &["status", "health", "status"], json!(health));
        set(application, &["status", "sync", "status"], json!(sync));
    },
    ..DEFAULT
};

/// Ready after the operator has deployed its components.
pub(super) const KNATIVE: KindBehaviour = KindBehaviour {
    rounds: 2,
    id: Id::None,
    set_status: |serving: &mut Value, state, world, _| {
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
    ..DEFAULT
};
