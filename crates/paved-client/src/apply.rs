//! Applying environments.

mod conflict;
mod takeover;

use kube::api::{DynamicObject, Patch, PatchParams, ValidationDirective};
use kube::core::Status;
use serde_json::Value;

use crate::Failure;
use crate::cluster::{Api, Cluster, Kind, lacks_rights, refusal};
pub use takeover::kept_by_kubectl;
use takeover::{LAST_APPLIED, Takeover};

/// The field manager of the command line.
pub const MANAGER: &str = "paved";

/// The maximum number of retries after a conflict with another write.
const TRIES: usize = 5;

/// Whether an annotation is the bookkeeping of `kubectl apply`. It has no effect on an environment.
pub fn is_bookkeeping(annotation: &str) -> bool {
    annotation == LAST_APPLIED
}

/// Whether `kubectl apply` owns fields of an object. An apply takes them over.
pub fn is_taken_over(live: &DynamicObject) -> bool {
    Takeover::of(live).is_some()
}

/// Whether another client wrote at the same moment.
fn is_outdated(status: &Status) -> bool {
    status.code == 409 && !conflict::is_one(status)
}

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
    /// Applies the document, and returns the object from the API server's response. Fields that
    /// `kubectl apply` set and the document lacks are removed, as `kubectl apply` would remove them.
    pub async fn send(&self, cluster: &Cluster) -> Result<DynamicObject, Failure> {
        let api = self.kind.api(&cluster.client, Some(self.namespace));
        let takeover_params = PatchParams { force: false, ..self.params() };
        let mut tries = 0;
        loop {
            // The first apply reports conflicts, before any field changes its manager.
            let applied = self.apply(&api, cluster).await?;
            let Some(takeover) = Takeover::of(&applied) else { return Ok(applied) };
            let patch = match self.live.filter(|_| self.dry_run) {
                // A dry run cannot store the takeover, so one patch has the effect of both steps.
                Some(live) => takeover.rehearsal(self.object, live, &applied),
                None => takeover.patch(&applied),
            };
            match api.patch(self.name, &takeover_params, &Patch::Merge(patch)).await {
                Ok(rehearsed) if self.dry_run => return Ok(rehearsed),
                Ok(_) => {}
                Err(kube::Error::Api(status)) if status.code == 409 && tries < TRIES => tries += 1,
                Err(error) => return Err(self.explain(error, cluster)),
            }
        }
    }

    /// Applies the document if the object still has this resource version. `None` if another client
    /// wrote in between.
    pub async fn send_to_version(
        &self,
        version: &str,
        cluster: &Cluster,
    ) -> Result<Option<DynamicObject>, Failure> {
        let api = self.kind.api(&cluster.client, Some(self.namespace));
        let mut object = self.object.clone();
        object["metadata"]["resourceVersion"] = version.into();
        match api.patch(self.name, &self.params(), &Patch::Apply(&object)).await {
            Ok(applied) if Takeover::of(&applied).is_some() => self.send(cluster).await.map(Some),
            Ok(applied) => Ok(Some(applied)),
            Err(kube::Error::Api(status)) if is_outdated(&status) => Ok(None),
            Err(error) => Err(self.explain(error, cluster)),
        }
    }

    /// Sends the document, and retries after concurrent writes.
    async fn apply(
        &self,
        api: &Api<DynamicObject>,
        cluster: &Cluster,
    ) -> Result<DynamicObject, Failure> {
        let mut tries = 0;
        loop {
            match api.patch(self.name, &self.params(), &Patch::Apply(self.object)).await {
                Ok(object) => return Ok(object),
                // Another client wrote at the same moment. The request is still valid.
                Err(kube::Error::Api(status)) if is_outdated(&status) && tries < TRIES => {
                    tries += 1;
                }
                Err(error) => return Err(self.explain(error, cluster)),
            }
        }
    }

    fn params(&self) -> PatchParams {
        PatchParams {
            dry_run: self.dry_run,
            force: self.force,
            field_manager: Some(MANAGER.to_owned()),
            field_validation: Some(ValidationDirective::Strict),
        }
    }

    fn explain(&self, error: kube::Error, cluster: &Cluster) -> Failure {
        match error {
            kube::Error::Api(status) if conflict::is_one(&status) => {
                conflict::explain(self.what, &status, self.live)
            }
            kube::Error::Api(status)
                if [400, 403, 409, 422].contains(&status.code) && !lacks_rights(&status) =>
            {
                refusal(self.what, &status)
            }
            error => {
                let (kind, namespace, name) = (self.kind.name(), self.namespace, self.name);
                cluster.explain(&error, &format!("apply {kind} {namespace}/{name}"))
            }
        }
    }
}
