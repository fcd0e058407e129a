//! The changed fields of an environment, without secrets.
//!
//! Most fields of a claim have a schema that a secret does not fit: a number, one of some words, or
//! a pattern. Their values are shown. Other fields take any text, for example variables of a
//! backend and values of a chart. Only the path of such a field is shown.

use std::fmt;

use crossplane::secrets::struck;
use function_paved_road::catalog::gpu::MACHINES;
use function_paved_road::manifests;
use paved_client::cluster::Kind;
use serde::Serialize;
use serde_json::{Map, Value};

/// The value that stands for a hidden one.
const HIDDEN: &str = "(hidden)";

/// A changed field.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Difference {
    path: String,
    /// `null` if the field is new.
    before: Value,
    /// `null` if the field is removed.
    after: Value,
}

impl Difference {
    /// The path and the value after the change.
    pub(crate) fn into_entry(self) -> (String, Value) {
        (self.path, self.after)
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, before, after } = self;
        match (before, after) {
            (Value::Null, after) => write!(out, "+ {path}: {after}"),
            (before, Value::Null) => write!(out, "- {path}: {before}"),
            (before, after) => write!(out, "~ {path}: {before} → {after}"),
        }
    }
}

/// The changed fields between two objects with `spec`, `labels` and `annotations`.
pub(crate) fn differences(kind: &Kind, before: &Value, after: &Value) -> Vec<Difference> {
    let schema = kind.paved_api().map(|api| {
        let xrd = manifests::xrd(api, kind.flavour(), &kind.resource.group);
        xrd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"].clone()
    });
    let mut all = Vec::new();
    compare("spec", &before["spec"], &after["spec"], schema.as_ref(), &mut all);
    for (field, path) in [("labels", "metadata.labels"), ("annotations", "metadata.annotations")] {
        compare(path, &before[field], &after[field], None, &mut all);
    }
    all
}

/// Compares objects field by field, and other values as a whole.
fn compare(
    path: &str,
    before: &Value,
    after: &Value,
    schema: Option<&Value>,
    all: &mut Vec<Difference>,
) {
    let none = Map::new();
    let fields = |value: &'_ Value| match value {
        Value::Object(fields) => Some(fields.clone()),
        Value::Null => Some(none.clone()),
        _ => None,
    };
    if before == after {
        return;
    }
    let is_object = before.is_object() || after.is_object();
    if let (true, Some(old), Some(new)) = (is_object, fields(before), fields(after)) {
        let mut names: Vec<&String> = old.keys().chain(new.keys()).collect();
        names.sort_unstable();
        names.dedup();
        for name in names {
            let child = schema.and_then(|schema| field(schema, name));
            let path = format!("{path}.{name}");
            let value = |fields: &Map<String, Value>| fields.get(name).cloned().unwrap_or_default();
            compare(&path, &value(&old), &value(&new), child, all);
        }
        return;
    }
    all.push(Difference {
        path: path.to_owned(),
        before: shown(before, schema),
        after: shown(after, schema),
    });
}

/// The schema of a field, or of the values of a map.
fn field<'s>(schema: &'s Value, name: &str) -> Option<&'s Value> {
    let named = schema["properties"].get(name);
    named.or_else(|| Some(&schema["additionalProperties"]).filter(|of| of.is_object()))
}

/// A value, or the sign of a hidden value.
fn shown(value: &Value, schema: Option<&Value>) -> Value {
    let hidden = || Value::from(HIDDEN);
    let Some(schema) = schema else {
        return if value.is_null() { Value::Null } else { hidden() };
    };
    match value {
        Value::Null => Value::Null,
        Value::Bool(_) if schema["type"] == "boolean" => value.clone(),
        Value::Number(_) if ["integer", "number"].iter().any(|kind| schema["type"] == *kind) => {
            value.clone()
        }
        Value::String(text) if is_closed(schema) || is_machine(text) => Value::from(struck(text)),
        Value::Array(items) => items.iter().map(|item| shown(item, schema.get("items"))).collect(),
        _ => hidden(),
    }
}

/// Whether the schema of a text leaves no room for a secret.
fn is_closed(schema: &Value) -> bool {
    schema["enum"].is_array() || schema["pattern"].is_string() || schema["format"].is_string()
}

/// Whether a text is a machine type of the catalogue. The function checks this field, not its schema.
fn is_machine(text: &str) -> bool {
    MACHINES.iter().any(|machine| machine.name == text)
}

#[cfg(test)]
mod tests {
    use paved_client::samples::kinds;
    use serde_json::json;

    use super::*;

    fn told(before: &Value, after: &Value) -> Vec<String> {
        let kinds = kinds();
        let kind = kinds.all().iter().find(|kind| kind.name() == "GpuDevWorkspaceClaim");
        let kind = kind.unwrap_or_else(|| panic!("the sample kinds have a workspace"));
        let all = differences(kind, before, after);
        all.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn values_with_a_closed_schema_are_shown_and_others_are_hidden() {
        let before = json!({"spec": {"parameters": {"diskGB": 100, "region": "us-east-1"}},
            "annotations": {"a": "old"}});
        let after = json!({"spec": {"parameters": {"diskGB": 200, "region": "eu-west-1",
            "sshPublicKeys": ["free text"], "unknown": "free text"}},
            "annotations": {"a": "new"}, "labels": {"team": "vision"}});
        assert_eq!(
            told(&before, &after),
            [
                "~ spec.parameters.diskGB: 100 → 200",
                "~ spec.parameters.region: \"us-east-1\" → \"eu-west-1\"",
                "+ spec.parameters.sshPublicKeys: [\"(hidden)\"]",
                "+ spec.parameters.unknown: \"(hidden)\"",
                "+ metadata.labels.team: \"(hidden)\"",
                "~ metadata.annotations.a: \"(hidden)\" → \"(hidden)\"",
            ]
        );
        assert!(told(&after, &after).is_empty());
    }
}
