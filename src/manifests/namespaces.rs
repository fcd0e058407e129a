//! The admission policy that protects namespaces with environments of the namespaced API.
//!
//! The deletion of a namespace first deletes the usages of provider configs, and forbids to create
//! them again. The providers of the namespace's managed resources can then no longer connect to
//! their clouds, so the deletion never ends, and the resources remain in the clouds.
//!
//! The controller lists the namespaces with environments in a ConfigMap, which is the policy's
//! parameter. Without the ConfigMap, the policy allows every deletion.

use serde_json::{Value, json};

/// The name of the ConfigMap. Outside the chart, also the name of the policy and of its binding.
pub const NAME: &str = "paved-road-namespaces";

/// A part of every refusal.
pub const REFUSAL: &str = "the namespace has environments, so its deletion would not end";

/// The policy's check in CEL.
pub const CHECK: &str = "!has(params.data) || !(oldObject.metadata.name in params.data)";

/// A namespace that is already being deleted. Kubernetes itself repeats the deletion.
pub const NOT_YET_DELETED: &str = "!has(oldObject.metadata.deletionTimestamp)";

/// The spec of the policy. One policy protects a cluster with any groups of the APIs.
pub fn policy_spec() -> Value {
    let command = "Run: paved delete --namespace ";
    json!({
        "failurePolicy": "Fail",
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "matchConstraints": {"resourceRules": [{
            "apiGroups": [""],
            "apiVersions": ["v1"],
            "operations": ["DELETE"],
            "resources": ["namespaces"],
        }]},
        "matchConditions": [{"name": "is-not-yet-deleted", "expression": NOT_YET_DELETED}],
        "validations": [{
            "expression": CHECK,
            "messageExpression": format!(
                "'{REFUSAL}: ' + params.data[oldObject.metadata.name] + '. {command}' + \
                 oldObject.metadata.name"
            ),
            "message": format!("{REFUSAL}. {command}NAME"),
            "reason": "Forbidden",
        }],
    })
}

/// The policy and its binding to the ConfigMap in the controller's namespace.
pub fn policy(namespace: &str) -> [Value; 2] {
    let about = "Namespaces with environments are deleted by `paved delete --namespace`.";
    let api_version = "admissionregistration.k8s.io/v1";
    [
        json!({
            "apiVersion": api_version,
            "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": NAME, "annotations": {"kubernetes.io/description": about}},
            "spec": policy_spec(),
        }),
        json!({
            "apiVersion": api_version,
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": NAME},
            "spec": {
                "policyName": NAME,
                "validationActions": ["Deny"],
                "paramRef": {
                    "name": NAME,
                    "namespace": namespace,
                    "parameterNotFoundAction": "Allow",
                },
            },
        }),
    ]
}
