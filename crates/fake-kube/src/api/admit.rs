//! Admission: checks the place, fields, defaults and rules of a written object.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_schema::policy::{ParamRef, Write, rejections, rejections_with};
use serde_json::{Value, json};

use super::{Request, versioned};
use crate::Cluster;
use crate::answer::Refused;
use crate::json::{remove, text};
use crate::kinds::{Kind, Kinds};
use crate::store::Key;

/// The object to store for a user's write.
pub fn admit(
    cluster: &Cluster,
    request: &Request<'_>,
    key: &Key,
    mut object: Value,
    before: Option<&Value>,
) -> Result<Value, Refused> {
    let named = |field: &str, wanted: &str| {
        let found = text(&object, &format!("/metadata/{field}"));
        if found == wanted || (found.is_empty() && !wanted.is_empty() && field == "namespace") {
            return Ok(());
        }
        let message = format!(
            "the {field} of the object ({found}) does not match the {field} on the request ({wanted})"
        );
        Err(Refused::new(400, "BadRequest", message))
    };
    decode(&object)?;
    if request.is_status {
        let mut changed =
            before.cloned().ok_or_else(|| Refused::absent(request.kind, &key.name))?;
        changed["status"] = object["status"].take();
        return Ok(changed);
    }
    named("name", &key.name)?;
    named("namespace", &key.namespace)?;
    prune(cluster, request, &mut object)?;
    let strange = object["apiVersion"].is_string()
        && text(&object, "/apiVersion") != request.kind.api_version();
    if strange {
        let message = format!(
            "apiVersion: found {}; the path says {}",
            object["apiVersion"],
            request.kind.api_version()
        );
        return Err(Refused::new(400, "BadRequest", message));
    }
    let admitted = admitted(&cluster.kinds, request.kind, key, &object, before)?;
    let write = Write {
        object: Some(&admitted),
        before,
        group: &request.kind.group,
        resource: &request.kind.plural,
        user: request.user,
    };
    match rejections(cluster.kinds.policies(), write).first() {
        None => Ok(admitted),
        Some(message) => Err(Refused::denied(request.kind, &key.name, message)),
    }
}

/// Checks the admission policies for the deletion of an object.
pub fn admit_deletion(
    cluster: &Cluster,
    request: &Request<'_>,
    key: &Key,
    before: &Value,
) -> Result<(), Refused> {
    let write = Write {
        object: None,
        before: Some(before),
        group: &request.kind.group,
        resource: &request.kind.plural,
        user: request.user,
    };
    let find = |reference: ParamRef<'_>| {
        let is_it = |kind: &&Kind| {
            kind.name == reference.kind && kind.api_version() == reference.api_version
        };
        let kind = cluster.kinds.all().iter().find(is_it)?;
        let found = cluster.store.get(&kind.key(reference.namespace, reference.name))?;
        Some(Value::clone(&found))
    };
    match rejections_with(cluster.kinds.policies(), write, find).first() {
        None => Ok(()),
        Some(message) => Err(Refused::denied(request.kind, &key.name, message)),
    }
}

/// Rejects metadata fields with other types than in ObjectMeta.
fn decode(object: &Value) -> Result<(), Refused> {
    let metadata = serde_json::from_value::<ObjectMeta>(object["metadata"].clone());
    metadata.map(drop).map_err(|error| {
        Refused::new(400, "BadRequest", format!("the object cannot be decoded: metadata: {error}"))
    })
}

/// The object to store at a known place: with defaults, validated by its schema, and without the
/// fields that only the API server sets.
pub fn admitted(
    kinds: &Kinds,
    kind: &Kind,
    key: &Key,
    object: &Value,
    before: Option<&Value>,
) -> Result<Value, Refused> {
    let mut object = versioned(object, kind);
    object["metadata"]["name"] = json!(key.name);
    if kind.namespaced {
        object["metadata"]["namespace"] = json!(key.namespace);
    }
    // A deletion cannot be undone.
    for field in ["deletionTimestamp", "deletionGracePeriodSeconds", "managedFields"] {
        let kept =
            before.map(|before| before["metadata"][field].clone()).filter(|kept| !kept.is_null());
        match kept {
            Some(kept) => object["metadata"][field] = kept,
            None => remove(&mut object["metadata"], field),
        }
    }
    let Some(definition) = kinds.schemas().for_object(&object) else { return Ok(object) };
    match before.and_then(|before| before.get("status")) {
        Some(status) => object["status"] = status.clone(),
        None => remove(&mut object, "status"),
    }
    definition.apply_defaults(&mut object);
    let violations = definition.validate(&object, before);
    if violations.is_empty() {
        Ok(object)
    } else {
        Err(Refused::invalid(kind, &key.name, &violations))
    }
}

/// Drops fields that the schema does not define. With strict validation in the request, rejects
/// them instead.
pub fn prune(cluster: &Cluster, request: &Request<'_>, object: &mut Value) -> Result<(), Refused> {
    let Some(definition) =
        cluster.kinds.schemas().get(&request.kind.api_version(), &request.kind.name)
    else {
        return Ok(());
    };
    let mut dropped = Vec::new();
    cut(object, definition.schema(), "", &mut dropped);
    if dropped.is_empty() || request.query.get("fieldValidation") != "Strict" {
        return Ok(());
    }
    let fields: Vec<String> =
        dropped.iter().map(|path| format!("unknown field {path:?}")).collect();
    Err(Refused::new(400, "BadRequest", format!("strict decoding error: {}", fields.join(", "))))
}

fn cut(value: &mut Value, schema: &Value, path: &str, dropped: &mut Vec<String>) {
    if schema["x-kubernetes-preserve-unknown-fields"] == true || schema.is_boolean() {
        return;
    }
    match value {
        Value::Object(fields) => fields.retain(|field, value| {
            let place = if path.is_empty() { field.clone() } else { format!("{path}.{field}") };
            if path.is_empty()
                && ["apiVersion", "kind", "metadata", "status"].contains(&field.as_str())
            {
                return true;
            }
            let known =
                schema["properties"].get(field).or_else(|| schema.get("additionalProperties"));
            match known {
                Some(schema) => cut(value, schema, &place, dropped),
                None => dropped.push(place),
            }
            known.is_some()
        }),
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                cut(item, &schema["items"], &format!("{path}[{index}]"), dropped);
            }
        }
        _ => {}
    }
}
