//! The schema revision that an environment was created with. Its first resource records it.

use super::{Observation, Resource};
use crate::settings::SCHEMA_REVISION;

/// The annotation on an environment's first resource with the schema revision that the environment
/// was created with. Absent: the first revision.
pub const MADE_WITH: &str = "paved-road.fn.crossplane.io/schema-revision";

/// The annotation on an environment's first resource with the schema revision whose limits the
/// environment was created with, if its Composition is older. Absent: that of [`MADE_WITH`].
pub const LIMITED_BY: &str = "paved-road.fn.crossplane.io/limits-revision";

impl Observation<'_> {
    /// Whether the environment was created with a schema revision of at least `revision`, or is
    /// being created with one now. An environment keeps its revision: an upgrade adds no resources
    /// to it.
    pub fn is_since(&self, revision: u32) -> bool {
        let made_with = match self.first_resources().next() {
            None => self.settings.revision(),
            Some(_) => self.first_resources().filter_map(made_with).max().unwrap_or(1),
        };
        made_with >= revision
    }

    /// Whether the limits that `revision` brought hold for the environment. They hold for each new
    /// environment, because a user may choose an older Composition. Environments that exist keep
    /// their limits.
    pub fn is_limited_since(&self, revision: u32) -> bool {
        let limited_by = match self.first_resources().next() {
            None => SCHEMA_REVISION,
            Some(_) => self.first_resources().filter_map(limited_by).max().unwrap_or(1),
        };
        limited_by >= revision
    }

    /// Whether the environment has its first resource.
    pub(crate) fn has_first_resource(&self) -> bool {
        self.first_resources().next().is_some()
    }

    fn first_resources(&self) -> impl Iterator<Item = &Resource> {
        self.api.first_slots.iter().filter_map(|slot| self.resources.get(*slot))
    }

    /// Whether this call composes the slots that `revision` added: if the environment was created
    /// with that revision or later, or if one of the slots, or a Usage by one, already exists.
    pub fn brings(&self, revision: u32, slots: &[&str]) -> bool {
        let is_there = |slot: &&str| self.exists(slot) || !self.usages_by(slot).is_empty();
        slots.iter().any(is_there) || self.is_since(revision)
    }

    /// The annotations with revisions for the resource in a slot: the recorded revisions, or the
    /// current ones for a new resource. The revision of the limits is recorded only if it differs
    /// from that of the schema.
    pub(crate) fn revision_notes(&self, slot: &str) -> impl Iterator<Item = (&'static str, u32)> {
        let is_first = self.api.first_slots.contains(&slot);
        let current = self.settings.revision();
        let [schema, limits] = match self.resources.get(slot).filter(|_| is_first) {
            Some(running) => [made_with(running), noted(running, LIMITED_BY)],
            None => [
                Some(current).filter(|revision| is_first && *revision > 1),
                Some(SCHEMA_REVISION).filter(|newest| is_first && *newest > current),
            ],
        };
        let schema = schema.map(|revision| (MADE_WITH, revision));
        schema.into_iter().chain(limits.map(|revision| (LIMITED_BY, revision)))
    }
}

/// The schema revision that is recorded on a resource.
fn made_with(resource: &Resource) -> Option<u32> {
    noted(resource, MADE_WITH)
}

/// The schema revision that is recorded as that of the limits on a resource.
fn limited_by(resource: &Resource) -> Option<u32> {
    noted(resource, LIMITED_BY).max(made_with(resource))
}

fn noted(resource: &Resource, annotation: &str) -> Option<u32> {
    resource.annotation(annotation)?.parse().ok()
}
