//! Unique names, and blocks that providers do not fill in.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use simulator::core::World;
use simulator::provider::model::Model;
use simulator::provider::{Pace, Provider};

use super::environment::beginnings;
use super::support::simulated::{self, Case};
use super::support::world::desired;

/// The names under which the clouds look for resources of an environment with this uid. Resources
/// within other resources are excluded, because their names are not global.
fn names(case: &Case, uid: &str) -> BTreeSet<String> {
    let mut world = case.world();
    world.composite_mut()["metadata"]["uid"] = json!(uid);
    let mut provider = Provider::new(Pace::Instant);
    for _ in 0..4 {
        world.apply(&case.call(&world)).unwrap();
        provider.answer(&mut world);
    }
    let asked = desired(&case.call(&world)).into_iter().filter(|(slot, _)| {
        let found = world.resources().get(slot);
        found.is_some_and(|found| {
            let model = Model::for_object(found);
            !model.assigns_names() && model.whole(found).is_none() && is_in_a_cloud(found)
        })
    });
    let name = |(_, object): (String, Map<String, Value>)| {
        let name = object["metadata"]["annotations"]["crossplane.io/external-name"].as_str()?;
        Some(format!("{} {name}", object["kind"]))
    };
    asked.filter_map(name).collect()
}

fn is_in_a_cloud(object: &Value) -> bool {
    object["apiVersion"].as_str().is_some_and(|version| version.contains(".upbound.io/"))
}

#[test]
fn trap_11_environments_of_one_name_share_no_name_in_a_cloud() {
    let mut found = 0;
    for case in simulated::all() {
        let first = names(&case, "11111111-0c2a-4f68-b7d4-5a16c83f92e0");
        let second = names(&case, "22222222-9d3b-4e57-a6c3-4b05b72e81df");
        // The id that the cloud assigns to a server replaces its name, which is also in another
        // field.
        let shared: Vec<_> = first.intersection(&second).collect();
        assert!(shared.is_empty(), "{}: {shared:?}", case.name());
        found += first.len();
    }
    assert!(found > 10, "only {found} names");
}

#[test]
fn trap_11_bucket_of_another_account_is_reported() {
    const BUCKET: &str = "frontend-bucket";
    for mut environment in beginnings("unified-environment", None) {
        let asked = environment.asked(BUCKET);
        let name = asked["metadata"]["annotations"]["crossplane.io/external-name"].as_str();
        environment.provider.occupy(name.unwrap());
        environment.settle();
        environment.call();
        environment.says(BUCKET, "observe failed: failed to observe the resource");
        environment.says(BUCKET, "operation error S3: HeadBucket");
        assert_eq!(environment.line(BUCKET)["reason"], "Failed");
        assert_eq!(environment.cause(BUCKET), "AccessDenied");
        assert_eq!(environment.line(BUCKET)["cause"]["params"]["conflict"], "bucket");
        assert_eq!(environment.status()["phase"], "Failed");
    }
}

/// The differences between desired blocks and the observed blocks.
fn filled_blocks(world: &World, asked: &Value, slot: &str) -> Vec<String> {
    let seen = &world.resources()[slot]["spec"]["forProvider"];
    let blocks = asked["spec"]["forProvider"].as_object().into_iter().flatten();
    let blocks = blocks.filter(|(field, value)| value.is_object() && !field.ends_with("Ref"));
    blocks
        .filter(|(field, value)| seen[field.as_str()] != **value)
        .map(|(field, value)| format!("{slot} {field}: {value} is {}", seen[field.as_str()]))
        .collect()
}

#[test]
fn trap_15_requested_blocks_are_unchanged() {
    let mut late = 0;
    for case in simulated::all() {
        let world = case.settled();
        for (slot, object) in desired(&case.call(&world)) {
            let asked = Value::Object(object);
            if !is_in_a_cloud(&asked) {
                continue;
            }
            let filled = filled_blocks(&world, &asked, &slot);
            assert!(filled.is_empty(), "{}: {filled:?}", case.name());
            let fields = |object: &Value| object["spec"]["forProvider"].as_object().unwrap().len();
            late += usize::from(fields(&world.resources()[&slot]) > fields(&asked));
        }
    }
    assert!(late > 20, "only {late} resources have late-initialised fields");
}

#[test]
fn trap_15_nodes_version_of_aks_is_not_late_initialised() {
    let is_aks = |case: &Case| case.variant().as_deref() == Some("aks");
    for case in simulated::all().into_iter().filter(is_aks) {
        let world = case.settled();
        let pool = &world.resources()["cluster"]["spec"]["forProvider"]["defaultNodePool"];
        assert!(pool.is_object() && pool.get("orchestratorVersion").is_none(), "{pool:#}");
    }
}
