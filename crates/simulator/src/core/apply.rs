//! Applies a response, as Crossplane does.

use std::collections::BTreeMap;

use crossplane::Scope;
use crossplane::json::{at, remove, set};
use function_proto::v1::RunFunctionResponse;
use serde_json::{Value, json};

use super::compose::{self, ComposeError, Prepared};
use super::{ConnectionDetails, Event, World, connection_secret, naming, secret_ref, ssa, status};

/// The changes from applying a response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// The message of a fatal result. Only conditions changed then.
    pub fatal: Option<String>,
    /// Slots that were created.
    pub created: Vec<String>,
    /// Slots with a changed object.
    pub changed: Vec<String>,
    /// Slots that were deleted, because the response no longer desires them.
    pub deleted: Vec<String>,
    /// The recorded events.
    pub events: Vec<Event>,
}

impl World {
    /// Applies a response: names and owns desired resources, deletes all others, writes the XR's
    /// status and conditions, and publishes its connection details. A fatal response changes only
    /// conditions. The same applies to a response that Crossplane cannot compose, which is an error
    /// here.
    pub fn apply(&mut self, response: &RunFunctionResponse) -> Result<Applied, ComposeError> {
        if let Some(fatal) = status::fatal(response) {
            let why =
                format!("pipeline step {:?} returned a fatal result: {}", self.step, fatal.message);
            self.fail(response, &why);
            return Ok(Applied { fatal: Some(fatal.message.clone()), ..Applied::default() });
        }
        let prepared = compose::prepare(self, response).inspect_err(|error| {
            let why = error.to_string();
            self.fail(response, &why);
        })?;
        let mut applied =
            Applied { events: status::events(self, response, &prepared), ..Applied::default() };
        self.collect_garbage(&prepared, &mut applied);
        let refs = compose::references(
            prepared.values().map(|resource| &resource.object),
            self.namespace().is_some(),
        );
        self.set_machinery("resourceRefs", refs);
        for (slot, resource) in &prepared {
            self.apply_resource(slot, &resource.object, &mut applied);
        }
        self.write_status(status::composed(self, response, &prepared));
        self.publish(response);
        self.announced = true;
        Ok(applied)
    }

    fn fail(&mut self, response: &RunFunctionResponse, why: &str) {
        let status = status::failed(self, response, why);
        set(&mut self.composite, &["status"], status);
    }

    fn collect_garbage(&mut self, prepared: &BTreeMap<String, Prepared>, applied: &mut Applied) {
        self.resources.retain(|slot, _| {
            let kept = prepared.contains_key(slot);
            if !kept {
                applied.deleted.push(slot.clone());
            }
            kept
        });
        self.applied.retain(|slot, _| prepared.contains_key(slot));
    }

    fn apply_resource(&mut self, slot: &str, desired: &Value, applied: &mut Applied) {
        let existing = self.resources.get(slot).filter(|live| live["kind"] == desired["kind"]);
        let object = if let Some(live) = existing {
            let object = merged(live, self.applied.get(slot), desired);
            if object != *live {
                applied.changed.push(slot.to_owned());
            }
            object
        } else {
            applied.created.push(slot.to_owned());
            self.created(desired)
        };
        self.resources.insert(slot.to_owned(), object);
        self.applied.insert(slot.to_owned(), desired.clone());
    }

    /// The object that an API server stores for a create. A status from the writer is dropped.
    fn created(&self, desired: &Value) -> Value {
        let mut object = desired.clone();
        set(&mut object, &["metadata", "uid"], json!(naming::uid(desired)));
        set(&mut object, &["metadata", "creationTimestamp"], json!(self.now.to_string()));
        set(&mut object, &["metadata", "generation"], json!(1));
        remove(&mut object, &["status"]);
        object
    }

    /// Replaces the status with the function's new one. Crossplane's own status fields remain.
    fn write_status(&mut self, mut status: Value) {
        if self.scope == Scope::LegacyCluster {
            if let Some(kept) = at(&self.composite, &["status", "connectionDetails"]) {
                status["connectionDetails"] = kept.clone();
            }
            let new = status["claimConditionTypes"].take();
            let mut types = status::claim_condition_types(self);
            types.extend(
                new.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned),
            );
            types.sort();
            types.dedup();
            status["claimConditionTypes"] = json!(types);
            if types.is_empty() {
                remove(&mut status, &["claimConditionTypes"]);
            }
        }
        set(&mut self.composite, &["status"], status);
    }

    /// Publishes a legacy XR's connection details, after its resources were applied. Keys are
    /// added, never removed.
    fn publish(&mut self, response: &RunFunctionResponse) {
        if self.scope != Scope::LegacyCluster {
            return;
        }
        let Some((namespace, name)) = secret_ref(&self.composite) else { return };
        let composite = response.desired.as_ref().and_then(|desired| desired.composite.as_ref());
        let published = composite.into_iter().flat_map(|composite| &composite.connection_details);
        let allowed =
            |key: &String| self.connection_keys.is_empty() || self.connection_keys.contains(key);
        let new: ConnectionDetails = published
            .filter(|(key, _)| allowed(key))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        let before = self.secret_data(&namespace, &name);
        let mut details = before.clone();
        details.extend(new);
        if details != before || self.secret(&namespace, &name).is_none() {
            self.put_secret(connection_secret(&namespace, &name, &details));
            let now = json!(self.now.to_string());
            set(&mut self.composite, &["status", "connectionDetails", "lastPublishedTime"], now);
        }
    }
}

/// A live object after our apply. Its generation increases if the desired state changed.
fn merged(live: &Value, before: Option<&Value>, desired: &Value) -> Value {
    let mut object = live.clone();
    ssa::apply(&mut object, before, desired);
    if without_metadata(&object) != without_metadata(live) {
        let generation = at(live, &["metadata", "generation"]).and_then(Value::as_i64).unwrap_or(1);
        set(&mut object, &["metadata", "generation"], json!(generation + 1));
    }
    object
}

/// The fields of an object that change its generation.
fn without_metadata(object: &Value) -> Value {
    let mut object = object.clone();
    remove(&mut object, &["metadata"]);
    remove(&mut object, &["status"]);
    object
}

impl World {
    /// The XR's Ready condition.
    pub fn is_ready(&self) -> bool {
        crossplane::conditions::is_true(&self.composite, "Ready")
    }
}
