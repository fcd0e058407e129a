//! The current function with the XRDs of earlier schema revisions. An API server accepts every
//! status.
//!
//! `xrds-of-revision-<N>` has the XRDs of the release with revision N, unchanged: `claims/` and
//! `namespaced/`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use function_paved_road::apis::{APIS, Flavour};
use function_paved_road::manifests::{self, SCHEMA_REVISION};
use function_paved_road::status::{Addition, COMMON_ADDITIONS};
use k8s_schema::Schemas;
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::generate;
use crate::support::{self, simulated, world};

/// The XRDs of every earlier revision.
static EARLIER: LazyLock<BTreeMap<u32, Vec<Value>>> = LazyLock::new(|| {
    (1..SCHEMA_REVISION)
        .map(|revision| {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
                .join(format!("tests/contract/xrds-of-revision-{revision}"));
            let files = Flavour::ALL.iter().flat_map(|flavour| files(&folder.join(flavour.name())));
            (revision, files.flat_map(|file| support::read(&file)).collect())
        })
        .collect()
});

/// The same as schemas of an API server.
static SCHEMAS: LazyLock<BTreeMap<u32, Schemas>> = LazyLock::new(|| {
    EARLIER.iter().map(|(revision, xrds)| (*revision, Schemas::new(xrds).unwrap())).collect()
});

fn files(folder: &Path) -> Vec<PathBuf> {
    let files =
        fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    files.map(|file| file.unwrap().path()).collect()
}

/// The violations that an API server with the XRDs of a revision reports in a composite's status.
fn refused(revision: u32, composite: &Value, status: Value) -> Vec<String> {
    let mut composite = composite.clone();
    composite["status"] = status;
    let Some(definition) = SCHEMAS[&revision].for_object(&composite) else {
        // The API is newer than the revision.
        return Vec::new();
    };
    let violations = definition.validate(&composite, None);
    let of_status = violations.iter().filter(|violation| violation.path.starts_with("status"));
    of_status.map(|violation| format!("revision {revision}: {violation}")).collect()
}

/// The fields of a schema with a default, in objects that an earlier schema also has.
fn new_defaults(path: &str, now: &Value, earlier: &Value, found: &mut Vec<String>) {
    for (name, field) in now["properties"].as_object().into_iter().flatten() {
        let (path, before) = (format!("{path}.{name}"), &earlier["properties"][name]);
        match before {
            Value::Null if !field["default"].is_null() => found.push(path),
            Value::Null => {}
            before => new_defaults(&path, field, before, found),
        }
    }
}

/// An API server writes defaults into stored claims as soon as the XRDs are upgraded. The function
/// of an earlier release rejects unknown fields.
#[test]
fn new_field_of_a_spec_has_no_default() {
    let mut found = Vec::new();
    for xrd in EARLIER.values().flatten() {
        let kind = xrd["spec"]["names"]["kind"].as_str().unwrap();
        let spec = |xrd: &Value| {
            xrd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"].clone()
        };
        let flavours = Flavour::ALL.into_iter();
        let all = flavours.flat_map(|flavour| APIS.iter().map(move |api| (*api, flavour)));
        let now = all.map(|(api, flavour)| manifests::xrd(api, flavour, "platform.acme.io"));
        for now in now.filter(|now| now["spec"]["names"]["kind"] == kind) {
            new_defaults(kind, &spec(&now), &spec(xrd), &mut found);
        }
    }
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn statuses_of_examples_fit_the_xrds_of_earlier_revisions() {
    let mut all = Vec::new();
    for (revision, example) in EARLIER
        .keys()
        .flat_map(|revision| support::examples().into_iter().map(move |one| (*revision, one)))
    {
        let mut input = example.input();
        input["schemaRevision"] = json!(revision);
        let response =
            support::answer(support::request(&example.xr(), &example.observed(), &input));
        let status = world::status(&response);
        assert!(status["phase"].is_string(), "{}: {status}", example.name());
        if SCHEMAS[&revision].for_object(&example.xr()).is_none() {
            continue;
        }
        input["schemaRevision"] = json!(SCHEMA_REVISION);
        let newest = support::answer(support::request(&example.xr(), &example.observed(), &input));
        assert_ne!(
            refused(revision, &example.xr(), world::status(&newest)),
            [""; 0],
            "the check finds new fields"
        );
        all.extend(
            refused(revision, &example.xr(), status).into_iter().map(|why| (example.name(), why)),
        );
    }
    assert!(all.is_empty(), "{all:#?}");
}

#[test]
fn statuses_of_variants_fit_the_xrds_of_earlier_revisions() {
    let mut all = Vec::new();
    for case in simulated::all() {
        let worlds = [case.world(), case.settled()];
        for (revision, world) in
            EARLIER.keys().flat_map(|revision| worlds.iter().map(move |world| (*revision, world)))
        {
            let mut input = case.input();
            input["schemaRevision"] = json!(revision);
            let status = world::status(&simulated::call(world, &input));
            assert!(status["phase"].is_string(), "{}: {status}", case.name());
            let why = refused(revision, world.composite(), status);
            all.extend(why.into_iter().map(|why| (case.name(), why)));
        }
    }
    assert!(all.is_empty(), "{all:#?}");
}

proptest! {
    #![proptest_config(generate::config())]

    #[test]
    fn status_fits_the_xrds_of_earlier_revisions(
        world in generate::beginning(), moods in vec(generate::moods(), 0..4), revision in 1..SCHEMA_REVISION,
    ) {
        let mut world = world;
        world.input["schemaRevision"] = json!(revision);
        // An API server with these XRDs prunes the field.
        if let Some(Value::Object(frontend)) = world.xr.pointer_mut("/spec/frontend") {
            frontend.remove("kind");
        }
        for moods in &moods {
            world.reconcile(|slot| generate::mood(moods, slot));
        }
        let status = world::status(&world.answer());
        let why = refused(revision, &world.xr, status.clone());
        prop_assert!(why.is_empty(), "{why:?} in {status}");
    }
}

#[test]
fn later_fields_and_values_are_in_the_tables() {
    let mut problems = Vec::new();
    for (revision, xrds) in EARLIER.iter() {
        for (api, flavour) in
            APIS.iter().flat_map(|api| Flavour::ALL.map(|flavour| (*api, flavour)))
        {
            let today = manifests::xrd(api, flavour, flavour.default_group());
            let earlier =
                xrds.iter().find(|xrd| xrd["metadata"]["name"] == today["metadata"]["name"]);
            let Some(earlier) = earlier else { continue };
            let additions = COMMON_ADDITIONS.iter().chain(api.info().since_revision);
            let later: Vec<&Addition> =
                additions.filter(|addition| addition.since > *revision).collect();
            let found = missing(&fields(earlier), &fields(&today), &later);
            let name = &today["metadata"]["name"];
            problems.extend(
                found.into_iter().map(|found| format!("{name}, revision {revision}: {found}")),
            );
        }
    }
    assert!(
        problems.is_empty(),
        "add an Addition to COMMON in src/status/revision.rs, or to the API's since_revision: {problems:#?}"
    );
}

#[test]
fn tables_name_existing_fields_and_values() {
    for api in APIS {
        let today = fields(&manifests::xrd(*api, Flavour::Claims, Flavour::Claims.default_group()));
        let own = api.info().since_revision;
        // Where the API has words of its own for a common field, its own table counts.
        let common =
            COMMON_ADDITIONS.iter().filter(|common| own.iter().all(|one| one.path != common.path));
        for addition in common.chain(own) {
            assert!((2..=SCHEMA_REVISION).contains(&addition.since), "{addition:?}");
            let known = today.get(addition.path);
            assert!(known.is_some(), "{}: no such field: {addition:?}", api.info().name);

            let (Some(added), Some(Some(values))) = (addition.value, known) else { continue };
            if let Some(fallback) = added.fallback.filter(|_| values.contains(added.name)) {
                assert!(
                    values.contains(fallback),
                    "{}: no such value: {addition:?}",
                    api.info().name
                );
            }
        }
    }
}

#[test]
fn endpoints_are_fields_of_the_status() {
    for api in APIS {
        let today = fields(&manifests::xrd(*api, Flavour::Claims, Flavour::Claims.default_group()));
        for endpoint in api.info().endpoints {
            assert!(
                today.contains_key(*endpoint),
                "{}: no such field: {endpoint}",
                api.info().name
            );
        }
    }
}

/// Every field of a status by its path, with the values of an enumeration.
type Fields = BTreeMap<String, Option<BTreeSet<String>>>;

fn fields(xrd: &Value) -> Fields {
    let schema = &xrd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"];
    let mut found = Fields::new();
    collect(schema, "", &mut found);
    assert!(found.contains_key("phase") && found.contains_key("resources[].slot"), "{found:?}");
    found
}

fn collect(schema: &Value, path: &str, found: &mut Fields) {
    let values = schema["enum"].as_array();
    let values = values.map(|all| all.iter().map(|one| one.as_str().unwrap().to_owned()).collect());
    if !path.is_empty() {
        found.insert(path.to_owned(), values);
    }
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let dot = if path.is_empty() { "" } else { "." };
        collect(field, &format!("{path}{dot}{name}"), found);
    }
    if schema["items"].is_object() {
        collect(&schema["items"], &format!("{path}[]"), found);
    }
    // No path leads into a map, so its values must be plain.
    let values = &schema["additionalProperties"];
    let is_plain = ["properties", "items", "enum", "additionalProperties"]
        .iter()
        .all(|key| values[key].is_null());
    assert!(is_plain, "{path}: a map of more than plain values");
}

/// New fields and values that no table names, and fields that an earlier schema has and today's
/// lacks.
fn missing(earlier: &Fields, today: &Fields, later: &[&Addition]) -> Vec<String> {
    let is_named = |path: &str| {
        later.iter().any(|addition| {
            let below = path.strip_prefix(addition.path);
            addition.value.is_none()
                && below.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        })
    };
    let mut problems: Vec<String> = earlier
        .keys()
        .filter(|path| !today.contains_key(*path))
        .map(|path| format!("{path} got lost"))
        .collect();
    for (path, values) in today {
        match (earlier.get(path), values) {
            (None, _) if is_named(path) => {}
            (None, _) => problems.push(format!("{path} is new")),
            (Some(Some(_)), None) => problems.push(format!("{path} is no longer an enum")),
            (Some(Some(earlier)), Some(values)) => {
                let of_table = |value: &&String| {
                    later.iter().any(|addition| {
                        addition.path == path
                            && addition.value.is_some_and(|added| added.name == **value)
                    })
                };
                let new = values.difference(earlier).filter(|value| !of_table(value));
                problems.extend(new.map(|value| format!("{path}: {value} is new")));
            }
            (Some(None), _) => {}
        }
    }
    problems
}

/// The comparison itself finds a gap in a table.
#[test]
fn a_field_or_value_in_no_table_is_found() {
    let fields_of = |status: Value| {
        let mut found = Fields::new();
        collect(&status, "", &mut found);
        found
    };
    let line = |fields: Value| json!({"properties": {"resources": {"items": {"properties": fields}}, "phase": {"enum": ["A"]}}});
    let earlier = fields_of(line(json!({"slot": {}, "gone": {}})));
    let mut today = line(json!({"slot": {}, "cause": {"properties": {"code": {}}}}));
    today["properties"]["phase"]["enum"] = json!(["A", "B"]);
    let today = fields_of(today);
    assert_eq!(
        missing(&earlier, &today, &[]),
        [
            "resources[].gone got lost",
            "phase: B is new",
            "resources[].cause is new",
            "resources[].cause.code is new"
        ]
    );
    let table =
        [Addition::field("resources[].cause", 2), Addition::value("phase", "B", 2, Some("A"))];
    assert_eq!(missing(&earlier, &today, &table.each_ref()), ["resources[].gone got lost"]);
}

/// The documents and examples that users copy from.
fn documents() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = vec![root.join("README.md"), root.join("CHANGELOG.md")];
    let mut folders = vec![root.join("docs"), root.join("examples"), root.join("namespaced")];
    found.push(root.join("composition.yaml"));
    while let Some(folder) = folders.pop() {
        for file in files(&folder) {
            match file.extension().and_then(|ending| ending.to_str()) {
                _ if file.is_dir() => folders.push(file),
                Some("md" | "yaml") => found.push(file),
                _ => {}
            }
        }
    }
    found
}

/// A copied Composition must carry all fields and limits.
#[test]
fn documents_name_the_newest_schema_revision() {
    let mut count = 0;
    for file in documents() {
        let text = fs::read_to_string(&file).unwrap();
        for (key, after) in text.match_indices("chemaRevision").map(|(at, key)| (key, &text[at..]))
        {
            let value = after[key.len()..].trim_start_matches(['`', ':', ' ']);
            let value = value.strip_prefix("to ").unwrap_or(value);
            let digits: String = value.chars().take_while(char::is_ascii_digit).collect();
            let Ok(revision) = digits.parse::<u32>() else { continue };
            count += 1;
            assert_eq!(revision, SCHEMA_REVISION, "{}", file.display());
        }
    }
    assert!(count > 10, "{count}");
}
