//! Whatever a living environment is letting go of, it can be deleted at any moment: nothing is ever left behind then either.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::graph::Graph;
use crate::problems;
use crate::support::world::{Mood, World, desired, is_fatal, status};
use crate::support::{self, Example};

/// What a claim may drop, by its fields.
const ADD_ONS: [&[&str]; 4] = [&["app"], &["gitops"], &["knative"], &["app", "gitops", "knative"]];

/// The calls after which nothing is left of what was dropped.
const ALL_GONE: usize = 8;

/// More calls than letting everything go takes.
const LIMIT: usize = 16;

/// Virtual environments of every type in both flavours, with everything ready.
fn running() -> Vec<(String, World)> {
    let is_one = |it: &Example| it.api.info().name == "virtual-environment" && it.state == "nothing";
    let mut worlds = Vec::new();
    for example in support::examples().into_iter().filter(is_one) {
        for variant in ["vcluster", "gke", "eks", "aks"] {
            let mut world = World::new(&example);
            if variant != "vcluster" {
                let file = example.folder.join("variants").join(format!("{variant}.yaml"));
                world.xr = support::stored(&file);
            }
            let name = format!("{variant}, {:?}", world.flavour);
            worlds.push((name, world.settle(|_| Mood::Ready)));
        }
    }
    worlds
}

/// What would be left behind if the environment were deleted now, with what core deleted already on its way.
fn left_behind(world: &World) -> Vec<String> {
    let all = world.composed.iter().chain(&world.leaving);
    let all: BTreeMap<String, Value> = all.map(|(slot, it)| (slot.clone(), it.object.clone())).collect();
    // A Usage stays for a call after its user is gone.
    let is_by_nobody = |slot: &str| slot.split_once("-by-").is_some_and(|(_, by)| !all.contains_key(by));
    let there = all.iter().filter(|(slot, _)| !is_by_nobody(slot));
    problems(&Graph::of(&there.map(|(slot, object)| (slot.clone(), object.clone())).collect()))
}

/// Calls until nothing changes any more, each of them checked.
fn reconcile(name: &str, world: &mut World) {
    for call in 1..=LIMIT {
        let before = (world.composed.clone(), world.leaving.clone());
        let response = world.reconcile(|_| Mood::Ready);
        assert!(!is_fatal(&response), "{name}, call {call}: {:?}", response.results);
        let problems = left_behind(world);
        assert!(problems.is_empty(), "{name}, call {call}:\n{}", problems.join("\n"));
        if before == (world.composed.clone(), world.leaving.clone()) {
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

#[test]
fn an_environment_can_be_deleted_while_add_ons_leave_it() {
    for (name, running) in running() {
        for fields in ADD_ONS {
            let mut world = running.clone();
            take_away(&mut world, fields);
            reconcile(&format!("{name} without {fields:?}"), &mut world);
            assert_eq!(status(&world.answer())["phase"], "Ready", "{name} without {fields:?}");
        }
    }
}

#[test]
fn an_environment_can_be_deleted_while_something_holds_an_add_on() {
    for (name, running) in running() {
        for held in support::INSIDE {
            let name = format!("{name}, {held} is held");
            let mut world = running.clone();
            take_away(&mut world, &["app", "gitops", "knative"]);
            world.held = [held].into();
            reconcile(&name, &mut world);
            assert!(world.leaving.contains_key(held), "{name}: {:?}", world.leaving.keys());
            assert_eq!(status(&world.answer())["phase"], "Provisioning", "{name}");
            world.held.clear();
            reconcile(&name, &mut world);
            let response = world.answer();
            assert_eq!(status(&response)["phase"], "Ready", "{name}");
            let left: Vec<String> = desired(&response)
                .into_keys()
                .filter(|slot| support::INSIDE.contains(&slot.as_str()))
                .collect();
            assert!(left.is_empty(), "{name}: {left:?}");
        }
    }
}

#[test]
fn an_environment_can_be_deleted_while_an_add_on_comes_back() {
    for (name, running) in running() {
        let before = desired(&running.answer());
        for calls in 0..=ALL_GONE {
            let mut world = running.clone();
            take_away(&mut world, &["app", "gitops", "knative"]);
            for _ in 0..calls {
                call(&mut world);
            }
            world.xr["spec"]["parameters"] = running.xr["spec"]["parameters"].clone();
            let name = format!("{name}, after {calls} calls");
            reconcile(&name, &mut world);
            let after = desired(&world.answer());
            assert_eq!(after.keys().collect::<Vec<_>>(), before.keys().collect::<Vec<_>>(), "{name}");
            for (slot, object) in after {
                let before = before[&slot].clone().into();
                assert_eq!(support::rewritten(&before, &object.into()), [""; 0], "{name}: {slot}");
            }
        }
    }
}

fn call(world: &mut World) {
    assert!(!is_fatal(&world.reconcile(|_| Mood::Ready)));
}
