//! The fields that a CRD keeps. The repository's slices have only the fields that we set and read.

use serde_json::{Map, Value, json};
use simulator::provider::model::Model;

/// Adds the fields that a provider writes on its own to a CRD that was cut to our fields. These are
/// the fields of references, fields that are initialised late, and `status.atProvider`, as in the
/// whole CRD.
///
/// A document other than the CRD of a managed resource stays as it is.
pub fn widen(crd: &mut Value) {
    let (group, kind) = (crd["spec"]["group"].clone(), crd["spec"]["names"]["kind"].clone());
    for version in crd["spec"]["versions"].as_array_mut().into_iter().flatten() {
        let api_version = format!(
            "{}/{}",
            group.as_str().unwrap_or_default(),
            version["name"].as_str().unwrap_or_default()
        );
        let written =
            Model::for_object(&json!({"apiVersion": api_version, "kind": kind})).written();
        if let Some(schema) = version.pointer_mut("/schema/openAPIV3Schema")
            && schema.pointer("/properties/spec/properties/forProvider").is_some()
        {
            admit(schema, &written);
        }
    }
}

/// Makes `schema` accept the contents of `sample` where it does not define them.
fn admit(schema: &mut Value, sample: &Value) {
    if schema["x-kubernetes-preserve-unknown-fields"] == true
        || schema["additionalProperties"].is_object()
    {
        return;
    }
    match sample {
        Value::Object(fields) => {
            schema["type"] = json!("object");
            for (field, sample) in fields {
                admit(&mut schema["properties"][field], sample);
            }
        }
        Value::Array(items) => {
            schema["type"] = json!("array");
            admit(&mut schema["items"], items.first().unwrap_or(&Value::Null));
        }
        _ if schema["type"].is_string() => {}
        Value::Bool(_) => schema["type"] = json!("boolean"),
        Value::Number(_) => schema["type"] = json!("number"),
        Value::String(_) => schema["type"] = json!("string"),
        Value::Null => schema["x-kubernetes-preserve-unknown-fields"] = json!(true),
    }
}

/// An object without the fields that its CRD would drop.
pub fn prune(object: &Value, schema: &Value) -> Value {
    let mut pruned = cut(object, schema);
    for part in ["apiVersion", "kind", "metadata"] {
        pruned[part] = object[part].clone();
    }
    pruned
}

fn cut(value: &Value, schema: &Value) -> Value {
    if schema["x-kubernetes-preserve-unknown-fields"] == true {
        return value.clone();
    }
    match value {
        Value::Object(fields) => {
            let known = |field: &str| {
                let named = schema["properties"].get(field);
                named.or_else(|| schema.get("additionalProperties").filter(|any| any.is_object()))
            };
            let kept = fields.iter().filter_map(|(field, value)| {
                known(field).map(|schema| (field.clone(), cut(value, schema)))
            });
            Value::Object(kept.collect::<Map<_, _>>())
        }
        Value::Array(items) => items.iter().map(|item| cut(item, &schema["items"])).collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crd(group: &str, kind: &str) -> Value {
        json!({"spec": {"group": group, "names": {"kind": kind}, "versions": [{"name": "v1beta1", "schema": {
            "openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "properties": {
                "forProvider": {"type": "object", "properties": {"clusterSelector": {"type": "object"}}}}}}}}}]}})
    }

    #[test]
    fn slice_accepts_references_and_late_initialised_fields() {
        let mut crd = crd("container.gcp.upbound.io", "NodePool");
        widen(&mut crd);
        let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        let params = &schema["properties"]["spec"]["properties"]["forProvider"]["properties"];
        assert_eq!(params["cluster"]["type"], "string");
        assert_eq!(params["clusterRef"]["properties"]["name"]["type"], "string");
        assert_eq!(params["maxPodsPerNode"]["type"], "number");
        assert_eq!(params["clusterSelector"], json!({"type": "object"}));
    }

    #[test]
    fn unknown_fields_are_pruned_and_metadata_stays() {
        let schema = json!({"properties": {"spec": {"properties": {"known": {"type": "string"},
            "tags": {"additionalProperties": {"type": "string"}}, "list": {"items": {"properties": {"a": {}}}}}}}});
        let object = json!({"kind": "X", "metadata": {"name": "x"}, "extra": 1,
            "spec": {"known": "1", "unknown": "2", "tags": {"k": "v"}, "list": [{"a": 1, "b": 2}]}});
        let expected = json!({"apiVersion": null, "kind": "X", "metadata": {"name": "x"},
            "spec": {"known": "1", "tags": {"k": "v"}, "list": [{"a": 1}]}});
        assert_eq!(prune(&object, &schema), expected);
    }
}
