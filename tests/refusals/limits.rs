//! Every limit of Settings and every field of the lifecycle, at every schema revision, for a new and
//! for a running environment. The table is the documentation.
//!
//! The fields come from the schemas, so a new field without a row fails.

use std::collections::BTreeSet;

use function_paved_road::manifests::{self, SCHEMA_REVISION};

use super::*;

/// The schema revisions of Compositions. An input without a revision has the first.
const REVISIONS: [Option<u32>; 4] = [None, Some(1), Some(2), Some(3)];

/// The revision that carries the lifecycle.
const LIFECYCLE: u32 = 3;

/// The fields of Settings that limit nothing: values of resources, defaults and addresses. Each
/// name stands for all fields below it.
const NO_LIMITS: &[&str] = &[
    "apiVersion",
    "applicationEnvironment.clusterSecondaryRangeName",
    "applicationEnvironment.databaseTier",
    "applicationEnvironment.databaseVersion",
    "applicationEnvironment.diskSizeGb",
    "applicationEnvironment.machineTypes",
    "applicationEnvironment.network",
    "applicationEnvironment.projectId",
    "applicationEnvironment.servicesSecondaryRangeName",
    "applicationEnvironment.subnetwork",
    "applicationEnvironment.subnetworks",
    "applicationEnvironment.zones",
    "environment.aks",
    "environment.charts",
    "environment.eks",
    "environment.gke",
    "environment.loadBalancerAnnotations",
    "environment.machineTypes",
    "environment.typeBySize",
    "gpuWorkspace.allowedCidrs",
    "gpuWorkspace.amis",
    "gpuWorkspace.networks",
    "kind",
    "metadata",
    "pricing",
    "providerConfigs",
    "schemaRevision",
    "settingsFrom.name",
    "stockPool.runtimeClassName",
    "tags",
    "unifiedEnvironment.database.mode",
    "unifiedEnvironment.ingress",
    "unifiedEnvironment.publisherRoleArns",
    "unifiedEnvironment.rds.finalSnapshot",
    "unifiedEnvironment.rds.securityGroupIds",
    "unifiedEnvironment.rds.subnetGroup",
    "unifiedEnvironment.region",
    "unifiedEnvironment.resources",
];

/// The result for a new environment. A running environment continues in each case.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Rule {
    /// The environment is rejected at every revision, with the field and the allowed values.
    Value,
    /// The limit changes resources or the status at every revision.
    Applied,
    /// The limit belongs to `paved` or its controller. The function accepts it at every revision.
    Elsewhere,
    /// A limit of a later revision. Under earlier revisions, the environment is rejected with the
    /// line to change, and a running one has a warning and a condition.
    Later,
    /// Like `Later`, and under the later revision the limit changes resources or the status.
    LaterApplied,
    /// Like `Later`, and under the later revision the environment is rejected at a field of the
    /// spec.
    LaterValue,
    /// A field of the spec. Under earlier revisions, new and running environments have a warning
    /// and a condition. Under the later revision, it changes resources or the status.
    Wish,
}

struct Row {
    /// The field in the schema.
    path: String,
    rule: Rule,
    world: World,
    /// The fields that the row adds to the input, to the spec, and to the spec beside a limit.
    input: Value,
    spec: Value,
    /// The beginning of the message under an earlier revision, or of a rejected value.
    message: String,
    /// The beginning of the message of a rejected value under the later revision.
    rejected: &'static str,
}

fn worlds(api: &str) -> impl Iterator<Item = World> {
    main_examples(api).into_iter()
}

fn merge(into: &mut Value, fields: &Value) {
    crossplane::object::merge(into.as_object_mut().unwrap(), fields.as_object().unwrap().clone());
}

/// The namespace of an environment's user.
fn namespace(world: &World) -> String {
    let claim = &world.xr["spec"]["claimRef"]["namespace"];
    claim.as_str().or(world.xr["metadata"]["namespace"].as_str()).unwrap().to_owned()
}

/// A path of Settings with one value.
fn at(path: &str, value: Value) -> Value {
    path.split('.').rev().fold(value, |inner, key| json!({key: inner}))
}

fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    let mut add = |api: &str, path: &str, rule, input: Value, spec: Value, message: &str| {
        rows.extend(worlds(api).map(|world| Row {
            path: path.to_owned(),
            rule,
            input: input.clone(),
            spec: spec.clone(),
            message: message.to_owned(),
            rejected: "",
            world,
        }));
    };
    let gpu = "gpu-workspace";
    let none = json!({});
    add(
        gpu,
        "gpuWorkspace.instanceTypes",
        Rule::Value,
        at("gpuWorkspace.instanceTypes", json!(["g5.xlarge"])),
        none.clone(),
        "spec.parameters.instanceType: found \"g4dn.xlarge\"; allowed: g5.xlarge",
    );
    add(
        gpu,
        "gpuWorkspace.allowedCidrsWithin",
        Rule::Value,
        at("gpuWorkspace.allowedCidrsWithin", json!(["10.0.0.0/8"])),
        none.clone(),
        "spec.parameters.allowedCidrs[0]: found 203.0.113.0/24; allowed: networks within 10.0.0.0/8",
    );
    add(
        gpu,
        "gpuWorkspace.permissionsBoundary",
        Rule::Applied,
        at("gpuWorkspace.permissionsBoundary", json!("arn:aws:iam::123456789012:policy/limit")),
        none.clone(),
        "",
    );
    let cluster = "virtual-environment";
    add(
        cluster,
        "environment.chartRepositories",
        Rule::Value,
        at("environment.chartRepositories", json!(["https://charts.acme.io/team"])),
        none.clone(),
        "spec.parameters.app.chart.repository: found \"https://stefanprodan.github.io/podinfo\"; ",
    );
    let exposed = json!({"parameters": {"expose": "loadBalancer"}});
    add(
        cluster,
        "environment.exposeAllowed",
        Rule::Value,
        at("environment.exposeAllowed", json!(false)),
        exposed.clone(),
        "spec.parameters.expose: found \"loadBalancer\"; allowed: cluster",
    );
    add(
        cluster,
        "environment.allowedCidrs",
        Rule::Applied,
        at("environment.allowedCidrs", json!(["192.0.2.0/24"])),
        exposed,
        "",
    );
    add(
        "unified-environment",
        "unifiedEnvironment.rds.maxAllocatedStorage",
        Rule::Elsewhere,
        at("unifiedEnvironment.rds.maxAllocatedStorage", json!(200)),
        none.clone(),
        "",
    );
    for api in apis::APIS {
        let (name, section) = (api.info().name, api.info().settings);
        let hour = json!({"lifecycle": {"ttl": "1h"}});
        for (field, rule, value, spec) in [
            ("ttl", Rule::LaterApplied, "8h", &none),
            ("maximum", Rule::LaterApplied, "8h", &hour),
            ("onExpiry", Rule::LaterApplied, "Delete", &hour),
            ("keepStoppedFor", Rule::Later, "8h", &hour),
        ] {
            let path = format!("{section}.lifecycle.{field}");
            let message = format!("settings.{path}: has no effect, because ");
            add(name, &path, rule, at(&path, json!(value)), spec.clone(), &message);
        }
        let path = format!("{section}.lifecycle.maximum");
        let long = json!({"lifecycle": {"ttl": "9h"}});
        let message = format!("settings.{path}: has no effect, because ");
        add(name, &path, Rule::LaterValue, at(&path, json!("8h")), long, &message);

        let budget = "settings.budget: has no effect, because ";
        let path = "budget.defaultHourlyUSD";
        add(name, path, Rule::Later, at(path, json!("1")), none.clone(), budget);
        let path = "minimumSchemaRevision";
        let message = "settings.minimumSchemaRevision: found schemaRevision ";
        add(name, path, Rule::Later, at(path, json!(LIFECYCLE)), none.clone(), message);
        let path = "controller.deletionsPerHour";
        add(name, path, Rule::Elsewhere, at(path, json!(0)), none.clone(), "");
        let path = "settingsFrom.optional";
        let from = json!({"settingsFrom": {"name": "gone", "optional": false}});
        let message = "settings.settingsFrom.name: found \"gone\"";
        add(name, path, Rule::Value, from, none.clone(), message);
        for (field, value, beside) in [
            ("ttl", "1h", &none),
            ("onExpiry", "Delete", &hour),
            ("keepStoppedFor", "8h", &hour),
            ("power", "Stopped", &none),
        ] {
            // A stop has no effect on an environment that cannot be stopped. Other tests cover it.
            let settings = Default::default();
            let example = worlds(name).next().unwrap().xr["spec"].clone();
            let cannot_stop = api.cannot_stop(&example, &settings).is_some();
            if cannot_stop && ["keepStoppedFor", "power"].contains(&field) {
                continue;
            }
            let mut spec = beside.clone();
            merge(&mut spec, &json!({"lifecycle": {field: value}}));
            let path = format!("spec.lifecycle.{field}");
            let message = format!("{path}: has no effect, because ");
            add(name, &path, Rule::Wish, none.clone(), spec, &message);
        }
    }
    for row in &mut rows {
        if row.rule == Rule::LaterValue {
            row.rejected = "spec.lifecycle.ttl: found \"9h\"; allowed: at most 8h";
        }
    }
    // The same budget by namespace.
    let by_namespace = worlds(gpu).chain(worlds(cluster)).map(|world| Row {
        path: "budget.byNamespace".to_owned(),
        rule: Rule::Later,
        input: json!({"budget": {"byNamespace": {namespace(&world): "1"}}}),
        spec: none.clone(),
        message: "settings.budget: has no effect, because ".to_owned(),
        rejected: "",
        world,
    });
    rows.into_iter().chain(by_namespace).collect()
}

/// The paths of a schema's fields. Entries of lists and values of maps are below their field.
fn leaves(prefix: &str, schema: &Value, found: &mut BTreeSet<String>) {
    match schema["properties"].as_object() {
        Some(fields) => {
            for (name, field) in fields {
                let dot = if prefix.is_empty() { "" } else { "." };
                leaves(&format!("{prefix}{dot}{name}"), field, found);
            }
        }
        None => drop(found.insert(prefix.to_owned())),
    }
}

#[test]
fn limit_or_lifecycle_field_has_a_row() {
    let mut found = BTreeSet::new();
    let input = manifests::input();
    leaves("", &input["spec"]["versions"][0]["schema"]["openAPIV3Schema"], &mut found);
    let is_below = |path: &str, group: &str| {
        path.strip_prefix(group).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    for group in NO_LIMITS {
        assert!(found.iter().any(|path| is_below(path, group)), "unknown field: {group}");
    }
    found.retain(|path| !NO_LIMITS.iter().any(|group| is_below(path, group)));
    for api in apis::APIS {
        let xrd = manifests::xrd(*api, Flavour::Claims, Flavour::Claims.default_group());
        let schema = &xrd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"];
        leaves("spec.lifecycle", &schema["spec"]["properties"]["lifecycle"], &mut found);
    }
    let rows: BTreeSet<String> = rows().into_iter().map(|row| row.path).collect();
    assert_eq!(rows, found, "a limit needs a row, and another field a line in NO_LIMITS");
    assert_eq!(REVISIONS.last(), Some(&Some(SCHEMA_REVISION)));
}

fn with_revision(world: &World, revision: Option<u32>) -> World {
    let mut world = world.clone();
    let input = world.input.as_object_mut().unwrap();
    input.remove("schemaRevision");
    input.extend(revision.map(|revision| ("schemaRevision".to_owned(), json!(revision))));
    world
}

fn fatal(response: &RunFunctionResponse) -> Option<&str> {
    let fatal = |one: &&function_sdk_rust::proto::v1::Result| one.severity() == Severity::Fatal;
    response.results.iter().find(fatal).map(|one| one.message.as_str())
}

/// The line that a person has to change.
fn names_the_line(message: &str) -> bool {
    message.contains("Set spec.pipeline[].input.schemaRevision to 3 in ")
}

/// Whether the response warns of a field, in a result and in the condition.
fn warns(response: &RunFunctionResponse, message: &str) -> bool {
    let told = response.results.iter().any(|one| {
        one.reason() == "OldSchemaRevision"
            && one.severity() == Severity::Warning
            && one.message.starts_with(message)
            && names_the_line(&one.message)
    });
    let noted = response.conditions.iter().any(|one| {
        one.r#type == "OutdatedComposition"
            && one.status() == Status::ConditionTrue
            && one.message().contains(message)
    });
    assert_eq!(told, noted, "{:?} {:?}", response.results, response.conditions);
    told
}

fn is_outdated(response: &RunFunctionResponse) -> bool {
    response.conditions.iter().any(|one| one.r#type == "OutdatedComposition")
}

/// Resources and status of a response.
fn content(response: &RunFunctionResponse) -> (Value, Value) {
    (json!(desired(response)), support::world::status(response))
}

impl Row {
    /// The environment under a revision, without the row's field and with it.
    fn worlds(&self, revision: Option<u32>) -> [World; 2] {
        let mut without = with_revision(&self.world, revision);
        let mut with = without.clone();
        let mut beside = self.spec.clone();
        if let Some(field) = self.path.strip_prefix("spec.lifecycle.") {
            beside["lifecycle"].as_object_mut().unwrap().remove(field);
        }
        merge(&mut without.xr["spec"], &beside);
        merge(&mut with.xr["spec"], &self.spec);
        merge(&mut with.input, &self.input);
        [without, with]
    }

    fn check_new(&self, revision: Option<u32>) {
        let name =
            format!("{} of {}, revision {revision:?}", self.path, self.world.api().info().name);
        let [without, with] = self.worlds(revision).map(|world| world.answer());
        let is_later = revision.is_some_and(|revision| revision >= LIFECYCLE);
        assert_eq!(fatal(&without), None, "{name}");
        let is_changed = content(&with) != content(&without);
        match (self.rule, is_later) {
            (Rule::Value, _) | (Rule::LaterValue, true) => {
                let expected = if is_later && !self.rejected.is_empty() {
                    self.rejected
                } else {
                    &self.message
                };
                let message = fatal(&with).unwrap_or_else(|| panic!("{name}: not rejected"));
                assert!(message.starts_with(expected), "{name}: {message}");
            }
            (Rule::Later | Rule::LaterApplied | Rule::LaterValue, false) => {
                let message = fatal(&with).unwrap_or_else(|| panic!("{name}: not rejected"));
                assert!(message.starts_with(&self.message), "{name}: {message}");
                assert!(names_the_line(message), "{name}: {message}");
                assert!(desired(&with).is_empty(), "{name}");
            }
            (Rule::Wish, false) => {
                assert_eq!(fatal(&with), None, "{name}");
                assert!(warns(&with, &self.message), "{name}: {:?}", with.results);
                assert_eq!(content(&with), content(&without), "{name}");
            }
            (Rule::Applied | Rule::Elsewhere, _)
            | (Rule::Later | Rule::LaterApplied | Rule::Wish, true) => {
                assert_eq!((fatal(&with), is_outdated(&with)), (None, false), "{name}");
                let must = !matches!(self.rule, Rule::Elsewhere | Rule::Later);
                assert!(is_changed || !must, "{name}: no effect");
            }
        }
    }

    /// An environment that was ready before the row's field was set.
    fn check_running(&self, revision: Option<u32>) {
        let name =
            format!("{} of {}, revision {revision:?}", self.path, self.world.api().info().name);
        let [without, with] = self.worlds(revision);
        let mut running = without.settle(|_| Mood::Ready);
        let before = desired(&running.answer());
        running.xr["spec"] = with.xr["spec"].clone();
        running.input = with.input;
        let response = running.answer();
        assert_eq!(fatal(&response), None, "{name}");
        let is_later = revision.is_some_and(|revision| revision >= LIFECYCLE);
        let must_warn = !is_later
            && matches!(
                self.rule,
                Rule::Later | Rule::LaterApplied | Rule::LaterValue | Rule::Wish
            );
        if must_warn {
            assert!(warns(&response, &self.message), "{name}: {:?}", response.results);
        } else {
            assert!(!is_outdated(&response), "{name}: {:?}", response.conditions);
        }
        let slots = |all: &std::collections::BTreeMap<String, serde_json::Map<String, Value>>| {
            all.keys().cloned().collect::<BTreeSet<String>>()
        };
        let now = desired(&response);
        assert!(slots(&before).is_subset(&slots(&now)), "{name}: a resource is removed");
        if self.rule != Rule::Wish && self.rule != Rule::Applied {
            assert_eq!(json!(before), json!(now), "{name}: a resource changes");
        }
    }
}

#[test]
fn limit_holds_for_new_environments_at_every_revision() {
    for row in rows() {
        REVISIONS.into_iter().for_each(|revision| row.check_new(revision));
    }
}

#[test]
fn running_environment_continues_under_a_new_limit_at_every_revision() {
    for row in rows() {
        REVISIONS.into_iter().for_each(|revision| row.check_running(revision));
    }
}
