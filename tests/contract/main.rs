//! Properties of the engine that hold for every API, claim and state.
//!
//! `PROPTEST_CASES` sets the number of cases for each property. The default is 256.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod generate;
mod names;
mod optional;
mod others;
mod policy;
mod revisions;
mod secrets;
#[path = "../support/mod.rs"]
mod support;

use std::collections::{BTreeMap, BTreeSet};

use function_paved_road::function::CONDITION;
use function_paved_road::lifecycle::{NOTE, Note};
use function_paved_road::models::KINDS;
use function_paved_road::status::STALLED;
use function_paved_road::wire;
use function_proto::v1::{Ready, RunFunctionRequest, RunFunctionResponse, Severity, Status};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::Index;
use prost::Message as _;
use serde_json::{Map, Value, json};

use generate::Rubbish;
use support::world::{self, Mood, World};

/// More rounds than any environment needs.
const LIMIT: usize = 8;

proptest! {
    #![proptest_config(generate::config())]

    #[test]
    fn the_same_request_gives_the_same_bytes(
        world in generate::world(), at: Index, rubbish in generate::rubbish(), whom: Index,
    ) {
        let mut world = world;
        spoil_a_resource(&mut world, whom, at, &rubbish);
        let request = world.request();
        // Decoding creates new maps, each with its own order.
        let Ok(again) = RunFunctionRequest::decode(request.encode_to_vec().as_slice()) else {
            // Nested deeper than prost can decode, so such a request cannot exist.
            return Ok(());
        };
        prop_assert_eq!(wire::encode(&support::answer(request)), wire::encode(&support::answer(again)));
    }

    #[test]
    fn desired_state_reaches_a_fixpoint(world in generate::beginning(), moods in generate::moods()) {
        let mut world = world;
        let mut before = world.reconcile(|slot| generate::mood(&moods, slot));
        for _ in 0..LIMIT {
            prop_assert!(!world::is_fatal(&before), "{:?}", before.results);
            let after = world.reconcile(|slot| generate::mood(&moods, slot));
            for (slot, object) in world::desired(&before).into_iter().filter(|(_, object)| object["kind"] != "Secret") {
                let now = world::desired(&after).remove(&slot).map(Value::Object).unwrap_or_default();
                let mut rewritten = support::rewritten(&object.into(), &now);
                rewritten.retain(|change| !support::is_now_deleted(&slot, change));
                prop_assert!(rewritten.is_empty(), "{slot}: {rewritten:?}");
            }
            if before.desired == after.desired {
                return Ok(());
            }
            before = after;
        }
        prop_assert!(false, "still changing after {} rounds", LIMIT);
    }

    #[test]
    fn damaged_observed_state_never_shrinks_the_desired_state(
        world in generate::world(), faults in vec(fault(), 1..4),
    ) {
        let exists = |slot: &String| world.composed.contains_key(slot);
        let before: BTreeSet<_> = slots(&world.answer()).into_iter().filter(exists).collect();
        let mut world = world;
        let mut gone = BTreeSet::new();
        for fault in &faults {
            gone.extend(fault.strike(&mut world));
        }
        let response = world.answer();
        if world::is_fatal(&response) {
            let reason = response.results[0].reason.clone().unwrap();
            prop_assert!(reason.starts_with("Invalid"), "{:?}", response.results);
        } else {
            let missing: Vec<_> = before.difference(&slots(&response)).filter(|slot| !gone.contains(*slot)).cloned().collect();
            prop_assert!(missing.is_empty(), "vanished: {missing:?}");
        }
    }

    #[test]
    fn resource_with_a_damaged_ready_condition_is_not_ready(
        world in generate::running(), whom: Index, damage in condition_damage(),
    ) {
        let mut world = world;
        // A provider config has no condition. Its readiness follows from the Secret that it reads.
        let slots: Vec<_> = world.composed.iter().filter(|(_, composed)| composed.object["kind"] != "ProviderConfig").collect();
        let slot = whom.get(&slots).0.clone();
        let object = &mut world.composed.get_mut(&slot).unwrap().object;
        damage_conditions(object, damage.as_ref());
        let response = world.answer();
        let resource = &response.desired.as_ref().unwrap().resources[&slot];
        prop_assert_eq!(resource.ready(), Ready::False, "{}", slot);
        prop_assert_ne!(response.desired.as_ref().unwrap().composite.as_ref().unwrap().ready(), Ready::True);
        prop_assert_ne!(&world::status(&response)["phase"], "Ready");
        prop_assert_ne!(response.conditions[0].reason.as_str(), "Available");
    }

    #[test]
    fn a_composite_is_ready_only_when_all_of_it_is(
        world in generate::beginning(), moods in generate::moods(), rounds in 1..4, lost in any::<bool>(),
    ) {
        let mut world = world;
        for _ in 0..rounds {
            world.reconcile(|slot| generate::mood(&moods, slot));
        }
        if lost {
            world.details.clear();
        }
        let response = world.answer();
        let desired = response.desired.as_ref().unwrap();
        let counted = match desired.composite.as_ref().unwrap().ready() {
            Ready::Unspecified => desired.resources.values().all(|resource| resource.ready() == Ready::True),
            said => said == Ready::True,
        };
        let unready: Vec<_> = lines(&world::status(&response)).into_values().filter(|line| line["ready"] != true).collect();
        prop_assert!(!counted || unready.is_empty(), "Crossplane would call it ready: {unready:?}");
    }

    #[test]
    fn any_spec_gets_an_answer_and_a_refusal_names_the_field(
        world in generate::world(), faults in vec((any::<Index>(), generate::rubbish()), 1..3), whole in option::weighted(0.05, generate::rubbish()),
    ) {
        let mut world = world;
        for (at, rubbish) in &faults {
            generate::spoil_spec(&mut world, *at, rubbish);
        }
        if let Some(rubbish) = whole {
            generate::put(&mut world.xr, &["spec".to_owned()], &rubbish);
        }
        let response = world.answer();
        let fatal: Vec<_> = response.results.iter().filter(|result| result.severity() == Severity::Fatal).collect();
        if !fatal.is_empty() {
            prop_assert_eq!(refusal_of(&response), Ok(()));
        }
        for fatal in fatal {
            prop_assert!(fatal.message.starts_with("spec") || fatal.message.starts_with("settings."), "{}", fatal.message);
        }
    }

    #[test]
    fn values_rejected_by_the_schema_are_rejected_by_the_function(world in generate::beginning(), which: Index, number: i64, text in generate::almost()) {
        let mut world = world;
        let bounded = generate::bounded(&world);
        // A spec may leave out all its parameters.
        if bounded.is_empty() {
            return Ok(());
        }
        let (path, field) = which.get(&bounded);
        let value = if field["type"] == "integer" { json!(number) } else { json!(text) };
        if generate::allows(field, &value) {
            return Ok(());
        }
        generate::put(&mut world.xr, path, &Rubbish::Value(value.clone()));
        let response = world.answer();
        let path = path.join(".");
        prop_assert!(world::is_fatal(&response), "{path}: {value}");
        prop_assert!(response.results[0].message.starts_with(&format!("{path}: ")), "{}", response.results[0].message);
    }

    #[test]
    fn settings_change_only_tags_of_running_resources(
        world in generate::beginning(), settings in generate::settings(), fault in option::of((any::<Index>(), generate::rubbish())),
    ) {
        let mut world = world.settle(|_| Mood::Ready);
        let before = world::desired(&world.answer());
        let (reaching, revision) = (reaching(&world.input), world.input["schemaRevision"].clone());
        world.input = settings;
        if let Some((at, rubbish)) = &fault {
            generate::spoil(&mut world.input, &[], *at, rubbish);
        }
        keep(&mut world.input, &reaching);
        if world.input.is_object() {
            world.input["schemaRevision"] = revision;
        }
        let response = world.answer();
        if world::is_fatal(&response) {
            prop_assert_eq!(response.results[0].reason.as_deref(), Some("InvalidSettings"));
            prop_assert_eq!(refusal_of(&response), Ok(()));
        } else {
            let (before, now) = (without_tags(before), without_tags(world::desired(&response)));
            let rewritten = support::rewritten(&json!(before), &json!(now));
            // A stopped environment with invalid Settings is asked for with all that it has.
            let stands_still = response.conditions[0].reason == "InvalidSettings";
            prop_assert!(rewritten.is_empty() && (stands_still || before == now), "{rewritten:?}");
        }
    }

    #[test]
    fn status_matches_the_schema(world in generate::beginning(), moods in vec(generate::moods(), 0..4)) {
        let mut world = world;
        for moods in &moods {
            world.reconcile(|slot| generate::mood(moods, slot));
        }
        let response = world.answer();
        let status = world::status(&response);
        let schema = &generate::xrd_schema(&world)["properties"]["status"];
        let problems = undeclared(&status, schema, "status");
        prop_assert!(problems.is_empty(), "{problems:?} in {status}");
        let slots: Vec<_> = status["resources"].as_array().unwrap().iter().map(|line| line["slot"].as_str().unwrap()).collect();
        prop_assert!(slots.is_sorted_by(|a, b| a < b), "{slots:?}");
        prop_assert!(slots.len() >= response.desired.unwrap().resources.len());
    }

    #[test]
    fn since_changes_only_with_the_expected_state(world in generate::beginning(), moods in vec(generate::moods(), 2)) {
        let mut world = world;
        world.reconcile(|slot| generate::mood(&moods[0], slot));
        let earlier = world::status(&world.reconcile(|slot| generate::mood(&moods[1], slot)));
        let before = lines(&earlier);
        // Before the first limit: after it, the reason changes.
        world.now = "2026-11-21T09:11:12Z";
        let status = world::status(&world.answer());
        // A stop or a start restarts the times.
        if status["power"] != earlier["power"] {
            return Ok(());
        }
        for (slot, now) in lines(&status) {
            // A resource without a reason is in its expected state.
            let same = |before: &&Value| match (before["reason"].is_null(), now["reason"].is_null()) {
                (true, true) => before["ready"] == now["ready"],
                (before, now) => before == now,
            };
            let before = before.get(&slot).filter(same).map_or(&json!(world.now), |before| &before["since"]).clone();
            prop_assert_eq!(&now["since"], &before, "{}", slot);
        }
    }

    #[test]
    fn networks_are_added_and_removed_without_other_changes(
        world in generate::beginning(), stay in vec(generate::network(), 0..4), go in vec(generate::network(), 1..4), by_settings: bool,
    ) {
        if !generate::spec_schema(&world)["properties"]["parameters"]["properties"]["allowedCidrs"].is_object() {
            return Ok(());
        }
        let (stay, go): (BTreeSet<_>, BTreeSet<_>) = (stay.into_iter().collect(), go.into_iter().collect());
        let all: BTreeSet<_> = stay.union(&go).cloned().collect();
        let few = let_in(world.clone(), &stay, by_settings).settle(|_| Mood::Ready);
        let many = let_in(few.clone(), &all, by_settings);
        let (before, with_all) = (world::desired(&few.answer()), world::desired(&many.answer()));
        prop_assert_eq!(with_all.len(), before.len() + all.len() - stay.len());
        let back = let_in(many.settle(|_| Mood::Ready), &stay, by_settings).answer();
        prop_assert!(!world::is_fatal(&back), "{:?}", back.results);
        prop_assert_eq!(world::desired(&back), before);
    }
}

/// A change of the observed state.
#[derive(Clone, Debug)]
enum Fault {
    /// A damaged field of a composed resource.
    Resource(Index, Index, Rubbish),
    /// A damaged field of the composite's status or labels.
    Composite(bool, Index, Rubbish),
    /// A missing connection detail of the composite or of a composed resource.
    Detail(Option<Index>, Index),
    /// A resource that was deleted by hand.
    Gone(Index),
}

fn fault() -> impl Strategy<Value = Fault> {
    let index = any::<Index>;
    prop_oneof![
        4 => (index(), index(), generate::rubbish()).prop_map(|(whom, at, rubbish)| Fault::Resource(whom, at, rubbish)),
        2 => (any::<bool>(), index(), generate::rubbish()).prop_map(|(status, at, rubbish)| Fault::Composite(status, at, rubbish)),
        1 => (option::of(index()), index()).prop_map(|(whom, which)| Fault::Detail(whom, which)),
        1 => index().prop_map(Fault::Gone),
    ]
}

impl Fault {
    /// Applies the fault. Returns the slot of a deleted resource, which may have to wait before it
    /// is created again.
    fn strike(&self, world: &mut World) -> Option<String> {
        match self {
            Self::Resource(whom, at, rubbish) => spoil_a_resource(world, *whom, *at, rubbish),
            Self::Composite(true, at, rubbish) => {
                _ = generate::spoil(&mut world.xr, &["status"], *at, rubbish);
            }
            Self::Composite(false, at, rubbish) => {
                _ = generate::spoil(&mut world.xr, &["metadata", "labels"], *at, rubbish);
            }
            Self::Detail(whom, which) => {
                let slot =
                    whom.filter(|_| !world.composed.is_empty()).map(|whom| pick(world, whom));
                let details = match slot {
                    Some(slot) => &mut world.composed.get_mut(&slot).unwrap().details,
                    None => &mut world.details,
                };
                let keys: Vec<_> = details.keys().cloned().collect();
                if !keys.is_empty() {
                    details.remove(which.get(&keys));
                }
            }
            Self::Gone(whom) if !world.composed.is_empty() => {
                let slot = pick(world, *whom);
                world.composed.remove(&slot);
                return Some(slot);
            }
            Self::Gone(_) => {}
        }
        None
    }
}

fn spoil_a_resource(world: &mut World, whom: Index, at: Index, rubbish: &Rubbish) {
    if !world.composed.is_empty() {
        let slot = pick(world, whom);
        generate::spoil(&mut world.composed.get_mut(&slot).unwrap().object, &[], at, rubbish);
    }
}

fn pick(world: &World, whom: Index) -> String {
    whom.get(&world.composed.keys().cloned().collect::<Vec<_>>()).clone()
}

/// A `Ready` condition without the status `True`, in several forms. `None` removes the status.
fn condition_damage() -> impl Strategy<Value = Option<Value>> {
    let status = prop_oneof![
        Just(json!("Unknown")),
        Just(json!("False")),
        Just(json!("")),
        Just(json!("true")),
        Just(json!(true)),
        Just(json!(1)),
        Just(json!(null)),
        Just(json!(["True"])),
        Just(json!({"True": true})),
    ];
    let conditions = prop_oneof![
        4 => status.prop_map(|status| json!([{"type": "Ready", "status": status}])),
        1 => Just(json!([{"type": "Ready"}])),
        1 => Just(json!([{"status": "True"}])),
        1 => Just(json!([{"type": "Synced", "status": "True"}])),
        1 => Just(json!([null, "Ready", "True"])),
        1 => Just(json!({"type": "Ready", "status": "True"})),
        1 => Just(json!({"Ready": "True"})),
        1 => Just(json!("True")),
        1 => Just(json!([])),
        1 => Just(json!(null)),
    ];
    option::weighted(0.8, conditions)
}

/// The readiness of a built-in kind does not come from a condition, so its source is removed too.
fn damage_conditions(object: &mut Value, damage: Option<&Value>) {
    let is_managed = object["spec"].get("forProvider").is_some();
    let fields = object.as_object_mut().unwrap();
    if !is_managed && fields["kind"] != "Usage" {
        for field in ["data", "spec", "status"] {
            fields.remove(field);
        }
        fields.get_mut("metadata").and_then(Value::as_object_mut).unwrap().remove("uid");
    }
    match damage {
        Some(conditions) => {
            fields.entry("status").or_insert_with(|| json!({}))["conditions"] = conditions.clone();
        }
        None => _ = fields.remove("status"),
    }
}

fn slots(response: &RunFunctionResponse) -> BTreeSet<String> {
    response.desired.as_ref().unwrap().resources.keys().cloned().collect()
}

/// Checks the form of a rejection: a path in each result, and `Provisioned=False` with the same
/// words.
fn refusal_of(response: &RunFunctionResponse) -> Result<(), String> {
    let [condition, stalled] = &response.conditions[..] else {
        return Err(format!("{:?}", response.conditions));
    };
    let Some(first) = response.results.first() else { return Err("no result".to_owned()) };
    let told = condition.message.as_deref().unwrap_or_default();
    let same = match response.results.len() {
        1 => told == first.message,
        _ => told.starts_with(first.message.trim_end_matches('…')),
    };
    let mut checks = vec![
        (condition.r#type == CONDITION && same, "other condition"),
        (told.len() <= 1024, "too long"),
        (stalled.r#type == STALLED && stalled.status() == Status::ConditionTrue, "not stalled"),
        (
            (&stalled.reason, &stalled.message) == (&condition.reason, &condition.message),
            "other stalled condition",
        ),
        (["InvalidSpec", "InvalidSettings"].contains(&condition.reason.as_str()), "no such reason"),
    ];
    for result in &response.results {
        let path = result.message.split(": ").next().unwrap_or_default();
        checks.extend([
            (
                !path.is_empty() && !path.contains(' ') && path.len() < result.message.len(),
                "no path",
            ),
            (result.message.len() <= 1024, "too long"),
            (result.severity() == Severity::Fatal, "not fatal"),
            (result.reason.as_deref() == Some(&condition.reason), "other reason"),
        ]);
    }
    match checks.iter().find(|(holds, _)| !holds) {
        None => Ok(()),
        Some((_, problem)) => Err(format!("{problem}: {:?} {condition:?}", response.results)),
    }
}

/// The resources without the maps of tags or labels.
fn without_tags(
    resources: BTreeMap<String, Map<String, Value>>,
) -> BTreeMap<String, Map<String, Value>> {
    let names: BTreeSet<&str> =
        KINDS.iter().filter_map(|info| info.kind.tags?.rsplit('.').next()).collect();
    let strip = |(slot, mut object): (String, Map<String, Value>)| {
        if let Some(spec) = object.get_mut("spec") {
            drop_fields(spec, &names);
        }
        let annotations = object.get_mut("metadata").and_then(|all| all.get_mut("annotations"));
        annotations.and_then(Value::as_object_mut).into_iter().for_each(drop_price);
        (slot, object)
    };
    resources.into_iter().map(strip).collect()
}

/// Removes the price, which follows Settings, from the note of the lifecycle.
fn drop_price(annotations: &mut Map<String, Value>) {
    let Some(text) = annotations.remove(NOTE) else { return };
    let note = Note { price: None, ..Note::read(text.as_str().unwrap()).unwrap() };
    annotations.extend(note.write().map(|text| (NOTE.to_owned(), text.into())));
}

/// Removes all fields with these names at any depth.
fn drop_fields(value: &mut Value, names: &BTreeSet<&str>) {
    if let Value::Object(fields) = value {
        fields.retain(|name, _| !names.contains(name.as_str()));
        fields.values_mut().for_each(|value| drop_fields(value, names));
    }
}

/// The fields of each section of Settings that also apply to running environments: the allowed
/// networks and roles.
fn reaching(settings: &Value) -> BTreeMap<(String, &'static str), Value> {
    let sections = settings.as_object().into_iter().flatten();
    let fields = sections.flat_map(|(key, section)| {
        REACHING
            .iter()
            .filter_map(move |field| Some(((key.clone(), *field), section.get(field)?.clone())))
    });
    fields.collect()
}

/// The fields of Settings' sections that also apply to running environments.
const REACHING: [&str; 2] = ["allowedCidrs", "publisherRoleArns"];

fn keep(settings: &mut Value, reaching: &BTreeMap<(String, &'static str), Value>) {
    for section in settings
        .as_object_mut()
        .into_iter()
        .flatten()
        .filter_map(|(_, section)| section.as_object_mut())
    {
        for field in REACHING {
            section.remove(field);
        }
    }
    for ((key, field), value) in reaching {
        // A missing value means no section. Any other value than an object is rejected.
        match settings.get_mut(key) {
            Some(nothing) if nothing.is_null() || nothing == world::NOT_A_NUMBER => {
                *nothing = json!({});
            }
            Some(section) if !section.is_object() => continue,
            _ => {}
        }
        settings[key][field] = value.clone();
    }
}

fn let_in(mut world: World, networks: &BTreeSet<String>, by_settings: bool) -> World {
    let section = world.api().info().settings;
    if by_settings {
        world.xr["spec"]["parameters"].as_object_mut().unwrap().remove("allowedCidrs");
        world.input[section]["allowedCidrs"] = json!(networks);
    } else {
        world.xr["spec"]["parameters"]["allowedCidrs"] = json!(networks);
    }
    world
}

/// `status.resources` by slot.
fn lines(status: &Value) -> BTreeMap<String, Value> {
    let lines = status["resources"].as_array().into_iter().flatten();
    lines.map(|line| (line["slot"].as_str().unwrap().to_owned(), line.clone())).collect()
}

/// The values that a schema does not declare or declares with another type, and empty texts.
fn undeclared(value: &Value, schema: &Value, path: &str) -> Vec<String> {
    let of_type = match schema["type"].as_str().unwrap_or_default() {
        "string" => value.as_str().is_some_and(|text| !text.is_empty()),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64(),
        "object" => value.is_object(),
        "array" => value.is_array(),
        other => panic!("{path}: type {other}"),
    };
    if !of_type || schema["enum"].as_array().is_some_and(|choices| !choices.contains(value)) {
        return vec![format!("{path}: {value}")];
    }
    let mut problems = Vec::new();
    for (key, child) in value.as_object().into_iter().flatten() {
        let declared = match &schema["properties"][key] {
            Value::Null => &schema["additionalProperties"],
            declared => declared,
        };
        match declared {
            Value::Null => problems.push(format!("{path}.{key}: not declared")),
            schema => problems.extend(undeclared(child, schema, &format!("{path}.{key}"))),
        }
    }
    for required in schema["required"].as_array().into_iter().flatten() {
        if value.get(required.as_str().unwrap()).is_none() {
            problems.push(format!("{path}.{required}: missing"));
        }
    }
    for (index, item) in value.as_array().into_iter().flatten().enumerate() {
        problems.extend(undeclared(item, &schema["items"], &format!("{path}[{index}]")));
    }
    problems
}
