//! The status of every example in every state for Flux, Helm 4 and other users of kstatus.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::fmt::Write as _;
use std::io::{Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use function_paved_road::apis::Flavour;
use function_paved_road::function::{self, Outside};
use function_paved_road::manifests;
use jiff::Timestamp;
use serde_json::{Value, json};
use simulator::core::World;
use support::Example;
use support::kstatus::verdict;

/// The generation of a claim, which differs from its composite's.
const OF_THE_CLAIM: i64 = 7;

/// An example in Crossplane: the composite and the observed resources. The responses of providers
/// stay the same.
struct Seen {
    example: Example,
    composite: Value,
    now: Timestamp,
}

impl Seen {
    /// The state after one answer.
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

    /// Changes the spec, and reconciles.
    fn edit(&mut self, change: impl Fn(&mut Value)) {
        change(&mut self.composite["spec"]);
        let generation = self.composite["metadata"]["generation"].as_i64().unwrap();
        self.composite["metadata"]["generation"] = json!(generation + 1);
        self.reconcile();
    }

    /// The object that users apply: the composite, or the claim with the status of its composite.
    fn applied(&self) -> Value {
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
        object
    }

    /// The object in four states: initially, after 16 minutes without a change, after a rejected
    /// change, and after that change is reverted.
    fn history(example: Example) -> Vec<Value> {
        let mut seen = Self::new(example);
        let mut history = vec![seen.applied()];
        seen.now += Duration::from_mins(16);
        seen.reconcile();
        history.push(seen.applied());
        seen.edit(|spec| spec["noSuchField"] = json!(true));
        history.push(seen.applied());
        seen.edit(|spec| _ = spec.as_object_mut().unwrap().remove("noSuchField"));
        history.push(seen.applied());
        history
    }
}

/// One line for each example and state, with the status after each step of its history.
#[test]
fn verdicts_on_all_examples() {
    let mut table = String::new();
    for example in support::examples() {
        let name = example.name();
        let verdicts: Vec<&str> = Seen::history(example).iter().map(verdict).collect();
        writeln!(table, "{name:50} {}", verdicts.join(" -> ")).unwrap();
    }
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!("kstatus", table));
}

/// Compares with the real kstatus, and with the script for Argo CD in Argo CD's Lua.
#[test]
fn libraries_agree_with_the_verdicts() {
    let Some(health) = health_program() else { return };
    let mut objects: Vec<Value> = support::examples().into_iter().flat_map(Seen::history).collect();
    let paused = objects.len();
    objects.push(json!({"metadata": {}, "status": {"conditions": [
        {"type": "Synced", "status": "False", "reason": "ReconcilePaused"},
        {"type": "Ready", "status": "True"},
    ]}}));
    // A claim that Crossplane has not seen yet.
    let new = objects.len();
    objects.push(json!({"metadata": {"generation": 1}, "spec": {}}));
    for (index, (object, told)) in objects.iter().zip(health_of(&health, &objects)).enumerate() {
        let mut conditions = object["status"]["conditions"].as_array().into_iter().flatten();
        let is_stalled = conditions
            .any(|condition| condition["type"] == "Stalled" && condition["status"] == "True");
        let argo_cd = match verdict(object) {
            _ if index == paused => "Suspended",
            _ if index == new => "Progressing",
            _ if is_stalled => "Degraded",
            "Current" => "Healthy",
            _ => "Progressing",
        };
        assert_eq!(told, format!("{} {argo_cd}", verdict(object)), "{object}");
    }
}

/// Builds `e2e/health`. Without Go, the comparison is skipped.
fn health_program() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("e2e/health");
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("health");
    let mut go = Command::new("go");
    go.env("CGO_ENABLED", "0").env("GOWORK", "off").current_dir(folder);
    let built = go.args(["build", "-o"]).arg(&program).status();
    match built {
        Ok(status) => assert!(status.success(), "go build: {status}"),
        Err(_) => eprintln!("skipped: no Go"),
    }
    built.is_ok().then_some(program)
}

/// A line for each object: the status of kstatus, and the health in Argo CD.
fn health_of(program: &Path, objects: &[Value]) -> Vec<String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/manifests/argocd/health.lua");
    let mut input = tempfile::tempfile().unwrap();
    for object in objects {
        writeln!(input, "{object}").unwrap();
    }
    input.rewind().unwrap();
    let output = Command::new(program).arg(script).stdin(input).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<String> = lines.lines().map(str::to_owned).collect();
    assert_eq!(lines.len(), objects.len());
    lines
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

/// An environment that never stalled has no Stalled condition, because each condition costs a
/// write.
#[test]
fn ready_examples_have_no_stalled_condition() {
    for example in support::examples().into_iter().filter(|example| example.state == "ready") {
        let name = example.name();
        let conditions = Seen::new(example).composite["status"]["conditions"].to_string();
        assert!(!conditions.contains("Stalled"), "{name}: {conditions}");
    }
}

#[test]
fn rules_match_kstatus() {
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
