//! What a provider writes to an object: the name of its resource, late-initialised fields, status
//! and connection details.

use serde_json::{Value, json};

use super::kind_behaviour::{Context, Id, KindBehaviour};
use crate::core::{ConnectionDetails, World, connection_secret, secret_ref};
use crossplane::json::{at, overlay, set, text};

/// Where an object has the name of its resource in the cloud.
pub(super) const EXTERNAL_NAME: [&str; 3] =
    ["metadata", "annotations", "crossplane.io/external-name"];

/// Gives the object the name that its resource is going to have, where the cloud does not assign
/// it.
pub(super) fn name(behaviour: &KindBehaviour, object: &mut Value) {
    let is_named = matches!(behaviour.id, Id::None) || behaviour.assigns_names();
    if !is_named && text(object, &EXTERNAL_NAME).is_none() {
        let name = behaviour.id.for_object(object);
        set(object, &EXTERNAL_NAME, json!(name));
    }
}

/// Gives the object the name that its resource has in the cloud, once it exists.
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

/// What a provider writes once the resource is made: its status, late-initialised fields,
/// connection details.
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

/// Fills fields of `spec.forProvider` that are absent, where the policies allow it. Upjet's
/// providers never look into a block that is there; others do.
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

/// Connection details go where the resource says; keys are added to what is there.
pub(super) fn write_secret(object: &Value, details: &ConnectionDetails, world: &mut World) {
    let Some((namespace, name)) = secret_ref(object) else { return };
    let mut all = world.secret_data(&namespace, &name);
    all.extend(details.clone());
    world.put_secret(connection_secret(&namespace, &name, &all));
}

/// What an object asks for, as its cloud understands it: `spec.forProvider` without references.
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

/// Works on an object under the identity that its cloud resource has, from which ids and addresses
/// follow; without one that is the object's uid.
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
