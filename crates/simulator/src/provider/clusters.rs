//! Finds the cluster of a resource, and waits for its prerequisites: credentials, a namespace, a
//! kind.

use serde_json::Value;

use super::is_ready;
use crate::core::{World, secret_ref};
use crossplane::api_version::group_of;
use crossplane::json::{at, text};

/// Kinds that a chart installs, by group and name. They are unknown before the installation.
const BROUGHT: [(&str, &str, &str); 3] = [
    ("argoproj.io", "Application", "argo-cd"),
    ("operator.knative.dev", "KnativeServing", "knative-operator"),
    ("operator.knative.dev", "KnativeEventing", "knative-operator"),
];

/// A composed provider config must have its Secret before a resource can use it.
pub(super) fn await_config(object: &Value, world: &World) -> Result<(), String> {
    let Some(config) = config(object, world) else { return Ok(()) };
    let Some((namespace, name)) = credentials(config) else { return Ok(()) };
    let key = text(config, &["spec", "credentials", "secretRef", "key"]).unwrap_or_default();
    if world.secret_data(namespace, name).contains_key(key) {
        return Ok(());
    }
    let config = text(config, &["metadata", "name"]).unwrap_or_default();
    Err(format!("cannot get credentials of provider config {config:?}: secrets {name:?} not found"))
}

/// Crossplane's runtime records the name of a resource's provider config in a label of a
/// ProviderConfigUsage.
pub(super) fn track_config(object: &Value) -> Result<(), String> {
    const MAX_LABEL_LEN: usize = 63;
    match text(object, &["spec", "providerConfigRef", "name"])
        .filter(|name| name.len() > MAX_LABEL_LEN)
    {
        None => Ok(()),
        Some(name) => Err(format!(
            "connect failed: cannot track provider config usage: cannot apply ProviderConfigUsage: metadata.labels: \
             Invalid value: {name:?}: must be no more than {MAX_LABEL_LEN} characters"
        )),
    }
}

/// A connection Secret can be written only after its namespace exists.
pub(super) fn await_secret_namespace(object: &Value, world: &World) -> Result<(), String> {
    let Some((namespace, _)) = secret_ref(object) else { return Ok(()) };
    await_namespace(&namespace, None, world)
        .map_err(|why| format!("cannot create or update connection secret: {why}"))
}

/// Waits for a namespace that a composed resource creates in a cluster. Other namespaces count as
/// existing.
pub(super) fn await_namespace(
    namespace: &str,
    cluster: Option<(&str, &str)>,
    world: &World,
) -> Result<(), String> {
    let makes = |object: &&Value| {
        let manifest = at(object, &["spec", "forProvider", "manifest"]).unwrap_or(&Value::Null);
        manifest["kind"] == "Namespace"
            && manifest["metadata"]["name"] == namespace
            && !is_observe_only(object)
            && self::cluster(object, world) == cluster
    };
    let Some(made) = world.resources().values().find(makes) else { return Ok(()) };
    let phase = text(made, &["status", "atProvider", "manifest", "status", "phase"]);
    (phase == Some("Active"))
        .then_some(())
        .ok_or_else(|| format!("namespaces {namespace:?} not found"))
}

/// Waits for a ready release of the chart that installs a kind. If no release of the chart exists,
/// the cluster of Crossplane counts as having the kind.
pub(super) fn await_kind(object: &Value, manifest: &Value, world: &World) -> Result<(), String> {
    let version = text(manifest, &["apiVersion"]).unwrap_or_default();
    let kind = text(manifest, &["kind"]).unwrap_or_default();
    let brought =
        BROUGHT.iter().find(|(group, brought, _)| group_of(manifest) == *group && kind == *brought);
    let Some((_, _, chart)) = brought else { return Ok(()) };
    let cluster = cluster(object, world);
    let mut releases = world.resources().values().filter(|one| {
        one["kind"] == "Release"
            && one["spec"]["forProvider"]["chart"]["name"] == **chart
            && self::cluster(one, world) == cluster
    });
    let first = releases.next();
    let known = first.is_none() && cluster.is_none();
    if known || first.into_iter().chain(releases).any(is_ready) {
        return Ok(());
    }
    Err(format!(
        "observe failed: cannot get object: no matches for kind {kind:?} in version {version:?}"
    ))
}

/// The cluster of a resource, by the Secret with the kubeconfig. `None` is the cluster of
/// Crossplane.
pub(super) fn cluster<'w>(object: &Value, world: &'w World) -> Option<(&'w str, &'w str)> {
    credentials(config(object, world)?)
}

/// Whether the provider only observes an external resource.
pub(super) fn is_observe_only(object: &Value) -> bool {
    let policies = at(object, &["spec", "managementPolicies"]).and_then(Value::as_array);
    policies.is_some_and(|all| all.iter().all(|policy| policy == "Observe"))
}

/// The composed provider config of a resource.
fn config<'w>(object: &Value, world: &'w World) -> Option<&'w Value> {
    let name = text(object, &["spec", "providerConfigRef", "name"])?;
    world.resources().values().find(|one| {
        text(one, &["kind"]).is_some_and(|kind| kind.ends_with("ProviderConfig"))
            && text(one, &["metadata", "name"]) == Some(name)
            && group_of(one) == group_of(object)
    })
}

/// The Secret of a provider config, by namespace and name. A namespaced config reads it in its own
/// namespace.
fn credentials(config: &Value) -> Option<(&str, &str)> {
    let reference = at(config, &["spec", "credentials", "secretRef"])?;
    let namespace =
        text(config, &["metadata", "namespace"]).or_else(|| text(reference, &["namespace"]))?;
    Some((namespace, text(reference, &["name"])?))
}
