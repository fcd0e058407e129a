//! Resources that alternate between errors and other reports. No alternation, no message and no
//! sibling restarts a limit permanently.

use std::fs;
use std::path::Path;

use crossplane::conditions;
use jiff::Timestamp;
use k8s_schema::Schemas;
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};
use simulator::core::World;

use crate::limits::{ERRORS, is_slow, slots};
use crate::support::{self, simulated};
use crate::{UNRESOLVED, after, call_at, is_stalled, reject};

/// The longest time between two errors.
const GAP: i64 = 15;

/// The report that a resource is being created.
fn create(object: &mut Value, now: &str) {
    object["status"] = json!({});
    conditions::set(object, now, "Synced", "True", "ReconcileSuccess", "");
    conditions::set(object, now, "Ready", "False", "Creating", "");
}

fn resource<'w>(world: &'w mut World, slot: &str) -> &'w mut Value {
    world.resources_mut().get_mut(slot).unwrap()
}

fn line<'w>(world: &'w World, slot: &str) -> &'w Value {
    let lines = world.composite()["status"]["resources"].as_array().unwrap();
    lines.iter().find(|line| line["slot"] == slot).unwrap()
}

/// The limit of the slowest kind of an environment in minutes.
fn slowest(world: &World) -> i64 {
    let is_machine = |object: &Value| {
        object["kind"] == "Instance" && object["apiVersion"].as_str().unwrap().starts_with("ec2.")
    };
    let limit = |object: &Value| {
        if is_slow(object) {
            45
        } else if is_machine(object) {
            30
        } else {
            15
        }
    };
    world.resources().values().map(limit).max().unwrap()
}

/// An observation: the minutes since the last one, the error or none, and the state of each sibling.
#[derive(Clone, Debug)]
struct Step {
    minutes: i64,
    error: Option<(usize, u8)>,
    siblings: Vec<u8>,
}

fn step() -> impl Strategy<Value = Step> {
    let error = proptest::option::of((0..ERRORS.len(), any::<u8>()));
    (1..=7_i64, error, vec(0..4_u8, 8)).prop_map(|(minutes, error, siblings)| Step {
        minutes,
        error,
        siblings,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Siblings become ready again and again, so that only the resource itself can stall.
    #[test]
    fn resource_with_errors_again_and_again_stalls(
        case in any::<prop::sample::Index>(),
        slot in any::<prop::sample::Index>(),
        has_siblings in any::<bool>(),
        steps in vec(step(), 60),
    ) {
        let cases: Vec<_> = simulated::examples()
            .into_iter()
            .filter(|case| case.api().info().name != "stock-pool")
            .collect();
        let case = case.get(&cases);
        let settled = case.settled();
        let all = slots(&settled);
        let slot = slot.get(&all).clone();
        let mut world = settled.clone();
        let (mut minute, mut last, mut first) = (0, 0, None);
        let slow = settled.resources().values().filter(|object| is_slow(object)).count();
        let one_after_the_other = if has_siblings { 45 * i64::try_from(slow).unwrap() } else { 0 };
        let end = slowest(&settled).max(one_after_the_other) + GAP;
        for (number, step) in steps.into_iter().enumerate() {
            minute += step.minutes;
            let now = after(settled.now(), minute);
            let is_due = minute + 7 > last + GAP;
            let error = step.error.or(is_due.then_some((number, 0)));
            match error {
                Some((error, word)) => {
                    let message = format!("{} ({word})", ERRORS[error % ERRORS.len()]);
                    reject(resource(&mut world, &slot), &now.to_string(), &message);
                    last = minute;
                    first = first.or(Some(minute));
                }
                None => create(resource(&mut world, &slot), &now.to_string()),
            }
            let others = all.iter().filter(|other| has_siblings && **other != slot);
            for (place, other) in others.enumerate() {
                let object = match step.siblings[place % step.siblings.len()] {
                    _ if number % 2 == 0 => None,
                    0 => Some(UNRESOLVED),
                    1 => Some(""),
                    _ => None,
                };
                let ready = settled.resources()[other].clone();
                let now = now.to_string();
                *resource(&mut world, other) = ready;
                match object {
                    Some("") => create(resource(&mut world, other), &now),
                    Some(error) => reject(resource(&mut world, other), &now, error),
                    None => {}
                }
            }
            call_at(case, &mut world, now);
            if first.is_some_and(|first| minute >= first + end) {
                prop_assert!(
                    is_stalled(&world),
                    "{}: {slot}: minute {minute}: {:#}", case.name(), line(&world, &slot)
                );
            }
        }
        // It starts again after it was ready.
        *resource(&mut world, &slot) = settled.resources()[&slot].clone();
        for other in &all {
            *resource(&mut world, other) = settled.resources()[other].clone();
        }
        call_at(case, &mut world, after(settled.now(), minute + 1));
        prop_assert!(!is_stalled(&world), "{}", case.name());
        reject(resource(&mut world, &slot), &settled.now().to_string(), UNRESOLVED);
        for (later, expected) in [(2, false), (16, false), (17, true)] {
            call_at(case, &mut world, after(settled.now(), minute + later));
            prop_assert_eq!(is_stalled(&world), expected, "{}: {}", case.name(), slot);
        }
    }
}

/// The example of an API, and its settled environment.
fn settled(api: &str) -> (simulated::Case, World) {
    let case = simulated::examples().into_iter().find(|case| case.api().info().name == api);
    let case = case.unwrap();
    let world = case.settled();
    (case, world)
}

#[test]
fn change_between_error_and_creation_does_not_restart_the_time() {
    let (case, mut world) = settled("application-environment");
    let start = world.now();
    let error = "create failed: googleapi: Error 409: another operation was already in progress., \
                 operationInProgress";
    let mut last = Value::Null;
    for minute in 0..40 {
        let now = after(start, minute);
        match minute % 14 {
            0..=6 => reject(resource(&mut world, "bucket"), &now.to_string(), error),
            _ => create(resource(&mut world, "bucket"), &now.to_string()),
        }
        call_at(&case, &mut world, now);
        let line = line(&world, "bucket");
        assert_eq!(line["since"], start.to_string(), "minute {minute}");
        assert_eq!(is_stalled(&world), minute >= 30, "minute {minute}: {line:#}");
        // The provider's own words are in the line in both reports.
        let message = line["message"].as_str().unwrap();
        assert!(message.contains("operationInProgress") || minute < 7, "{message}");
        last = line["message"].clone();
    }
    let told = format!(
        "not ready within 30 minutes: since {}: is being created; its last error: {error}",
        after(start, 35)
    );
    assert_eq!(last, told);
}

#[test]
fn sibling_that_becomes_ready_again_and_again_does_not_restart_the_time() {
    let (case, mut world) = settled("application-environment");
    let start = world.now();
    let ready = resource(&mut world, "gke-cluster").clone();
    for minute in 0..70 {
        let now = after(start, minute);
        reject(resource(&mut world, "node-pool"), &now.to_string(), UNRESOLVED);
        let cluster = resource(&mut world, "gke-cluster");
        *cluster = ready.clone();
        if minute % 8 < 4 {
            create(cluster, &now.to_string());
        }
        call_at(&case, &mut world, now);
        assert_eq!(is_stalled(&world), minute >= 60, "minute {minute}");
    }
}

#[test]
fn cluster_created_after_a_long_wait_does_not_stall() {
    let (case, mut world) = settled("application-environment");
    let start = world.now();
    for minute in 0..120 {
        let now = after(start, minute).to_string();
        let (cluster, pool) = (resource(&mut world, "gke-cluster").clone(), "node-pool");
        let mut cluster = cluster;
        match minute {
            0..40 => create(&mut cluster, &start.to_string()),
            _ => cluster = case.settled().resources()["gke-cluster"].clone(),
        }
        *resource(&mut world, "gke-cluster") = cluster;
        match minute {
            0..43 => reject(resource(&mut world, pool), &now, UNRESOLVED),
            43..83 => create(resource(&mut world, pool), &after(start, 43).to_string()),
            _ => break,
        }
        call_at(&case, &mut world, after(start, minute));
        assert!(!is_stalled(&world), "minute {minute}: {:#}", line(&world, pool));
    }
    // The time of the wait is over after 15 minutes without an error.
    assert_eq!(line(&world, "node-pool")["since"], after(start, 43).to_string());
    assert_eq!(line(&world, "node-pool")["message"], "is being created");
}

#[test]
fn transient_error_of_a_slow_cluster_does_not_stall() {
    let (case, mut world) = settled("application-environment");
    let start = world.now();
    for minute in 0..44 {
        let now = after(start, minute).to_string();
        let cluster = resource(&mut world, "gke-cluster");
        if [0, 1, 16, 17, 40].contains(&minute) {
            reject(cluster, &now, "the object has been modified; please apply your changes");
        } else {
            create(cluster, &now);
        }
        call_at(&case, &mut world, after(start, minute));
        assert!(!is_stalled(&world), "minute {minute}");
    }
}

#[test]
fn edited_environment_starts_again() {
    let (case, mut world) = settled("application-environment");
    let start = world.now();
    world.composite_mut()["metadata"]["generation"] = json!(1);
    reject(resource(&mut world, "bucket"), &start.to_string(), UNRESOLVED);
    call_at(&case, &mut world, start);
    call_at(&case, &mut world, after(start, 60));
    assert!(is_stalled(&world));
    world.composite_mut()["spec"]["lifecycle"] = json!({"ttl": "30d"});
    create(resource(&mut world, "bucket"), &after(start, 61).to_string());
    call_at(&case, &mut world, after(start, 61));
    assert!(!is_stalled(&world), "{:#}", line(&world, "bucket"));
    call_at(&case, &mut world, after(start, 76));
    assert!(is_stalled(&world));
}

#[test]
fn times_fit_into_the_status_of_the_first_release() {
    let (case, mut world) = settled("application-environment");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/contract/xrds-of-revision-1");
    let xrds: Vec<Value> = fs::read_dir(folder.join(case.flavour().name()))
        .unwrap()
        .flat_map(|file| support::read(&file.unwrap().path()))
        .collect();
    let schemas = Schemas::new(&xrds).unwrap();
    let mut input = case.input();
    input["schemaRevision"] = json!(1);
    let start: Timestamp = world.now();
    for minute in 0..=30 {
        let now = after(start, minute);
        match minute % 10 {
            0..=5 => reject(resource(&mut world, "bucket"), &now.to_string(), UNRESOLVED),
            _ => create(resource(&mut world, "bucket"), &now.to_string()),
        }
        world.set_now(now);
        let response = simulated::call(&world, &input);
        world.apply(&response).unwrap();
        let composite = world.composite();
        let violations = schemas.for_object(composite).unwrap().validate(composite, None);
        assert!(violations.is_empty(), "minute {minute}: {violations:?}");
    }
    assert!(is_stalled(&world), "{:#}", line(&world, "bucket"));
}
