//! Rights in the cluster that Crossplane runs in: for Crossplane, provider-kubernetes and
//! provider-helm. Resources inside clusters of environments need no rights here.

use std::collections::BTreeSet;

use anyhow::{Context, Result, bail};
use crossplane::api_version;
use function_paved_road::apis::Flavour;
use serde_json::{Value, json};

use super::rule::{Plurals, READ, Rights, WRITE, is_native};
use crate::composed::Composed;
use crate::workspace;

/// The rights of Crossplane for native resources, in addition to its own role, and for the
/// resources that the function requires. The function requires Namespaces before it creates one for
/// an environment. Crossplane watches required resources.
pub fn crossplane(composed: &[Composed]) -> Result<Value> {
    let plurals = super::plurals(workspace::root())?;
    let mut rights = Rights::default();
    for object in composed.iter().flat_map(Composed::objects).filter(|object| is_native(object)) {
        rights.allow(api_version::group_of(object), &plurals.for_object(object)?, &WRITE);
    }
    rights.allow("", "namespaces", &READ);
    let mut role = rights.role(
        "paved-road:aggregate-to-crossplane",
        "Manages the native resources of the namespaced API, and reads Namespaces for the function.",
    );
    role["metadata"]["labels"] = json!({"rbac.crossplane.io/aggregate-to-crossplane": "true"});
    Ok(role)
}

/// A role for provider-kubernetes in the claims API or the namespaced API, with a binding to the
/// service account `provider-kubernetes`.
pub fn provider_kubernetes(composed: &[Composed], flavour: Flavour) -> Result<Vec<Value>> {
    let plurals = super::plurals(workspace::root())?;
    let mut rights = Rights::default();
    for api in composed.iter().filter(|api| api.flavour == flavour) {
        rights = rights.and(objects(api, &plurals)?);
    }
    let name = format!("paved-road-provider-kubernetes-{flavour}");
    let about = format!("Manages objects in this cluster for the {flavour} API.");
    Ok(vec![rights.role(&name, &about), binding(&name, "provider-kubernetes")])
}

/// A role for provider-helm and virtual environments of both APIs, with a binding to the service
/// account `provider-helm`.
pub fn provider_helm(composed: &[Composed]) -> Result<Vec<Value>> {
    let mut rights = Rights::default();
    for api in composed {
        rights = rights.and(releases(api)?);
    }
    let name = "paved-road-provider-helm";
    let about = "Installs releases of the vcluster chart in this cluster.";
    Ok(vec![rights.role(name, about), binding(name, "provider-helm")])
}

/// A binding to a service account of a DeploymentRuntimeConfig.
fn binding(role: &str, account: &str) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": role},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": "crossplane-system"}],
    })
}

/// The rights of provider-kubernetes for the manifests in Objects. It gets a manifest, applies it
/// by patches (which also create it), and deletes it. It watches if the Object says so. Even for
/// observed objects, it compares by a dry run of a patch. Rights to Secrets are limited to their
/// names.
fn objects(api: &Composed, plurals: &Plurals) -> Result<Rights> {
    let mut rights = Rights::default();
    for object in at_home(api, "Object") {
        let wrapped = &object["spec"]["forProvider"]["manifest"];
        let mut verbs = vec!["get", "patch"];
        if object["spec"]["watch"] == true {
            verbs.extend(["list", "watch"]);
        }
        if object["spec"]["managementPolicies"] != json!(["Observe"]) {
            verbs.extend(["create", "delete"]);
        }
        let (group, resource) = (api_version::group_of(wrapped), plurals.for_object(wrapped)?);
        if wrapped["kind"] == "Secret" {
            let name = wrapped["metadata"]["name"].as_str().context("a Secret without a name")?;
            rights.allow_named(group, &resource, name, &verbs);
        } else {
            rights.allow(group, &resource, &verbs);
        }
    }
    Ok(rights)
}

/// The rights of provider-helm for the charts of Releases.
fn releases(api: &Composed) -> Result<Rights> {
    let mut rights = Rights::default();
    for release in at_home(api, "Release") {
        match release["spec"]["forProvider"]["chart"]["name"].as_str() {
            Some("vcluster") => rights = rights.and(vcluster()),
            other => bail!("the rights that the chart {other:?} needs are not known"),
        }
    }
    Ok(rights)
}

/// Objects or Releases with a provider config that does not belong to the environment.
fn at_home<'a>(api: &'a Composed, kind: &'a str) -> impl Iterator<Item = &'a Value> {
    let configs = api.objects().filter(|object| object["kind"] == "ProviderConfig");
    let made: BTreeSet<_> =
        configs.filter_map(|config| config["metadata"]["name"].as_str()).collect();
    api.objects().filter(move |object| {
        let config = object["spec"]["providerConfigRef"]["name"].as_str().unwrap_or_default();
        object["kind"] == kind && !made.contains(config)
    })
}

/// The rights to install the chart vcluster, including Helm's own state in Secrets. The chart,
/// 0.36.1 with our values, has the kinds below. Kubernetes allows granting only rights that the
/// grantor has. So the rights of the chart's Role are included.
fn vcluster() -> Rights {
    const INSTALL: [&str; 4] = ["get", "create", "patch", "delete"];
    let mut rights = Rights::default();
    rights.allow("", "namespaces", &["create"]);
    rights.allow("", "secrets", &WRITE);
    for (group, resource) in [
        ("", "limitranges"),
        ("", "resourcequotas"),
        ("", "serviceaccounts"),
        ("", "services"),
        ("apps", "statefulsets"),
        ("networking.k8s.io", "networkpolicies"),
        ("rbac.authorization.k8s.io", "rolebindings"),
        ("rbac.authorization.k8s.io", "roles"),
    ] {
        rights.allow(group, resource, &INSTALL);
    }
    rights.and(role_of_vcluster())
}

/// The rules of the chart's Role, `templates/role.yaml`. The rule for `pods/resize` applies to
/// Kubernetes 1.35 and later.
fn role_of_vcluster() -> Rights {
    const FOLLOW: [&str; 4] = ["create", "get", "list", "watch"];
    const CHANGE: [&str; 5] = ["get", "list", "watch", "patch", "update"];
    let mut rights = Rights::default();
    let rules: [(&str, &[&str], &[&str]); 7] = [
        (
            "",
            &[
                "configmaps",
                "secrets",
                "services",
                "pods",
                "pods/attach",
                "pods/portforward",
                "pods/exec",
                "persistentvolumeclaims",
                "endpoints",
            ],
            &WRITE,
        ),
        ("", &["pods/status", "pods/ephemeralcontainers", "pods/resize"], &["patch", "update"]),
        ("apps", &["statefulsets", "replicasets", "deployments"], &CHANGE),
        ("", &["pods/log"], &["get", "list", "watch"]),
        ("", &["events"], &FOLLOW),
        ("events.k8s.io", &["events"], &FOLLOW),
        ("discovery.k8s.io", &["endpointslices"], &WRITE),
    ];
    for (group, resources, verbs) in rules {
        for resource in resources {
            rights.allow(group, resource, verbs);
        }
    }
    rights
}
