//! Applying environments.

mod conflict;

use kube::api::{DynamicObject, Patch, PatchParams, ValidationDirective};
use serde_json::Value;

use crate::Failure;
use crate::cluster::{Cluster, Kind, lacks_rights, refusal};

/// The field manager of the command line.
pub const MANAGER: &str = "paved";

/// The maximum number of retries after a conflict with another write.
const TRIES: usize = 5;

/// An environment to apply.
pub struct Request<'a> {
    /// Its kind.
    pub kind: &'a Kind,
    /// Its namespace.
    pub namespace: &'a str,
    /// Its name.
    pub name: &'a str,
    /// The document.
    pub object: &'a Value,
    /// The object in the cluster, if it exists.
    pub live: Option<&'a DynamicObject>,
    /// The file, kind, namespace and name in errors.
    pub what: &'a str,
    /// Takes over fields of other managers.
    pub force: bool,
    /// Lets the API server check the request without storing it.
    pub dry_run: bool,
}

impl Request<'_> {
    /// Applies the document, and returns the object from the API server's response.
    pub async fn send(&self, cluster: &Cluster) -> Result<DynamicObject, Failure> {
        let api = self.kind.api(&cluster.client, Some(self.namespace));
        let params = PatchParams {
            dry_run: self.dry_run,
            force: self.force,
            field_manager: Some(MANAGER.to_owned()),
            field_validation: Some(ValidationDirective::Strict),
        };
        let mut tries = 0;
        loop {
            match api.patch(self.name, &params, &Patch::Apply(self.object)).await {
                Ok(object) => return Ok(object),
                Err(kube::Error::Api(status)) if conflict::is_one(&status) => {
                    return Err(conflict::explain(self.what, &status, self.live));
                }
                // Another client wrote at the same moment. The request is still valid.
                Err(kube::Error::Api(status)) if status.code == 409 && tries < TRIES => tries += 1,
                Err(kube::Error::Api(status))
                    if [400, 403, 409, 422].contains(&status.code) && !lacks_rights(&status) =>
                {
                    return Err(refusal(self.what, &status));
                }
                Err(error) => {
                    let (kind, namespace, name) = (self.kind.name(), self.namespace, self.name);
                    return Err(
                        cluster.explain(&error, &format!("apply {kind} {namespace}/{name}"))
                    );
                }
            }
        }
    }
}
