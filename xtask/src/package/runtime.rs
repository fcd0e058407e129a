//! The shipped DeploymentRuntimeConfigs are ones that Kubernetes understands to the last field, and fit the roles.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use k8s_openapi::api::apps::v1::DeploymentSpec;
use serde_json::Value;

use super::rbac;
use crate::{workspace, yaml};

fn configs() -> Vec<Value> {
    yaml::read(&workspace::root().join("package/runtime-config.yaml")).unwrap()
}

#[test]
fn kubernetes_knows_every_field_of_a_deployment() {
    for config in configs() {
        let spec = &config["spec"]["deploymentTemplate"]["spec"];
        if spec.is_null() {
            continue;
        }
        let known: DeploymentSpec = serde_json::from_value(spec.clone()).unwrap();
        assert_eq!(&serde_json::to_value(&known).unwrap(), spec, "{}", config["metadata"]["name"]);
        // Crossplane merges its own part into the container of this name.
        assert_eq!(spec["template"]["spec"]["containers"][0]["name"], "package-runtime");
    }
}

#[test]
fn providers_run_as_those_whom_the_roles_are_bound_to() {
    let accounts = configs().into_iter().filter_map(|config| {
        config["spec"]["serviceAccountTemplate"]["metadata"]["name"].as_str().map(str::to_owned)
    });
    let files = rbac::files().unwrap();
    let subjects = files["package/rbac/providers.yaml"]
        .iter()
        .filter_map(|document| document["subjects"][0]["name"].as_str().map(str::to_owned));
    assert_eq!(accounts.collect::<BTreeSet<_>>(), subjects.collect());
}
