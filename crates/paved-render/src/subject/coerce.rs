//! Makes a spec readable for the function, although a schema rejects it.

use serde_json::{Map, Value, json};

/// Gives every value the type in its schema, so that one mistake does not hide others from the
/// function. A missing value or one of another type gets a placeholder. Unknown fields are removed.
/// The schema has rejected each of them.
pub(super) fn make(value: &mut Value, schema: &Value) {
    if value.is_null() && schema["nullable"] == true {
        return;
    }
    match schema["type"].as_str() {
        Some("object") => {
            if !value.is_object() {
                *value = json!({});
            }
            if let Some(fields) = value.as_object_mut() {
                object(fields, schema);
            }
        }
        Some("array") => {
            if !value.is_array() {
                *value = json!([]);
            }
            value
                .as_array_mut()
                .into_iter()
                .flatten()
                .for_each(|item| make(item, &schema["items"]));
        }
        Some("string") if !value.is_string() => *value = json!(""),
        Some("integer") if value.as_f64().is_none_or(|number| number.fract() != 0.0) => {
            *value = json!(0);
        }
        Some("boolean") if !value.is_boolean() => *value = json!(false),
        _ => {}
    }
    if let Some(allowed) = schema["enum"].as_array().filter(|allowed| !allowed.contains(value)) {
        *value = allowed.first().cloned().unwrap_or_default();
    }
}

fn object(fields: &mut Map<String, Value>, schema: &Value) {
    let known = &schema["properties"];
    let others = &schema["additionalProperties"];
    let open = others.is_object() || schema["x-kubernetes-preserve-unknown-fields"] == true;
    fields.retain(|name, _| open || known.get(name).is_some());
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        fields.entry(name).or_insert(Value::Null);
    }
    fields.iter_mut().for_each(|(name, value)| make(value, known.get(name).unwrap_or(others)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_get_the_type_of_their_schema_and_valid_ones_stay() {
        let text = json!({"type": "string"});
        let schema = json!({"type": "object", "required": ["name", "size"], "properties": {
            "name": text,
            "count": {"type": "integer"},
            "on": {"type": "boolean"},
            "size": {"type": "string", "enum": ["small", "large"]},
            "list": {"type": "array", "items": text},
            "map": {"type": "object", "additionalProperties": text},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            "inner": {"type": "object", "required": ["name"], "properties": {"name": text}},
        }});
        let good = json!({"name": "a", "count": 3, "on": true, "size": "large", "list": ["a"], "map": {"a.b": "c"},
            "free": {"x": [1, {"y": null}]}, "inner": {"name": "a"}});
        let mut same = good.clone();
        make(&mut same, &schema);
        assert_eq!(same, good);
        let mut wrong = json!({"count": "3", "on": 1, "size": "tiny", "list": ["a", 2], "map": {"a": 1, "b": "c"},
            "free": {"x": 1}, "inner": "a", "unknown": 1});
        make(&mut wrong, &schema);
        let mended = json!({"name": "", "count": 0, "on": false, "size": "small", "list": ["a", ""],
            "map": {"a": "", "b": "c"}, "free": {"x": 1}, "inner": {"name": ""}});
        assert_eq!(wrong, mended);
    }
}
