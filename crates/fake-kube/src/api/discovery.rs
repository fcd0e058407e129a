//! Discovery, in the new format (all groups at once) and in the old one (a group at a time).

use std::collections::BTreeMap;

use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use crate::Cluster;
use crate::answer::{Refused, respond};
use crate::kinds::Kind;

/// The media type of the new format.
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// The response to a path without objects.
pub fn answer(cluster: &Cluster, path: &[&str], headers: &HeaderMap) -> Response {
    let accepted =
        headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let aggregated = accepted.contains("as=APIGroupDiscoveryList") && accepted.contains("v=v2");
    let told = match path {
        ["version"] => {
            json!({"major": "1", "minor": "33", "gitVersion": "v1.33.0+demo", "platform": "linux/amd64"})
        }
        ["api" | "apis"] if aggregated => {
            let text = all(cluster, path == ["api"]).to_string();
            return (StatusCode::OK, [(header::CONTENT_TYPE, AGGREGATED)], text).into_response();
        }
        ["api"] => json!({"kind": "APIVersions", "versions": ["v1"]}),
        ["apis"] => {
            let groups: Vec<Value> = groups(cluster, false)
                .into_iter()
                .map(|(name, versions)| group(name, &versions))
                .collect();
            json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
        }
        ["apis", name] => match groups(cluster, false).remove(*name) {
            Some(versions) => group(name, &versions),
            None => return Refused::unknown(&path.join("/")).into_response(),
        },
        ["api", version] => resources(cluster, "", version),
        ["apis", group, version] => resources(cluster, group, version),
        ["openapi", "v3"] => {
            json!({"paths": {"api/v1": {"serverRelativeURL": "/openapi/v3/api/v1"}}})
        }
        ["openapi", "v3", "api", "v1"] => openapi(),
        _ => return Refused::unknown(&path.join("/")).into_response(),
    };
    respond(StatusCode::OK, &told)
}

/// Groups with their versions and kinds: only the core group, or all other groups.
fn groups(cluster: &Cluster, core: bool) -> BTreeMap<&str, BTreeMap<&str, Vec<&Kind>>> {
    let mut groups: BTreeMap<&str, BTreeMap<&str, Vec<&Kind>>> = BTreeMap::new();
    let listed =
        |kind: &&Kind| kind.group.is_empty() == core && cluster.faults.is_listed(&kind.group);
    for kind in cluster.kinds.all().iter().filter(listed) {
        groups.entry(&kind.group).or_default().entry(&kind.version).or_default().push(kind);
    }
    groups
}

fn all(cluster: &Cluster, core: bool) -> Value {
    let version = |(version, kinds): (&str, Vec<&Kind>)| {
        let resources: Vec<Value> = kinds.into_iter().map(Kind::aggregated).collect();
        json!({"version": version, "freshness": "Current", "resources": resources})
    };
    let items = groups(cluster, core).into_iter().map(|(name, versions)| {
        let versions: Vec<Value> = versions.into_iter().map(version).collect();
        json!({"metadata": {"name": name}, "versions": versions})
    });
    json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {},
        "items": items.collect::<Vec<_>>()})
}

fn group(name: &str, versions: &BTreeMap<&str, Vec<&Kind>>) -> Value {
    let version =
        |version: &&str| json!({"groupVersion": format!("{name}/{version}"), "version": version});
    let versions: Vec<Value> = versions.keys().map(version).collect();
    json!({"kind": "APIGroup", "apiVersion": "v1", "name": name, "preferredVersion": versions[0], "versions": versions})
}

fn resources(cluster: &Cluster, group: &str, version: &str) -> Value {
    let of = |kind: &&Kind| kind.group == group && kind.version == version;
    let lines: Vec<Value> = cluster.kinds.all().iter().filter(of).map(Kind::line).collect();
    let version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": lines})
}

/// The parts that kubectl reads, because the API server itself checks fields. For custom resources,
/// kubectl reads the entry of namespaces.
fn openapi() -> Value {
    let parameter = |name: &str| json!({"name": name, "in": "query", "schema": {"type": "string"}});
    json!({"openapi": "3.0.0", "info": {"title": "Kubernetes", "version": "v1.33.0"}, "paths": {"/api/v1/namespaces/{name}": {"patch": {
        "parameters": [parameter("dryRun"), parameter("fieldManager"), parameter("fieldValidation"), parameter("force")],
        "responses": {"200": {"description": "OK"}},
        "x-kubernetes-action": "patch",
        "x-kubernetes-group-version-kind": {"group": "", "kind": "Namespace", "version": "v1"}}}}})
}
