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
    let metadata = &found.object.metadata;
    let name = metadata.name.as_deref().unwrap_or_default();
    let params = DeleteParams {
        propagation_policy: Some(PropagationPolicy::Foreground),
        preconditions: Some(Preconditions { uid: metadata.uid.clone(), resource_version: None }),
        ..DeleteParams::default()
    };
    let api = found.kind.api(&cluster.client, metadata.namespace.as_deref());
    match api.delete(name, &params).await {
        Ok(()) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        Err(error) => {
            let title = Environment::from_object(&found.object).title();
            Err(cluster.explain(&error, &format!("delete {title}")))
        }
    }
}
