//! Reads the environment as it is now, its composite, and the function's note on the environment's
//! first resource.

use function_paved_road::apis::{self, Flavour};
use function_paved_road::lifecycle::NOTE;
use function_paved_road::status::ResourceStatus;
use kube::api::DynamicObject;
use paved_client::cluster::{Cluster, Found, Kind, Reference, Served, is_denied};
use paved_client::delete::composite;
use paved_client::names::SLOT;
use serde::Deserialize;
use serde_json::Value;

use crate::store::Key;
use crate::verdict::Hold;

/// Kinds of resources that wrap another object.
const WRAPPER: &str = "Object";

/// An environment with the objects that decide about it.
pub(crate) struct Read {
    pub found: Found,
    /// The composite of a claim.
    pub composite: Option<DynamicObject>,
    /// The function's note.
    pub note: Option<String>,
}

/// Why an environment could not be read.
pub(crate) enum Unread {
    /// It is gone.
    Gone,
    /// It stays for this reason.
    Hold(Hold),
    /// The API server does not answer.
    Error(kube::Error),
}

impl From<kube::Error> for Unread {
    fn from(error: kube::Error) -> Self {
        if is_denied(&error) { Self::Hold(Hold::Denied) } else { Self::Error(error) }
    }
}

impl Read {
    /// Reads an environment. `uid` is the UID that a watch saw.
    pub async fn new(
        cluster: &Cluster,
        served: &Served,
        kind: Kind,
        key: &Key,
        uid: &str,
    ) -> Result<Self, Unread> {
        let api = kind.api(&cluster.client, Some(&key.namespace));
        let object = api.get_opt(&key.name).await?.ok_or(Unread::Gone)?;
        if object.metadata.uid.as_deref() != Some(uid) {
            return Err(Unread::Gone);
        }
        let found = Found { kind, object, listed: None };
        let is_claim = found.kind.flavour() == Flavour::Claims;
        let composite = if is_claim {
            let composite = composite(cluster, served, &found).await?;
            Some(composite.ok_or(Unread::Hold(Hold::NotFound))?)
        } else {
            None
        };
        let owner = composite.as_ref().unwrap_or(&found.object);
        let note = note(cluster, served, found.kind.name(), owner).await?;
        Ok(Self { found, composite, note })
    }

    /// The composite; the environment itself in the namespaced API.
    pub fn composite(&self) -> &DynamicObject {
        self.composite.as_ref().unwrap_or(&self.found.object)
    }
}

/// The function's note.
async fn note(
    cluster: &Cluster,
    served: &Served,
    kind: &str,
    composite: &DynamicObject,
) -> kube::Result<Option<String>> {
    let Some(api) = apis::for_environment_kind(kind) else { return Ok(None) };
    let first = api.info().first_slots;
    let namespace = composite.metadata.namespace.as_deref();
    for reference in candidates(composite, first) {
        let Some(api) = served.find(&cluster.client, &reference, namespace).await? else {
            continue;
        };
        let Some(resource) = api.get_opt(reference.name.as_str()).await? else { continue };
        let annotation = |name: &str| resource.metadata.annotations.as_ref()?.get(name);
        let is_first = annotation(SLOT).is_some_and(|slot| first.contains(&slot.as_str()));
        let note = annotation(NOTE).filter(|_| is_first && is_of(&resource, composite));
        if let Some(note) = note {
            return Ok(Some(note.clone()));
        }
    }
    Ok(None)
}

/// The resources that can be an environment's first one, as the status lists it.
fn candidates(composite: &DynamicObject, first: &[&str]) -> Vec<Reference> {
    let lines = composite.data.pointer("/status/resources").and_then(Value::as_array);
    let lines: Vec<ResourceStatus> = lines
        .into_iter()
        .flatten()
        .filter_map(|line| ResourceStatus::deserialize(line).ok())
        .filter(|line| first.contains(&line.slot.as_str()))
        .collect();
    let is_first = |reference: &Reference| {
        let name = Some(reference.name.as_str());
        let is_line =
            |line: &ResourceStatus| line.kind == reference.kind && line.name.as_deref() == name;
        reference.kind == WRAPPER || lines.iter().any(is_line)
    };
    Reference::all_of(&composite.data).into_iter().filter(is_first).collect()
}

/// Whether a resource belongs to a composite. Users of a namespace can write references.
fn is_of(resource: &DynamicObject, composite: &DynamicObject) -> bool {
    let mut owners = resource.metadata.owner_references.iter().flatten();
    let uid = composite.metadata.uid.as_deref();
    owners.any(|owner| owner.controller == Some(true) && uid == Some(&*owner.uid))
}
