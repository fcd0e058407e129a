//! The observation of an environment: the data that Crossplane sent in one request. It never
//! changes during a call, and every later stage reads it.

mod composite;
mod health;
mod names;
mod observed;
mod reported;
mod revision;
mod stopped;
mod tags;

use std::collections::BTreeMap;

use crossplane::api_version;
use crossplane::names::EXTERNAL_NAME;
use jiff::Timestamp;
use serde_json::Value;

pub use composite::{Composite, SecretName, spec_hash};
#[cfg(test)]
pub(crate) use health::CLOUD_STATES;
pub(crate) use health::from_object;
pub use health::{Health, State};
pub use names::{NameRule, label};
pub use observed::Observed;
pub(crate) use observed::Resource;
pub(crate) use reported::{lenient, status_of};
pub use revision::{LIMITED_BY, MADE_WITH};
pub(crate) use stopped::{INSIDE, Off, POLICIES, RUNNING, as_running, fields, path};

use crate::models::{self, CHOICE_PREFIX};
use crate::settings::Common;
use crate::value::{Object, at, text};

/// The label on every resource that we compose. An observed resource with the label must be
/// composed again or removed by name.
pub const OWNED_LABEL: &str = "paved-road.fn.crossplane.io/composed";

/// The annotation on a claim or composite with the owner's login.
pub const OWNER: &str = "paved-road.fn.crossplane.io/owner";

/// The label on a claim or composite with the owner, or with a hash if a label cannot contain the
/// login.
pub const OWNER_LABEL: &str = "owner";

/// A user's choice: its name, its value, and the paths of the fields that are resolved from it.
pub(crate) type Choice = (&'static str, String, &'static [&'static str]);

/// An environment as Crossplane sent it, with the Settings of the call.
pub struct Observation<'s> {
    /// The composite.
    pub xr: Composite,
    /// The settings that all APIs share.
    pub settings: &'s Common,
    pub(crate) api: ApiFacts,
    /// The observed resources, by slot.
    pub(crate) resources: BTreeMap<String, Resource>,
    /// The objects that Crossplane found for an earlier answer, by the requirement's name.
    pub(crate) found: BTreeMap<String, Option<Object>>,
    /// The values of the step's credentials. No text of the answer may have one of them.
    pub(crate) credentials: Vec<Vec<u8>>,
    pub(crate) now: Timestamp,
}

/// Facts about the API of an environment.
pub(crate) struct ApiFacts {
    /// Its name in object names, for example `gpu-workspace`.
    pub name: &'static str,
    /// The kind of the environment in commands.
    pub called: String,
    /// The slots with resources that record the environment's schema revision: see
    /// [`is_since`](Observation::is_since).
    pub first_slots: &'static [&'static str],
}

impl Observation<'_> {
    /// Whether the environment has no resource yet: none was observed, and the status has none.
    pub fn is_new(&self) -> bool {
        let listed = self.xr.status.get("resources").and_then(Value::as_array);
        !self.resources.values().any(Resource::is_ours) && listed.is_none_or(Vec::is_empty)
    }

    /// Whether the resource in a slot was observed.
    pub fn exists(&self, slot: &str) -> bool {
        self.resources.contains_key(slot)
    }

    /// Our observed slots that begin with `prefix`, sorted.
    pub fn slots<'c>(&'c self, prefix: &'c str) -> impl Iterator<Item = &'c str> {
        let ours = move |(slot, resource): &(&String, &Resource)| {
            slot.starts_with(prefix) && resource.is_ours()
        };
        self.resources.iter().filter(ours).map(|(slot, _)| slot.as_str())
    }

    /// The observed slots of our Usages by a slot.
    pub(crate) fn usages_by(&self, slot: &str) -> Vec<String> {
        let by = format!("-by-{slot}");
        self.slots("usage-").filter(|usage| usage.ends_with(&by)).map(str::to_owned).collect()
    }

    /// The API group of the observed resource in a slot, for slots that allow several kinds.
    pub fn group(&self, slot: &str) -> Option<&str> {
        text(&self.resources.get(slot)?.object, &["apiVersion"]).map(api_version::group)
    }

    /// The user's choice that a resource was last resolved from, as recorded on the resource.
    pub fn noted(&self, slot: &str, choice: &str) -> Option<&str> {
        self.resources.get(slot)?.annotation(&format!("{CHOICE_PREFIX}{choice}"))
    }

    /// The paths of the choices that differ from the choices recorded on the observed resource in a
    /// slot.
    pub(crate) fn chosen_anew<'c>(
        &'c self,
        slot: &'c str,
        choices: &'c [Choice],
    ) -> impl Iterator<Item = &'static str> + 'c {
        let changed = move |(name, value, _): &&Choice| {
            self.noted(slot, name).is_some_and(|noted| noted != value)
        };
        choices.iter().filter(changed).flat_map(|(_, _, paths)| paths.iter().copied())
    }

    /// The external name of an observed resource.
    pub fn external_name(&self, slot: &str) -> Option<String> {
        let name = self.resources.get(slot)?.annotation(EXTERNAL_NAME);
        name.filter(|name| !name.is_empty()).map(str::to_owned)
    }

    /// The observed name of the object in a slot.
    pub fn observed_name(&self, slot: &str) -> Option<&str> {
        self.resources.get(slot)?.name()
    }

    /// The creation time of the object in a slot.
    pub(crate) fn created(&self, slot: &str) -> Option<Timestamp> {
        let object = &self.resources.get(slot)?.object;
        text(object, &["metadata", "creationTimestamp"])?.parse().ok()
    }

    /// The Kubernetes object in a slot: a native object as observed, a wrapped object as its
    /// wrapper specifies it.
    pub fn manifest_of(&self, slot: &str) -> Option<&Object> {
        let object = &self.resources.get(slot)?.object;
        match text(object, &["kind"]) {
            Some("Object") => at(object, &["spec", "forProvider", "manifest"])?.as_object(),
            _ => Some(object),
        }
    }

    /// The Kubernetes object in a slot as its cluster stores it: a wrapped object as its wrapper
    /// last observed it.
    pub fn seen(&self, slot: &str) -> Option<&Object> {
        let object = &self.resources.get(slot)?.object;
        match text(object, &["kind"]) {
            Some("Object") => at(object, &["status", "atProvider", "manifest"])?.as_object(),
            _ => Some(object),
        }
    }

    /// The state that the provider of the managed resource in a slot reports.
    pub fn status_of<M: models::Managed>(&self, slot: &str) -> Option<M::Status> {
        reported::status_of::<M>(&self.resources.get(slot)?.object)
    }

    /// The value at a path of an observed resource's `forProvider`.
    pub fn running(&self, slot: &str, path: &[&str]) -> Option<&Value> {
        let for_provider =
            at(&self.resources.get(slot)?.object, &["spec", "forProvider"])?.as_object()?;
        at(for_provider, path)
    }
}
