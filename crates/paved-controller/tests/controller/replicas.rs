//! Of several replicas, one leads.

use std::time::Duration;

use paved_controller::{Limits, Options};
use serde_json::json;

use crate::world::{Environment, World, limits, until};

#[tokio::test]
async fn second_replica_takes_over_when_the_first_one_stops() {
    let world = World::new().await;
    let first = world.start("a");
    world.led().await;
    let _second = world.start("b");
    world.settle().await;
    assert_eq!(world.leader().as_deref(), Some("a"));
    first.stop().await;
    until("the second one", || world.leader().as_deref() == Some("b")).await;
    let mut ada = Environment::new("ada", json!({"ttl": "1h", "onExpiry": "Delete"}));
    world.compose(&mut ada);
    world.clocks.pass("1h");
    until("a deletion", || world.is_deleted(&ada)).await;
    assert_eq!(world.lease()["spec"]["leaseTransitions"], 2);
}

#[tokio::test]
async fn second_replica_takes_over_when_the_first_one_dies() {
    let world = World::new().await;
    let first = world.start("a");
    world.led().await;
    let _second = world.start("b");
    world.settle().await;
    first.kill();
    world.settle().await;
    assert_eq!(world.leader().as_deref(), Some("a"), "the Lease is still valid");
    world.clocks.pass("3s");
    until("the second one", || world.leader().as_deref() == Some("b")).await;
}

#[tokio::test]
async fn replica_with_a_fast_clock_does_not_take_the_lease() {
    let world = World::new().await;
    let _first = world.start("a");
    world.led().await;
    world.clocks.set("2027-01-01T12:00:00Z".parse().unwrap());
    let _second = world.start("b");
    world.settle().await;
    assert_eq!(world.leader().as_deref(), Some("a"));
}

/// A Lease that was created without a field never gets managers, so its writes have no time.
#[tokio::test]
async fn lease_without_managers_prevents_no_check_of_the_clock() {
    for is_wrong in [false, true] {
        let world = World::new().await;
        let mut ada = Environment::new("ada", json!({"ttl": "1h", "onExpiry": "Delete"}));
        world.compose(&mut ada);
        world.put(&json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": "paved-controller", "namespace": "paved-road", "uid": "lease",
                "managedFields": []}, "spec": {}}));
        let _replica = world.start("a");
        world.led().await;
        let managers = &world.lease()["metadata"]["managedFields"];
        assert!(managers.as_array().is_none_or(Vec::is_empty), "{managers}");
        if is_wrong {
            world.clocks.set(world.clocks.now() + "2h".parse::<jiff::Span>().unwrap());
            world.settle().await;
            assert!(!world.is_deleted(&ada));
        } else {
            world.clocks.pass("2h");
            until("a deletion", || world.is_deleted(&ada)).await;
        }
    }
}

#[tokio::test]
async fn replica_that_does_not_see_all_environments_gives_the_lease_back() {
    let world = World::new().await;
    let limits = Limits { interrupted: Duration::ZERO, ..limits() };
    let _replica = world.start_with(Options { limits, ..world.options("a") });
    world.led().await;
    world.fail("watch", "/gpudevworkspaceclaims", (500, "the conversion fails"));
    world.cluster.cut_watches();
    until("no leader", || world.leader().is_none()).await;
    world.cluster.faults.mend();
    until("a leader", || world.leader().as_deref() == Some("a")).await;
}

#[tokio::test]
async fn two_replicas_delete_each_environment_once() {
    let world = World::new().await;
    world.configure(&json!({"controller": {"deletionsPerHour": 100}}));
    let mut all: Vec<Environment> = (0..20)
        .map(|n| Environment::new(&format!("ws-{n}"), json!({"ttl": "1h", "onExpiry": "Delete"})))
        .collect();
    for environment in &mut all {
        world.compose(environment);
    }
    let _replicas = [world.start("a"), world.start("b")];
    world.led().await;
    world.clocks.pass("1h");
    until("all deletions", || all.iter().all(|one| world.is_deleted(one))).await;
    world.settle().await;
    assert_eq!(world.writes().len(), 20);
}
