//! The owner of a new environment is the user who applies it, as in the portal. An existing owner
//! stays.

use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use kube::api::{DynamicObject, PostParams};
use paved_client::apply::MANAGER;
use paved_client::cluster::{Api, Cluster};
use paved_client::environment::{OWNER, OWNER_LABEL};
use paved_client::owner::Owner;
use serde_json::{Map, Value};

use super::plan::Step;

/// The path of the owner in an object's metadata.
const PLACES: [(&str, &str); 2] = [("labels", OWNER_LABEL), ("annotations", OWNER)];

/// The user who applies.
#[derive(Default)]
pub(super) enum Caller {
    /// Not known yet.
    #[default]
    Unknown,
    Known(Option<Owner>),
}

impl Caller {
    /// Writes the caller as the owner of a new environment without an owner in the file. Writes an
    /// owner from an earlier apply again, because server-side apply would remove a missing field.
    pub(super) async fn mark(&mut self, step: &mut Step, cluster: &Cluster) {
        let written = PLACES.iter().any(|(place, key)| {
            step.object["metadata"][*place].get(key).is_some_and(|value| !value.is_null())
        });
        if written {
            return;
        }
        if let Some(live) = &step.live {
            let kept = kept(live);
            let metadata = &mut step.object["metadata"];
            for (place, key, value) in kept {
                if !metadata[place].is_object() {
                    metadata[place] = Value::Object(Map::new());
                }
                metadata[place][key] = value;
            }
            return;
        }
        if let Self::Unknown = self {
            *self = Self::Known(ask(cluster).await);
        }
        let Self::Known(Some(owner)) = self else { return };
        let spec = &step.object["spec"];
        let named = spec["parameters"]["owner"].as_str().or_else(|| spec["owner"].as_str());
        // A user may create an environment for another user.
        if named.is_none_or(|named| owner.is_called(named))
            && let Some(metadata) = step.object["metadata"].as_object_mut()
        {
            owner.mark(metadata);
        }
    }
}

/// Returns the kubeconfig's user as the API server knows it, or `None` if the API server does not
/// answer.
async fn ask(cluster: &Cluster) -> Option<Owner> {
    let reviews: Api<SelfSubjectReview> = Api::all(cluster.client.clone());
    let review =
        reviews.create(&PostParams::default(), &SelfSubjectReview::default()).await.ok()?;
    let user = review.status?.user_info?.username?;
    Some(user)
        .filter(|user| !user.is_empty() && user != "system:anonymous")
        .map(|user| Owner::from_kubernetes(&user))
}

/// The owner that this program applied before.
fn kept(live: &DynamicObject) -> Vec<(&'static str, &'static str, Value)> {
    let managed = live.metadata.managed_fields.iter().flatten();
    let ours: Vec<Value> = managed
        .filter(|entry| {
            entry.manager.as_deref() == Some(MANAGER) && entry.operation.as_deref() == Some("Apply")
        })
        .filter_map(|entry| entry.fields_v1.as_ref().map(|fields| fields.0.clone()))
        .collect();
    let metadata = serde_json::to_value(&live.metadata).unwrap_or_default();
    let places = PLACES.into_iter().filter(|(place, key)| {
        let is_ours = |fields: &Value| {
            let of = &fields["f:metadata"][format!("f:{place}")];
            of.get(format!("f:{key}")).is_some()
        };
        ours.iter().any(is_ours)
    });
    places
        .filter_map(|(place, key)| Some((place, key, metadata[place].get(key)?.clone())))
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    #[test]
    fn only_an_owner_that_this_program_applied_is_applied_again() {
        let live = |manager: &str| -> DynamicObject {
            serde_json::from_value(json!({"metadata": {
                "name": "a", "labels": {"owner": "ada"}, "annotations": {OWNER: "ada"},
                "managedFields": [{"manager": manager, "operation": "Apply", "fieldsType": "FieldsV1", "fieldsV1": {
                    "f:metadata": {"f:labels": {"f:owner": {}}, "f:annotations": {format!("f:{OWNER}"): {}}}}}]}}))
            .unwrap()
        };
        let ours = kept(&live(MANAGER));
        assert_eq!(ours, [("labels", "owner", json!("ada")), ("annotations", OWNER, json!("ada"))]);
        assert!(kept(&live("paved-portal")).is_empty());
    }
}
