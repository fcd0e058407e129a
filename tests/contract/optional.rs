//! Groups of optional fields are optional. The function reads a missing group as an empty one.

use function_paved_road::apis::{APIS, AnyApi, Flavour};
use function_paved_road::manifests;
use k8s_schema::Schemas;
use serde_json::{Value, json};

fn apis() -> impl Iterator<Item = (&'static dyn AnyApi, Flavour)> {
    APIS.iter().flat_map(|api| Flavour::ALL.map(|flavour| (*api, flavour)))
}

fn xrd(api: &dyn AnyApi, flavour: Flavour) -> Value {
    manifests::xrd(api, flavour, flavour.default_group())
}

/// The required groups that require none of their own fields.
fn needless(path: &str, schema: &Value, found: &mut Vec<String>) {
    let required = |schema: &Value| schema["required"].as_array().cloned().unwrap_or_default();
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        let is_group = field["properties"].is_object();
        if is_group && required(schema).contains(&json!(name)) && required(field).is_empty() {
            found.push(path.clone());
        }
        needless(&path, field, found);
    }
}

#[test]
fn group_of_optional_fields_is_optional() {
    let mut found = Vec::new();
    for (api, flavour) in apis() {
        let xrd = xrd(api, flavour);
        let schema = &xrd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        let kind = xrd["spec"]["names"]["kind"].as_str().unwrap();
        needless(kind, &schema["properties"]["spec"], &mut found);
    }
    assert_eq!(found, [""; 0]);
}

/// An environment of a kind in one of its group's APIs.
fn environment(api_version: &str, kind: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": "ada", "namespace": "team-vision"},
        "spec": spec,
    })
}

/// The missing fields of an empty spec, for every kind of environment.
#[test]
fn empty_spec_is_valid_if_the_api_requires_no_field() {
    let documents: Vec<Value> = apis().map(|(api, flavour)| xrd(api, flavour)).collect();
    let schemas = Schemas::new(&documents).unwrap();
    let mut valid = Vec::new();
    for definition in schemas.iter() {
        let empty = environment(definition.api_version(), definition.kind(), &json!({}));
        let violations = definition.validate(&empty, None);
        let is_missing = |found: &k8s_schema::Violation| found.message.starts_with("is missing");
        if violations.is_empty() {
            valid.push(definition.kind());
        }
        assert!(violations.iter().all(is_missing), "{violations:?}");
    }
    valid.sort_unstable();
    assert_eq!(valid, ["Environment", "Environment", "XEnvironment"]);
}

#[test]
fn type_is_fixed_with_and_without_parameters() {
    let documents: Vec<Value> = apis().map(|(api, flavour)| xrd(api, flavour)).collect();
    let schemas = Schemas::new(&documents).unwrap();
    let small = json!({"parameters": {"size": "small"}});
    let eks = json!({"parameters": {"type": "eks", "size": "small"}});
    let larger = json!({"parameters": {"size": "large"}});
    let cases = [
        (json!({}), json!({}), true),
        (json!({}), small.clone(), true),
        (json!({}), larger, true),
        (small, json!({}), true),
        (json!({}), eks.clone(), false),
        (json!({"parameters": {}}), eks.clone(), false),
        (eks.clone(), json!({}), false),
        (eks.clone(), json!({"parameters": {}}), false),
        (eks.clone(), eks, true),
    ];
    let ours = schemas.iter().filter(|one| one.kind().ends_with("Environment"));
    let ours: Vec<_> =
        ours.filter(|one| ["Environment", "XEnvironment"].contains(&one.kind())).collect();
    assert_eq!(ours.len(), 3);
    for definition in ours {
        let with = |spec: &Value| environment(definition.api_version(), definition.kind(), spec);
        for (old, new, is_valid) in &cases {
            let violations = definition.validate(&with(new), Some(&with(old)));
            assert_eq!(violations.is_empty(), *is_valid, "{old} to {new}: {violations:?}");
            let named = violations.iter().all(|found| found.message.contains("type cannot be"));
            assert!(named, "{violations:?}");
        }
    }
}
