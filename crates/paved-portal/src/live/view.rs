//! An environment as clients see it.

use std::collections::BTreeMap;

use function_paved_road::compose::{self, ResourceStatus};
use kube::api::DynamicObject;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use paved_client::environment::Environment;

/// An environment: what it is, and how it fares.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Environment)]
pub(crate) struct View {
    pub(crate) api_version: String,
    pub(crate) kind: String,
    /// The kind's plural name, as it stands in paths.
    pub(crate) plural: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) uid: String,
    /// Changes whenever the object does; an update names it.
    pub(crate) resource_version: String,
    /// RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) created_at: Option<String>,
    /// RFC 3339; since then it is being deleted.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) deleted_at: Option<String>,
    /// The login of whoever it belongs to.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) owner: Option<String>,
    pub(crate) labels: BTreeMap<String, String>,
    /// Pending, Provisioning, Ready, Failed, Deleting, Paused, OutOfSync (it works as it did, and Crossplane cannot bring it in step with its spec), a reason for which its spec is refused, or an API's own word.
    pub(crate) phase: String,
    /// Whether it is ready as its newest spec asks for.
    pub(crate) ready: bool,
    /// Whether something failed or is refused: it will not become ready by itself.
    pub(crate) failed: bool,
    /// What it waits for, or what failed, in a sentence.
    pub(crate) message: String,
    /// How many parts are ready, of how many: `4/6`; since it is being deleted, how many are gone.
    pub(crate) progress: String,
    /// Where people reach it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) endpoint: Option<String>,
    /// The Composition that it was given.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) composition: Option<String>,
    /// Everything that it is made of.
    pub(crate) parts: Vec<Part>,
    /// What deleting it deletes and keeps. Absent where its template is of an older schema revision.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) on_deletion: Option<OnDeletion>,
    /// The kind's own status fields.
    #[schema(value_type = Object)]
    pub(crate) status: BTreeMap<String, Value>,
}

/// A part of an environment.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Part {
    /// Its permanent name in the environment.
    pub(crate) slot: String,
    pub(crate) kind: String,
    /// Its object's name in the cluster.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) name: Option<String>,
    /// Its name or id in the cloud.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) external_name: Option<String>,
    pub(crate) ready: bool,
    /// RFC 3339: since when it has been so.
    pub(crate) since: String,
    /// What it is doing, where it is not as it should be.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) reason: Option<String>,
    /// Where its provider refused something, the provider's own words.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) message: Option<String>,
}

impl From<ResourceStatus> for Part {
    fn from(status: ResourceStatus) -> Self {
        let ResourceStatus { slot, kind, name, external_name, ready, since, reason, message } = status;
        Self { slot, kind, name, external_name, ready, since, reason, message }
    }
}

/// What deleting an environment deletes and keeps.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize, ToSchema)]
pub(crate) struct OnDeletion {
    /// What is deleted.
    pub(crate) deletes: Vec<Deleted>,
    /// What stays. In a cloud it may go on costing money.
    pub(crate) keeps: Vec<Kept>,
}

/// A resource that is deleted with its environment.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Deleted {
    /// Its permanent name in the environment.
    pub(crate) slot: String,
    pub(crate) kind: String,
    /// Its name or id in the cloud, or in its cluster.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) name: Option<String>,
    /// Whether people's data is deleted with it.
    pub(crate) has_data: bool,
}

/// A resource that stays when its environment is deleted, or what stays of one that is deleted.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize, ToSchema)]
pub(crate) struct Kept {
    /// The resource's permanent name in the environment.
    pub(crate) slot: String,
    /// The kind of what stays, such as Bucket or Snapshot.
    pub(crate) kind: String,
    /// The name or id of what stays.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) name: Option<String>,
    /// Until when it stays, in words that follow "until".
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) until: Option<String>,
}

impl From<compose::OnDeletion> for OnDeletion {
    fn from(told: compose::OnDeletion) -> Self {
        let deletes = told
            .deletes
            .into_iter()
            .map(|compose::Deleted { slot, kind, name, has_data }| Deleted { slot, kind, name, has_data });
        let keeps = told.keeps.into_iter().map(|compose::Kept { slot, kind, name, until }| Kept {
            slot,
            kind,
            name,
            until,
        });
        Self { deletes: deletes.collect(), keeps: keeps.collect() }
    }
}

/// What is left of an environment while it goes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Left {
    /// Those that the portal sees.
    pub(crate) parts: Vec<Part>,
    /// How many are not known to be gone.
    pub(crate) count: usize,
    /// How many there were.
    pub(crate) of: usize,
}

impl View {
    /// Reads an object, whose kind has this plural.
    pub(crate) fn of(object: &DynamicObject, plural: &str) -> Self {
        let seen = Environment::of(object);
        let metadata = &object.metadata;
        let api_version = object.types.as_ref().map(|types| types.api_version.clone()).unwrap_or_default();
        Self {
            api_version,
            plural: plural.to_owned(),
            resource_version: metadata.resource_version.clone().unwrap_or_default(),
            created_at: seen.created.map(|time| time.to_string()),
            deleted_at: seen.deleted.map(|time| time.to_string()),
            owner: seen.owner.clone(),
            labels: metadata.labels.clone().unwrap_or_default(),
            phase: seen.word().to_owned(),
            ready: seen.is_ready() && seen.is_current(),
            failed: seen.mark() == paved_client::environment::Mark::Bad,
            message: seen.sentence().to_owned(),
            progress: progress(&seen),
            endpoint: seen.endpoint(),
            composition: seen.composition.clone(),
            kind: seen.kind,
            namespace: seen.namespace,
            name: seen.name,
            uid: seen.uid,
            parts: seen.parts.into_iter().map(Part::from).collect(),
            on_deletion: seen.on_deletion.map(OnDeletion::from),
            status: seen.fields,
        }
    }

    /// Shows what is left of it while it goes: then its own status says nothing of its parts any more.
    pub(crate) fn with_left(mut self, left: &Left) -> Self {
        let Left { parts, count, of } = left;
        let unseen = match count.saturating_sub(parts.len()) {
            0 => String::new(),
            unseen => format!("; the portal does not see {unseen} of them"),
        };
        self.progress = format!("{}/{of}", of.saturating_sub(*count));
        self.message = format!("is being deleted: {count} of {of} parts are left{unseen}");
        self.parts.clone_from(parts);
        self
    }
}

/// How far it is. Of what is being deleted nothing is gone until it was looked at.
fn progress(seen: &Environment) -> String {
    match seen.progress.split_once('/') {
        Some((_, of)) if seen.deleted.is_some() => format!("0/{of}"),
        _ => seen.progress.clone(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_ready_is_not_gone() {
        let mut object: DynamicObject = serde_json::from_value(
            json!({"apiVersion": "platform.acme.io/v1alpha1", "kind": "StockPool", "metadata": {}, "status": {"progress": "3/7"}}),
        )
        .unwrap();
        assert_eq!(View::of(&object, "stockpools").progress, "3/7");
        object.metadata.deletion_timestamp =
            Some(serde_json::from_value(json!("2026-01-01T10:00:00Z")).unwrap());
        assert_eq!(View::of(&object, "stockpools").progress, "0/7");
        object.data["status"] = json!({});
        assert_eq!(View::of(&object, "stockpools").progress, "");
    }
}
