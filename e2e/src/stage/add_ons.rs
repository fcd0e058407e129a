//! Argo CD and Knative inside virtual clusters, which are one cluster behind the scenes: they can
//! be installed by one at a time.

use anyhow::Result;
use serde_json::{Value, json};
use tokio::sync::OwnedMutexGuard;

use crate::environment::{Environment, is_ready};

/// The turn to have add-ons inside virtual clusters: it ends when this is dropped.
pub struct AddOns {
    pub(super) parameters: Value,
    pub(super) _turn: OwnedMutexGuard<()>,
}

impl AddOns {
    /// What an example has to be changed by to have them.
    pub fn change(&self) -> Value {
        json!({"spec": {"parameters": self.parameters}})
    }

    /// Gives them to an environment, and waits until they are there.
    pub async fn join(&self, environment: &Environment) -> Result<()> {
        environment.edit(&self.change()).await?;
        let with =
            |object: &Value| ["argocd", "gitops", "knative"].iter().all(|one| is_part(object, one));
        environment
            .until("ready with add-ons", |object| is_ready(object) && with(object))
            .await
            .map(drop)
    }

    /// Takes them from an environment, and waits until they are gone.
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

/// Whether an environment's status knows a part whose slot begins so.
pub fn is_part(object: &Value, slot: &str) -> bool {
    let parts = object["status"]["resources"].as_array().into_iter().flatten();
    parts.into_iter().any(|part| part["slot"].as_str().is_some_and(|name| name.starts_with(slot)))
}
