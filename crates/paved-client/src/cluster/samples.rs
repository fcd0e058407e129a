//! Sample clusters for tests.
#![allow(clippy::missing_panics_doc, clippy::unwrap_used)]

use kube::{Client, Config};
use serde_json::json;

use super::{Cluster, Kinds};

/// A cluster with the claims API and the namespaced API, one in a company's own group, and with
/// foreign kinds.
pub fn kinds() -> Kinds {
    let resource = |kind: &str, plural: &str, short: &str, categories: &[&str]| {
        json!({"resource": plural, "responseKind": {"group": "", "version": "", "kind": kind},
            "scope": "Namespaced", "singularResource": kind.to_lowercase(), "verbs": ["get"],
            "shortNames": [short], "categories": categories})
    };
    let group = |name: &str, resources: &[serde_json::Value]| {
        json!({"metadata": {"name": name}, "versions": [
            {"version": "v1alpha1", "resources": resources}, {"version": "v1", "resources": resources}]})
    };
    let list = json!({"items": [
        group("platform.acme.io", &[
            resource("GpuDevWorkspaceClaim", "gpudevworkspaceclaims", "gpuws", &["claim", "paved"]),
            resource("GpuDevWorkspace", "gpudevworkspaces", "", &["composite"]),
            resource("Environment", "environments", "", &["claim", "paved"]),
        ]),
        group("dev.example.org", &[resource("Environment", "environments", "", &["paved"])]),
        group("apps.example.org", &[resource("App", "apps", "", &["all"])]),
    ]});
    Kinds::from_discovery(&serde_json::from_value(list).unwrap())
}

/// A cluster that no test calls.
pub fn nowhere() -> Cluster {
    let server = "http://127.0.0.1:1".to_owned();
    let client = Client::try_from(Config::new(server.parse().unwrap())).unwrap();
    Cluster { client, namespace: "team".to_owned(), is_namespace_chosen: false, server }
}
