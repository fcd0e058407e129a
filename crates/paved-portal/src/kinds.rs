//! The kinds that this cluster serves, and their schemas.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use function_paved_road::apis::{APIS, AnyApi, Flavour};
use kube::api::{DynamicObject, ListParams};
use kube::core::ApiResource;
use paved_client::Failure;
use paved_client::cluster::{Api, Kind, Kinds, is_denied};
use serde_json::Value;

use super::clients::Clients;
use super::problem::Problem;

/// The cluster's kinds, as last read.
pub(super) struct Catalog {
    clients: Clients,
    /// The only watched namespace, if there is one.
    only: Option<String>,
    seen: RwLock<Arc<Discovered>>,
}

/// Kinds, and the schemas of their XRDs by the full name of the kind.
#[derive(Default)]
pub(super) struct Discovered {
    kinds: Option<Kinds>,
    schemas: BTreeMap<String, Value>,
}

impl Catalog {
    pub(super) fn new(clients: Clients, only: Option<String>) -> Self {
        Self { clients, only, seen: RwLock::default() }
    }

    /// The kinds, as last read.
    pub(super) fn seen(&self) -> Arc<Discovered> {
        Arc::clone(&self.seen.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads the kinds from the cluster.
    pub(super) async fn look(&self) -> Result<Arc<Discovered>, Failure> {
        let cluster = self.clients.own();
        let kinds = Kinds::ask(&cluster).await?;
        if let Some(kind) = self.left_out(&kinds).await {
            return Err(Failure::NoAccess {
                message: format!(
                    "{} does not list {kind}, but has not reported its removal",
                    cluster.server
                ),
                check: "whether the API server has just been started".to_owned(),
            });
        }
        let schemas = match definitions(&self.clients).await {
            Ok(definitions) => schemas(&kinds, &definitions),
            Err(error) => {
                tracing::warn!(error = %error, "could not read the XRDs: kinds keep their previous schemas");
                self.seen().schemas.clone()
            }
        };
        let seen = Arc::new(Discovered { kinds: Some(kinds), schemas });
        *self.seen.write().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&seen);
        Ok(seen)
    }

    /// A known kind that is missing in this list, but may still exist. A starting API server lists
    /// a group only after it knows the group. Only a 404 proves that a kind was removed. A kind
    /// that the portal may not list counts as removed.
    async fn left_out(&self, kinds: &Kinds) -> Option<String> {
        let client = self.clients.own().client;
        for kind in self.seen().all() {
            let name = kind.full_name();
            if kinds.all().iter().any(|one| one.full_name() == name) {
                continue;
            }
            match kind
                .api(&client, self.only.as_deref())
                .list(&ListParams::default().limit(1))
                .await
            {
                Err(error) if is_denied(&error) => {}
                Err(kube::Error::Api(status)) if status.code == 404 => {}
                _ => return Some(name),
            }
        }
        None
    }
}

impl Discovered {
    /// Whether the kinds have been read.
    pub(super) fn is_known(&self) -> bool {
        self.kinds.is_some()
    }

    /// All kinds.
    pub(super) fn all(&self) -> &[Kind] {
        self.kinds.as_ref().map_or(&[], Kinds::all)
    }

    /// The schema of a kind from its XRD.
    pub(super) fn schema(&self, kind: &Kind) -> Option<&Value> {
        self.schemas.get(&kind.full_name())
    }

    /// The only kind with this name.
    pub(super) fn called(&self, text: &str) -> Result<Kind, Problem> {
        let kinds = self.kinds.as_ref().ok_or_else(unknown)?;
        let mut found =
            kinds.called(text).map_err(|failure| Problem::not_found(failure.to_string()))?;
        if found.len() > 1 {
            let names: Vec<String> =
                found.iter().map(|kind| kind.full_name().to_lowercase()).collect();
            return Err(Problem::bad_request(format!(
                "{text} is the name of several kinds: use {}",
                names.join(" or ")
            )));
        }
        Ok(found.remove(0))
    }

    /// Finds the kind of a document.
    pub(super) fn for_document(&self, document: &Value) -> Result<Kind, Problem> {
        let kinds = self.kinds.as_ref().ok_or_else(unknown)?;
        let text = |key: &str| document[key].as_str().unwrap_or_default();
        if text("apiVersion").is_empty() && !text("kind").is_empty() {
            return self
                .called(text("kind"))
                .map_err(|problem| Problem::field("kind", problem.detail()));
        }
        let found = kinds.for_document(text("apiVersion"), text("kind"));
        found.cloned().map_err(|(field, message)| Problem::field(field, message))
    }

    /// Returns the kinds of an API that the cluster has, claims first.
    pub(super) fn for_api(&self, api: &'static dyn AnyApi) -> Vec<Kind> {
        let name = api.info().composite.kind;
        let is_it =
            |kind: &&Kind| kind.paved_api().is_some_and(|one| one.info().composite.kind == name);
        let mut kinds: Vec<Kind> = self.all().iter().filter(is_it).cloned().collect();
        kinds.sort_by_key(|kind| !is_claim(kind));
        kinds
    }

    /// The cluster's kinds of workspaces, claims first.
    pub(super) fn workspaces(&self) -> Vec<Kind> {
        api(WORKSPACE).map(|api| self.for_api(api)).unwrap_or_default()
    }
}

/// The kind of a claim for a workspace.
const WORKSPACE: &str = "GpuDevWorkspaceClaim";

fn unknown() -> Problem {
    Problem::new(
        http::StatusCode::SERVICE_UNAVAILABLE,
        "The portal is still loading the cluster's kinds. Try again in a moment.",
    )
}

/// Whether users apply the kind as a claim. A claim names the Secret for its connection details.
pub(super) fn is_claim(kind: &Kind) -> bool {
    kind.flavour() == Flavour::Claims
}

/// The field of a claim's spec with the name of the Secret for its connection details. Crossplane
/// adds it to claims. XRDs do not have it.
pub(super) const SECRET: &str = "writeConnectionSecretToRef";

/// The keys of the connection details in the Secret that a claim names. Empty for composites, and
/// for claims without connection details.
pub(super) fn connection_keys(kind: &Kind) -> &'static [&'static str] {
    let api = kind.paved_api().filter(|_| is_claim(kind));
    api.map(|api| api.info().connection_keys).unwrap_or_default()
}

/// The API with this kind of claim.
pub(super) fn api(claim: &str) -> Option<&'static dyn AnyApi> {
    APIS.iter().copied().find(|api| api.info().claim.kind == claim)
}

async fn definitions(clients: &Clients) -> kube::Result<Vec<DynamicObject>> {
    let resource = ApiResource {
        group: "apiextensions.crossplane.io".to_owned(),
        version: "v1".to_owned(),
        api_version: "apiextensions.crossplane.io/v1".to_owned(),
        kind: "CompositeResourceDefinition".to_owned(),
        plural: "compositeresourcedefinitions".to_owned(),
    };
    let api = Api::for_resource(&clients.own().client, None, &resource);
    Ok(api.list(&ListParams::default()).await?.items)
}

/// The schema of each kind's served version, from its XRD.
fn schemas(kinds: &Kinds, definitions: &[DynamicObject]) -> BTreeMap<String, Value> {
    let of = |kind: &Kind| {
        let defines = |definition: &&DynamicObject| {
            let spec = &definition.data["spec"];
            let named = |names: &str| spec[names]["kind"] == kind.name();
            spec["group"] == kind.resource.group.as_str() && (named("claimNames") || named("names"))
        };
        let versions = definitions.iter().find(defines)?.data["spec"]["versions"].as_array()?;
        let version =
            versions.iter().find(|version| version["name"] == kind.resource.version.as_str())?;
        Some((kind.full_name(), version["schema"]["openAPIV3Schema"].clone()))
    };
    kinds.all().iter().filter_map(of).filter(|(_, schema)| schema.is_object()).collect()
}
