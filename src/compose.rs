//! The engine: the operations that APIs use to compose resources. It depends on no API.
//!
//! An API adds resources to a [`Composer`], each in a *slot*: its permanent name in the
//! composite. The API gets the observed values of each slot, and returns its status. The engine
//! adds the envelope of each resource, for the claims API or the namespaced API. It preserves
//! values that must not change, determines readiness, and prevents accidental removals.

mod drift;
mod look;
mod lookup;
mod managed;
mod namespace;
mod object;
mod preserve;
mod remove;
mod scrub;
mod secrets;
#[cfg(test)]
mod tests;
mod usage;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;

use serde_json::Value;

pub(crate) use look::LOOK;
pub use lookup::{Found, Lookup};
pub use managed::Managed;
pub use namespace::{COMPOSITE_UID, NAMESPACE_IS_FREE};
pub use object::Manifest;
pub(crate) use remove::is_orphan;
pub use scrub::Secrets;
pub(crate) use scrub::cut;
pub use secrets::Generated;

use crate::error::Error;
use crate::lifecycle::Stop;
use crate::observe::{Health, OWNED_LABEL, Observation, Resource, State};
use crate::plan::Plan;
use crate::reason::Reason;
use crate::value::{Object, at, put, text};

/// Slot of the Secret with a namespaced composite's connection details.
const CONNECTION_SLOT: &str = "connection";

/// Composes the resources of one call. An API adds them, beside the observation that it reads.
pub struct Composer<'o> {
    pub(crate) observation: &'o Observation<'o>,
    pub(crate) desired: BTreeMap<String, Desired>,
    pub(crate) waiting: BTreeMap<String, Absent>,
    removed: BTreeSet<String>,
    protected: BTreeSet<String>,
    /// Slots with managed resources that this call changes. Until the end of the draft, other
    /// resources see their observed health.
    changing: BTreeSet<String>,
    pub(crate) connection: BTreeMap<String, Vec<u8>>,
    lookups: BTreeMap<String, Lookup>,
    pub(crate) secrets: Secrets,
    random: &'o mut dyn FnMut(&mut [u8]),
    pub(crate) unpublished: bool,
    pub(crate) dated: Option<&'static str>,
    /// Why the environment is to be stopped; `None` if it is to run.
    stop: Option<Stop>,
}

/// An API reads the observation through the composer, because its resources depend on the
/// existing ones.
impl<'o> Deref for Composer<'o> {
    type Target = Observation<'o>;

    fn deref(&self) -> &Observation<'o> {
        self.observation
    }
}

/// The composition of an API, before resources are stopped or started.
pub struct Draft<'o> {
    pub(crate) composer: Composer<'o>,
    /// The API's own status, or the error that rejects the spec or the Settings.
    pub(crate) outcome: Result<Object, Error>,
}

impl Draft<'_> {
    /// The lookups of this call, by the names of the requirements. A rejection has lookups, too.
    /// Crossplane then calls again when an object that was looked up changes.
    pub fn lookups(&self) -> &BTreeMap<String, Lookup> {
        &self.composer.lookups
    }
}

/// A resource that this call composes.
pub(crate) struct Desired {
    pub object: Object,
    pub health: Health,
    /// Whether it counts in `status.progress`. Usages and provider configs do not count.
    pub counted: bool,
}

impl Desired {
    /// The kind of the resource. For a wrapper, the kind of the wrapped object.
    pub fn kind(&self) -> &str {
        let wrapped = text(&self.object, &["spec", "forProvider", "manifest", "kind"]);
        wrapped.or_else(|| text(&self.object, &["kind"])).unwrap_or_default()
    }
}

/// A resource that is not composed yet.
pub(crate) struct Absent {
    pub kind: String,
    /// The awaited object, in words: `its password`.
    pub awaited: String,
    pub counted: bool,
    /// The resource as it will be desired, as far as that is known.
    object: Object,
}

impl<'o> Composer<'o> {
    /// Begins the composition of an environment.
    pub fn new(
        observation: &'o Observation<'o>,
        plan: &Plan,
        random: &'o mut dyn FnMut(&mut [u8]),
    ) -> Self {
        Self {
            observation,
            desired: BTreeMap::new(),
            waiting: BTreeMap::new(),
            removed: BTreeSet::new(),
            protected: BTreeSet::new(),
            changing: BTreeSet::new(),
            connection: BTreeMap::new(),
            lookups: BTreeMap::new(),
            secrets: Secrets::new(observation),
            random,
            unpublished: false,
            dated: None,
            stop: plan.stop(),
        }
    }

    /// Lets an API add its resources. `compose` returns the API's own status.
    pub fn draft(mut self, compose: impl FnOnce(&mut Self) -> Result<Object, Error>) -> Draft<'o> {
        let outcome = compose(&mut self).and_then(|status| {
            self.compose_connection_secret()?;
            self.mark_changes();
            Ok(status)
        });
        Draft { composer: self, outcome }
    }

    /// Rejects a composition that would delete existing resources by accident.
    ///
    /// # Errors
    /// [`Error::WouldDelete`] if an existing resource of ours was neither composed nor removed by
    /// name.
    pub(crate) fn account_for_everything(&self) -> Result<(), Error> {
        let missed = |(slot, resource): (&String, &Resource)| {
            let dropped = resource.is_ours()
                && !self.desired.contains_key(slot)
                && !self.removed.contains(slot);
            dropped.then(|| slot.clone())
        };
        let missed: Vec<String> = self.observation.resources.iter().filter_map(missed).collect();
        if missed.is_empty() { Ok(()) } else { Err(Error::WouldDelete(missed)) }
    }

    /// The health of the resource that this call composes in a slot.
    pub fn health(&self, slot: &str) -> Option<&Health> {
        self.desired.get(slot).map(|desired| &desired.health)
    }

    /// Whether the resource that this call composes in a slot was observed to be ready.
    pub fn is_ready(&self, slot: &str) -> bool {
        self.health(slot).is_some_and(|health| health.ready)
    }

    /// Marks the resource that this call composes in a slot as not ready, although it reports
    /// ready.
    pub fn mark_unready(&mut self, slot: &str, message: impl Into<Cow<'static, str>>) {
        if let Some(ready) = self.desired.get_mut(slot).filter(|desired| desired.health.ready) {
            ready.health = Health::pending(State::Creating, Reason::Creating, message);
        }
    }

    /// Publishes a connection detail, if it is known. The claims API publishes it on the composite,
    /// the namespaced API in a composed Secret.
    pub fn connection(&mut self, key: &str, value: Option<impl Into<Vec<u8>>>) {
        if let Some(value) = value.map(Into::into).filter(|value: &Vec<u8>| !value.is_empty()) {
            self.connection.insert(key.to_owned(), value);
        }
    }

    /// Sets a time in the status field `field` whenever another status field changes.
    pub fn dates(&mut self, field: &'static str) {
        self.dated = Some(field);
    }

    /// Adds a resource to its slot, with our label.
    fn insert(&mut self, slot: &str, mut object: Object, counted: bool) -> Result<(), Error> {
        put(&mut object, &["metadata", "labels", OWNED_LABEL], Some("true".into()));
        for (annotation, revision) in self.observation.revision_notes(slot) {
            let revision = Value::from(revision.to_string());
            put(&mut object, &["metadata", "annotations", annotation], Some(revision));
        }
        let health = match self.observation.resources.get(slot) {
            Some(seen) => seen.health().unless_behind(&object, seen.seen()),
            None => Health::unseen(),
        };
        tracing::debug!(slot, ready = health.ready, reason = %health.reason, "composed");
        match self.desired.insert(slot.to_owned(), Desired { object, health, counted }) {
            None => Ok(()),
            Some(_) => Err(Error::Defect(format!("slot `{slot}` was composed twice"))),
        }
    }

    /// Records that a slot's resource is not composed before an object exists.
    fn wait(&mut self, slot: &str, absent: Absent) {
        tracing::debug!(slot, kind = absent.kind, awaited = absent.awaited, "waits");
        self.waiting.insert(slot.to_owned(), absent);
    }

    /// The resources of the environment: those that this call asks for, and those that it delays.
    pub fn objects(&self) -> impl Iterator<Item = &Object> {
        let delayed = self.waiting.values().filter(|absent| absent.counted);
        let delayed = delayed.map(|absent| &absent.object);
        self.desired.values().map(|desired| &desired.object).chain(delayed)
    }

    /// The name of a desired resource. A resource without a name gets one now, because another
    /// resource refers to it.
    fn name_of(&mut self, slot: &str) -> Option<String> {
        let name = match self.observation.resources.get(slot).and_then(Resource::name) {
            Some(name) => name.to_owned(),
            None => self.xr.object_name(slot),
        };
        let desired = self.desired.get_mut(slot)?;
        if let Some(name) = at(&desired.object, &["metadata", "name"]).and_then(Value::as_str) {
            return Some(name.to_owned());
        }
        put(&mut desired.object, &["metadata", "name"], Some(name.as_str().into()));
        Some(name)
    }
}
