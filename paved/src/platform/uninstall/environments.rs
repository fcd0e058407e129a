//! The check that no environment exists: Kubernetes deletes every environment with its kind, and
//! ignores the deletion order of resources.

use std::collections::BTreeSet;

use crossplane::names::{CLAIM_NAME, CLAIM_NAMESPACE};
use kube::api::{DynamicObject, ListParams, ObjectMeta};
use kube::core::ApiResource;
use paved_client::cluster::Cluster;
use serde_json::Value;

use super::few;
use super::kinds::api;
use crate::failure::Failure;
use crate::style::harmless_name;

/// An environment that prevents the removal.
struct Blocker {
    /// Kind, namespace and name.
    title: String,
    /// The command that deletes it.
    command: String,
}

/// Fails if an environment of these XRDs exists in any namespace.
pub(super) async fn check(cluster: &Cluster, definitions: &[DynamicObject]) -> Result<(), Failure> {
    let mut all = Vec::new();
    for definition in definitions {
        all.extend(of_definition(cluster, definition).await?);
    }
    let Some(first) = all.first() else { return Ok(()) };
    let titles: Vec<String> = all.iter().map(|one| one.title.clone()).collect();
    let count = if all.len() == 1 {
        "1 environment exists".to_owned()
    } else {
        format!("{} environments exist", all.len())
    };
    Err(Failure::Usage(format!(
        "{count}: {}. Kubernetes would delete them with their kinds, in a wrong order. \
         Nothing was deleted. Delete them first: {}",
        few(&titles),
        first.command
    )))
}

/// The environments of an XRD: claims, and composites without a claim of the list.
async fn of_definition(
    cluster: &Cluster,
    definition: &DynamicObject,
) -> Result<Vec<Blocker>, Failure> {
    let spec = &definition.data["spec"];
    let mut all = Vec::new();
    let mut claims = BTreeSet::new();
    if spec["claimNames"].is_object() {
        let resource = resource(spec, &spec["claimNames"]);
        for object in list(cluster, &resource).await? {
            claims.insert((object.namespace.clone(), object.name.clone()));
            all.push(blocker(&resource, &object, true));
        }
    }
    let resource = resource(spec, &spec["names"]);
    for object in list(cluster, &resource).await? {
        let label = |name: &str| object.labels.as_ref()?.get(name).cloned();
        let claim = (label(CLAIM_NAMESPACE), label(CLAIM_NAME));
        if !claims.contains(&claim) {
            all.push(blocker(&resource, &object, object.namespace.is_some()));
        }
    }
    Ok(all)
}

/// The kind with these names, in the first version of an XRD.
fn resource(spec: &Value, names: &Value) -> ApiResource {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (group, version) = (text(&spec["group"]), text(&spec["versions"][0]["name"]));
    ApiResource {
        api_version: format!("{group}/{version}"),
        group,
        version,
        kind: text(&names["kind"]),
        plural: text(&names["plural"]),
    }
}

/// The metadata of all objects. A kind that the cluster does not serve yet, or not any more, has
/// none.
async fn list(cluster: &Cluster, resource: &ApiResource) -> Result<Vec<ObjectMeta>, Failure> {
    match api(cluster, resource).list_metadata(&ListParams::default()).await {
        Ok(list) => Ok(list.items.into_iter().map(|one| one.metadata).collect()),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(Vec::new()),
        Err(error) => Err(cluster.explain(&error, &format!("list {}", resource.plural)).into()),
    }
}

fn blocker(resource: &ApiResource, object: &ObjectMeta, is_for_users: bool) -> Blocker {
    let name = harmless_name(object.name.as_deref().unwrap_or_default());
    let namespace = harmless_name(object.namespace.as_deref().unwrap_or_default());
    let kind = &resource.kind;
    if is_for_users {
        let command = format!("paved delete {}/{name} -n {namespace} --wait", kind.to_lowercase());
        return Blocker { title: format!("{kind} {namespace}/{name}"), command };
    }
    let command = format!("kubectl delete {}.{} {name}", resource.plural, resource.group);
    Blocker { title: format!("{kind} {name}"), command }
}
