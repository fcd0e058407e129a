//! Writes a provider's fields to an object: the resource's name, late-initialized fields, status
//! and connection details.

use serde_json::{Value, json};

use super::kind_behaviour::{Context, Id, KindBehaviour};
use crate::core::{ConnectionDetails, World, connection_secret, secret_ref};
use crossplane::json::{at, overlay, set, text};

/// The path of the resource's name in the cloud.
pub(super) const EXTERNAL_NAME: [&str; 3] =
    ["metadata", "annotations", "crossplane.io/external-name"];

/// Sets the name of the object's future resource, unless the cloud assigns it.
pub(super) fn name(behaviour: &KindBehaviour, object: &mut Value) {
    let is_named = matches!(behaviour.id, Id::None) || behaviour.assigns_names();
    if !is_named && text(object, &EXTERNAL_NAME).is_none() {
        let name = behaviour.id.for_object(object);
        set(object, &EXTERNAL_NAME, json!(name));
    }
}

/// Sets the name of the object's existing resource.
pub(super) fn identify(behaviour: &KindBehaviour, object: &mut Value) {
    if matches!(behaviour.id, Id::None) {
        return;
    }
    let named = text(object, &EXTERNAL_NAME);
    let stays = match behaviour.id {
        Id::Replaced(prefix) => named.is_some_and(|name| name.starts_with(prefix)),
        _ => named.is_some(),
    };
    if !stays {
        let name = behaviour.id.for_object(object);
        set(object, &EXTERNAL_NAME, json!(name));
    }
    if behaviour.mirrors && at(object, &["status", "atProvider", "id"]).is_none() {
        let external = text(object, &EXTERNAL_NAME).unwrap_or_default().to_owned();
        set(object, &["status", "atProvider", "id"], json!(external));
    }
}

/// Writes a provider's fields after the creation: status, late-initialized fields, connection
/// details.
pub(super) fn finish(
    behaviour: &KindBehaviour,
    object: &mut Value,
    before: &World,
    world: &mut World,
) {
    let facts = Context::new(object, before);
    let (late, seen, details) = (
        behaviour.late_values(&facts),
        (behaviour.at_provider)(&facts),
        (behaviour.connection)(&facts),
    );
    if !matches!(behaviour.id, Id::None) {
        late_initialise(behaviour, object, &late);
        let mut at_provider = if behaviour.mirrors { wanted(object) } else { json!({}) };
        overlay(&mut at_provider, at(object, &["status", "atProvider"]).unwrap_or(&json!({})));
        overlay(&mut at_provider, &seen);
        set(object, &["status", "atProvider"], at_provider);
    }
    let mut details = details;
    (behaviour.effects)(object, before, world, &mut details);
    write_secret(object, &details, world);
}

/// Sets missing fields of `spec.forProvider`, if the policies allow it. Upjet providers never
/// change an existing block, while others do.
pub(super) fn late_initialise(behaviour: &KindBehaviour, object: &mut Value, late: &Value) {
    let policies = at(object, &["spec", "managementPolicies"]).and_then(Value::as_array);
    let allowed =
        policies.is_none_or(|all| all.iter().any(|one| one == "*" || one == "LateInitialize"));
    for (field, value) in late.as_object().filter(|_| allowed).into_iter().flatten() {
        let mut filled = value.clone();
        match at(object, &["spec", "forProvider", field]) {
            Some(_) if behaviour.mirrors => continue,
            Some(there) => overlay(&mut filled, there),
            None => {}
        }
        set(object, &["spec", "forProvider", field], filled);
    }
}

/// Whether the policies let the provider change the resource.
pub(super) fn may_update(object: &Value) -> bool {
    let policies = at(object, &["spec", "managementPolicies"]).and_then(Value::as_array);
    policies.is_none_or(|all| all.iter().any(|one| one == "*" || one == "Update"))
}

/// Writes connection details to the resource's Secret. Keys are added to existing ones.
pub(super) fn write_secret(object: &Value, details: &ConnectionDetails, world: &mut World) {
    let Some((namespace, name)) = secret_ref(object) else { return };
    let mut all = world.secret_data(&namespace, &name);
    all.extend(details.clone());
    world.put_secret(connection_secret(&namespace, &name, &all));
}

/// The desired parameters of a resource in its cloud: `spec.forProvider` without references.
pub fn wanted(object: &Value) -> Value {
    fn without_references(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                let ends = ["Ref", "Refs", "Selector"];
                fields.retain(|field, _| !ends.iter().any(|end| field.ends_with(end)));
                fields.values_mut().for_each(without_references);
            }
            Value::Array(items) => items.iter_mut().for_each(without_references),
            _ => {}
        }
    }
    let mut wanted = at(object, &["spec", "forProvider"]).cloned().unwrap_or_else(|| json!({}));
    without_references(&mut wanted);
    wanted
}

/// Works on an object with the identity of its external resource, the base of IDs and addresses.
/// Without an `identity`, the object's UID is the identity.
pub(super) fn as_identified<T>(
    identity: Option<String>,
    object: &mut Value,
    work: impl FnOnce(&mut Value) -> T,
) -> T {
    let Some(identity) = identity else { return work(object) };
    let uid = at(object, &["metadata", "uid"]).cloned().unwrap_or_default();
    set(object, &["metadata", "uid"], json!(identity));
    let worked = work(object);
    set(object, &["metadata", "uid"], uid);
    worked
}
