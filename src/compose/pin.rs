//! Pinned values: what a running resource has, it keeps, unless the field is the user's to change.

use serde_json::Value;

use crate::models;
use crate::value::{Object, at, put};

/// The `forProvider` to ask for when `observed` already runs: the fields of the model as observed, and those at the paths
/// in `live` as wanted now. A field of the model that is absent there stays absent.
pub(super) fn pin<M: models::Managed>(wanted: &Object, observed: &Value, live: &[&str]) -> Object {
    let Some(running) = observed.as_object() else { return wanted.clone() };
    let mut pinned = fields_of::<M>(observed).unwrap_or_else(|| same_shape(wanted, running));
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

/// For what no model can read: each wanted field as observed where the types agree, else as wanted.
fn same_shape(wanted: &Object, running: &Object) -> Object {
    let keep = |(key, wanted): (&String, &Value)| {
        let value = match (wanted, running.get(key)) {
            (Value::Object(wanted), Some(Value::Object(running))) => {
                Value::Object(same_shape(wanted, running))
            }
            (wanted, Some(running)) if std::mem::discriminant(wanted) == std::mem::discriminant(running) => {
                running.clone()
            }
            (wanted, _) => wanted.clone(),
        };
        (key.clone(), value)
    };
    wanted.iter().map(keep).collect()
}
