//! The needs of composed resources for their deletion.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Value, json};

/// `who` cannot be deleted properly after `what` is deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    pub who: String,
    pub what: String,
    why: &'static str,
}

impl fmt::Display for Need {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} needs {}, {}, but can outlive it", self.who, self.what, self.why)
    }
}

/// All needs among composed resources.
pub fn of(resources: &BTreeMap<String, Value>) -> Vec<Need> {
    let mut needs = Vec::new();
    for (who, object) in resources.iter().filter(|(_, object)| is_deleted(object)) {
        for (what, other) in resources.iter().filter(|(what, _)| *what != who) {
            if let Some(why) = why(object, other, resources) {
                needs.push(Need { who: who.clone(), what: what.clone(), why });
            }
        }
    }
    needs
}

fn why(object: &Value, other: &Value, resources: &BTreeMap<String, Value>) -> Option<&'static str> {
    let config = config(object, resources);
    if config.is_some_and(|config| config == other) {
        return Some("its provider config");
    }
    if config.is_some_and(|config| writes(other, config)) {
        return Some("which writes its credentials");
    }
    if config.is_some() && is_cluster(other) {
        return Some("its cluster");
    }
    // Helm reads a release from Secrets of its namespace. An Object without its namespace is gone.
    let is_release = object["kind"] == "Release";
    if is_release
        && is_deleted(other)
        && namespace(other).is_some_and(|namespace| lives_in(object, namespace))
    {
        let same = cluster(object, resources) == cluster(other, resources);
        return same.then_some("its namespace");
    }
    by_kind(object, other)
}

/// Whether the provider or the cluster deletes the external resource.
fn is_deleted(object: &Value) -> bool {
    let spec = &object["spec"];
    let policies = spec["managementPolicies"].as_array();
    spec["deletionPolicy"] != "Orphan"
        && policies.is_none_or(|all| all.contains(&json!("Delete")) || all.contains(&json!("*")))
}

/// The composed provider config that a resource uses.
fn config<'r>(object: &Value, resources: &'r BTreeMap<String, Value>) -> Option<&'r Value> {
    let reference = &object["spec"]["providerConfigRef"];
    if reference["kind"] == "ClusterProviderConfig" {
        return None;
    }
    resources.values().find(|config| {
        config["kind"] == "ProviderConfig"
            && config["metadata"]["name"] == reference["name"]
            && family(config) == family(object)
    })
}

/// An API group without its service. The provider config of `aws.upbound.io` also serves
/// `ec2.aws.upbound.io`.
fn family(object: &Value) -> &str {
    let group = crossplane::api_version::group_of(object);
    let labels = if group.contains(".m.") { 4 } else { 3 };
    group.rmatch_indices('.').nth(labels - 1).map_or(group, |(dot, _)| &group[dot + 1..])
}

/// The Secret that a provider config reads: namespace and name.
fn credentials(config: &Value) -> Option<(&str, &str)> {
    let credentials = &config["spec"]["credentials"];
    let reference = ["secretRef", "connectionSecretRef"]
        .into_iter()
        .map(|field| &credentials[field])
        .find(|it| it.is_object())?;
    let own = config["metadata"]["namespace"].as_str();
    Some((own.or(reference["namespace"].as_str())?, reference["name"].as_str()?))
}

/// Whether a resource writes, or is, the Secret that a provider config reads.
fn writes(object: &Value, config: &Value) -> bool {
    let Some((namespace, name)) = credentials(config) else { return false };
    let own = object["metadata"]["namespace"].as_str();
    let written = &object["spec"]["writeConnectionSecretToRef"];
    let is = object["kind"] == "Secret" && object["metadata"]["name"] == name;
    is || written["name"] == name && own.or(written["namespace"].as_str()) == Some(namespace)
}

/// Whether a resource is the environment's cluster. An environment has one, so all resources with a
/// composed provider config are inside it.
fn is_cluster(object: &Value) -> bool {
    match (service(object), object["kind"].as_str().unwrap_or_default()) {
        ("container" | "eks", "Cluster") | ("containerservice", "KubernetesCluster") => true,
        ("helm", "Release") => object["spec"]["forProvider"]["chart"]["name"] == "vcluster",
        _ => false,
    }
}

/// The cluster of an object or a release, as the Secret of its kubeconfig. `None` is the cluster
/// that Crossplane runs in.
fn cluster<'r>(
    object: &Value,
    resources: &'r BTreeMap<String, Value>,
) -> Option<(&'r str, &'r str)> {
    credentials(config(object, resources)?)
}

/// The namespace that an Object creates.
fn namespace(object: &Value) -> Option<&str> {
    let manifest = &object["spec"]["forProvider"]["manifest"];
    manifest["metadata"]["name"].as_str().filter(|_| manifest["kind"] == "Namespace")
}

fn lives_in(object: &Value, namespace: &str) -> bool {
    let params = &object["spec"]["forProvider"];
    params["manifest"]["metadata"]["namespace"] == namespace || params["namespace"] == namespace
}

/// Needs that the services themselves enforce.
fn by_kind(object: &Value, other: &Value) -> Option<&'static str> {
    let of = |object: &Value| {
        let wrapped = &object["spec"]["forProvider"]["manifest"];
        let object = if wrapped.is_object() { wrapped } else { object };
        (service(object).to_owned(), object["kind"].as_str().unwrap_or_default().to_owned())
    };
    let (object_is, other_is) = (of(object), of(other));
    let pair =
        ((object_is.0.as_str(), object_is.1.as_str()), (other_is.0.as_str(), other_is.1.as_str()));
    let sql = is_deleted(other);
    match pair {
        (("postgresql", "Grant"), ("postgresql", "Database")) if sql => {
            Some("to which its provider connects to revoke it")
        }
        (("postgresql", "Grant"), ("postgresql", "Role")) if sql => {
            Some("from which it is revoked")
        }
        (("postgresql", "Database"), ("postgresql", "Role")) if sql => {
            Some("which owns objects in it and cannot be dropped before")
        }
        (("apps", "Deployment"), ("postgresql", "Database")) if sql => {
            Some("which cannot be dropped while anyone is connected")
        }
        (("argoproj", "Application"), ("helm", "Release")) if installs(other, "argo-cd") => {
            Some("which deletes its resources")
        }
        (("operator", "KnativeServing"), ("helm", "Release"))
            if installs(other, "knative-operator") =>
        {
            Some("which uninstalls it")
        }
        (("container", "NodePool"), ("container", "Cluster"))
        | (("eks", "NodeGroup"), ("eks", "Cluster")) => Some("its cluster"),
        (("sql", "Database" | "User"), ("sql", "DatabaseInstance")) => Some("its server"),
        (("cloudfront", "Distribution"), ("cloudfront", "Function" | "OriginAccessControl")) => {
            Some("which CloudFront does not delete while a distribution uses it")
        }
        _ => None,
    }
}

/// Whether a release has this chart, and its deletion uninstalls the chart.
fn installs(release: &Value, chart: &str) -> bool {
    is_deleted(release) && release["spec"]["forProvider"]["chart"]["name"] == chart
}

/// The first label of a kind's group.
fn service(object: &Value) -> &str {
    crossplane::api_version::group_of(object).split('.').next().unwrap_or_default()
}
