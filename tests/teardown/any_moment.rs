//! An environment can be deleted at any moment, also while resources are created or removed. No
//! resource is left behind.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};

use serde_json::Value;

use crate::graph::Graph;
use crate::support;
use crate::support::virtual_environment::{INSIDE, TYPES, beginnings, running};
use crate::support::world::{Mood, World, desired, is_fatal, status};

/// The fields that a claim may drop, in combinations.
const ADD_ONS: [&[&str]; 4] = [&["app"], &["gitops"], &["knative"], &["app", "gitops", "knative"]];

/// Resources that need no Usage for their deletion. GKE deletes nodes with their cluster. EKS
/// refuses to delete a cluster until its nodes are deleted. The host namespace deletes its content.
/// Credentials are no cloud resource.
const BENEATH: [&str; 3] = ["vcluster", "node-pool", "cluster-auth"];

/// The number of calls after which all dropped resources are deleted.
const ALL_GONE: usize = 10;

/// More calls than any removal needs.
const LIMIT: usize = 16;

/// Environments of every type, with a name for failure messages.
fn of_every_type(make: fn(&str) -> [World; 2]) -> impl Iterator<Item = (String, World)> {
    let name = |cluster_type, world: World| (format!("{cluster_type}, {:?}", world.flavour), world);
    TYPES.into_iter().flat_map(move |one| make(one).map(|world| name(one, world)))
}

/// The resources that a deletion would leave behind now. It includes resources that Crossplane is
/// deleting already. It ignores Usages that are not in force yet.
fn left_behind(world: &World) -> Vec<String> {
    let all = world.composed.iter().chain(&world.leaving);
    let all = all.filter(|(slot, it)| !slot.starts_with("usage-") || is_in_force(&it.object));
    let all: BTreeMap<String, Value> =
        all.map(|(slot, it)| (slot.clone(), it.object.clone())).collect();
    // A Usage stays for one call after its user is deleted.
    let is_by_nobody =
        |slot: &str| slot.split_once("-by-").is_some_and(|(_, by)| !all.contains_key(by));
    let there = all.iter().filter(|(slot, _)| !is_by_nobody(slot));
    let there = there.map(|(slot, object)| (slot.clone(), object.clone())).collect();
    let mut problems = Graph::of(&there).problems();
    problems.retain(|problem| {
        !BENEATH.iter().any(|slot| problem.starts_with(&format!("{slot} needs ")))
    });
    problems
}

/// A Usage protects its resource once it is Ready, which may be some time after it was composed.
fn is_in_force(usage: &Value) -> bool {
    let mut conditions = usage["status"]["conditions"].as_array().into_iter().flatten();
    conditions.any(|one| one["type"] == "Ready" && one["status"] == "True")
}

/// One call. New Usages and the `slow` Usage are not in force after it. All other resources are
/// ready.
fn call(world: &mut World, slow: Option<&str>) {
    let known: BTreeSet<String> = world.composed.keys().cloned().collect();
    let is_late =
        |slot: &str| slot.starts_with("usage-") && !known.contains(slot) || slow == Some(slot);
    let response = world.reconcile(|slot| if is_late(slot) { Mood::Silent } else { Mood::Ready });
    assert!(!is_fatal(&response), "{:?}", response.results);
}

/// Calls until the state does not change any more, and checks each call.
fn reconcile(name: &str, world: &mut World, slow: Option<&str>) {
    for number in 1..=LIMIT {
        let before = (world.composed.clone(), world.leaving.clone());
        call(world, slow);
        let problems = left_behind(world);
        assert!(problems.is_empty(), "{name}, call {number}:\n{}", problems.join("\n"));
        if before.0 == world.composed && before.1 == world.leaving {
            return;
        }
    }
    panic!("{name}: still changing after {LIMIT} calls");
}

fn take_away(world: &mut World, fields: &[&str]) {
    let parameters = world.xr["spec"]["parameters"].as_object_mut().unwrap();
    for field in fields {
        assert!(parameters.remove(*field).is_some(), "{field}");
    }
}

/// The Usages of an environment.
fn usages(world: &World) -> Vec<String> {
    world.composed.keys().filter(|slot| slot.starts_with("usage-")).cloned().collect()
}

/// An environment in which all Usages except one are in force.
struct Slow {
    name: String,
    usage: String,
    world: World,
    /// The environment with all Usages in force.
    made: Arc<World>,
}

/// Environments of every type, each with every one of its Usages as the slow one.
static SLOW: LazyLock<Vec<Slow>> = LazyLock::new(|| {
    let mut all = Vec::new();
    for (name, beginning) in of_every_type(beginnings) {
        let mut made = beginning.clone();
        reconcile(&name, &mut made, None);
        assert_eq!(status(&made.answer())["phase"], "Ready", "{name}");
        let made = Arc::new(made);
        for slow in usages(&made) {
            let name = format!("{name}, {slow} is slow");
            let mut world = beginning.clone();
            reconcile(&name, &mut world, Some(&slow));
            all.push(Slow { name, usage: slow, world, made: Arc::clone(&made) });
        }
    }
    all
});

#[test]
fn environment_can_be_deleted_during_its_creation() {
    for Slow { name, world, made, .. } in SLOW.iter() {
        let mut world = world.clone();
        reconcile(&format!("{name}, and in force later"), &mut world, None);
        assert_eq!(world.composed, made.composed, "{name}");
    }
}

#[test]
fn environment_can_be_deleted_during_the_removal_of_add_ons() {
    for (name, running) in of_every_type(running) {
        for fields in ADD_ONS {
            let mut world = running.clone();
            take_away(&mut world, fields);
            reconcile(&format!("{name} without {fields:?}"), &mut world, None);
            assert_eq!(status(&world.answer())["phase"], "Ready", "{name} without {fields:?}");
        }
    }
}

#[test]
fn new_environment_can_be_deleted_while_add_ons_are_removed() {
    for Slow { name, usage, world, .. } in SLOW.iter() {
        let mut world = world.clone();
        take_away(&mut world, &["app", "gitops", "knative"]);
        reconcile(name, &mut world, Some(usage));
        reconcile(name, &mut world, None);
        assert_eq!(status(&world.answer())["phase"], "Ready", "{name}");
        let left: Vec<_> =
            world.composed.keys().filter(|slot| INSIDE.contains(&slot.as_str())).collect();
        assert!(left.is_empty(), "{name}: {left:?}");
    }
}

#[test]
fn environment_can_be_deleted_while_an_add_on_is_held() {
    for (name, running) in of_every_type(running) {
        for held in INSIDE {
            let name = format!("{name}, {held} is held");
            let mut world = running.clone();
            take_away(&mut world, &["app", "gitops", "knative"]);
            world.held = [held].into();
            reconcile(&name, &mut world, None);
            assert!(world.leaving.contains_key(held), "{name}: {:?}", world.leaving.keys());
            assert_eq!(status(&world.answer())["phase"], "Provisioning", "{name}");
            world.held.clear();
            reconcile(&name, &mut world, None);
            let response = world.answer();
            assert_eq!(status(&response)["phase"], "Ready", "{name}");
            let left: Vec<String> = desired(&response)
                .into_keys()
                .filter(|slot| INSIDE.contains(&slot.as_str()))
                .collect();
            assert!(left.is_empty(), "{name}: {left:?}");
        }
    }
}

#[test]
fn environment_can_be_deleted_while_an_add_on_is_added_again() {
    for (name, running) in of_every_type(running) {
        let before = desired(&running.answer());
        for calls in 0..=ALL_GONE {
            let mut world = running.clone();
            take_away(&mut world, &["app", "gitops", "knative"]);
            for _ in 0..calls {
                call(&mut world, None);
            }
            if calls == ALL_GONE {
                let all = world.composed.keys().chain(world.leaving.keys());
                let left: Vec<_> =
                    all.filter(|slot| INSIDE.iter().any(|one| slot.ends_with(one))).collect();
                assert!(left.is_empty(), "{name}: {left:?}");
            }
            world.xr["spec"]["parameters"] = running.xr["spec"]["parameters"].clone();
            let name = format!("{name}, after {calls} calls");
            reconcile(&name, &mut world, None);
            let after = desired(&world.answer());
            assert_eq!(
                after.keys().collect::<Vec<_>>(),
                before.keys().collect::<Vec<_>>(),
                "{name}"
            );
            for (slot, object) in after {
                let before = before[&slot].clone().into();
                assert_eq!(support::rewritten(&before, &object.into()), [""; 0], "{name}: {slot}");
            }
        }
    }
}
