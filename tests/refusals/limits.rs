//! Every limit of Settings and every field of the lifecycle, at every schema revision, for a new and
//! for a running environment. The table is the documentation.
//!
//! The fields come from the schemas, so a new field without a row fails.

mod table;

use std::collections::BTreeSet;

use function_paved_road::manifests::{self, SCHEMA_REVISION};

use super::*;
use table::{LIFECYCLE, Row, Rule, merge, rows};

/// The schema revisions of Compositions. An input without a revision has the first.
const REVISIONS: [Option<u32>; 4] = [None, Some(1), Some(2), Some(3)];

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
    "tagsFromLabels",
    "unifiedEnvironment.database.mode",
    "unifiedEnvironment.ingress",
    "unifiedEnvironment.publisherRoleArns",
    "unifiedEnvironment.rds.finalSnapshot",
    "unifiedEnvironment.rds.securityGroupIds",
    "unifiedEnvironment.rds.subnetGroup",
    "unifiedEnvironment.region",
    "unifiedEnvironment.resources",
];

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
    let fatal = |one: &&function_proto::v1::Result| one.severity() == Severity::Fatal;
    response.results.iter().find(fatal).map(|one| one.message.as_str())
}

/// The line that a person has to change.
fn names_the_line(message: &str) -> bool {
    message.contains("Set spec.pipeline[].input.schemaRevision to 3 in ")
}

/// Whether the response warns of a field, in a result and in the condition.
fn warns(response: &RunFunctionResponse, message: &str) -> bool {
    let is_warned = response.results.iter().any(|one| {
        one.reason() == "OldSchemaRevision"
            && one.severity() == Severity::Warning
            && one.message.starts_with(message)
            && names_the_line(&one.message)
    });
    let has_condition = response.conditions.iter().any(|one| {
        one.r#type == "OutdatedComposition"
            && one.status() == Status::ConditionTrue
            && one.message().contains(message)
    });
    assert_eq!(is_warned, has_condition, "{:?} {:?}", response.results, response.conditions);
    is_warned
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
            (Rule::Value, _) | (Rule::LaterMaximum, true) => {
                let expected = match self.rule {
                    Rule::LaterMaximum => "spec.lifecycle.ttl: found \"9h\"; allowed: at most 8h",
                    _ => &self.message,
                };
                let message = fatal(&with).unwrap_or_else(|| panic!("{name}: not rejected"));
                assert!(message.starts_with(expected), "{name}: {message}");
            }
            (Rule::Later | Rule::LaterApplied | Rule::LaterMaximum, false) => {
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
                Rule::Later | Rule::LaterApplied | Rule::LaterMaximum | Rule::Wish
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
        for revision in REVISIONS {
            row.check_new(revision);
        }
    }
}

#[test]
fn running_environment_continues_under_a_new_limit_at_every_revision() {
    for row in rows() {
        for revision in REVISIONS {
            row.check_running(revision);
        }
    }
}
