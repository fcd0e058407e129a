//! What Flux, Helm 4 and other clients of kstatus make of every example in every state.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::fmt::Write as _;
use std::time::Duration;

use function_paved_road::apis::Flavour;
use function_paved_road::function::{self, Outside};
use function_paved_road::manifests;
use jiff::Timestamp;
use serde_json::{Value, json};
use simulator::core::World;
use support::Example;
use support::kstatus::verdict;

/// The generation of a claim; its composite has one of its own.
const OF_THE_CLAIM: i64 = 7;

/// An example as Crossplane has it: the composite, and what was observed. Nobody but the function
/// acts: the providers' answers stay.
struct Seen {
    example: Example,
    composite: Value,
    now: Timestamp,
}

impl Seen {
    /// After one answer.
    fn new(example: Example) -> Self {
        let mut composite = example.xr();
        composite["metadata"]["generation"] = json!(2);
        let now = "2026-11-21T09:00:00Z".parse().unwrap();
        let mut seen = Self { example, composite, now };
        seen.reconcile();
        seen
    }

    fn reconcile(&mut self) {
        let Example { api, flavour, folder, .. } = &self.example;
        let xrd = manifests::xrd(*api, *flavour, flavour.default_group());
        let composition = support::read(&folder.join("composition.yaml")).remove(0);
        let mut world = World::from_documents(self.composite.clone(), self.example.observed())
            .defined_by(&xrd)
            .select(&composition);
        world.set_now(self.now);
        let mut random = |bytes: &mut [u8]| bytes.fill(7);
        let mut outside = Outside { now: self.now, random: &mut random };
        let input = self.example.input();
        let response =
            world.run(Some(&input), |request| function::run(request, &mut outside)).unwrap();
        world.apply(&response).unwrap();
        let spec = self.composite["spec"].clone();
        self.composite = world.composite().clone();
        self.composite["spec"] = spec;
    }

    /// After a change of the spec.
    fn edit(&mut self, change: impl Fn(&mut Value)) {
        change(&mut self.composite["spec"]);
        let generation = self.composite["metadata"]["generation"].as_i64().unwrap();
        self.composite["metadata"]["generation"] = json!(generation + 1);
        self.reconcile();
    }

    /// The verdict on what people apply: the claim, whose status is its composite's, or the
    /// composite.
    fn verdict(&self) -> &'static str {
        let mut object = self.composite.clone();
        if self.example.flavour == Flavour::Claims {
            object["metadata"]["generation"] = json!(OF_THE_CLAIM);
            let shared = object["status"]["claimConditionTypes"].clone();
            let of_claim = |condition: &Value| {
                ["Ready", "Synced"].iter().any(|kind| condition["type"] == *kind)
                    || shared.as_array().is_some_and(|all| all.contains(&condition["type"]))
            };
            object["status"]["conditions"].as_array_mut().unwrap().retain(of_claim);
        }
        verdict(&object)
    }
}

/// One line for each example and state: at first, after 16 minutes in which nothing changes, after
/// a refused change, and after that is taken back.
#[test]
fn verdicts_on_all_examples() {
    let mut table = String::new();
    for example in support::examples() {
        let name = example.name();
        let mut seen = Seen::new(example);
        let mut told = vec![seen.verdict()];
        seen.now += Duration::from_mins(16);
        seen.reconcile();
        told.push(seen.verdict());
        seen.edit(|spec| spec["noSuchField"] = json!(true));
        told.push(seen.verdict());
        seen.edit(|spec| _ = spec.as_object_mut().unwrap().remove("noSuchField"));
        told.push(seen.verdict());
        writeln!(table, "{name:50} {}", told.join(" -> ")).unwrap();
    }
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!("kstatus", table));
}

#[test]
fn no_claim_has_an_observed_generation() {
    for example in
        support::examples().into_iter().filter(|example| example.flavour == Flavour::Claims)
    {
        let name = example.name();
        let status = Seen::new(example).composite["status"].clone();
        assert!(status["phase"].is_string(), "{status}");
        assert_eq!(status.get("observedGeneration"), None, "{name}");
    }
}

/// What is idle causes no writes: an environment that never stalled gets no condition.
#[test]
fn ready_examples_have_no_stalled_condition() {
    for example in support::examples().into_iter().filter(|example| example.state == "ready") {
        let name = example.name();
        let conditions = Seen::new(example).composite["status"]["conditions"].to_string();
        assert!(!conditions.contains("Stalled"), "{name}: {conditions}");
    }
}

#[test]
fn rules_are_those_of_kstatus() {
    let object = |generation: i64, seen: Value, conditions: &[(&str, &str)]| {
        let conditions: Vec<Value> = conditions
            .iter()
            .map(|(kind, status)| json!({"type": kind, "status": status}))
            .collect();
        let mut object =
            json!({"metadata": {"generation": generation}, "status": {"conditions": conditions}});
        if !seen.is_null() {
            object["status"]["observedGeneration"] = seen;
        }
        object
    };
    let none = Value::Null;
    for (object, expected) in [
        (json!({}), "Current"),
        (object(2, none.clone(), &[("Ready", "True")]), "Current"),
        (object(2, none.clone(), &[("Ready", "False")]), "InProgress"),
        (object(2, none.clone(), &[("Ready", "Unknown")]), "InProgress"),
        (object(2, json!(1), &[("Ready", "True"), ("Stalled", "True")]), "InProgress"),
        (object(2, json!(2), &[("Ready", "True"), ("Stalled", "True")]), "Failed"),
        (object(2, none.clone(), &[("Reconciling", "True"), ("Stalled", "True")]), "InProgress"),
        (object(2, none.clone(), &[("Stalled", "False"), ("Ready", "True")]), "Current"),
        (object(2, none, &[("Synced", "True")]), "Current"),
        (json!({"metadata": {"deletionTimestamp": "2026-11-21T09:00:00Z"}}), "Terminating"),
    ] {
        assert_eq!(verdict(&object), expected, "{object}");
    }
}
