//! The state of a resource of an environment that is being deleted, and the reason why it remains.

use std::time::Duration;

use crossplane::names::{IN_USE, SLOT};
use crossplane::text::harmless;
use jiff::{SignedDuration, Timestamp};
use kube::api::{DynamicObject, ObjectMeta};
use serde_json::Value;

use crate::environment::Mark;

/// The name for the composite in place of a slot. A composite has no slot.
const COMPOSITE: &str = "composite";

/// Crossplane's annotation on a resource after a Usage blocked its deletion. Crossplane repeats the
/// deletion after the Usage is deleted, and Kubernetes also repeats it.
const ATTEMPTED: &str = "usage.crossplane.io/deletion-attempt-with-policy";

/// After this time, Kubernetes has requested the deletion of every resource that it knows.
const OVERLOOKED: Duration = Duration::from_mins(1);

/// Kubernetes may not know a resource that was created within this time before the deletion of its
/// composite. It deletes all older ones, even if Usages delay that for a long time.
const NEW: SignedDuration = SignedDuration::from_secs(30);

/// Crossplane's own finalizers. They do not block a resource.
const USUAL: [&str; 4] = [
    "finalizer.managedresource.crossplane.io",
    "foregroundDeletion",
    "orphan",
    "composite.apiextensions.crossplane.io",
];

/// The known state of a resource.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum State {
    /// Unknown: the object was not read, or the caller may not read it.
    Unknown,
    There {
        slot: String,
        deleted: Option<Timestamp>,
        holds: Hold,
    },
    /// The object does not exist, or belongs to another owner.
    Gone,
}

/// The reason why a resource remains.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Hold {
    /// The deletion has not been requested yet.
    Unasked,
    /// The deletion will not be requested: Crossplane created the resource after the deletion of
    /// the others.
    Overlooked,
    /// A Usage. The using resource must be deleted first.
    Usage,
    /// The provider is deleting the resource.
    Provider,
    /// The external system rejected the deletion with this message.
    Refused(String),
    /// Finalizers of other controllers.
    Finalizers(Vec<String>),
}

impl State {
    pub(super) fn from_object(object: &DynamicObject) -> Self {
        let metadata = &object.metadata;
        let slot = metadata.annotations.as_ref().and_then(|all| all.get(SLOT));
        let slot = slot.map_or(COMPOSITE, String::as_str).to_owned();
        let deleted = metadata.deletion_timestamp.as_ref().map(|time| time.0);
        let in_use = metadata
            .labels
            .as_ref()
            .and_then(|all| all.get(IN_USE))
            .is_some_and(|value| value == "true");
        let refused = refusal(&object.data);
        let foreign: Vec<String> = metadata
            .finalizers
            .iter()
            .flatten()
            .filter(|one| !USUAL.contains(&one.as_str()))
            .cloned()
            .collect();
        let holds = match (deleted, refused) {
            (None, _) if in_use => Hold::Usage,
            (None, _) => Hold::Unasked,
            (Some(_), Some(message)) => Hold::Refused(message),
            (Some(_), None) if foreign.is_empty() => Hold::Provider,
            (Some(_), None) => Hold::Finalizers(foreign),
        };
        Self::There { slot: harmless(&slot), deleted, holds }
    }

    /// Adjusts the state after `waited`, the time since the first observation. Only Kubernetes'
    /// garbage collector and Crossplane's Usages delete resources. If neither knows a resource, it
    /// is overlooked.
    pub(super) fn after(
        mut self,
        waited: Duration,
        kind: &str,
        object: &DynamicObject,
        composite_deleted: Option<Timestamp>,
    ) -> Self {
        if let Self::There { slot, holds, .. } = &mut self
            && *holds == Hold::Unasked
            && waited > OVERLOOKED
            && kind != "Usage"
            // Crossplane repeats the deletion of a claim's composite until it is deleted.
            && slot != COMPOSITE
            && is_new(&object.metadata, composite_deleted)
            && !object.metadata.annotations.iter().any(|all| all.contains_key(ATTEMPTED))
        {
            *holds = Hold::Overlooked;
        }
        self
    }
}

impl Hold {
    pub(super) fn mark(&self) -> Mark {
        if matches!(self, Self::Refused(_) | Self::Overlooked) { Mark::Bad } else { Mark::Busy }
    }

    pub(super) fn told(&self) -> String {
        match self {
            Self::Unasked | Self::Provider => String::new(),
            Self::Overlooked => {
                "was created during the deletion, and must be deleted manually".to_owned()
            }
            Self::Usage => "waits until the resources that use it are deleted".to_owned(),
            Self::Refused(message) => format!("cannot be deleted: {message}"),
            Self::Finalizers(all) => format!("is blocked by the finalizers {}", all.join(", ")),
        }
    }
}

/// Whether Kubernetes may not have known a resource at the deletion of its composite. The result is
/// false if that time is unknown.
fn is_new(metadata: &ObjectMeta, composite_deleted: Option<Timestamp>) -> bool {
    let made = metadata.creation_timestamp.as_ref().map(|time| time.0);
    made.zip(composite_deleted).is_some_and(|(made, deleted)| deleted.duration_since(made) <= NEW)
}

/// Text in messages of upjet providers about an operation that must end before a deletion. It
/// follows the word `create` or `update`.
const STILL_AT_WORK: &str = " operation that started at ";

/// The message of a rejected deletion.
fn refusal(data: &Value) -> Option<String> {
    let conditions = data["status"]["conditions"].as_array()?;
    let of = |kind: &str| {
        let found = conditions.iter().find(|one| one["type"] == kind && one["status"] == "False");
        let message = found.and_then(|one| one["message"].as_str());
        message.filter(|message| !message.is_empty() && !message.contains(STILL_AT_WORK))
    };
    of("LastAsyncOperation").or_else(|| of("Synced")).map(harmless)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::super::tests::object;
    use super::*;

    #[test]
    fn resource_without_a_deletion_is_reported_after_a_delay() {
        let made = "2026-01-01T10:00:00Z";
        let state = |waited, kind, metadata: &Value, deleted: Option<&str>| {
            let mut metadata = metadata.clone();
            metadata["creationTimestamp"] = json!(made);
            let object = object(&metadata, &json!([]));
            let deleted = deleted.map(|time| time.parse().unwrap());
            match State::from_object(&object).after(waited, kind, &object, deleted) {
                State::There { holds, .. } => holds,
                other => panic!("{other:?}"),
            }
        };
        let (bare, soon) = (json!({}), Some("2026-01-01T10:00:20Z"));
        assert_eq!(state(OVERLOOKED, "Instance", &bare, soon), Hold::Unasked);
        assert_eq!(state(OVERLOOKED * 2, "Usage", &bare, soon), Hold::Unasked);
        let overlooked = state(OVERLOOKED * 2, "Instance", &bare, soon);
        assert_eq!(overlooked, Hold::Overlooked);
        assert!(
            overlooked.told().contains("must be deleted manually")
                && overlooked.mark() == Mark::Bad
        );
        let before = Some("2026-01-01T09:59:50Z");
        assert_eq!(
            state(OVERLOOKED * 2, "Instance", &bare, before),
            Hold::Overlooked,
            "created after the deletion"
        );

        // Each Usage in a chain takes 30 s. Kubernetes or Crossplane's Usages delete the resources
        // that a Usage protects.
        let later = Some("2026-01-01T10:10:00Z");
        let attempted = json!({"annotations": {ATTEMPTED: "Background", SLOT: "namespace"}});
        for (metadata, deleted) in [(&bare, later), (&bare, None), (&attempted, soon)] {
            assert_eq!(
                state(OVERLOOKED * 60, "Object", metadata, deleted),
                Hold::Unasked,
                "{metadata}"
            );
        }
        let composite = json!({"annotations": {}});
        assert_eq!(state(OVERLOOKED * 2, "XEnvironment", &composite, soon), Hold::Unasked);
    }
}
