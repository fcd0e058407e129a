//! Generators of worlds, specs, Settings and invalid values. They use the schemas and the examples,
//! so that a new API needs no code here.

mod values;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use function_paved_road::manifests;
use function_proto::v1::RunFunctionResponse;
use k8s_schema::Schemas;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::strategy::Union;
use serde_json::{Value, json};
use values::{valid, varied};

use crate::support::world::{Mood, NOT_A_NUMBER, World};
use crate::support::{self, Example};

/// The path of a value: keys of objects, and indices of lists as text.
pub type Path = Vec<String>;

/// `PROPTEST_CASES` sets the number of cases. No regression files are written, because a failure
/// prints its world.
pub fn config() -> ProptestConfig {
    let config = ProptestConfig::default();
    // A valid value takes about six attempts. The default limit of attempts does not grow with the
    // number of cases.
    let max_local_rejects = config.cases.saturating_mul(100);
    ProptestConfig { failure_persistence: None, max_local_rejects, ..config }
}

/// Every API, as claims API and as namespaced API, before any resource exists.
pub static BEGINNINGS: LazyLock<Vec<World>> = LazyLock::new(|| {
    let beginnings = support::examples().into_iter().filter(|example| example.state == "nothing");
    beginnings.map(|example: Example| World::new(&example)).collect()
});

/// The same after all resources are ready.
pub static RUNNING: LazyLock<Vec<World>> = LazyLock::new(|| {
    BEGINNINGS.iter().map(|world| world.clone().settle(|_| Mood::Ready)).collect()
});

/// Every API in every stage: without resources, silent, creating, half ready, ready, failing,
/// stuck, and after the first call.
pub static WORLDS: LazyLock<Vec<World>> = LazyLock::new(|| {
    let mut worlds = BEGINNINGS.clone();
    for beginning in BEGINNINGS.iter() {
        let moods = [Mood::Silent, Mood::Creating, Mood::Ready, Mood::Failing, Mood::Stuck];
        worlds.extend(moods.map(|mood| beginning.clone().settle(|_| mood)));
        let half =
            |slot: &str| if slot.len().is_multiple_of(2) { Mood::Ready } else { Mood::Creating };
        worlds.push(beginning.clone().settle(half));
        let mut first = beginning.clone();
        first.reconcile(|_| Mood::Ready);
        worlds.push(first);
    }
    worlds
});

/// A world in any stage.
pub fn world() -> impl Strategy<Value = World> {
    select(WORLDS.as_slice())
}

/// A world with ready resources only.
pub fn running() -> impl Strategy<Value = World> {
    select(RUNNING.as_slice())
}

/// A world before any resource exists, with a generated spec near the example. Specs that the
/// schema's rules reject, or that the example's Settings do not cover, are left out.
pub fn beginning() -> impl Strategy<Value = World> {
    let with_specs = |world: &World| {
        let world = world.clone();
        let spec = varied(spec_schema(&world), Some(&world.xr["spec"])).unwrap();
        let beginnings = spec.prop_map(move |spec| {
            let mut world = world.clone();
            world.xr["spec"] = spec;
            world
        });
        beginnings.prop_filter("rejected by the schema, or without Settings", is_possible)
    };
    Union::new(BEGINNINGS.iter().map(|world| with_specs(world).boxed()))
}

/// Whether the API server accepts an XR, and Settings cover it. An environment that cannot be
/// stopped may not ask for a stop.
fn is_possible(world: &World) -> bool {
    static SCHEMAS: LazyLock<Schemas> = LazyLock::new(|| {
        let xrd = |world: &World| {
            manifests::xrd(world.api(), world.flavour, world.flavour.default_group())
        };
        let xrds: Vec<Value> = BEGINNINGS.iter().map(xrd).collect();
        Schemas::new(&xrds).unwrap()
    });
    let violations = SCHEMAS.for_object(&world.xr).unwrap().validate(&world.xr, None);
    let is_impossible = |response: &RunFunctionResponse| {
        response.results.iter().any(|result| {
            result.reason.as_deref() == Some("InvalidSettings")
                || result.message.starts_with("spec.lifecycle.")
        })
    };
    violations.is_empty() && !is_impossible(&world.answer())
}

/// Moods for slots.
pub fn moods() -> impl Strategy<Value = Vec<Mood>> {
    let moods = vec![Mood::Silent, Mood::Creating, Mood::Ready, Mood::Failing, Mood::Stuck];
    // Usually, most resources are ready.
    prop_oneof![vec(select(moods), 7), vec(select(vec![Mood::Ready, Mood::Ready, Mood::Stuck]), 7)]
}

/// The mood of a slot among `moods`.
pub fn mood(moods: &[Mood], slot: &str) -> Mood {
    moods[slot.bytes().map(usize::from).sum::<usize>() % moods.len()]
}

/// The schema of a world's `spec`.
pub fn spec_schema(world: &World) -> &'static Value {
    &xrd_schema(world)["properties"]["spec"]
}

/// The schema of a world's XR.
pub fn xrd_schema(world: &World) -> &'static Value {
    static SCHEMAS: LazyLock<BTreeMap<String, Value>> = LazyLock::new(|| {
        let schema = |world: &World| {
            let xrd = manifests::xrd(world.api(), world.flavour, world.flavour.default_group());
            let schema = xrd["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone();
            (world.xr["apiVersion"].to_string() + world.api().info().name, schema)
        };
        BEGINNINGS.iter().map(schema).collect()
    });
    &SCHEMAS[&(world.xr["apiVersion"].to_string() + world.api().info().name)]
}

/// Keys of maps: keys of the examples' Settings and namespaces, and others.
fn keys() -> impl Strategy<Value = String> {
    prop_oneof![
        select(vec!["us-east-1", "us-central1", "p3", "team-vision", "team-shop"])
            .prop_map(str::to_owned),
        "[a-z][a-z0-9-]{0,8}",
    ]
}

/// The body of Settings that the input's CRD allows.
pub fn settings() -> BoxedStrategy<Value> {
    let schema = manifests::input()["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone();
    let mut schema = schema;
    for key in ["apiVersion", "kind", "metadata", "settingsFrom"] {
        schema["properties"].as_object_mut().unwrap().remove(key);
    }
    valid(&schema)
}

/// A replacement for a value: another type, no value, or a very large one.
#[derive(Clone, Debug)]
pub enum Rubbish {
    Removed,
    Value(Value),
}

pub fn rubbish() -> impl Strategy<Value = Rubbish> {
    let texts = prop_oneof![
        Just(String::new()),
        Just(NOT_A_NUMBER.to_owned()),
        Just("\u{202e}\u{5e9}\u{5dc}\u{5d5}\u{5dd} \u{627}\u{644}".to_owned()),
        ".{0,40}",
        "[a-z]{300}",
        "\\PC{300}",
        "[0-9]{1,20}",
    ];
    let value = prop_oneof![
        4 => texts.prop_map(Value::from),
        1 => Just(Value::Null),
        1 => any::<bool>().prop_map(Value::from),
        2 => prop_oneof![any::<i64>().prop_map(Value::from), any::<f64>().prop_map(Value::from), (-2..3_i64).prop_map(Value::from)],
        1 => Just(json!([])),
        1 => Just(json!({})),
        1 => Just(json!(["", null, 1, {"a": {}}])),
        1 => (1..25_usize).prop_map(|depth| (0..depth).fold(json!("deep"), |inner, _| json!({"in": inner}))),
        1 => (1..25_usize).prop_map(|depth| (0..depth).fold(json!(0), |inner, _| json!([inner]))),
    ];
    prop_oneof![1 => Just(Rubbish::Removed), 5 => value.prop_map(Rubbish::Value)]
}

/// Every path in a value, of scalars and of their containers.
pub fn paths(value: &Value) -> Vec<Path> {
    let mut all = Vec::new();
    collect(value, &mut Vec::new(), &mut all);
    all
}

fn collect(value: &Value, here: &mut Path, all: &mut Vec<Path>) {
    let mut visit = |key: String, child: &Value| {
        here.push(key);
        all.push(here.clone());
        collect(child, here, all);
        here.pop();
    };
    match value {
        Value::Object(fields) => fields.iter().for_each(|(key, child)| visit(key.clone(), child)),
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, child)| visit(index.to_string(), child));
        }
        _ => {}
    }
}

/// Puts an invalid value at one of the paths of `target` that begin with `prefix`. Returns the
/// path.
pub fn spoil(target: &mut Value, prefix: &[&str], at: Index, rubbish: &Rubbish) -> Option<Path> {
    let paths: Vec<Path> = paths(target)
        .into_iter()
        .filter(|path| path.len() > prefix.len() && path.iter().zip(prefix).all(|(a, b)| a == b))
        .collect();
    let path = (!paths.is_empty()).then(|| at.get(&paths).clone())?;
    put(target, &path, rubbish);
    Some(path)
}

/// Puts an invalid value at an existing path. The last key may be new.
pub fn put(target: &mut Value, path: &[String], rubbish: &Rubbish) {
    let (last, parents) = path.split_last().unwrap();
    let parent = parents.iter().fold(target, |here, key| match here {
        Value::Array(items) => &mut items[key.parse::<usize>().unwrap()],
        here => &mut here[key],
    });
    match (parent, rubbish) {
        (Value::Array(items), Rubbish::Removed) => {
            items.remove(last.parse().unwrap());
        }
        (Value::Array(items), Rubbish::Value(value)) => {
            items[last.parse::<usize>().unwrap()] = value.clone();
        }
        (Value::Object(fields), Rubbish::Removed) => {
            fields.remove(last);
        }
        (Value::Object(fields), Rubbish::Value(value)) => {
            fields.insert(last.clone(), value.clone());
        }
        _ => {}
    }
}

/// Damages a field of the user's spec: an existing one, or another one of the schema.
pub fn spoil_spec(world: &mut World, at: Index, rubbish: &Rubbish) {
    let schema = spec_schema(world);
    let ours = |path: &Path| {
        path[0] == "spec" && path.get(1).is_some_and(|key| !schema["properties"][key].is_null())
    };
    let mut all: Vec<Path> = paths(&world.xr).into_iter().filter(ours).collect();
    all.extend(known(schema, &world.xr["spec"]).into_iter().map(|(path, _)| path));
    if !all.is_empty() {
        let path = at.get(&all).clone();
        put(&mut world.xr, &path, rubbish);
    }
}

/// The fields with bounds that a world's spec has or may have, with their schemas.
pub fn bounded(world: &World) -> Vec<(Path, &'static Value)> {
    let all = known(spec_schema(world), &world.xr["spec"]);
    all.into_iter().filter(|(_, schema)| is_bounded(schema)).collect()
}

/// Every field of a schema with an existing parent, by its path in an XR.
fn known<'s>(schema: &'s Value, spec: &Value) -> Vec<(Path, &'s Value)> {
    let mut found = Vec::new();
    let mut open = vec![(vec!["spec".to_owned()], schema, spec)];
    while let Some((path, schema, value)) = open.pop() {
        if !value.is_object() {
            continue;
        }
        for (key, field) in schema["properties"].as_object().into_iter().flatten() {
            let below: Path = path.iter().chain([key]).cloned().collect();
            found.push((below.clone(), field));
            open.push((below, field, &value[key]));
        }
    }
    found
}

/// A network in canonical CIDR notation.
pub fn network() -> impl Strategy<Value = String> {
    let v4 = (any::<u32>(), 0..=32_u8)
        .prop_map(|(bits, prefix)| (std::net::Ipv4Addr::from(bits).into(), prefix));
    let v6 = (any::<u128>(), 0..=128_u8)
        .prop_map(|(bits, prefix)| (std::net::Ipv6Addr::from(bits).into(), prefix));
    prop_oneof![v4, v6].prop_map(|(address, prefix): (std::net::IpAddr, u8)| {
        ipnet::IpNet::new(address, prefix).unwrap().trunc().to_string()
    })
}

/// A text that resembles a name, a region or a version.
pub fn almost() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z]{0,3}(-[a-z]{0,5}){0,3}-?[0-9]{0,2}",
        "[-a-zA-Z0-9._+@]{0,12}",
        "[0-9]{0,2}(\\.[0-9]{0,2}){0,4}",
        "[a-z]{30,140}",
        "\\PC{0,5}",
    ]
}

/// Whether a schema limits numbers or texts.
pub fn is_bounded(schema: &Value) -> bool {
    ["minimum", "maximum", "pattern", "enum"].iter().any(|key| !schema[key].is_null())
}

/// Whether a schema allows a number or a text.
pub fn allows(schema: &Value, value: &Value) -> bool {
    let number = value.as_i64().unwrap_or_default();
    let text = value.as_str().unwrap_or_default();
    let length = i64::try_from(text.chars().count()).unwrap();
    let within = |number: i64, least: &str, most: &str| {
        number >= schema[least].as_i64().unwrap_or(i64::MIN)
            && number <= schema[most].as_i64().unwrap_or(i64::MAX)
    };
    (value.is_string() || within(number, "minimum", "maximum"))
        && (value.is_number() || within(length, "minLength", "maxLength"))
        && schema["pattern"]
            .as_str()
            .is_none_or(|pattern| regex_lite::Regex::new(pattern).unwrap().is_match(text))
        && schema["enum"].as_array().is_none_or(|choices| choices.contains(value))
}
