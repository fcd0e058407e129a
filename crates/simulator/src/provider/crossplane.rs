//! Crossplane's own kinds: Usages, and provider configs, which have no conditions.

use serde_json::{Value, json};

use super::kind_behaviour::{DEFAULT, Id, KindBehaviour};
use super::{State, set_condition};
use crossplane::json::set;

/// A provider config has no status.
pub(super) const CONFIG: KindBehaviour =
    KindBehaviour { id: Id::None, set_status: |_, _, _, _| {}, ..DEFAULT };

pub(super) fn behaviour(kind: &str) -> KindBehaviour {
    match kind {
        "Usage" | "ClusterUsage" => USAGE,
        _ => CONFIG,
    }
}

/// A Usage is available after its used resource has the label for the webhook.
const USAGE: KindBehaviour = KindBehaviour {
    id: Id::None,
    waits: |usage, world| {
        let (kind, name) = used(usage);
        let there = world
            .resources()
            .values()
            .any(|one| one["kind"] == *kind && one["metadata"]["name"] == *name);
        (there || name.is_null())
            .then_some(())
            .ok_or_else(|| format!("cannot get used resource: {kind} {name} not found"))
    },
    effects: |usage, _, world, _| {
        let (kind, name) = used(usage);
        let used = world
            .resources_mut()
            .values_mut()
            .find(|one| one["kind"] == *kind && one["metadata"]["name"] == *name);
        if let Some(used) = used {
            set(used, &["metadata", "labels", "crossplane.io/in-use"], json!("true"));
        }
    },
    set_status: |usage, state, world, _| {
        let now = world.now().to_string();
        match state {
            State::Ready => set_condition(usage, &now, "Ready", "True", "Available", ""),
            State::Creating => set_condition(usage, &now, "Ready", "False", "Creating", ""),
            State::Waiting(why) | State::Failed(why) => {
                set_condition(usage, &now, "Synced", "False", "ReconcileError", why);
            }
        }
    },
    ..DEFAULT
};

fn used(usage: &Value) -> (&Value, &Value) {
    (&usage["spec"]["of"]["kind"], &usage["spec"]["of"]["resourceRef"]["name"])
}
