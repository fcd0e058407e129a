//! Shared by the tests of the providers: a world with resources, and their states.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::needless_pass_by_value)]

use function_proto::structs;
use function_proto::v1::{Resource, RunFunctionResponse, State};
use serde_json::{Value, json};
use simulator::core::World;
use simulator::provider::{Pace, Provider};

/// A legacy XR's world. These resources are desired and applied.
pub fn world(resources: Value) -> World {
    world_of(json!({"name": "demo"}), resources)
}

pub fn namespaced(resources: Value) -> World {
    world_of(json!({"name": "demo", "namespace": "team"}), resources)
}

pub fn world_of(metadata: Value, resources: Value) -> World {
    let composite =
        json!({"apiVersion": "acme.io/v1", "kind": "XDemo", "metadata": metadata, "spec": {}});
    let mut world = World::new(composite);
    desire(&mut world, resources);
    world
}

/// Applies these resources as desired, and deletes the others.
pub fn desire(world: &mut World, resources: Value) {
    let desired = |(slot, resource): (&String, &Value)| {
        let resource = structs::structure(resource.as_object().unwrap().clone());
        (slot.clone(), Resource { resource: Some(resource), ..Resource::default() })
    };
    let resources = resources.as_object().unwrap().iter().map(desired).collect();
    let desired = Some(State { resources, ..State::default() });
    world.apply(&RunFunctionResponse { desired, ..RunFunctionResponse::default() }).unwrap();
}

pub fn aws(kind: &str, params: Value) -> Value {
    let service = if ["Role", "RolePolicyAttachment", "InstanceProfile"].contains(&kind) {
        "iam"
    } else {
        "ec2"
    };
    json!({"apiVersion": format!("{service}.aws.upbound.io/v1beta1"), "kind": kind, "spec": {"forProvider": params}})
}

pub fn gcp(service: &str, kind: &str, params: Value) -> Value {
    json!({"apiVersion": format!("{service}.gcp.upbound.io/v1beta1"), "kind": kind, "spec": {"forProvider": params}})
}

pub fn status(world: &World, slot: &str, kind: &str) -> String {
    let conditions =
        world.resources()[slot]["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let found = conditions.iter().find(|condition| condition["type"] == kind);
    found.map(|condition| condition["status"].as_str().unwrap().to_owned()).unwrap_or_default()
}

pub fn message(world: &World, slot: &str, kind: &str) -> String {
    let conditions = world.resources()[slot]["status"]["conditions"].as_array().unwrap();
    let found = conditions.iter().find(|condition| condition["type"] == kind).unwrap();
    found["message"].as_str().unwrap_or_default().to_owned()
}

/// The round after which each slot became Ready.
pub fn rounds(world: &mut World, slots: &[&str]) -> Vec<usize> {
    let mut provider = Provider::new(Pace::Rounds);
    let mut ready = vec![0; slots.len()];
    for round in 1..=20 {
        provider.answer(world);
        for (at, slot) in slots.iter().enumerate() {
            if ready[at] == 0 && status(world, slot, "Ready") == "True" {
                ready[at] = round;
            }
        }
    }
    ready
}

pub const SIBLING: fn() -> Value = || json!({"matchControllerRef": true});
