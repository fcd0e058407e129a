//! The deletion of an environment. All resources without a Usage are deleted at once, and disappear
//! one after another.

use std::collections::BTreeMap;

use crossplane::conditions;
use fake_kube::json::{add_finalizer, text};
use jiff::Timestamp;
use serde_json::{Value, json};
use simulator::core::World;

use super::cloud::lasting;

/// The finalizer of a managed resource until its cloud has deleted it.
const MANAGED: &str = "finalizer.managedresource.crossplane.io";

/// The minimum seconds of a resource's deletion.
const GOING: f64 = 3.0;

/// The resources with a requested deletion.
pub struct Deletion {
    asked: BTreeMap<String, Timestamp>,
    pace: f64,
}

impl Deletion {
    /// No requested deletions.
    pub fn new(pace: f64) -> Self {
        Self { asked: BTreeMap::new(), pace }
    }

    /// Requests the possible deletions, and removes resources after their time. Returns whether a
    /// resource remains.
    pub fn reconcile(&mut self, world: &mut World, now: Timestamp) -> bool {
        let date = world.now().to_string();
        let free: Vec<String> =
            world.resources().keys().filter(|slot| !Self::is_kept(slot, world)).cloned().collect();
        for slot in free {
            if let Some(object) =
                world.resources_mut().get_mut(&slot).filter(|_| !self.asked.contains_key(&slot))
            {
                ask(object, &date);
                self.asked.insert(slot, now);
            }
        }
        let is_over = |(slot, since): &(&String, &Timestamp)| {
            now >= **since + lasting(self.pace, slot, GOING)
        };
        let over: Vec<String> =
            self.asked.iter().filter(is_over).map(|(slot, _)| slot.clone()).collect();
        for slot in over {
            if !waits(&slot, world) {
                world.resources_mut().remove(&slot);
                self.asked.remove(&slot);
            }
        }
        !world.resources().is_empty()
    }

    /// Whether a Usage blocks the deletion of a resource.
    fn is_kept(slot: &str, world: &World) -> bool {
        let Some(object) = world.resources().get(slot) else { return false };
        usages(world).any(|usage| refers(&usage["spec"]["of"], object))
    }
}

fn usages(world: &World) -> impl Iterator<Item = &Value> {
    world.resources().values().filter(|one| one["kind"] == "Usage" || one["kind"] == "ClusterUsage")
}

/// Whether one end of a Usage is this object.
fn refers(end: &Value, object: &Value) -> bool {
    end["kind"] == object["kind"] && end["resourceRef"]["name"] == object["metadata"]["name"]
}

/// A Usage remains until its using resource is deleted.
fn waits(slot: &str, world: &World) -> bool {
    let usage = world
        .resources()
        .get(slot)
        .filter(|one| one["kind"] == "Usage" || one["kind"] == "ClusterUsage");
    usage.is_some_and(|usage| {
        world.resources().values().any(|one| refers(&usage["spec"]["by"], one))
    })
}

fn ask(object: &mut Value, date: &str) {
    object["metadata"]["deletionTimestamp"] = json!(date);
    if text(object, "/apiVersion").contains("upbound.io")
        || object["spec"]["forProvider"].is_object()
    {
        add_finalizer(object, MANAGED);
        conditions::set(object, date, "Ready", "False", "Deleting", "");
    }
}
