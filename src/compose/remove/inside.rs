//! Removal of objects inside a cluster of the environment.

use serde_json::{Value, json};

use super::Composer;
use crate::error::Error;
use crate::models::kubernetes;
use crate::observe::{Health, Resource, State, from_object};
use crate::reason::Reason;
use crate::value::{at, text};

impl Composer<'_> {
    /// Like [`remove_ordered`](Self::remove_ordered), for an object inside a cluster of the
    /// environment, where other clients may delay the deletion. Crossplane forgets a resource as
    /// soon as it is not desired. A resource in slot `<slot>-leaving` therefore observes the object
    /// until it is gone.
    pub fn remove_ordered_inside(&mut self, slot: &str, needs: &[&str]) -> Result<(), Error> {
        let watch = format!("{slot}-leaving");
        let (exists, looks_on) = (self.exists(slot), self.exists(&watch));
        let whom = if exists { slot } else { watch.as_str() };
        let Some((config, object)) = self.observation.resources.get(whom).and_then(identity) else {
            return self.remove_ordered::<kubernetes::Object>(slot, needs);
        };
        let missing = self.observation.resources.get(&watch).is_some_and(is_missing);
        if !exists && missing && !self.is_being_deleted(slot) {
            self.remove(&watch)?;
            return self.remove_ordered::<kubernetes::Object>(slot, needs);
        }
        self.inside(config, &watch, object).observe().add()?;
        let message = self
            .observation
            .resources
            .get(&watch)
            .filter(|_| !missing)
            .map_or(IS_LEAVING.into(), leaving);
        if let Some(plumbing) = self.desired.get_mut(&watch) {
            plumbing.counted = false;
            plumbing.health = Health::pending(State::Waiting, Reason::Deleting, message);
        }
        self.removal_step::<kubernetes::Object>(
            slot,
            needs,
            if exists { !looks_on } else { !missing },
        )
    }

    /// Cancels [`remove_ordered_inside`](Self::remove_ordered_inside), because the object is wanted
    /// again.
    pub fn cancel_removal(&mut self, slot: &str) -> Result<(), Error> {
        self.remove(&format!("{slot}-leaving"))
    }
}

/// The provider config of a wrapped object, and the fields that identify the object.
fn identity(wrapper: &Resource) -> Option<(String, Value)> {
    let spec = at(&wrapper.object, &["spec"])?.as_object()?;
    let manifest = at(spec, &["forProvider", "manifest"])?.as_object()?;
    let part = |path: &[&str]| text(manifest, path);
    let mut object = json!({
        "apiVersion": part(&["apiVersion"])?, "kind": part(&["kind"])?,
        "metadata": {"name": part(&["metadata", "name"])?},
    });
    if let Some(namespace) = part(&["metadata", "namespace"]) {
        object["metadata"]["namespace"] = namespace.into();
    }
    Some((text(spec, &["providerConfigRef", "name"])?.to_owned(), object))
}

/// Whether the observed object does not exist, according to the message of Crossplane's runtime.
fn is_missing(watch: &Resource) -> bool {
    let conditions = at(&watch.object, &["status", "conditions"]).and_then(Value::as_array);
    conditions.into_iter().flatten().any(|condition| {
        let says = |field: &str| condition[field].as_str().unwrap_or_default();
        (says("type"), says("status")) == ("Synced", "False")
            && says("message").contains("external resource does not exist")
    })
}

/// The message for an object that is being deleted.
const IS_LEAVING: &str = "is being deleted";

/// The message for an object that is being deleted, with the object's reason for a delay.
fn leaving(watch: &Resource) -> String {
    let mut object = watch.object.clone();
    let inner = object
        .get_mut("status")
        .and_then(|status| status.pointer_mut("/atProvider/manifest/metadata"));
    if let Some(metadata) = inner.and_then(Value::as_object_mut) {
        metadata.remove("deletionTimestamp");
    }
    let health = from_object(&object);
    match health.state {
        State::Failed | State::Waiting => format!("{IS_LEAVING}: {}", health.message),
        State::Available | State::Creating => IS_LEAVING.to_owned(),
    }
}
