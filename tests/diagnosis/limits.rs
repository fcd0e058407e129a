//! The limits of errors and of slow clouds.

use crossplane::conditions;
use jiff::SignedDuration;
use serde_json::{Value, json};
use simulator::core::World;
use simulator::provider::{Pace, Provider};

use crate::support::simulated;
use crate::{UNRESOLVED, after, call_at, is_stalled, reject};

/// Errors of different kinds. Each of them has to stall an environment.
pub(crate) const ERRORS: &[&str] = &[
    UNRESOLVED,
    "connect failed: cannot get credentials secret: Secret \"a\" not found",
    "create failed: 404 NotFound: the thing does not exist",
    "create failed: operation error EC2: RunInstances, api error VcpuLimitExceeded: no vCPUs",
    "update failed: the object has been modified; please apply your changes to the latest version",
    "connect failed: Get \"https://thing.here.svc:443/\": dial tcp 10.0.0.1:443: connection refused",
    "some other sentence",
];

/// The slots with conditions of a provider.
pub(crate) fn slots(world: &World) -> Vec<String> {
    let has = |object: &Value| conditions::find(object, "Synced").is_some();
    let all = world.resources().iter().filter(|(_, object)| has(object));
    all.map(|(slot, _)| slot.clone()).collect()
}

#[test]
fn each_error_of_each_slot_stalls_within_fifteen_minutes() {
    for case in simulated::examples() {
        let settled = case.settled();
        let start = settled.now();
        for (place, slot) in slots(&settled).into_iter().enumerate() {
            // Two errors for each slot, and each error for many slots.
            let turns = [place, place + 3].map(|turn| turn % ERRORS.len());
            for (number, message) in turns.map(|turn| (turn, ERRORS[turn])) {
                let mut world = settled.clone();
                reject(world.resources_mut().get_mut(&slot).unwrap(), &start.to_string(), message);
                // The error's words change, and its time does not.
                let ttl = call_at(&case, &mut world, after(start, 1));
                assert!(ttl <= SignedDuration::from_mins(15), "{ttl:?}");
                let again = format!("{message} ({number} {number})");
                reject(world.resources_mut().get_mut(&slot).unwrap(), &start.to_string(), &again);
                let ttl = call_at(&case, &mut world, after(start, 15));
                let name = format!("{}: {slot}: {message}", case.name());
                assert!(!is_stalled(&world), "{name} stalled too early");
                assert!(ttl <= SignedDuration::from_mins(1), "{name}: {ttl:?}");
                call_at(&case, &mut world, after(start, 16));
                assert!(is_stalled(&world), "{name} has not stalled");
                let status = &world.composite()["status"];
                assert_eq!(status["phase"], "Failed", "{name}");
                assert!(
                    status.to_string().contains(&again.replace('"', "\\\"")),
                    "{name}: {status}"
                );
                // It stays, and ends with the error.
                call_at(&case, &mut world, after(start, 40));
                assert!(is_stalled(&world), "{name} has not stayed stalled");
                let ready = settled.resources()[&slot].clone();
                world.resources_mut().insert(slot.clone(), ready);
                call_at(&case, &mut world, after(start, 41));
                assert!(!is_stalled(&world), "{name} is still stalled");
            }
        }
    }
}

#[test]
fn missing_object_fails_although_all_others_wait_for_it() {
    for case in simulated::examples() {
        let settled = case.settled();
        let now = settled.now();
        for slot in slots(&settled) {
            let mut world = settled.clone();
            for other in slots(&settled) {
                let message = if other == slot { ERRORS[2] } else { UNRESOLVED };
                reject(world.resources_mut().get_mut(&other).unwrap(), &now.to_string(), message);
            }
            call_at(&case, &mut world, now);
            call_at(&case, &mut world, after(now, 15));
            assert!(is_stalled(&world), "{}: {slot}", case.name());
            assert_eq!(world.composite()["status"]["phase"], "Failed", "{}: {slot}", case.name());
        }
    }
}

/// The kinds that a slow cloud creates in 40 minutes.
const SLOW: [(&str, &str); 8] = [
    ("eks.", "Cluster"),
    ("eks.", "NodeGroup"),
    ("container.", "Cluster"),
    ("container.", "NodePool"),
    ("containerservice.", "KubernetesCluster"),
    ("sql.", "DatabaseInstance"),
    ("rds.", "Instance"),
    ("cloudfront.", "Distribution"),
];

pub(crate) fn is_slow(object: &Value) -> bool {
    let text = |field: &str| object[field].as_str().unwrap_or_default().to_owned();
    let (version, kind) = (text("apiVersion"), text("kind"));
    SLOW.iter().any(|(group, name)| version.starts_with(group) && kind == *name)
}

#[test]
fn cluster_that_takes_forty_minutes_never_stalls() {
    let mut slow = 0;
    for case in simulated::all() {
        let mut world = case.world();
        let start = world.now();
        let mut provider = Provider::new(Pace::Rounds);
        let mut phases: Vec<(String, i64)> = Vec::new();
        for minute in 0..120 {
            call_at(&case, &mut world, after(start, minute));
            let status = &world.composite()["status"];
            assert!(!is_stalled(&world), "{}: minute {minute}: {status:#}", case.name());
            let before = world.resources().clone();
            provider.answer(&mut world);
            for (slot, object) in before.into_iter().filter(|(_, object)| is_slow(object)) {
                // Its references have to exist before the cloud begins.
                let now = &world.resources()[&slot];
                let is_waiting = conditions::find(now, "Synced")
                    .is_some_and(|synced| synced["status"] == "False");
                let begun = phases.iter().find(|(one, _)| *one == slot).map(|(_, begun)| *begun);
                let begun = begun.unwrap_or_else(|| {
                    if !is_waiting {
                        phases.push((slot.clone(), minute));
                    }
                    minute
                });
                if is_waiting || minute < begun + 40 {
                    let mut creating = object;
                    let status = if is_waiting { now["status"].clone() } else { json!({}) };
                    creating["status"] = status;
                    if !is_waiting {
                        let time = after(start, begun).to_string();
                        let synced = ("Synced", "True", "ReconcileSuccess");
                        conditions::set(&mut creating, &time, synced.0, synced.1, synced.2, "");
                        conditions::set(&mut creating, &time, "Ready", "False", "Creating", "");
                    }
                    world.resources_mut().insert(slot, creating);
                }
            }
            if world.composite()["status"]["phase"] == "Ready" {
                break;
            }
        }
        slow += phases.len();
        let status = &world.composite()["status"];
        assert_eq!(status["phase"], "Ready", "{}: {status:#}", case.name());
    }
    assert!(slow > 10, "only {slow} slow resources");
}

#[test]
fn cluster_that_takes_an_hour_stalls_after_forty_five_minutes() {
    let cases = simulated::examples();
    let case = cases.iter().find(|case| case.api().info().name == "application-environment");
    let case = case.unwrap();
    let mut world = case.settled();
    let start = world.now();
    let cluster = world.resources_mut().get_mut("gke-cluster").unwrap();
    cluster["status"] = json!({});
    conditions::set(cluster, &start.to_string(), "Synced", "True", "ReconcileSuccess", "");
    conditions::set(cluster, &start.to_string(), "Ready", "False", "Creating", "");
    let pool = world.resources_mut().get_mut("node-pool").unwrap();
    reject(pool, &start.to_string(), UNRESOLVED);
    for minute in 0..=60 {
        call_at(case, &mut world, after(start, minute));
        assert_eq!(is_stalled(&world), minute >= 45, "minute {minute}");
    }
    let status = &world.composite()["status"];
    let lines = status["resources"].as_array().unwrap();
    let cluster = lines.iter().find(|line| line["slot"] == "gke-cluster").unwrap();
    assert_eq!(cluster["cause"], json!({"code": "TimedOut", "params": {"minutes": "45"}}));
    assert_eq!(cluster["message"], "not ready within 45 minutes: is being created");
}
