//! An environment in the format for clients.

use std::collections::BTreeMap;

use function_paved_road::apis::gpu_workspace::{has_no_ssh_key, is_closed_to_ssh};
use function_paved_road::power::PowerState;
use function_paved_road::status::{self, ResourceStatus};
use kube::api::DynamicObject;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use paved_client::budget::Holder;
use paved_client::environment::{self, Environment};
use paved_client::lifecycle::cannot_stop;

use super::cause::{Cause, Diagnosis};
use super::lifecycle::{Expiring, Lifecycle, Price};

/// An environment and its state.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Environment)]
#[expect(clippy::struct_excessive_bools, reason = "each is an independent fact")]
pub(crate) struct View {
    pub(crate) api_version: String,
    pub(crate) kind: String,
    /// The plural name of the kind, as in paths.
    pub(crate) plural: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) uid: String,
    /// The version of the object. An update needs the version.
    pub(crate) resource_version: String,
    /// Time in RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) created_at: Option<String>,
    /// Time in RFC 3339 at which the deletion was requested.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) deleted_at: Option<String>,
    /// The login of the owner.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) owner: Option<String>,
    pub(crate) labels: BTreeMap<String, String>,
    /// Pending, Provisioning, Ready, Failed, Deleting, Paused or OutOfSync, the reason of a
    /// rejected spec, or a phase of one API. OutOfSync: the environment works, but Crossplane
    /// cannot apply its spec.
    pub(crate) phase: String,
    /// Whether the environment is ready for its latest spec.
    pub(crate) ready: bool,
    /// Whether a resource failed or the spec is rejected. Such an environment needs a change to
    /// become ready.
    pub(crate) failed: bool,
    /// The reason why the environment waits or failed, in one sentence.
    pub(crate) message: String,
    /// The reason why it is not ready, unless it is only being created.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) diagnosis: Option<Diagnosis>,
    /// The number of ready resources, of all: `4/6`. During a deletion, the number of deleted
    /// resources.
    pub(crate) progress: String,
    /// The address for users.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) endpoint: Option<String>,
    /// Whether the machine is unreachable by SSH because no network is allowed. The address is then
    /// a command that opens a session at AWS.
    pub(crate) ssh_closed: bool,
    /// Whether the machine has no SSH key, so that users connect by a session at AWS.
    pub(crate) ssh_keyless: bool,
    /// The Composition of the environment.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) composition: Option<String>,
    /// All resources of the environment.
    pub(crate) parts: Vec<Part>,
    /// The effect of a deletion. Absent if the Composition uses an older schema revision.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) on_deletion: Option<OnDeletion>,
    /// Running, Stopped, Starting, Stopping or Unknown. Absent if the Composition uses an older
    /// schema revision.
    #[schema(value_type = Option<String>)]
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) power: Option<PowerState>,
    /// The end and the last stop. Absent if the Composition uses an older schema revision.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) lifecycle: Option<Lifecycle>,
    /// The warning before the expiry, from the first warning on.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) expiring: Option<Expiring>,
    /// The estimated price. Absent if it is not known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) price: Option<Price>,
    /// Its part in the sum of its namespace, for budgets.
    #[serde(skip)]
    pub(crate) holder: Option<Holder>,
    /// Why the environment cannot be stopped, in words. Absent if it can be stopped.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) cannot_stop: Option<&'static str>,
    /// Whether the annotation `crossplane.io/paused` stops the reconciliation. Requests to extend,
    /// stop or start have no effect then.
    pub(crate) paused: bool,
    /// The status fields of the kind.
    #[schema(value_type = Object)]
    pub(crate) status: BTreeMap<String, Value>,
}

/// A resource of an environment.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Part {
    /// The slot: the permanent name of the resource in the environment.
    pub(crate) slot: String,
    pub(crate) kind: String,
    /// Name of the object in the cluster.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) name: Option<String>,
    /// Name or id of the resource in the cloud.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) external_name: Option<String>,
    pub(crate) ready: bool,
    /// Time in RFC 3339 of the last change of state.
    pub(crate) since: String,
    /// The reason why the resource is not ready.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) reason: Option<String>,
    /// The provider's message, if the provider rejected a request.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) message: Option<String>,
    /// The reason why it is not ready, or why a change of it failed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) cause: Option<Cause>,
}

impl From<ResourceStatus> for Part {
    fn from(status: ResourceStatus) -> Self {
        let ResourceStatus {
            slot,
            kind,
            name,
            external_name,
            ready,
            since,
            reason,
            message,
            cause,
        } = status;
        let names: Vec<&str> =
            [&name, &external_name].into_iter().filter_map(Option::as_deref).collect();
        let cause =
            cause.map(|cause| Cause::new(cause, message.as_deref().unwrap_or_default(), &names));
        Self { slot, kind, name, external_name, ready, since, reason, message, cause }
    }
}

/// The effect of deleting an environment.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize, ToSchema)]
pub(crate) struct OnDeletion {
    /// The resources that are deleted.
    pub(crate) deletes: Vec<Deleted>,
    /// The resources that are kept. The cloud may bill them.
    pub(crate) keeps: Vec<Kept>,
}

/// A resource that is deleted with its environment.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Deleted {
    /// The slot: the permanent name of the resource in the environment.
    pub(crate) slot: String,
    pub(crate) kind: String,
    /// Name or id of the resource in the cloud or in its cluster.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) name: Option<String>,
    /// Whether users' data is deleted with the resource.
    pub(crate) has_data: bool,
}

/// A resource that is kept when its environment is deleted, or a remainder of a deleted resource.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize, ToSchema)]
pub(crate) struct Kept {
    /// The slot: the permanent name of the resource in the environment.
    pub(crate) slot: String,
    /// The kind that is kept, for example Bucket or Snapshot.
    pub(crate) kind: String,
    /// Name or id of the kept resource.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) name: Option<String>,
    /// The end of the retention, in words that follow "until".
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) until: Option<String>,
}

impl From<status::OnDeletion> for OnDeletion {
    fn from(told: status::OnDeletion) -> Self {
        let deletes =
            told.deletes.into_iter().map(|status::Deleted { slot, kind, name, has_data }| {
                Deleted { slot, kind, name, has_data }
            });
        let keeps = told.keeps.into_iter().map(|status::Kept { slot, kind, name, until }| Kept {
            slot,
            kind,
            name,
            until,
        });
        Self { deletes: deletes.collect(), keeps: keeps.collect() }
    }
}

/// The remaining resources of an environment during its deletion.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DeletionProgress {
    /// The resources that the portal can read.
    pub(crate) parts: Vec<Part>,
    /// The number of resources that are not known to be deleted.
    pub(crate) count: usize,
    /// The total number of resources.
    pub(crate) of: usize,
}

impl View {
    /// Reads an object of the kind with this plural.
    pub(crate) fn from_object(object: &DynamicObject, plural: &str) -> Self {
        let seen = Environment::from_object(object);
        let metadata = &object.metadata;
        let endpoint = seen.endpoint();
        let slots = seen.parts.iter().map(|part| part.slot.as_str());
        let (expiring, paused) = (Expiring::of(&seen), seen.is_paused());
        let cannot_stop = cannot_stop(&seen, object);
        let holder = Holder::from_environment(&seen);
        let api_version =
            object.types.as_ref().map(|types| types.api_version.clone()).unwrap_or_default();
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
            diagnosis: seen.diagnosis().map(|found| diagnosis(found, &seen)),
            progress: progress(&seen),
            ssh_closed: endpoint.is_some() && is_closed_to_ssh(&seen.kind, slots),
            ssh_keyless: has_no_ssh_key(&seen.kind, &object.data["spec"]),
            endpoint,
            composition: seen.composition.clone(),
            kind: seen.kind,
            namespace: seen.namespace,
            name: seen.name,
            uid: seen.uid,
            parts: seen.parts.into_iter().map(Part::from).collect(),
            on_deletion: seen.on_deletion.map(OnDeletion::from),
            power: seen.power,
            lifecycle: seen.lifecycle.map(Lifecycle::from),
            expiring,
            price: seen.price.map(Price::from),
            holder,
            cannot_stop,
            paused,
            status: seen.fields,
        }
    }

    /// Shows the remaining resources of a deletion. The environment's own status no longer reflects
    /// them.
    pub(crate) fn with_deletion_progress(mut self, left: &DeletionProgress) -> Self {
        let DeletionProgress { parts, count, of } = left;
        let unseen = match count.saturating_sub(parts.len()) {
            0 => String::new(),
            unseen => format!("; the portal does not see {unseen} of them"),
        };
        self.progress = format!("{}/{of}", of.saturating_sub(*count));
        self.message = format!("is being deleted: {count} of {of} resources are left{unseen}");
        self.parts.clone_from(parts);
        self
    }
}

/// The reason why an environment is not ready, with its texts.
fn diagnosis(found: environment::Diagnosis, seen: &Environment) -> Diagnosis {
    let part = seen.parts.iter().find(|part| Some(&part.slot) == found.slot.as_ref());
    let cause = match part.cloned().map(Part::from).and_then(|part| part.cause) {
        // Equal to the cause of the resource.
        Some(of_part) => of_part,
        None => Cause::new(found.cause, &found.message, &[&seen.name, &seen.namespace]),
    };
    Diagnosis { cause, slot: found.slot, from: found.from.map(|time| time.to_string()) }
}

/// The progress. During a deletion, no resource counts as deleted before it was read.
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
    fn diagnosis_is_of_the_first_failed_part() {
        let object: DynamicObject = serde_json::from_value(json!({
            "apiVersion": "platform.acme.io/v1alpha1", "kind": "GpuDevWorkspaceClaim", "metadata": {"name": "ada"},
            "status": {"phase": "Failed", "resources": [
                {"slot": "disk", "kind": "Volume", "ready": false, "reason": "Failed", "message": "AccessDenied",
                    "since": "2026-01-01T10:00:40Z"},
                {"slot": "instance", "kind": "Instance", "ready": false, "reason": "Failed",
                    "message": "VcpuLimitExceeded: none left", "since": "2026-01-01T10:00:20Z"},
            ]},
        }))
        .unwrap();
        let view = View::from_object(&object, "gpudevworkspaceclaims");
        let told = view.diagnosis.unwrap();
        assert_eq!((told.slot.as_deref(), told.from), (Some("instance"), None));
        assert_eq!(Some(&told.cause), view.parts[1].cause.as_ref());
        assert_eq!(told.cause.headline, "Quota exceeded");
        assert!(told.cause.remediation.contains("higher quota"), "{}", told.cause.remediation);
    }

    #[test]
    fn power_end_and_price_are_those_of_the_status() {
        let mut object: DynamicObject = serde_json::from_value(json!({
            "apiVersion": "platform.acme.io/v1alpha1", "kind": "GpuDevWorkspaceClaim", "metadata": {"name": "ada"},
            "status": {"phase": "Stopped", "power": "Stopped", "lifecycle": {
                "expiresAt": "2026-01-01T10:00:00Z", "deletesAt": "2026-01-15T10:00:00Z", "maximum": "14d",
                "ttlFrom": "Claim", "stoppedAt": "2026-01-01T10:00:00Z", "stopReason": "Expired",
                "warnedAt": "2026-01-01T09:30:00Z"},
                "estimatedHourlyUSD": "0.542", "estimatedStoppedHourlyUSD": "0.011", "priceAsOf": "2025-11-01",
                "conditions": [{"type": "Expiring", "status": "True", "reason": "Expired", "message": "has expired"}]},
        }))
        .unwrap();
        let shown = |object: &DynamicObject| {
            serde_json::to_value(View::from_object(object, "gpudevworkspaceclaims")).unwrap()
        };
        let view = shown(&object);
        assert_eq!((&view["power"], &view["paused"]), (&json!("Stopped"), &json!(false)));
        assert_eq!(view["lifecycle"], object.data["status"]["lifecycle"]);
        assert_eq!(view["expiring"], json!({"reason": "Expired", "message": "has expired"}));
        assert_eq!(
            view["price"],
            json!({"hourlyUSD": "0.542", "stoppedHourlyUSD": "0.011", "asOf": "2025-11-01"})
        );
        object.data["status"] = json!({"phase": "Ready", "conditions": [
            {"type": "Expiring", "status": "False", "reason": "NotExpiring", "message": ""}]});
        let view = shown(&object);
        for absent in ["power", "lifecycle", "expiring", "price", "cannotStop"] {
            assert!(view.get(absent).is_none(), "{absent}");
        }
    }

    #[test]
    fn vcluster_says_why_it_cannot_be_stopped() {
        let object: DynamicObject = serde_json::from_value(json!({
            "apiVersion": "platform.acme.io/v1alpha1", "kind": "Environment", "metadata": {"name": "preview"},
            "spec": {"parameters": {"type": "vcluster"}},
        }))
        .unwrap();
        let view = View::from_object(&object, "environments");
        assert!(
            view.cannot_stop.is_some_and(|reason| reason.contains("virtual cluster")),
            "{view:?}"
        );
    }

    #[test]
    fn progress_of_a_deletion_starts_at_zero() {
        let mut object: DynamicObject = serde_json::from_value(
            json!({"apiVersion": "platform.acme.io/v1alpha1", "kind": "StockPool", "metadata": {}, "status": {"progress": "3/7"}}),
        )
        .unwrap();
        assert_eq!(View::from_object(&object, "stockpools").progress, "3/7");
        object.metadata.deletion_timestamp =
            Some(serde_json::from_value(json!("2026-01-01T10:00:00Z")).unwrap());
        assert_eq!(View::from_object(&object, "stockpools").progress, "0/7");
        object.data["status"] = json!({});
        assert_eq!(View::from_object(&object, "stockpools").progress, "");
    }
}
