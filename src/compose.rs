//! The engine: the operations that APIs use to compose resources. It depends on no API.
//!
//! An API adds resources to a [`Composition`], each in a *slot*: its permanent name in the
//! composite. The API gets the observed values of each slot, and returns its status. The engine
//! adds the envelope of each resource, for the claims API or the namespaced API. It preserves
//! values that must not change, determines readiness, and prevents accidental removals.

#[path = "status/budget.rs"]
mod budget;
#[path = "status/clock.rs"]
mod clock;
#[path = "status/condition.rs"]
mod condition;
#[path = "status/deletion.rs"]
mod deletion;
#[path = "status/excuse.rs"]
mod excuse;
#[path = "status/lifecycle.rs"]
mod lifecycle;
#[path = "status/limits.rs"]
mod limits;
mod look;
mod lookup;
mod managed;
mod namespace;
mod object;
#[path = "plan/outdated.rs"]
mod outdated;
#[path = "power/switch.rs"]
mod power;
mod preserve;
#[path = "status/references.rs"]
mod references;
mod remove;
#[path = "status/resource_status.rs"]
mod resource_status;
#[path = "status/answer.rs"]
mod result;
#[path = "status/revision.rs"]
mod revision;
mod scrub;
mod secrets;
#[path = "status/stalled.rs"]
mod stalled;
#[path = "status.rs"]
mod status;
#[path = "power/preserved.rs"]
mod still;
#[cfg(test)]
mod tests;
mod usage;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;

use serde_json::Value;

pub use budget::{BUDGET, OVER_BUDGET, Spending};
pub use condition::{Condition, Event, PROVISIONED, undecided};
pub use deletion::{Deleted, Kept, OnDeletion};
pub use lifecycle::{EXPIRING, EndAction, LifecycleStatus, StopReason};
pub use lookup::{Found, Lookup};
pub use managed::Managed;
pub use namespace::{COMPOSITE_UID, NAMESPACE_IS_FREE};
pub use object::Manifest;
pub use outdated::OUTDATED;
pub use power::PowerState;
pub use resource_status::ResourceStatus;
pub use result::CompositionResult;
pub use revision::{AddedValue, Addition, COMMON as COMMON_ADDITIONS};
pub use scrub::Secrets;
pub use secrets::Generated;
pub use stalled::STALLED;
pub use status::{CommonStatus, Phase, is_common};

use crate::error::{Error, FieldError};
use crate::observe::{Health, OWNED_LABEL, Observation, Resource, State};
use crate::reason::Reason;
use crate::value::{Object, at, put, text};

/// Slot of the Secret with a namespaced composite's connection details.
const CONNECTION_SLOT: &str = "connection";

/// The composition of one call: the resources that an API adds, beside the observation that it
/// reads.
pub struct Composition<'o> {
    observation: &'o Observation<'o>,
    desired: BTreeMap<String, Desired>,
    waiting: BTreeMap<String, Absent>,
    removed: BTreeSet<String>,
    protected: BTreeSet<String>,
    /// Slots with managed resources that this call changes. Until the end of the call, other
    /// resources see their observed health.
    changing: BTreeSet<String>,
    connection: BTreeMap<String, Vec<u8>>,
    lookups: BTreeMap<String, Lookup>,
    secrets: Secrets,
    random: &'o mut dyn FnMut(&mut [u8]),
    unpublished: bool,
    dated: Option<&'static str>,
    stoppable: &'static [&'static str],
    active_plan: Option<lifecycle::ActivePlan>,
    power: Option<PowerState>,
    /// Fields and limits that the Composition's revision cannot carry.
    outdated: Vec<FieldError>,
}

/// An API reads the observation through the composition: what exists decides what it composes.
impl<'o> Deref for Composition<'o> {
    type Target = Observation<'o>;

    fn deref(&self) -> &Observation<'o> {
        self.observation
    }
}

/// A resource that this call composes.
struct Desired {
    object: Object,
    health: Health,
    /// Whether it counts in `status.progress`. Usages and provider configs do not count.
    counted: bool,
}

impl Desired {
    /// The kind of the resource. For a wrapper, the kind of the wrapped object.
    fn kind(&self) -> &str {
        let wrapped = text(&self.object, &["spec", "forProvider", "manifest", "kind"]);
        wrapped.or_else(|| text(&self.object, &["kind"])).unwrap_or_default()
    }
}

/// A resource that is not composed yet.
struct Absent {
    kind: String,
    /// The awaited object, in words: `its password`.
    awaited: String,
    counted: bool,
    /// The resource as it will be asked for, as far as that is known.
    object: Object,
}

impl<'o> Composition<'o> {
    /// Begins the composition of an environment.
    pub fn new(observation: &'o Observation<'o>, random: &'o mut dyn FnMut(&mut [u8])) -> Self {
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
            stoppable: &[],
            active_plan: None,
            power: None,
            outdated: Vec::new(),
        }
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
