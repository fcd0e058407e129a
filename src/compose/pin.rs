//! Pinned values: what a running resource has, it keeps, unless the field is the user's to change.

use serde_json::Value;

use super::observed::lenient;
use crate::models;
use crate::value::{Object, at, put};

/// The `forProvider` to ask for when `observed` already runs: the fields of the model as observed, and those at the paths
/// in `live` as wanted now. A field of the model that is absent there stays absent.
pub(super) fn pin<M: models::Managed>(wanted: &Object, observed: &Value, live: &[&str]) -> Object {
    let Some(running) = observed.as_object() else { return wanted.clone() };
    let mut pinned = fields_of::<M>(observed).unwrap_or_else(|| legible::<M>(wanted, running, observed));
    for path in live {
        let path: Vec<&str> = path.split('.').collect();
        put(&mut pinned, &path, at(wanted, &path).cloned());
    }
    pinned
}

/// The model's fields of what was observed.
fn fields_of<M: models::Managed>(observed: &Value) -> Option<Object> {
    let model = M::deserialize(observed).ok()?;
    match serde_json::to_value(model) {
        Ok(Value::Object(fields)) => Some(fields),
        _ => None,
    }
}

/// For what the model cannot read as a whole: each field that it can as observed, each other that is there as wanted.
fn legible<M: models::Managed>(wanted: &Object, running: &Object, observed: &Value) -> Object {
    let fields = lenient::<M>(observed).map(serde_json::to_value);
    let mut fields = match fields {
        Some(Ok(Value::Object(fields))) => fields,
        _ => Object::new(),
    };
    for (key, wanted) in wanted.iter().filter(|(key, _)| running.contains_key(*key)) {
        fields.entry(key).or_insert_with(|| wanted.clone());
    }
    fields
}
