//! The lifecycle of environments: the effects of a stop, and the fields that it preserves.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "../support/mod.rs"]
mod support;

mod budget;
mod machines;
mod still;
mod stops;

use std::collections::BTreeSet;

use crossplane::conditions;
use function_paved_road::lifecycle::{NOTE, Note, STARTED_AT, STOPPED_AT};
use function_paved_road::manifests::SCHEMA_REVISION;
use function_proto::v1::RunFunctionResponse;
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Map, Value, json};
use simulator::core::World;
use simulator::provider::{Pace, Provider};
use support::simulated::{self, Case};
use support::world;

/// More calls than any environment needs.
const LIMIT: usize = 12;

/// An environment with its clouds, and the Settings that its Composition has.
struct Environment {
    case: Case,
    world: World,
    provider: Provider,
    input: Value,
}

impl Environment {
    /// An environment with all resources ready, created with these lifecycle fields.
    fn ready(case: Case, lifecycle: Value) -> Self {
        let mut environment = Self::after(case, lifecycle, 0);
        environment.provider = Provider::new(Pace::Instant);
        environment.settle();
        environment
    }

    /// An environment after some calls, with clouds that need their time.
    fn after(case: Case, lifecycle: Value, calls: usize) -> Self {
        let mut world = case.world();
        let created = world.now();
        world.composite_mut()["metadata"]["creationTimestamp"] = created.to_string().into();
        world.composite_mut()["spec"]["lifecycle"] = lifecycle;
        let input = input(&case);
        let mut environment = Self { case, world, provider: Provider::new(Pace::Rounds), input };
        (0..calls).for_each(|_| environment.round());
        environment
    }

    /// Calls the function, and lets the providers work.
    fn round(&mut self) {
        let response = self.call();
        self.world.apply(&response).unwrap_or_else(|error| panic!("{}: {error}", self.name()));
        self.provider.answer(&mut self.world);
    }

    /// Calls the function until no object changes.
    fn settle(&mut self) -> RunFunctionResponse {
        for _ in 0..LIMIT {
            let before = simulated::timeless(&self.world);
            let response = self.call();
            self.world.apply(&response).unwrap_or_else(|error| panic!("{}: {error}", self.name()));
            self.provider.answer(&mut self.world);
            if before == simulated::timeless(&self.world) {
                return response;
            }
        }
        panic!("{}: still changing after {LIMIT} calls", self.name());
    }

    fn call(&self) -> RunFunctionResponse {
        simulated::call(&self.world, &self.input)
    }

    fn name(&self) -> String {
        self.case.name()
    }

    fn wish(&mut self, field: &str, value: Value) {
        self.world.composite_mut()["spec"]["lifecycle"][field] = value;
    }

    fn wait(&mut self, hours: i64) {
        let later = self.world.now().checked_add(SignedDuration::from_hours(hours)).unwrap();
        self.world.set_now(later);
    }

    fn status(&self) -> &Value {
        &self.world.composite()["status"]
    }

    /// The slot of the resource that has the note.
    fn first(&self) -> &'static str {
        let slots = self.case.api().info().first_slots;
        slots.iter().find(|slot| self.world.resources().contains_key(**slot)).unwrap()
    }

    /// Writes another note, or removes it.
    fn put_note(&mut self, note: Option<&str>) {
        let first = self.first();
        let resource = self.world.resources_mut().get_mut(first).unwrap();
        let annotations = resource["metadata"]["annotations"].as_object_mut().unwrap();
        annotations.remove(NOTE);
        annotations.extend(note.map(|note| (NOTE.to_owned(), note.into())));
    }

    fn is(&self, api: &str) -> bool {
        self.case.api().info().name == api
    }
}

/// Every environment that can be stopped.
fn stoppable() -> Vec<Case> {
    simulated::all().into_iter().filter(Case::can_stop).collect()
}

/// The step's input with today's schema revision.
fn input(case: &Case) -> Value {
    let mut input = case.input();
    input["schemaRevision"] = SCHEMA_REVISION.into();
    input
}

fn condition<'r>(response: &'r RunFunctionResponse, kind: &str) -> Option<(i32, &'r str, &'r str)> {
    let found = response.conditions.iter().find(|condition| condition.r#type == kind)?;
    Some((found.status, found.reason.as_str(), found.message.as_deref().unwrap_or_default()))
}

fn time(text: &Value) -> Timestamp {
    text.as_str().unwrap().parse().unwrap()
}

#[test]
fn environment_without_a_ttl_has_no_end() {
    for case in simulated::examples() {
        let environment = Environment::ready(case, json!({}));
        let name = environment.name();
        assert_eq!(environment.status()["lifecycle"], Value::Null, "{name}");
        assert_eq!(environment.status()["phase"], "Ready", "{name}");
        for resource in environment.world.resources().values() {
            let note = resource["metadata"]["annotations"][NOTE].as_str();
            let note = note.map_or_else(Note::default, |text| Note::read(text).unwrap());
            assert_eq!(Note { price: None, ..note }, Note::default(), "{name}");
        }
    }
}

#[test]
fn status_names_the_end_and_the_condition_warns_of_it() {
    for case in simulated::examples() {
        let mut environment = Environment::ready(case, json!({"ttl": "8h"}));
        let name = environment.name();
        let created = environment.world.now();
        let expires = time(&environment.status()["lifecycle"]["expiresAt"]);
        assert_eq!(expires, created.checked_add(SignedDuration::from_hours(8)).unwrap(), "{name}");
        assert_eq!(environment.status()["lifecycle"]["ttlFrom"], "Claim", "{name}");
        assert_eq!(condition(&environment.call(), "Expiring"), None, "{name}");

        environment.wait(6);
        let response = environment.call();
        let (status, reason, message) = condition(&response, "Expiring").expect(&name);
        assert_eq!((status, reason), (2, "Expiring"), "{name}");
        assert!(message.contains("To renew it, run: paved extend"), "{name}: {message}");
        assert!(message.contains(&expires.to_string()), "{name}: {message}");
        let warnings = |response: &RunFunctionResponse| {
            response.results.iter().filter(|one| one.reason.as_deref() == Some("Expiring")).count()
        };
        assert_eq!(warnings(&response), 1, "{name}");
        environment.world.apply(&response).unwrap();
        assert_eq!(warnings(&environment.call()), 0, "{name}: warns once");
    }
}

/// Clients compare the time with the annotations, and so know whether a status is of an earlier
/// request.
#[test]
fn status_names_the_last_request_to_stop_or_start() {
    for case in simulated::all() {
        let mut environment = Environment::ready(case, json!({}));
        let name = environment.name();
        assert_eq!(environment.status()["lifecycle"]["requestedAt"], Value::Null, "{name}");
        let now = environment.world.now();
        let later = now.checked_add(SignedDuration::from_millis(1500)).unwrap();
        for (annotation, at) in [(STARTED_AT, now), (STOPPED_AT, later), (STARTED_AT, later)] {
            environment.world.composite_mut()["metadata"]["annotations"][annotation] =
                at.to_string().into();
            environment.round();
            let told = &environment.status()["lifecycle"]["requestedAt"];
            assert_eq!(*told, at.to_string(), "{name}");
        }
    }
}

#[test]
fn unreadable_note_stays_and_nothing_follows_from_it() {
    for case in simulated::examples() {
        let mut environment = Environment::ready(case, json!({"ttl": "8h"}));
        let name = environment.name();
        environment.wait(9);
        environment.put_note(Some(r#"{"onExpiry":"Sleep"}"#));
        let response = environment.call();
        assert!(world::is_fatal(&response), "{name}: {:?}", response.results);
        let message = response.results[0].message.as_str();
        assert!(message.contains(NOTE) && message.contains("Sleep"), "{name}: {message}");
    }
}

#[test]
fn environment_that_lost_its_note_starts_its_ttl_again() {
    for case in simulated::examples() {
        let mut environment = Environment::ready(case, json!({}));
        let name = environment.name();
        let section = environment.case.api().info().settings;
        environment.input[section]["lifecycle"] = json!({"ttl": "1h", "onExpiry": "Delete"});
        environment.wait(9);
        // Its first resource was deleted, and has the note.
        let first = environment.first();
        environment.world.resources_mut().remove(first);
        environment.settle();
        assert_eq!(environment.status()["lifecycle"], Value::Null, "{name}: today's default");
        environment.wish("ttl", json!("8h"));
        environment.put_note(None);
        environment.settle();
        let left = time(&environment.status()["lifecycle"]["expiresAt"])
            .duration_since(environment.world.now());
        assert_eq!(left, SignedDuration::from_hours(8), "{name}");
    }
}

/// Crossplane applies resources in any order, and may be interrupted.
#[test]
fn environment_with_an_interrupted_first_apply_has_the_defaults() {
    for case in simulated::examples() {
        let mut environment = Environment::after(case, json!({}), 0);
        let name = environment.name();
        let section = environment.case.api().info().settings;
        environment.input[section]["lifecycle"] = json!({"ttl": "8h"});
        let response = environment.call();
        environment.world.apply(&response).unwrap();
        let first = environment.first();
        environment.world.resources_mut().remove(first);
        environment.world.composite_mut().as_object_mut().unwrap().remove("status");
        environment.settle();
        let status = &environment.status()["lifecycle"];
        assert_eq!(status["ttlFrom"], "Settings", "{name}: {status}");
    }
}

/// `Delete` leaves a running cluster and database in the cloud without an owner.
#[test]
fn environment_that_leaves_its_resources_is_stopped_and_not_deleted_at_its_end() {
    for case in simulated::all()
        .into_iter()
        .filter(|case| case.api().info().name == "application-environment")
    {
        let mut environment = Environment::after(case, json!({}), 0);
        let name = environment.name();
        let section = environment.case.api().info().settings;
        environment.input[section]["lifecycle"] = json!({"ttl": "8h", "onExpiry": "Delete"});
        environment.world.composite_mut()["spec"]["parameters"]["deletionPolicy"] = json!("Orphan");
        environment.provider = Provider::new(Pace::Instant);
        environment.settle();
        environment.wait(9);
        environment.settle();
        let status = environment.status();
        assert_eq!([&status["phase"], &status["power"]], ["Stopped", "Stopped"], "{name}");
        assert_eq!(status["lifecycle"]["deletesAt"], Value::Null, "{name}");

        environment.wish("onExpiry", json!("Delete"));
        let (_, reason, message) = condition(&environment.call(), "Provisioned")
            .map(|(status, reason, message)| (status, reason.to_owned(), message.to_owned()))
            .unwrap();
        assert_eq!(reason, "InvalidSpec", "{name}");
        let words = "spec.lifecycle.onExpiry: found \"Delete\"; allowed: Stop, because";
        assert!(message.contains(words), "{name}: {message}");
    }
}

#[test]
fn wrong_lifecycle_is_rejected_at_its_field() {
    for (wrong, path, allowed) in [
        (json!({"ttl": 8}), "spec.lifecycle.ttl", "a whole number with a unit"),
        (json!({"ttl": "-1h"}), "spec.lifecycle.ttl", "a whole number with a unit"),
        (json!({"ttl": "0s"}), "spec.lifecycle.ttl", "a whole number with a unit"),
        (json!({"ttl": "15d"}), "spec.lifecycle.ttl", "at most 14d"),
        (json!({"ttl": "never"}), "spec.lifecycle.ttl", "at most 14d"),
        (json!({"power": true}), "spec.lifecycle.power", "Running"),
        (json!({"idle": {"after": "45m"}}), "spec.lifecycle.idle", "unknown field"),
        (
            json!({"ttl": "8h", "onExpiry": "Delete", "keepStoppedFor": "14d"}),
            "spec.lifecycle.onExpiry",
            "beside keepStoppedFor: 14d; allowed: Stop, or no keepStoppedFor, because Delete",
        ),
    ] {
        for case in simulated::examples() {
            let mut world = case.world();
            world.composite_mut()["spec"]["lifecycle"] = wrong.clone();
            let mut input = input(&case);
            input[case.api().info().settings]["lifecycle"] = json!({"maximum": "14d"});
            let response = simulated::call(&world, &input);
            let told: Vec<&str> =
                response.results.iter().map(|result| result.message.as_str()).collect();
            assert!(world::is_fatal(&response), "{}: {wrong}", case.name());
            assert_eq!(told.len(), 1, "{}: {told:?}", case.name());
            assert!(told[0].starts_with(path) && told[0].contains(allowed), "{told:?}");
        }
    }
}

#[test]
fn environment_without_a_stop_rejects_it_with_the_reason() {
    for case in simulated::all() {
        let cannot = !case.can_stop();
        let mut world = case.world();
        world.composite_mut()["spec"]["lifecycle"] = json!({"power": "Stopped"});
        let response = simulated::call(&world, &input(&case));
        assert_eq!(world::is_fatal(&response), cannot, "{}", case.name());
        if cannot {
            let told = &response.results[0].message;
            assert!(
                told.starts_with(
                    "spec.lifecycle.power: found \"Stopped\"; allowed: Running, because"
                ),
                "{told}"
            );
        }
    }
}

/// A case plays a whole environment, so these are a tenth of the usual number.
fn config() -> ProptestConfig {
    let usual = ProptestConfig::default();
    ProptestConfig { cases: usual.cases.div_ceil(10), failure_persistence: None, ..usual }
}

proptest! {
    #![proptest_config(config())]

    /// The time to the next call differs. It is stored nowhere.
    #[test]
    fn answers_between_boundaries_are_identical(
        case in any::<Index>(), minutes in 0_i64..900, later in 0_i64..900, is_stopped: bool,
    ) {
        let mut cases = stoppable();
        let case = cases.swap_remove(case.index(cases.len()));
        let power = if is_stopped { "Stopped" } else { "Running" };
        let mut environment = Environment::ready(case, json!({"ttl": "8h", "power": power}));
        let created = environment.world.now();
        let at = |minutes: i64| created.checked_add(SignedDuration::from_mins(minutes)).unwrap();
        environment.world.set_now(at(minutes));
        environment.settle();
        let mut answers = [minutes, minutes + later].map(|minutes| {
            environment.world.set_now(at(minutes));
            environment.call()
        });
        for answer in &mut answers {
            answer.meta = None;
        }
        // The warnings and the end of a time to live of eight hours.
        let stage = |minutes: i64| [360, 450, 480].iter().filter(|at| **at <= minutes).count();
        if stage(minutes) == stage(minutes + later) {
            let [one, other] = answers;
            prop_assert_eq!(one, other);
        }
    }
}

/// A person moves an environment to an older Composition. Its end stays.
#[test]
fn environment_under_an_older_composition_keeps_its_end_and_warns() {
    for case in stoppable() {
        let mut environment = Environment::ready(case, json!({"ttl": "1h"}));
        let name = environment.name();
        environment.input["schemaRevision"] = json!(2);
        environment.wait(2);
        let response = environment.call();
        let status = world::status(&response);
        assert!(status["lifecycle"].is_null() && status["power"].is_null(), "{name}: {status}");
        let (state, reason, _) = condition(&response, "Expiring").expect(&name);
        assert_eq!((state, reason), (2, "Expired"), "{name}");
        let (state, reason, message) = condition(&response, "OutdatedComposition").expect(&name);
        assert_eq!((state, reason), (2, "OldSchemaRevision"), "{name}");
        assert!(message.starts_with("spec.lifecycle.ttl: has no effect, because"), "{message}");
        assert!(message.contains("Set spec.pipeline[].input.schemaRevision to 3 in"), "{message}");
        let warnings = |response: &RunFunctionResponse| {
            let about = |one: &&function_proto::v1::Result| {
                one.reason.as_deref() == Some("OldSchemaRevision")
            };
            response.results.iter().filter(about).count()
        };
        assert_eq!(warnings(&response), 1, "{name}");
        environment.world.apply(&response).unwrap();
        assert_eq!(warnings(&environment.call()), 0, "{name}: warns once");
        environment.settle();
        environment.input["schemaRevision"] = SCHEMA_REVISION.into();
        environment.settle();
        assert_eq!(environment.status()["power"], "Stopped", "{name}: it was not started");
        let (state, reason, _) =
            condition(&environment.call(), "OutdatedComposition").map(owned).expect(&name);
        assert_eq!((state, reason.as_str()), (3, "UpToDate"), "{name}");
    }
}

/// The status of an earlier revision has no field for the power.
#[test]
fn stopped_environment_under_an_older_composition_keeps_the_times_of_its_resources() {
    for case in stoppable() {
        let mut environment = Environment::ready(case, json!({"power": "Stopped"}));
        let name = environment.name();
        environment.input["schemaRevision"] = json!(2);
        environment.settle();
        let first = environment.first();
        let begun = environment.world.now().to_string();
        let resource = environment.world.resources_mut().get_mut(first).unwrap();
        conditions::set(resource, &begun, "Ready", "False", "Creating", "");
        for hour in 0..3 {
            let response = environment.call();
            environment.world.apply(&response).unwrap();
            assert_eq!(environment.status()["power"], Value::Null, "{name}");
            let lines = environment.status()["resources"].as_array().unwrap();
            let line = lines.iter().find(|line| line["slot"] == first).unwrap();
            assert_eq!(line["since"], begun, "{name}: hour {hour}: {line}");
            environment.wait(1);
        }
    }
}

fn owned((state, reason, message): (i32, &str, &str)) -> (i32, String, String) {
    (state, reason.to_owned(), message.to_owned())
}

/// The paths of the fields that differ between two objects.
fn differences(path: &str, asked: &Value, seen: &Value, found: &mut Vec<String>) {
    match (asked, seen) {
        (Value::Object(asked), Value::Object(seen)) => {
            let keys: BTreeSet<&String> = asked.keys().chain(seen.keys()).collect();
            for key in keys {
                differences(&format!("{path}.{key}"), field(asked, key), field(seen, key), found);
            }
        }
        _ if asked == seen => {}
        _ => found.push(path.trim_start_matches('.').to_owned()),
    }
}

fn field<'o>(object: &'o Map<String, Value>, key: &str) -> &'o Value {
    object.get(key).unwrap_or(&Value::Null)
}
