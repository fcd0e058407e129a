//! Schemas for editors and for the values of charts, in JSON Schema.

use serde_json::{Map, Value, json};

/// Turns a schema of Kubernetes into one for editors: unknown fields are errors, and Kubernetes'
/// own words become JSON Schema's.
pub fn for_editors(schema: &mut Value) {
    let Some(fields) = schema.as_object_mut() else { return };
    let takes_all = fields.remove("x-kubernetes-preserve-unknown-fields") == Some(json!(true));
    if fields.remove("x-kubernetes-int-or-string") == Some(json!(true)) {
        fields.insert("type".to_owned(), json!(["integer", "string"]));
        fields.remove("anyOf");
    }
    if fields.remove("nullable") == Some(json!(true))
        && let Some(Value::String(kind)) = fields.get("type").cloned()
    {
        fields.insert("type".to_owned(), json!([kind, "null"]));
    }
    fields.retain(|name, _| !name.starts_with("x-kubernetes-"));
    if fields.contains_key("properties") && !takes_all {
        fields.entry("additionalProperties").or_insert(json!(false));
    }
    if let Some(properties) = fields.get_mut("properties").and_then(Value::as_object_mut) {
        properties.values_mut().for_each(for_editors);
    }
    for inner in ["items", "additionalProperties"] {
        fields.get_mut(inner).into_iter().for_each(for_editors);
    }
    for list in ["allOf", "anyOf", "oneOf"] {
        let all = fields.get_mut(list).and_then(Value::as_array_mut);
        // Parts of a condition must not reject the fields of the others.
        for part in all.into_iter().flatten() {
            part.as_object_mut().into_iter().for_each(|part: &mut Map<String, Value>| {
                part.retain(|name, _| !name.starts_with("x-kubernetes-"));
            });
        }
    }
}
