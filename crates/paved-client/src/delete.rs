//! Deletes environments, and lists the remaining resources of a deleted one.

mod managed;
mod parts;

use kube::api::{DeleteParams, Preconditions, PropagationPolicy};

use crate::Failure;
use crate::cluster::{Cluster, Found};
use crate::environment::Environment;
pub use managed::{ManagedKinds, ManagedObject, ManagedObjects};
pub use parts::{Parts, Remaining, composite};

/// Deletes this object only, not a newer one with the same name. The object remains until all its
/// resources are deleted.
pub async fn delete(cluster: &Cluster, found: &Found) -> Result<(), Failure> {
    send(cluster, found, None).await.map(drop)
}

/// The same, if the object still has its resource version. Returns whether it was deleted.
pub async fn delete_unchanged(cluster: &Cluster, found: &Found) -> Result<bool, Failure> {
    send(cluster, found, found.object.metadata.resource_version.clone()).await
}

/// Returns `false` if the object no longer has this uid or this version.
async fn send(cluster: &Cluster, found: &Found, version: Option<String>) -> Result<bool, Failure> {
    let is_pinned = version.is_some();
    let metadata = &found.object.metadata;
    let name = metadata.name.as_deref().unwrap_or_default();
    let params = DeleteParams {
        propagation_policy: Some(PropagationPolicy::Foreground),
        preconditions: Some(Preconditions { uid: metadata.uid.clone(), resource_version: version }),
        ..DeleteParams::default()
    };
    let api = found.kind.api(&cluster.client, metadata.namespace.as_deref());
    match api.delete(name, &params).await {
        Ok(()) => Ok(true),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(!is_pinned),
        Err(kube::Error::Api(status)) if status.code == 409 && is_pinned => Ok(false),
        Err(error) => {
            let title = Environment::from_object(&found.object).title();
            Err(cluster.explain(&error, &format!("delete {title}")))
        }
    }
}
