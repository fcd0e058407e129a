//! Argo CD and Knative inside virtual clusters. All virtual clusters share one cluster, so only one
//! environment at a time can have them.

use anyhow::Result;
use serde_json::{Value, json};
use tokio::sync::OwnedMutexGuard;

use crate::environment::{Environment, is_ready};

/// The lock for add-ons inside virtual clusters, held until this is dropped.
pub struct AddOns {
    pub(super) parameters: Value,
    pub(super) _turn: OwnedMutexGuard<()>,
}

impl AddOns {
    /// The change that adds them to an example.
    pub fn change(&self) -> Value {
        json!({"spec": {"parameters": self.parameters}})
    }

    /// Adds them to an environment, and waits until they are there.
    pub async fn join(&self, environment: &Environment) -> Result<()> {
        environment.edit(&self.change()).await?;
        let with =
            |object: &Value| ["argocd", "gitops", "knative"].iter().all(|one| is_part(object, one));
        environment
            .until("ready with add-ons", |object| is_ready(object) && with(object))
            .await
            .map(drop)
    }

    /// Removes them from an environment, and waits until they are gone.
    pub async fn leave(self, environment: &Environment) -> Result<()> {
        let without = json!({"gitops": null, "knative": null});
        environment.edit(&json!({"spec": {"parameters": without}})).await?;
        let with =
            |object: &Value| ["argocd", "gitops", "knative"].iter().any(|one| is_part(object, one));
        environment
            .until("ready without add-ons", |object| is_ready(object) && !with(object))
            .await
            .map(drop)
    }
}

/// Whether an environment's status has a resource in a slot with this prefix.
pub fn is_part(object: &Value, slot: &str) -> bool {
    let parts = object["status"]["resources"].as_array().into_iter().flatten();
    parts.into_iter().any(|part| part["slot"].as_str().is_some_and(|name| name.starts_with(slot)))
}
