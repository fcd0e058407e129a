//! Kubernetes knows all fields of the shipped DeploymentRuntimeConfigs, and they match the roles.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use k8s_openapi::api::apps::v1::DeploymentSpec;
use serde_json::{Value, json};

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
        // Crossplane merges its own fields into the container of this name.
        assert_eq!(spec["template"]["spec"]["containers"][0]["name"], "package-runtime");
    }
}

/// Restricted by <https://kubernetes.io/docs/concepts/security/pod-security-standards/>, with a
/// read-only root.
#[test]
fn the_function_runs_restricted_and_probed_in_two_replicas() {
    let configs = configs();
    let function =
        configs.iter().find(|config| config["metadata"]["name"] == "function-paved-road").unwrap();
    let deployment = &function["spec"]["deploymentTemplate"]["spec"];
    assert_eq!(deployment["replicas"], 2);
    let pod = &deployment["template"]["spec"];
    assert_eq!(pod["automountServiceAccountToken"], false);
    assert_eq!(
        pod["securityContext"],
        json!({"runAsNonRoot": true, "runAsUser": 65532, "runAsGroup": 65532, "fsGroup": 65532,
            "seccompProfile": {"type": "RuntimeDefault"}})
    );
    let container = &pod["containers"][0];
    assert_eq!(
        container["securityContext"],
        json!({"allowPrivilegeEscalation": false, "privileged": false, "readOnlyRootFilesystem": true,
            "capabilities": {"drop": ["ALL"]}})
    );
    assert_eq!(container["volumeMounts"], Value::Null, "no writable volume");
    for resource in ["/requests/cpu", "/requests/memory", "/limits/memory"] {
        assert!(
            container["resources"].pointer(resource).is_some_and(Value::is_string),
            "{resource}"
        );
    }
    for (probe, at) in [
        ("startupProbe", json!({"tcpSocket": {"port": "grpc"}})),
        ("readinessProbe", json!({"tcpSocket": {"port": "grpc"}})),
        ("livenessProbe", json!({"httpGet": {"path": "/metrics", "port": "metrics"}})),
    ] {
        let probe = container[probe].as_object().unwrap();
        let asked: serde_json::Map<_, _> = probe
            .clone()
            .into_iter()
            .filter(|(key, _)| !key.ends_with("Seconds") && key != "failureThreshold")
            .collect();
        assert_eq!(Value::from(asked), at);
    }
}

#[test]
fn providers_run_as_the_accounts_of_their_roles() {
    let accounts = configs().into_iter().filter_map(|config| {
        config["spec"]["serviceAccountTemplate"]["metadata"]["name"].as_str().map(str::to_owned)
    });
    let files = rbac::files().unwrap();
    let roles = files.iter().filter(|(path, _)| path.contains("/providers/"));
    let subjects = roles
        .flat_map(|(_, documents)| documents)
        .filter_map(|document| document["subjects"][0]["name"].as_str().map(str::to_owned));
    assert_eq!(accounts.collect::<BTreeSet<_>>(), subjects.collect());
}
