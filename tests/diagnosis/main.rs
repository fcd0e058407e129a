//! The diagnosis of whole environments: reported messages on the resources of examples, and the
//! limits of errors and of slow clouds.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod alternation;
mod limits;
mod reported;
#[path = "../support/mod.rs"]
mod support;

use crossplane::conditions;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use simulator::core::World;
use support::simulated::Case;

const UNRESOLVED: &str = "cannot resolve references: mg.Spec.ForProvider.Role: referenced field was \
                          empty (referenced resource may not yet be ready)";

fn slot(object: &Value) -> &str {
    object["metadata"]["annotations"]["crossplane.io/composition-resource-name"]
        .as_str()
        .unwrap_or_default()
}

/// Gives a resource the error of its provider.
fn reject(object: &mut Value, now: &str, message: &str) {
    object["status"].as_object_mut().unwrap().remove("conditions");
    conditions::set(object, now, "Synced", "False", "ReconcileError", message);
    conditions::set(object, now, "Ready", "False", "Creating", "");
}

/// The condition `Stalled` of a composite.
fn is_stalled(world: &World) -> bool {
    let conditions = world.composite()["status"]["conditions"].as_array();
    conditions
        .into_iter()
        .flatten()
        .any(|condition| condition["type"] == "Stalled" && condition["status"] == "True")
}

fn after(start: Timestamp, minutes: i64) -> Timestamp {
    start.checked_add(SignedDuration::from_mins(minutes)).unwrap()
}

/// Calls the function at a time, and applies its answer.
fn call_at(case: &Case, world: &mut World, now: Timestamp) -> SignedDuration {
    world.set_now(now);
    let response = case.call(world);
    world.apply(&response).unwrap_or_else(|error| panic!("{}: {error}", case.name()));
    let ttl = response.meta.unwrap().ttl.unwrap();
    SignedDuration::new(ttl.seconds, ttl.nanos)
}
