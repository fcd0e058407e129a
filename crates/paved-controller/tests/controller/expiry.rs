//! Expired environments are deleted, and no others are.

use crate::world::{Environment, World, environment_config, head, until, usage};
use fake_kube::faults::Failure;
use function_paved_road::lifecycle::{NOTE, RENEWED_AT, RENEWED_FOR, STOPPED_AT};
use jiff::SignedDuration;
use paved_controller::{Options, SettingsFrom};
use serde_json::{Value, json};

/// The reason of most environments that stay.
const DIFFERS: &str = "its status announces another end than the controller computes";

/// The reason of environments at a wrong time.
const WRONG_CLOCK: &str =
    "the controller's clock differs from the API server's, or lies before its creation";

/// The reason of environments with invalid values.
const UNREADABLE: &str = "its lifecycle, the function's note or the Settings are invalid";

/// An environment that is deleted after an hour.
fn short_lived(name: &str) -> Environment {
    Environment::new(name, json!({"ttl": "1h", "onExpiry": "Delete"}))
}

/// Renews a claim by eight hours, as `paved extend` does.
fn renew(world: &World) -> impl Fn(&mut Value) + use<> {
    let now = world.clocks.now().to_string();
    move |object: &mut Value| {
        object["metadata"]["annotations"][RENEWED_AT] = json!(now);
        object["metadata"]["annotations"][RENEWED_FOR] = json!("8h");
    }
}

#[tokio::test]
async fn expired_environment_is_deleted_in_the_foreground() {
    let world = World::new().await;
    let (mut expired, mut other) = (short_lived("ada"), short_lived("bob"));
    other.lifecycle["ttl"] = json!("2h");
    let mut endless = Environment::new("eve", json!({}));
    for environment in [&mut expired, &mut other, &mut endless] {
        world.compose(environment);
    }
    let controller = world.start("a");
    world.led().await;
    world.clocks.pass("59m");
    world.settle().await;
    assert!(!world.is_deleted(&expired));
    world.clocks.pass("1m");
    until("a deletion", || world.is_deleted(&expired)).await;
    let claim = world.claim(&expired).unwrap();
    assert_eq!(claim["metadata"]["finalizers"], json!(["foregroundDeletion"]));
    world.settle().await;
    let writes = world.writes();
    assert_eq!(writes.len(), 1, "{writes:?}");
    assert!(writes[0].starts_with("DELETE") && writes[0].ends_with("/ada"), "{writes:?}");
    assert!(!world.is_deleted(&other) && !world.is_deleted(&endless));
    controller.stop().await;
}

#[tokio::test]
async fn stopped_environment_is_deleted_after_its_retention() {
    let world = World::new().await;
    let mut kept = Environment::new("ada", json!({"ttl": "1h", "keepStoppedFor": "2h"}));
    world.compose(&mut kept);
    let _controller = world.start("a");
    world.led().await;
    world.clocks.pass("90m");
    // The function stops it late: retention counts from the stop.
    world.compose(&mut kept);
    world.clocks.pass("119m");
    world.settle().await;
    assert!(!world.is_deleted(&kept));
    world.clocks.pass("1m");
    until("a deletion", || world.is_deleted(&kept)).await;
}

#[tokio::test]
async fn late_renewal_survives_an_old_status() {
    let world = World::new().await;
    let mut ada = short_lived("ada");
    world.compose(&mut ada);
    let _controller = world.start("a");
    world.led().await;
    world.edit(&ada, renew(&world));
    world.clocks.pass("2h");
    world.settle().await;
    assert!(!world.is_deleted(&ada));
    assert_eq!(world.plan().await, [format!("ada stays: {DIFFERS}")]);
    // The function sees the renewal, and then the end comes.
    let renewed = json!({RENEWED_AT: "2026-01-01T12:00:00Z", RENEWED_FOR: "8h"});
    ada.annotations = renewed;
    world.compose(&mut ada);
    world.clocks.pass("5h");
    world.settle().await;
    assert!(!world.is_deleted(&ada));
    world.clocks.pass("1h");
    until("a deletion", || world.is_deleted(&ada)).await;
}

#[tokio::test]
async fn renewal_of_the_composite_alone_survives_too() {
    let world = World::new().await;
    let mut ada = short_lived("ada");
    world.compose(&mut ada);
    let mut composite = world.composite(&ada).unwrap();
    renew(&world)(&mut composite);
    world.put(&composite);
    world.clocks.pass("2h");
    let _controller = world.start("a");
    world.led().await;
    assert!(!world.is_deleted(&ada));
    assert_eq!(world.plan().await, [format!("ada stays: {DIFFERS}")]);
}

#[tokio::test]
async fn status_that_differs_prevents_a_deletion() {
    let world = World::new().await;
    let mut ada = short_lived("ada");
    world.compose(&mut ada);
    for mut object in [world.claim(&ada).unwrap(), world.composite(&ada).unwrap()] {
        object["status"]["lifecycle"]["deletesAt"] = json!("2026-01-01T12:30:00Z");
        world.put(&object);
    }
    world.clocks.pass("45m");
    let _controller = world.start("a");
    world.led().await;
    assert!(!world.is_deleted(&ada), "the status is earlier than the end");
    assert_eq!(world.plan().await, [format!("ada stays: {DIFFERS}")]);
    world.clocks.pass("1h");
    world.settle().await;
    assert!(!world.is_deleted(&ada), "they still differ");
    world.compose(&mut ada);
    until("a deletion", || world.is_deleted(&ada)).await;
}

#[tokio::test]
async fn unreadable_values_delete_nothing() {
    let world = World::new().await;
    let names =
        ["spec", "no-note", "bad-note", "foreign-note", "no-slot", "other-claim", "bad-time"];
    let mut all: Vec<Environment> = names.map(short_lived).into();
    for environment in &mut all {
        world.compose(environment);
    }
    let change = |index: usize, kind: &str, change: &dyn Fn(&mut Value)| {
        let environment = &all[index];
        let mut object = match kind {
            "claim" => world.claim(environment).unwrap(),
            "composite" => world.composite(environment).unwrap(),
            _ => world
                .get(&json!({"apiVersion": "ec2.aws.upbound.io/v1beta1", "kind": "SecurityGroup",
                    "metadata": {"name": format!("{}-sg", environment.name)}}))
                .unwrap(),
        };
        change(&mut object);
        world.put(&object);
    };
    change(0, "claim", &|claim| claim["spec"]["lifecycle"]["ttl"] = json!(8));
    change(1, "first", &|first| {
        first["metadata"]["annotations"].as_object_mut().unwrap().remove(NOTE);
    });
    change(2, "first", &|first| first["metadata"]["annotations"][NOTE] = json!("{"));
    change(3, "first", &|first| first["metadata"]["ownerReferences"][0]["uid"] = json!("another"));
    change(4, "first", &|first| {
        first["metadata"]["annotations"]["crossplane.io/composition-resource-name"] = json!("x");
    });
    change(5, "composite", &|composite| composite["spec"]["claimRef"]["name"] = json!("another"));
    change(6, "composite", &|composite| {
        composite["status"]["lifecycle"]["deletesAt"] = json!("soon");
    });
    world.clocks.pass("2h");
    let _controller = world.start("a");
    world.led().await;
    for environment in &all {
        assert!(!world.is_deleted(environment), "{}", environment.name);
    }
    assert_eq!(world.writes(), Vec::<String>::new());
    let unreadable = UNREADABLE;
    let missing = "its composite or the resource with the function's note is missing";
    let mut expected = [
        ("spec", unreadable),
        ("no-note", missing),
        ("bad-note", unreadable),
        ("foreign-note", missing),
        ("no-slot", missing),
        ("other-claim", missing),
        ("bad-time", unreadable),
    ]
    .map(|(name, why)| format!("{name} stays: {why}"));
    expected.sort();
    assert_eq!(world.plan().await, expected);
}

#[tokio::test]
async fn rejected_lifecycle_is_not_replaced_by_defaults() {
    let world = World::new().await;
    let settings = json!({"ttl": "1h", "maximum": "8h", "keepStoppedFor": "1h"});
    world.configure(&json!({"gpuWorkspace": {"lifecycle": settings}}));
    let mut ada = Environment::new("ada", json!({})).with_settings(settings);
    world.compose(&mut ada);
    world.clocks.pass("1h");
    world.compose(&mut ada);
    let lifecycle = json!({"ttl": "30d", "keepStoppedFor": "52w"});
    for mut object in [world.claim(&ada).unwrap(), world.composite(&ada).unwrap()] {
        object["spec"]["lifecycle"] = lifecycle.clone();
        world.put(&object);
    }
    world.clocks.pass("1h");
    let _controller = world.start("a");
    world.led().await;
    assert!(!world.is_deleted(&ada));
    assert_eq!(world.plan().await, [format!("ada stays: {UNREADABLE}")]);
}

#[tokio::test]
async fn unreadable_settings_delete_nothing_until_they_are_mended() {
    let world = World::new().await;
    world.configure(&json!({"controller": {"deletionsPerHour": "many"}}));
    let mut ada = short_lived("ada");
    world.compose(&mut ada);
    world.clocks.pass("2h");
    let _controller = world.start("a");
    world.led().await;
    assert!(!world.is_deleted(&ada));
    world.configure(&json!({"controller": {"deletionsPerHour": 1}}));
    world.clocks.pass("1m");
    until("a deletion", || world.is_deleted(&ada)).await;
}

#[tokio::test]
async fn clock_before_the_creation_deletes_nothing() {
    let world = World::new().await;
    let mut ada = short_lived("ada");
    world.compose(&mut ada);
    for mut object in [world.claim(&ada).unwrap(), world.composite(&ada).unwrap()] {
        object["metadata"]["creationTimestamp"] = json!("2026-02-01T12:00:00Z");
        world.remove(&object);
        world.put(&object);
    }
    world.clocks.pass("2h");
    let _controller = world.start("a");
    world.led().await;
    assert!(!world.is_deleted(&ada));
    assert_eq!(world.plan().await, [format!("ada stays: {WRONG_CLOCK}")]);
}

#[tokio::test]
async fn environment_in_use_is_deleted_after_its_usage_is_gone() {
    let world = World::new().await;
    for at in ["claim", "composite"] {
        let mut ada = short_lived(at);
        world.compose(&mut ada);
        let object = if at == "claim" { world.claim(&ada) } else { world.composite(&ada) }.unwrap();
        let mut used = object.clone();
        used["metadata"]["labels"]["crossplane.io/in-use"] = json!("true");
        world.put(&used);
        let usage = usage(&ada, at);
        world.put(&usage);
        let before = world.clocks.now();
        world.clocks.pass("2h");
        let controller = world.start("a");
        world.led().await;
        assert_eq!(world.writes(), Vec::<String>::new(), "{at}");
        assert_eq!(world.plan().await, [format!("{at} stays: a Usage protects it")]);
        // Without the Usage, its label alone protects nothing.
        world.remove(&usage);
        until("a deletion", || world.is_deleted(&ada)).await;
        controller.stop().await;
        world.clocks.set_all(before);
        world.writes();
    }
}

#[tokio::test]
async fn label_of_a_usage_without_one_protects_nothing() {
    let world = World::new().await;
    for (name, value) in [("false", "false"), ("empty", ""), ("alone", "true")] {
        let mut ada = short_lived(name);
        ada.labels = json!({"crossplane.io/in-use": value});
        world.compose(&mut ada);
    }
    let mut other = short_lived("other");
    world.compose(&mut other);
    world.put(&usage(&other, "claim"));
    world.clocks.pass("2h");
    let plan = world.plan().await;
    let deleted =
        ["alone", "empty", "false", "other"].map(|name| format!("{name} would be deleted"));
    assert_eq!(plan, deleted);
}

#[tokio::test]
async fn unreadable_usages_protect() {
    let world = World::new().await;
    let mut ada = short_lived("ada");
    ada.labels = json!({"crossplane.io/in-use": "true"});
    world.compose(&mut ada);
    world.fail("list", "/usages", (403, "no right"));
    world.clocks.pass("2h");
    assert_eq!(world.plan().await, ["ada stays: a Usage protects it"]);
}

#[tokio::test]
async fn paused_environment_stays() {
    let world = World::new().await;
    for at in ["claim", "composite"] {
        let mut ada = short_lived(at);
        world.compose(&mut ada);
        let mut object =
            if at == "claim" { world.claim(&ada) } else { world.composite(&ada) }.unwrap();
        object["metadata"]["annotations"]["crossplane.io/paused"] = json!("true");
        world.put(&object);
    }
    world.clocks.pass("2h");
    let _controller = world.start("a");
    world.led().await;
    assert_eq!(world.writes(), Vec::<String>::new());
    let paused = "stays: the claim or its composite is paused";
    assert_eq!(world.plan().await, ["claim", "composite"].map(|at| format!("{at} {paused}")));
}

#[tokio::test]
async fn environment_from_git_is_stopped_and_not_deleted() {
    let world = World::new().await;
    let delete_by_default = json!({"onExpiry": "Delete"});
    world.configure(&json!({"gpuWorkspace": {"lifecycle": delete_by_default}}));
    for (name, place, mark) in [
        ("argo", "annotations", "argocd.argoproj.io/tracking-id"),
        ("fleet", "annotations", "objectset.rio.cattle.io/id"),
        ("config-sync", "annotations", "configmanagement.gke.io/managed"),
        ("kapp", "labels", "kapp.k14s.io/app"),
        ("flux", "labels", "kustomize.toolkit.fluxcd.io/name"),
        ("flux2", "labels", "helm.toolkit.fluxcd.io/name"),
    ] {
        let mut ada =
            Environment::new(name, json!({"ttl": "1h"})).with_settings(delete_by_default.clone());
        let marks = json!({mark: "x"});
        if place == "labels" {
            ada.labels = marks;
        } else {
            ada.annotations = marks;
        }
        let mut own = Environment { name: format!("{name}-own"), ..ada.clone() };
        own.lifecycle["onExpiry"] = json!("Delete");
        world.compose(&mut ada);
        world.compose(&mut own);
        let before = world.clocks.now();
        // Five minutes later, the function itself stops it.
        world.clocks.pass("62m");
        let controller = world.start("a");
        until("a stop", || world.annotation(&ada, STOPPED_AT).is_some()).await;
        until("the claim's own wish", || world.is_deleted(&own)).await;
        ada.annotations[STOPPED_AT] = json!(world.annotation(&ada, STOPPED_AT));
        world.compose(&mut ada);
        world.writes();
        world.settle().await;
        assert!(!world.is_deleted(&ada), "{name}");
        assert_eq!(world.writes(), Vec::<String>::new(), "{name} is stopped once");
        controller.stop().await;
        world.remove(&head(&ada));
        world.clocks.set_all(before);
    }
}

#[tokio::test]
async fn environment_of_an_unknown_applier_is_stopped_and_not_deleted() {
    let world = World::new().await;
    let delete_by_default = json!({"onExpiry": "Delete"});
    world.configure(&json!({"gpuWorkspace": {"lifecycle": delete_by_default}}));
    let managed = |manager: &str| json!([{"manager": manager, "operation": "Apply"}]);
    for (name, manager) in [("tool", "my-gitops"), ("person", "kubectl"), ("ours", "paved")] {
        let mut ada =
            Environment::new(name, json!({"ttl": "1h"})).with_settings(delete_by_default.clone());
        world.compose(&mut ada);
        world.edit(&ada, |claim| claim["metadata"]["managedFields"] = managed(manager));
    }
    world.clocks.pass("62m");
    let expected = ["ours would be deleted", "person would be deleted", "tool would be stopped"];
    assert_eq!(world.plan().await, expected);
}

#[tokio::test]
async fn instance_label_does_not_outweigh_delete_in_settings() {
    let world = World::new().await;
    let delete_by_default = json!({"onExpiry": "Delete"});
    world.configure(&json!({"gpuWorkspace": {"lifecycle": delete_by_default}}));
    let labels = json!({"app.kubernetes.io/instance": "x"});
    let mut settings =
        Environment::new("settings", json!({"ttl": "1h"})).with_settings(delete_by_default);
    settings.labels = labels.clone();
    world.compose(&mut settings);
    // Its own retention deletes it: Argo CD 2 may create it again.
    let mut retained = Environment::new(
        "retained",
        json!({"ttl": "1h", "onExpiry": "Stop", "keepStoppedFor": "1h"}),
    );
    retained.labels = labels;
    world.compose(&mut retained);
    world.clocks.pass("1h");
    world.compose(&mut retained);
    world.clocks.pass("2h");
    let mut plan = world.plan().await;
    plan.sort();
    assert!(plan[0].starts_with("retained stays: Argo CD owns it"), "{plan:?}");
    assert_eq!(plan[1], "settings would be deleted");
}

#[tokio::test]
async fn kept_environment_from_git_stays_stopped() {
    let world = World::new().await;
    let mut ada = Environment::new("ada", json!({"ttl": "1h", "keepStoppedFor": "1h"}));
    ada.labels = json!({"kustomize.toolkit.fluxcd.io/name": "x"});
    world.compose(&mut ada);
    world.clocks.pass("1h");
    world.compose(&mut ada);
    world.clocks.pass("2h");
    let _controller = world.start("a");
    world.led().await;
    assert_eq!(world.writes(), Vec::<String>::new());
    let plan = world.plan().await;
    assert!(plan.len() == 1 && plan[0].starts_with("ada stays: Flux owns it"), "{plan:?}");
}

#[tokio::test]
async fn namespaced_environment_is_deleted_too() {
    let world = World::new().await;
    let mut ada = short_lived("ada");
    world.compose(&mut ada);
    let move_to = |object: &Value, group: &str| {
        let text = object.to_string();
        serde_json::from_str::<Value>(&text.replace(".aws.upbound.io", group)).unwrap()
    };
    let mut composite = move_to(&world.composite(&ada).unwrap(), ".aws.m.upbound.io");
    let first = json!({"apiVersion": "ec2.aws.upbound.io/v1beta1", "kind": "SecurityGroup",
        "metadata": {"name": "ada-sg"}});
    let mut first = move_to(&world.get(&first).unwrap(), ".aws.m.upbound.io");
    composite["apiVersion"] = json!("platform.m.acme.io/v1alpha1");
    composite["metadata"]["name"] = json!("ada");
    let refs = composite["spec"]["resourceRefs"].take();
    composite["spec"]["crossplane"] = json!({"resourceRefs": refs});
    for object in [&mut composite, &mut first] {
        object["metadata"]["namespace"] = json!("team");
    }
    world.remove(&world.claim(&ada).unwrap());
    world.put(&composite);
    world.put(&first);
    let _controller = world.start("a");
    world.led().await;
    assert_eq!(world.writes(), Vec::<String>::new());
    world.clocks.pass("1h");
    let is_deleted = || world.get(&composite).unwrap()["metadata"]["deletionTimestamp"].is_string();
    until("a deletion", is_deleted).await;
}

#[tokio::test]
async fn wrong_clock_deletes_nothing_until_it_agrees() {
    let world = World::new().await;
    let (mut soon, mut late) = (short_lived("soon"), short_lived("late"));
    late.lifecycle["ttl"] = json!("30d");
    world.compose(&mut soon);
    world.compose(&mut late);
    world.clocks.pass("2h");
    let right = world.clocks.now();
    let all = [&soon, &late];
    let after = |minutes: i64| right.checked_add(SignedDuration::from_mins(minutes)).unwrap();
    for wrong in [after(6), after(24 * 60), after(365 * 24 * 60), after(-6), after(-30)] {
        world.clocks.set(wrong);
        let controller = world.start("a");
        world.led().await;
        assert!(!all.iter().any(|one| world.is_deleted(one)), "{wrong}");
        controller.stop().await;
        let plan = world.plan().await;
        assert!(plan[0].contains("this machine's clock is"), "{wrong}: {plan:?}");
    }
    // The clock is right at the start of the replica, and jumps then.
    world.clocks.set(after(-90));
    let _controller = world.start("b");
    world.led().await;
    world.clocks.set(after(60));
    world.settle().await;
    assert!(!all.iter().any(|one| world.is_deleted(one)));
    // Clocks of nodes differ by minutes.
    world.clocks.set(after(4));
    until("a deletion", || world.is_deleted(&soon)).await;
    world.settle().await;
    assert!(!world.is_deleted(&late));
}

#[tokio::test]
async fn clock_that_jumps_right_before_a_deletion_deletes_nothing() {
    let world = World::new().await;
    let mut ada = short_lived("ada");
    world.compose(&mut ada);
    let _controller = world.start("a");
    world.led().await;
    for minutes in [50, 70, 600] {
        let wrong = world.clocks.now().checked_add(SignedDuration::from_mins(minutes)).unwrap();
        world.clocks.set(wrong);
        world.settle().await;
    }
    assert!(!world.is_deleted(&ada));
}

#[tokio::test]
async fn hourly_limit_holds_also_after_a_restart() {
    let world = World::new().await;
    world.configure(&json!({"controller": {"deletionsPerHour": 2}}));
    let mut all: Vec<Environment> = (0..6).map(|n| short_lived(&format!("ws-{n}"))).collect();
    for environment in &mut all {
        world.compose(environment);
    }
    let deleted = || all.iter().filter(|one| world.is_deleted(one)).count();
    world.clocks.pass("2h");
    let controller = world.start("a");
    until("two deletions", || deleted() == 2).await;
    world.settle().await;
    assert_eq!(deleted(), 2);
    controller.stop().await;
    for identity in ["b", "c"] {
        let controller = world.start(identity);
        until("a leader", || world.leader().as_deref() == Some(identity)).await;
        world.settle().await;
        assert_eq!(deleted(), 2, "{identity}");
        controller.stop().await;
    }
    let _controller = world.start("d");
    world.led().await;
    world.clocks.pass("62m");
    until("two more", || deleted() == 4).await;
    world.settle().await;
    assert_eq!(deleted(), 4);
}

#[tokio::test]
async fn lease_without_its_count_stops_deletions_for_an_hour() {
    let world = World::new().await;
    world.configure(&json!({"controller": {"deletionsPerHour": 3}}));
    let mut all: Vec<Environment> = (0..6).map(|n| short_lived(&format!("ws-{n}"))).collect();
    for environment in &mut all {
        world.compose(environment);
    }
    let deleted = || all.iter().filter(|one| world.is_deleted(one)).count();
    world.clocks.pass("2h");
    let controller = world.start("a");
    until("three deletions", || deleted() == 3).await;
    controller.stop().await;
    let mut lease = world.lease();
    lease["metadata"].as_object_mut().unwrap().remove("annotations");
    world.put(&lease);
    let second = world.start("b");
    until("a leader", || world.leader().as_deref() == Some("b")).await;
    world.settle().await;
    assert_eq!(deleted(), 3);
    // The count is in the Lease again, also for a third replica.
    second.stop().await;
    let _third = world.start("c");
    until("a leader", || world.leader().as_deref() == Some("c")).await;
    world.settle().await;
    assert_eq!(deleted(), 3);
    world.clocks.pass("62m");
    until("the others", || deleted() == 6).await;
}

#[tokio::test]
async fn second_leader_deletes_at_once_if_the_first_one_deleted_nothing() {
    let world = World::new().await;
    let first = world.start("a");
    world.led().await;
    first.stop().await;
    let mut ada = short_lived("ada");
    world.compose(&mut ada);
    world.clocks.pass("1h");
    let _second = world.start("b");
    until("a deletion", || world.is_deleted(&ada)).await;
}

#[tokio::test]
async fn environments_at_the_limit_are_not_read() {
    let world = World::new().await;
    let delete_by_default = json!({"onExpiry": "Delete"});
    world.configure(&json!({
        "controller": {"deletionsPerHour": 0},
        "gpuWorkspace": {"lifecycle": delete_by_default},
    }));
    let mut all: Vec<Environment> = (0..60).map(|n| short_lived(&format!("ws-{n}"))).collect();
    for environment in &mut all {
        world.compose(environment);
    }
    let mut applied =
        Environment::new("applied", json!({"ttl": "1h"})).with_settings(delete_by_default);
    applied.labels = json!({"kapp.k14s.io/app": "x"});
    world.compose(&mut applied);
    world.clocks.pass("62m");
    let _controller = world.start("a");
    world.led().await;
    // A tool owns it: it is read, and stopped in spite of the limit.
    until("a stop", || world.annotation(&applied, STOPPED_AT).is_some()).await;
    assert_eq!(world.reads("/ws-"), 0);
}

#[tokio::test]
async fn missing_settings_delete_nothing_until_they_are_back() {
    for is_without_data in [false, true] {
        let world = World::new().await;
        let mut ada = short_lived("ada");
        world.compose(&mut ada);
        world.remove_settings();
        if is_without_data {
            world.put(&environment_config());
        }
        world.clocks.pass("2h");
        let _controller = world.start("a");
        world.led().await;
        assert!(!world.is_deleted(&ada));
        let error = world.plan_error().await;
        assert!(error.contains("paved-road: it was not found, or has no data"), "{error}");
        world.configure(&json!({}));
        world.clocks.pass("1m");
        until("a deletion", || world.is_deleted(&ada)).await;
    }
}

#[tokio::test]
async fn settings_that_vanish_do_not_lift_their_limit() {
    let world = World::new().await;
    world.configure(&json!({"controller": {"deletionsPerHour": 0}}));
    let mut ada = short_lived("ada");
    world.compose(&mut ada);
    world.clocks.pass("2h");
    let _controller = world.start("a");
    world.led().await;
    world.remove_settings();
    world.clocks.pass("2m");
    world.settle().await;
    assert!(!world.is_deleted(&ada));
}

#[tokio::test]
async fn platform_without_settings_keeps_the_defaults() {
    let world = World::new().await;
    world.remove_settings();
    let (mut ada, mut bob) = (short_lived("ada"), short_lived("bob"));
    world.compose(&mut ada);
    world.clocks.pass("2h");
    let settings_from = SettingsFrom::None;
    let _controller = world.start_with(Options { settings_from, ..world.options("a") });
    until("a deletion", || world.is_deleted(&ada)).await;
    // An EnvironmentConfig that exists after all applies.
    world.configure(&json!({"controller": {"deletionsPerHour": 0}}));
    world.clocks.pass("2m");
    world.settle().await;
    world.compose(&mut bob);
    world.clocks.pass("2h");
    world.settle().await;
    assert!(!world.is_deleted(&bob));
}

#[tokio::test]
async fn lost_lease_does_not_start_the_count_again() {
    let world = World::new().await;
    world.configure(&json!({"controller": {"deletionsPerHour": 2}}));
    let mut all: Vec<Environment> = (0..4).map(|n| short_lived(&format!("ws-{n}"))).collect();
    for environment in &mut all {
        world.compose(environment);
    }
    let deleted = || all.iter().filter(|one| world.is_deleted(one)).count();
    world.clocks.pass("2h");
    let _controller = world.start("a");
    until("two deletions", || deleted() == 2).await;
    let lease = world.lease();
    world.remove(&lease);
    until("a new Lease", || {
        world.leader().is_some() && world.lease()["metadata"]["uid"] != lease["metadata"]["uid"]
    })
    .await;
    world.settle().await;
    assert_eq!(deleted(), 2);
}

#[tokio::test]
async fn deletion_that_can_have_been_executed_counts() {
    // The client tries again after a 504, and gets the other codes.
    for code in [504, 500, 404, 409, 429] {
        let world = World::new().await;
        world.configure(&json!({"controller": {"deletionsPerHour": 2}}));
        let mut all: Vec<Environment> = (0..4).map(|n| short_lived(&format!("ws-{n}"))).collect();
        for environment in &mut all {
            world.compose(environment);
        }
        let (path, message) = (String::new(), "the answer is lost");
        let failure = Failure { verb: "delete", path, code, message, is_executed: true };
        world.cluster.faults.fail(failure);
        world.clocks.pass("2h");
        let _controller = world.start("a");
        world.led().await;
        let deleted = || all.iter().filter(|one| world.is_deleted(one)).count();
        until("two deletions", || deleted() == 2).await;
        world.settle().await;
        assert_eq!(deleted(), 2, "{code}");
    }
}

#[tokio::test]
async fn environment_that_is_tried_again_counts_once() {
    let world = World::new().await;
    world.configure(&json!({"controller": {"deletionsPerHour": 2}}));
    let mut all = ["ada", "bob", "eve"].map(short_lived);
    for environment in &mut all {
        world.compose(environment);
    }
    world.fail("delete", "/ada", (504, "the answer is lost"));
    world.clocks.pass("2h");
    let _controller = world.start("a");
    until("a deletion", || world.is_deleted(&all[1])).await;
    world.settle().await;
    world.cluster.faults.mend();
    until("another one", || world.is_deleted(&all[0])).await;
    world.settle().await;
    assert!(!world.is_deleted(&all[2]));
}

#[tokio::test]
async fn failure_of_one_environment_holds_no_other() {
    let webhook = "Internal error occurred: failed calling webhook \"a.b.c\": no endpoints";
    for (verb, path, answer) in [
        ("delete", "/ada", (500, webhook)),
        ("delete", "/ada", (422, "a policy denies it")),
        ("delete", "/ada", (403, "a policy denies it")),
        ("get", "/ada", (500, "the conversion fails")),
        ("get", "/ada-x", (500, "the conversion fails")),
    ] {
        let world = World::new().await;
        world.configure(&json!({"controller": {"deletionsPerHour": 1}}));
        let (mut ada, mut bob) = (short_lived("ada"), short_lived("bob"));
        world.compose(&mut ada);
        world.compose(&mut bob);
        world.fail(verb, path, answer);
        world.clocks.pass("2h");
        let _controller = world.start("a");
        until("a deletion", || world.is_deleted(&bob)).await;
        assert!(!world.is_deleted(&ada), "{verb} {path} {answer:?}");
    }
}

#[tokio::test]
async fn idle_controller_writes_nothing() {
    let world = World::new().await;
    world.configure(&json!({"budget": {"defaultHourlyUSD": "10"}}));
    for index in 0..5 {
        let mut ada = short_lived(&format!("ws-{index}"));
        ada.hourly = Some("1.5");
        world.compose(&mut ada);
    }
    let controller = world.start("a");
    world.led().await;
    world.writes();
    let annotations = world.lease()["metadata"]["annotations"].clone();
    world.settle().await;
    world.cluster.cut_watches();
    world.settle().await;
    assert_eq!(world.writes(), Vec::<String>::new());
    assert_eq!(world.lease()["metadata"]["annotations"], annotations);
    controller.stop().await;
}

#[tokio::test]
async fn dry_run_counts_the_deletions_of_the_last_hour() {
    let world = World::new().await;
    world.configure(&json!({"controller": {"deletionsPerHour": 2}}));
    let mut all = ["ada", "bob", "eve"].map(short_lived);
    world.compose(&mut all[0]);
    world.clocks.pass("1h");
    let controller = world.start("a");
    until("a deletion", || world.is_deleted(&all[0])).await;
    controller.stop().await;
    world.compose(&mut all[1]);
    world.compose(&mut all[2]);
    world.clocks.pass("30m");
    let lease = world.lease();
    let late = "eve would be deleted later: deletionsPerHour is reached";
    assert_eq!(world.plan().await, ["bob would be deleted", late]);
    assert_eq!(world.lease(), lease);
    world.clocks.pass("31m");
    assert_eq!(world.plan().await, ["bob would be deleted", "eve would be deleted"]);
}

#[tokio::test]
async fn dry_run_says_what_it_would_do_and_writes_nothing() {
    let world = World::new().await;
    world.configure(&json!({
        "controller": {"deletionsPerHour": 1},
        "budget": {"byNamespace": {"team": "2"}},
    }));
    let mut all = [short_lived("ada"), short_lived("bob"), short_lived("eve")];
    all[0].hourly = Some("2.5");
    all[2].annotations = json!({"crossplane.io/paused": "true"});
    for environment in &mut all {
        world.compose(environment);
    }
    world.writes();
    world.clocks.pass("2h");
    let lines = paved_controller::plan(world.client(), &world.options("a")).await.unwrap();
    let kind = "team/GpuDevWorkspaceClaim.platform.acme.io";
    assert_eq!(
        lines,
        [
            format!("{kind}/ada would be deleted"),
            format!("{kind}/bob would be deleted later: deletionsPerHour is reached"),
            format!("{kind}/eve stays: the claim or its composite is paused"),
            "namespace team is over its budget: 2.500 USD per hour of 2.000 USD".to_owned(),
        ]
    );
    assert_eq!(world.writes(), Vec::<String>::new());
    assert!(world.leader().is_none());
}
