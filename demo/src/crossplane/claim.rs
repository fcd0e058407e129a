//! Crossplane's writes to a claim, and to deleted objects.

use crossplane::conditions;
use fake_kube::json::{add_finalizer, list, remove, seconds, text};
use fake_kube::store::Key;
use jiff::Timestamp;
use serde_json::{Value, json};
use simulator::core::World;

use super::Around;

/// The finalizer of a claim until its composite is deleted.
const FINALIZER: &str = "finalizer.apiextensions.crossplane.io";

/// A claim with the status of its composite. `published` says whether its connection details have
/// just been written.
pub fn told(claim: &Value, world: &World, published: bool, now: Timestamp) -> Value {
    let composite = world.composite();
    let mut claim = claim.clone();
    add_finalizer(&mut claim, FINALIZER);
    let reference = ["apiVersion", "kind"].map(|field| (field, composite[field].clone()));
    for (field, value) in
        reference.into_iter().chain([("name", composite["metadata"]["name"].clone())])
    {
        claim["spec"]["resourceRef"][field] = value;
    }
    claim["spec"]["compositionRef"] = composite["spec"]["compositionRef"].clone();
    let before = claim["status"].take();
    let mut status = composite["status"].clone();
    for own in ::crossplane::status::FIELDS {
        remove(&mut status, own);
        if let Some(kept) = before.get(own) {
            status[own] = kept.clone();
        }
    }
    if published {
        status["connectionDetails"]["lastPublishedTime"] = json!(seconds(now).to_string());
    }
    claim["status"] = status;
    let date = seconds(now).to_string();
    conditions::set(&mut claim, &date, "Synced", "True", "ReconcileSuccess", "");
    for kind in list(composite, "/status/claimConditionTypes").iter().filter_map(Value::as_str) {
        if let Some(told) = conditions::find(composite, kind) {
            conditions::set(
                &mut claim,
                &date,
                kind,
                text(told, "/status"),
                text(told, "/reason"),
                text(told, "/message"),
            );
        }
    }
    let waiting = "Claim is waiting for composite resource to become Ready";
    if conditions::is_true(composite, "Ready") {
        conditions::set(&mut claim, &date, "Ready", "True", "Available", "");
    } else {
        conditions::set(&mut claim, &date, "Ready", "False", "Waiting", waiting);
    }
    date_conditions(&mut claim);
    claim
}

/// Crossplane's own conditions have the observed generation.
fn date_conditions(claim: &mut Value) {
    let generation = claim["metadata"]["generation"].clone();
    for one in claim["status"]["conditions"].as_array_mut().into_iter().flatten() {
        if one["type"] == "Synced" || one["type"] == "Ready" {
            one["observedGeneration"] = generation.clone();
        }
    }
}

/// Copies the composite's connection details to the claim's Secret, if the claim names one and
/// details exist. Returns whether they have changed.
pub fn publish(world: &World, claim: &Key, around: &Around, now: Timestamp) -> bool {
    let reference = &world.composite()["spec"]["writeConnectionSecretToRef"];
    let source = world.secret(text(reference, "/namespace"), text(reference, "/name"));
    let (Some(source), Some(key)) =
        (source.filter(|_| conditions::is_true(world.composite(), "Ready")), secret(claim, around))
    else {
        return false;
    };
    let before = around.store.get(&key);
    let is_new = before.is_none_or(|before| before["data"] != source["data"]);
    if is_new {
        around.store.put(&key, now, |there| {
            let made = json!({"apiVersion": "v1", "kind": "Secret", "type": "connection.crossplane.io/v1alpha1",
                "metadata": {"name": key.name, "namespace": key.namespace}});
            let mut object = there.cloned().unwrap_or(made);
            object["data"] = source["data"].clone();
            Some(object)
        });
    }
    is_new
}

/// Deletes the claim's Secret.
pub fn withdraw(claim: &Key, around: &Around, now: Timestamp) {
    if let Some(key) = secret(claim, around) {
        around.store.put(&key, now, |_| None);
    }
}

/// The key of the Secret for a claim's connection details.
fn secret(claim: &Key, around: &Around) -> Option<Key> {
    let object = around.store.get(claim)?;
    let name = object["spec"]["writeConnectionSecretToRef"]["name"].as_str()?;
    Some(around.kinds.called("", "v1", "secrets")?.key(&claim.namespace, name))
}

/// A claim or a composite that is being deleted.
pub fn deleting(object: &Value, now: Timestamp) -> Value {
    let mut object = object.clone();
    let date = seconds(now).to_string();
    if text(&object, "/metadata/deletionTimestamp").is_empty() {
        object["metadata"]["deletionTimestamp"] = json!(date);
    }
    conditions::set(&mut object, &date, "Synced", "True", "ReconcileSuccess", "");
    conditions::set(&mut object, &date, "Ready", "False", "Deleting", "");
    date_conditions(&mut object);
    object
}
