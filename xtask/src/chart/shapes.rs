//! The rendered objects, and the check that Kubernetes knows all their fields.

use anyhow::{Context, Result, bail, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Service, ServiceAccount};
use k8s_openapi::api::networking::v1::{Ingress, NetworkPolicy};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::helm::NAMESPACE;
use super::{Case, same};

/// Objects that are always rendered.
const ALWAYS: [&str; 10] = [
    "ClusterRole",
    "ClusterRoleBinding",
    "ConfigMap",
    "Deployment",
    "NetworkPolicy",
    "PodDisruptionBudget",
    "Role",
    "RoleBinding",
    "Service",
    "ServiceAccount",
];

/// Additional objects if all options are on. This ClusterRole is for impersonation.
const SWITCHED: [&str; 4] = ["ClusterRole", "ClusterRoleBinding", "Ingress", "ServiceMonitor"];

pub fn check(case: &Case) -> Result<()> {
    let mut expected = ALWAYS.to_vec();
    if case.name == "full" {
        expected.extend(SWITCHED);
        expected.sort_unstable();
    }
    let mut found: Vec<_> =
        case.objects.0.iter().filter_map(|object| object["kind"].as_str()).collect();
    found.sort_unstable();
    ensure!(found == expected, "found {found:?}, expected {expected:?}");
    for object in &case.objects.0 {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        known(object).with_context(|| format!("{} {name}", object["kind"]))?;
        labels(case, object).with_context(|| format!("{} {name}", object["kind"]))?;
    }
    Ok(())
}

fn known(object: &Value) -> Result<()> {
    match object["kind"].as_str().unwrap_or_default() {
        "ClusterRole" => round::<ClusterRole>(object),
        "ClusterRoleBinding" => round::<ClusterRoleBinding>(object),
        "ConfigMap" => round::<ConfigMap>(object),
        "Deployment" => round::<Deployment>(object),
        "Ingress" => round::<Ingress>(object),
        "NetworkPolicy" => round::<NetworkPolicy>(object),
        "PodDisruptionBudget" => round::<PodDisruptionBudget>(object),
        "Role" => round::<Role>(object),
        "RoleBinding" => round::<RoleBinding>(object),
        "Service" => round::<Service>(object),
        "ServiceAccount" => round::<ServiceAccount>(object),
        // A kind of the Prometheus operator.
        "ServiceMonitor" => {
            same("the version", &object["apiVersion"], &json!("monitoring.coreos.com/v1"))
        }
        other => bail!("unexpected kind {other}"),
    }
}

/// A field that is unknown or has another type is lost in the conversion.
fn round<T: DeserializeOwned + Serialize>(object: &Value) -> Result<()> {
    let known: T = serde_json::from_value(object.clone())?;
    same("the fields that Kubernetes knows", object, &serde_json::to_value(&known)?)
}

/// All objects have the labels of the release. Names of ClusterRoles contain the namespace, so that
/// several portals can be installed.
fn labels(case: &Case, object: &Value) -> Result<()> {
    let metadata = &object["metadata"];
    let labels = &metadata["labels"];
    same("the label", &labels["app.kubernetes.io/name"], &json!("paved-portal"))?;
    same("the label", &labels["app.kubernetes.io/instance"], &json!(NAMESPACE))?;
    let default = format!("{NAMESPACE}-portal");
    let own = Some(case.text("/portal/fullnameOverride"));
    let own = own.filter(|name| !name.is_empty()).unwrap_or(&default);
    let name = metadata["name"].as_str().unwrap_or_default();
    let fits = if object["kind"].as_str().is_some_and(|kind| kind.starts_with("ClusterRole")) {
        name.starts_with(&format!("{NAMESPACE}:{own}"))
    } else {
        name == own
    };
    ensure!(fits, "the name should start with {own:?}");
    Ok(())
}
