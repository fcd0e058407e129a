//! The engine: the operations that APIs use to compose resources. It depends on no API.
//!
//! An API adds resources to a [`Composition`], each in a *slot*: its permanent name in the
//! composite. The API gets the observed values of each slot, and returns its status. The engine
//! adds the envelope of each resource, for the claims API or the namespaced API. It preserves
//! values that must not change, determines readiness, and prevents accidental removals.

mod budget;
mod clock;
#[path = "observe/composite.rs"]
mod composite;
mod condition;
mod deletion;
mod excuse;
#[path = "observe/health.rs"]
mod health;
mod lifecycle;
mod limits;
mod look;
mod lookup;
mod managed;
#[path = "observe/names.rs"]
mod names;
mod namespace;
mod object;
#[path = "observe/observed.rs"]
mod observed;
mod outdated;
mod power;
mod preserve;
mod references;
mod remove;
#[path = "observe/reported.rs"]
mod reported;
mod resource_status;
mod result;
mod revision;
mod scrub;
mod secrets;
mod stalled;
mod status;
mod still;
#[path = "observe/stopped.rs"]
mod stopped;
#[path = "observe/tags.rs"]
mod tags;
#[cfg(test)]
mod tests;
mod usage;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use crossplane::api_version;
use crossplane::names::EXTERNAL_NAME;
use jiff::Timestamp;
use serde_json::Value;

pub use budget::{BUDGET, OVER_BUDGET, Spending};
pub use composite::{Composite, SecretName, spec_hash};
pub use condition::{Condition, Event, PROVISIONED, undecided};
pub use deletion::{Deleted, Kept, OnDeletion};
pub use health::{Health, State};
pub use lifecycle::{EXPIRING, EndAction, LifecycleStatus, StopReason};
pub use lookup::{Found, Lookup};
pub use managed::Managed;
pub use names::{NameRule, label};
pub use namespace::{COMPOSITE_UID, NAMESPACE_IS_FREE};
pub use object::Manifest;
pub use observed::Observed;
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
pub use crate::models::Scope;
use crate::models::{self, CHOICE_PREFIX};
use crate::reason::Reason;
use crate::settings::{Common, SCHEMA_REVISION};
use crate::value::{Object, at, put, text};

/// The label on every resource that we compose. An observed resource with the label must be
/// composed again or removed by name.
pub const OWNED_LABEL: &str = "paved-road.fn.crossplane.io/composed";

/// The annotation on an environment's first resource with the schema revision that the environment
/// was created with. Absent: the first revision.
pub const MADE_WITH: &str = "paved-road.fn.crossplane.io/schema-revision";

/// The annotation on an environment's first resource with the schema revision whose limits the
/// environment was created with, if its Composition is older. Absent: that of [`MADE_WITH`].
pub const LIMITED_BY: &str = "paved-road.fn.crossplane.io/limits-revision";

/// The annotation on a claim or composite with the owner's login.
pub const OWNER: &str = "paved-road.fn.crossplane.io/owner";

/// The label on a claim or composite with the owner, or with a hash if a label cannot contain the
/// login.
pub const OWNER_LABEL: &str = "owner";

/// Slot of the Secret with a namespaced composite's connection details.
const CONNECTION_SLOT: &str = "connection";

/// The composition of one call.
pub struct Composition<'r> {
    /// The composite.
    pub xr: Composite,
    /// The settings that all APIs share.
    pub settings: &'r Common,
    api: &'static str,
    observed: BTreeMap<String, observed::Resource>,
    desired: BTreeMap<String, Desired>,
    waiting: BTreeMap<String, Absent>,
    removed: BTreeSet<String>,
    protected: BTreeSet<String>,
    /// Slots with managed resources that this call changes. Until the end of the call, other
    /// resources see their observed health.
    changing: BTreeSet<String>,
    connection: BTreeMap<String, Vec<u8>>,
    /// The objects that Crossplane found for an earlier answer, by the requirement's name.
    found: BTreeMap<String, Option<Object>>,
    lookups: BTreeMap<String, Lookup>,
    secrets: Secrets,
    now: Timestamp,
    random: &'r mut dyn FnMut(&mut [u8]),
    unpublished: bool,
    dated: Option<&'static str>,
    first_slots: &'static [&'static str],
    stoppable: &'static [&'static str],
    active_plan: Option<lifecycle::ActivePlan>,
    power: Option<PowerState>,
    /// The kind of the environment in commands.
    called: Option<String>,
    /// Fields and limits that the Composition's revision cannot carry.
    outdated: Vec<FieldError>,
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

impl<'r> Composition<'r> {
    /// Begins a composition for `xr`. `api` is the API's name, for example `gpu-workspace`.
    pub fn new(
        xr: Composite,
        api: &'static str,
        settings: &'r Common,
        observed: impl IntoIterator<Item = (String, Object, BTreeMap<String, Vec<u8>>)>,
        now: Timestamp,
        random: &'r mut dyn FnMut(&mut [u8]),
    ) -> Self {
        let observed: BTreeMap<_, _> = observed
            .into_iter()
            .map(|(slot, object, connection)| (slot, observed::Resource::new(object, connection)))
            .collect();
        let mut secrets = Secrets::default();
        let details = observed.values().flat_map(|resource| resource.connection.values());
        details.chain(xr.connection.values()).for_each(|value| secrets.add(value));
        for resource in observed
            .values()
            .filter(|r| r.object.get("kind").and_then(Value::as_str) == Some("Secret"))
        {
            resource.secret_data().values().for_each(|value| secrets.add(value));
        }
        Self {
            xr,
            settings,
            api,
            observed,
            desired: BTreeMap::new(),
            waiting: BTreeMap::new(),
            removed: BTreeSet::new(),
            protected: BTreeSet::new(),
            changing: BTreeSet::new(),
            connection: BTreeMap::new(),
            found: BTreeMap::new(),
            lookups: BTreeMap::new(),
            secrets,
            now,
            random,
            unpublished: false,
            dated: None,
            first_slots: &[],
            stoppable: &[],
            active_plan: None,
            power: None,
            called: None,
            outdated: Vec::new(),
        }
    }

    /// Sets the kind of the environment in commands. Default: the kind in lower case.
    #[must_use]
    pub fn called(mut self, kind: String) -> Self {
        self.called = Some(kind);
        self
    }

    /// Sets the slots with resources that record the environment's schema revision: see
    /// [`is_since`](Self::is_since).
    #[must_use]
    pub fn with_first_slots(mut self, slots: &'static [&'static str]) -> Self {
        self.first_slots = slots;
        self
    }

    /// Whether the environment was created with a schema revision of at least `revision`, or is
    /// being created with one now. An environment keeps its revision: an upgrade adds no resources
    /// to it.
    pub fn is_since(&self, revision: u32) -> bool {
        let mut first =
            self.first_slots.iter().filter_map(|slot| self.observed.get(*slot)).peekable();
        let made_with = match first.peek() {
            None => self.settings.revision(),
            Some(_) => first.filter_map(made_with).max().unwrap_or(1),
        };
        made_with >= revision
    }

    /// Whether the limits that `revision` brought hold for the environment. They hold for each new
    /// environment, because a user may choose an older Composition. Environments that exist keep
    /// their limits.
    pub fn is_limited_since(&self, revision: u32) -> bool {
        let mut first =
            self.first_slots.iter().filter_map(|slot| self.observed.get(*slot)).peekable();
        match first.peek() {
            None => SCHEMA_REVISION >= revision,
            Some(_) => first.filter_map(limited_by).max().unwrap_or(1) >= revision,
        }
    }

    /// Whether the environment has no resource yet: none was observed, and the status has
    /// none.
    pub fn is_new(&self) -> bool {
        let listed = self.xr.status.get("resources").and_then(Value::as_array);
        !self.observed.values().any(observed::Resource::is_ours) && listed.is_none_or(Vec::is_empty)
    }

    /// Whether this call composes the slots that `revision` added: if the environment was created
    /// with that revision or later, or if one of the slots, or a Usage by one, already exists.
    pub fn brings(&self, revision: u32, slots: &[&str]) -> bool {
        let is_there = |slot: &&str| self.exists(slot) || !self.usages_by(slot).is_empty();
        slots.iter().any(is_there) || self.is_since(revision)
    }

    /// The revision to record on the resource in a slot: the recorded revision, or the current
    /// revision for a new resource.
    fn revision_note(&self, slot: &str) -> Option<u32> {
        if !self.first_slots.contains(&slot) {
            return None;
        }
        match self.observed.get(slot) {
            Some(running) => made_with(running),
            None => Some(self.settings.revision()).filter(|revision| *revision > 1),
        }
    }

    /// The revision to record as that of the limits, if it differs from the recorded revision of the
    /// schema.
    fn limits_note(&self, slot: &str) -> Option<u32> {
        if !self.first_slots.contains(&slot) {
            return None;
        }
        match self.observed.get(slot) {
            Some(running) => noted_revision(running, LIMITED_BY),
            None => Some(SCHEMA_REVISION).filter(|newest| *newest > self.settings.revision()),
        }
    }

    /// Redacts a secret value in the messages of this composition.
    pub fn hide(&mut self, secret: &[u8]) {
        self.secrets.add(secret);
    }

    /// Whether the resource in a slot was observed.
    pub fn exists(&self, slot: &str) -> bool {
        self.observed.contains_key(slot)
    }

    /// Our observed slots that begin with `prefix`, sorted.
    pub fn slots<'c>(&'c self, prefix: &'c str) -> impl Iterator<Item = &'c str> {
        let ours = move |(slot, resource): &(&String, &observed::Resource)| {
            slot.starts_with(prefix) && resource.is_ours()
        };
        self.observed.iter().filter(ours).map(|(slot, _)| slot.as_str())
    }

    /// The API group of the observed resource in a slot, for slots that allow several kinds.
    pub fn group(&self, slot: &str) -> Option<&str> {
        text(&self.observed.get(slot)?.object, &["apiVersion"]).map(api_version::group)
    }

    /// The user's choice that a resource was last resolved from, as recorded on the resource.
    pub fn noted(&self, slot: &str, choice: &str) -> Option<&str> {
        self.observed.get(slot)?.annotation(&format!("{CHOICE_PREFIX}{choice}"))
    }

    /// The paths of the choices (name, value, paths) that differ from the choices recorded on the
    /// observed resource in a slot.
    fn chosen_anew<'c>(
        &'c self,
        slot: &'c str,
        choices: &'c [(&'static str, String, &'static [&'static str])],
    ) -> impl Iterator<Item = &'static str> + 'c {
        let changed = move |(name, value, _): &&(&'static str, String, _)| {
            self.noted(slot, name).is_some_and(|noted| noted != value)
        };
        choices.iter().filter(changed).flat_map(|(_, _, paths)| paths.iter().copied())
    }

    /// The external name of an observed resource.
    pub fn external_name(&self, slot: &str) -> Option<String> {
        self.observed
            .get(slot)?
            .annotation(EXTERNAL_NAME)
            .filter(|name| !name.is_empty())
            .map(str::to_owned)
    }

    /// The observed name of the object in a slot.
    pub fn observed_name(&self, slot: &str) -> Option<&str> {
        self.observed.get(slot)?.name()
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

    /// The Kubernetes object in a slot: a native object as observed, a wrapped object as its
    /// wrapper specifies it.
    pub fn manifest_of(&self, slot: &str) -> Option<&Object> {
        let object = &self.observed.get(slot)?.object;
        match text(object, &["kind"]) {
            Some("Object") => at(object, &["spec", "forProvider", "manifest"])?.as_object(),
            _ => Some(object),
        }
    }

    /// The Kubernetes object in a slot as its cluster stores it: a wrapped object as its wrapper
    /// last observed it.
    pub fn seen(&self, slot: &str) -> Option<&Object> {
        let object = &self.observed.get(slot)?.object;
        match text(object, &["kind"]) {
            Some("Object") => at(object, &["status", "atProvider", "manifest"])?.as_object(),
            _ => Some(object),
        }
    }

    /// The state that the provider of the managed resource in a slot reports.
    pub fn status_of<M: models::Managed>(&self, slot: &str) -> Option<M::Status> {
        reported::status_of::<M>(&self.observed.get(slot)?.object)
    }

    /// The value at a path of an observed resource's `forProvider`.
    pub fn running(&self, slot: &str, path: &[&str]) -> Option<&Value> {
        let for_provider =
            at(&self.observed.get(slot)?.object, &["spec", "forProvider"])?.as_object()?;
        at(for_provider, path)
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
        if let Some(revision) = self.revision_note(slot) {
            put(
                &mut object,
                &["metadata", "annotations", MADE_WITH],
                Some(revision.to_string().into()),
            );
        }
        if let Some(revision) = self.limits_note(slot) {
            put(
                &mut object,
                &["metadata", "annotations", LIMITED_BY],
                Some(revision.to_string().into()),
            );
        }
        let health = match self.observed.get(slot) {
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
        let name = match self.observed.get(slot).and_then(observed::Resource::name) {
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

/// The schema revision that is recorded on a resource.
fn made_with(resource: &observed::Resource) -> Option<u32> {
    noted_revision(resource, MADE_WITH)
}

/// The schema revision that is recorded as that of the limits on a resource.
fn limited_by(resource: &observed::Resource) -> Option<u32> {
    noted_revision(resource, LIMITED_BY).max(made_with(resource))
}

fn noted_revision(resource: &observed::Resource, annotation: &str) -> Option<u32> {
    resource.annotation(annotation)?.parse().ok()
}
