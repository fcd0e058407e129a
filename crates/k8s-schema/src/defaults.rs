//! Structural defaults, as an API server applies them.

use serde_json::Value;

/// Drops nulls where the schema does not allow them, then sets defaults.
pub(super) fn apply(object: &mut Value, schema: &Value) {
    prune_nulls(object, schema);
    fill(object, schema);
}

fn prune_nulls(value: &mut Value, schema: &Value) {
    match value {
        Value::Object(map) => {
            map.retain(|key, value| {
                !(value.is_null()
                    && field(schema, key)
                        .is_some_and(|field| !nullable(field) && field.get("default").is_none()))
            });
            for (key, value) in map {
                if let Some(field) = field(schema, key) {
                    prune_nulls(value, field);
                }
            }
        }
        Value::Array(items) => {
            let schema = schema.get("items").unwrap_or(&Value::Null);
            for item in items {
                prune_nulls(item, schema);
            }
        }
        _ => {}
    }
}

fn fill(value: &mut Value, schema: &Value) {
    match value {
        Value::Object(map) => {
            for (key, field) in
                schema.get("properties").and_then(Value::as_object).into_iter().flatten()
            {
                let Some(default) = field.get("default") else { continue };
                let missing = map.get(key).is_none_or(|value| value.is_null() && !nullable(field));
                if missing {
                    map.insert(key.clone(), default.clone());
                }
            }
            for (key, value) in map {
                if let Some(field) = field(schema, key) {
                    fill(value, field);
                }
            }
        }
        Value::Array(items) => {
            let schema = schema.get("items").unwrap_or(&Value::Null);
            for item in items {
                fill(item, schema);
            }
        }
        _ => {}
    }
}

/// The schema of an object's field: the schema of the property, or else of additional properties.
pub(super) fn field<'a>(schema: &'a Value, key: &str) -> Option<&'a Value> {
    let property = schema.get("properties").and_then(|properties| properties.get(key));
    property
        .or_else(|| schema.get("additionalProperties").filter(|additional| additional.is_object()))
}

fn nullable(schema: &Value) -> bool {
    schema.get("nullable").and_then(Value::as_bool).unwrap_or(false)
}
