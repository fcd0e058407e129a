//! The status of a stock pool in different states of its Deployment.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use function_paved_road::apis::Flavour;
use serde_json::{Value, json};
use support::world::{Mood, World, status};

/// The example in both APIs, with all pods available.
fn ready() -> Vec<World> {
    let examples = support::examples().into_iter();
    let pools = examples
        .filter(|example| example.api.info().name == "stock-pool" && example.state == "nothing");
    let settled = |example| {
        let mut world = World::new(&example);
        world.xr["metadata"]["generation"] = json!(2);
        world.settle(|_| Mood::Ready)
    };
    pools.map(settled).collect()
}

/// The observed Deployment, wrapped or not.
fn deployment(world: &mut World) -> &mut Value {
    let object = &mut world.composed.get_mut("deployment").unwrap().object;
    if object["kind"] == "Object" {
        &mut object["status"]["atProvider"]["manifest"]
    } else {
        object
    }
}

/// `phase available/allocated`
fn told(world: &World) -> String {
    let status = status(&world.answer());
    format!("{} {}/{}", status["phase"].as_str().unwrap(), status["available"], status["allocated"])
}

#[test]
fn status_has_no_counts_before_the_deployment_is_observed() {
    for example in support::examples() {
        if example.api.info().name == "stock-pool" && example.state == "nothing" {
            assert_eq!(told(&World::new(&example)), "Progressing null/null");
        }
    }
}

#[test]
fn a_pool_is_ready_when_all_its_pods_are_available() {
    for world in ready() {
        assert_eq!(told(&world), "Ready 2/0");
        let generation = if world.flavour == Flavour::Namespaced { json!(2) } else { Value::Null };
        assert_eq!(status(&world.answer())["observedGeneration"], generation);
    }
}

#[test]
fn change_is_not_ready_before_the_deployment_observes_the_change() {
    for world in ready() {
        let generation = status(&world.answer())["observedGeneration"].clone();
        let changes = [
            ("replicas", json!(5)),
            ("image", json!("registry.k8s.io/pause:3.11")),
            ("memory", json!("32Gi")),
            ("memory", Value::Null),
            ("gpu", json!(2)),
            ("gpu", json!(0)),
        ];
        let mut unnoted = world.clone();
        let notes =
            &mut unnoted.composed.get_mut("deployment").unwrap().object["metadata"]["annotations"];
        notes.as_object_mut().unwrap().remove("paved-road.fn.crossplane.io/asked");
        assert!(told(&unnoted).starts_with("Ready"), "as an earlier release composed it");
        for (world, (field, value)) in
            changes.iter().flat_map(|change| [(&world, change), (&unnoted, change)])
        {
            let mut world = world.clone();
            world.xr["spec"][field] = value.clone();
            world.xr["metadata"]["generation"] = json!(3);
            assert!(told(&world).starts_with("Progressing 2/"), "{field}: {}", told(&world));
            assert_eq!(status(&world.answer())["observedGeneration"], generation, "{field}");
        }
    }
}

#[test]
fn counts_of_an_older_generation_are_never_called_ready() {
    for mut world in ready() {
        deployment(&mut world)["metadata"]["generation"] = json!(8);
        assert_eq!(told(&world), "Progressing 2/0");
    }
}

#[test]
fn differently_written_quantity_changes_nothing() {
    // As an API server formats them.
    let quantities = [
        ("16384Mi", "16Gi"),
        ("1.3Gi", "1395864371200m"),
        ("0.1Gi", "107374182400m"),
        ("2.2Gi", "2362232012800m"),
        ("1.5G", "1500M"),
    ];
    for (world, (asked, written)) in
        ready().iter().flat_map(|world| quantities.map(|two| (world, two)))
    {
        let mut world = world.clone();
        world.xr["spec"]["memory"] = json!(asked);
        world.reconcile(|_| Mood::Ready);
        let container = &mut deployment(&mut world)["spec"]["template"]["spec"]["containers"][0];
        container["resources"]["requests"]["memory"] = json!(written);
        container["resources"]["limits"]["memory"] = json!(written);
        assert_eq!(told(&world), "Ready 2/0", "{asked}");
    }
}

#[test]
fn rollout_is_not_ready_while_old_pods_serve() {
    for mut world in ready() {
        let status = &mut deployment(&mut world)["status"];
        status["replicas"] = json!(3);
        status["updatedReplicas"] = json!(2);
        status["availableReplicas"] = json!(2);
        assert_eq!(told(&world), "Progressing 2/0");
    }
}

#[test]
fn an_empty_pool_is_scaled_to_zero_once_its_pods_are_gone() {
    for world in ready() {
        let mut world = world;
        world.xr["spec"]["replicas"] = json!(0);
        assert_eq!(told(&world), "Progressing 2/0");
        world = world.settle(|_| Mood::Ready);
        assert_eq!(told(&world), "ScaledToZero 0/0");
    }
}

#[test]
fn failed_pool_reports_its_reason() {
    for mut world in ready() {
        let status_of = &mut deployment(&mut world)["status"];
        status_of["availableReplicas"] = json!(0);
        status_of["conditions"] = json!([
            {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "timed out"},
            {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "exceeded quota: gpus"},
        ]);
        assert_eq!(told(&world), "Failed 0/2");
        world.xr["metadata"]["generation"] = json!(9);
        let status = status(&world.answer());
        assert_eq!(status["resources"][0]["message"], "timed out: exceeded quota: gpus");
        let seen = if world.flavour == Flavour::Namespaced { json!(9) } else { Value::Null };
        assert_eq!(
            status["observedGeneration"], seen,
            "the cluster has seen the newest generation, and gave up on it"
        );
    }
}

#[test]
fn last_sync_time_changes_only_with_the_status() {
    for mut world in ready() {
        world.reconcile(|_| Mood::Ready);
        let before = status(&world.answer())["lastSyncTime"].clone();
        world.now = "2026-11-21T10:00:00Z";
        assert_eq!(status(&world.answer())["lastSyncTime"], before);
        deployment(&mut world)["status"]["availableReplicas"] = json!(1);
        assert_eq!(status(&world.answer())["lastSyncTime"], "2026-11-21T10:00:00Z");
    }
}

#[test]
fn gpus_and_their_toleration_are_added_and_removed_together() {
    for mut world in ready() {
        let pod = |world: &World| {
            let desired = support::world::desired(&world.answer());
            let object = Value::Object(desired["deployment"].clone());
            let manifest = object.pointer("/spec/forProvider/manifest").cloned().unwrap_or(object);
            manifest["spec"]["template"]["spec"].clone()
        };
        let with = pod(&world);
        assert_eq!(with["tolerations"][0]["key"], "nvidia.com/gpu");
        assert_eq!(
            with["containers"][0]["resources"]["limits"],
            json!({"memory": "16Gi", "nvidia.com/gpu": "1"})
        );
        world.xr["spec"]["gpu"] = json!(0);
        let without = pod(&world);
        assert_eq!(without["tolerations"], Value::Null);
        assert_eq!(without["containers"][0]["resources"]["requests"], json!({"memory": "16Gi"}));
    }
}

/// The desired strategy of the Deployment.
fn strategy(world: &World) -> Value {
    let mut desired = support::world::desired(&world.answer());
    let object = Value::Object(desired.remove("deployment").unwrap());
    let manifest = object.pointer("/spec/forProvider/manifest").cloned().unwrap_or(object);
    manifest["spec"]["strategy"].clone()
}

#[test]
fn new_pool_with_gpus_replaces_pods_without_spare_gpus() {
    let rolling =
        json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": "25%"}});
    for mut world in ready() {
        assert_eq!(strategy(&world), rolling);
        world.xr["spec"]["gpu"] = json!(0);
        assert_eq!(strategy(&world), Value::Null);
        let mut world = world.settle(|_| Mood::Ready);
        world.xr["spec"]["gpu"] = json!(2);
        assert_eq!(strategy(&world), rolling);
    }
}

#[test]
fn running_pool_keeps_its_strategy() {
    // The defaults that a cluster adds to a Deployment without a strategy.
    let usual = json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}});
    for mut world in ready() {
        let object = &mut world.composed.get_mut("deployment").unwrap().object;
        let wrapped = object["kind"] == "Object";
        if wrapped {
            object["spec"]["forProvider"]["manifest"]["spec"]
                .as_object_mut()
                .unwrap()
                .remove("strategy");
        } else {
            object["spec"]["strategy"] = usual.clone();
        }
        world.xr["spec"]["image"] = json!("registry.k8s.io/pause:3.11");
        assert_eq!(strategy(&world), if wrapped { Value::Null } else { usual.clone() });
    }
}
