//! Sample environments for tests.
#![allow(clippy::missing_panics_doc, clippy::unwrap_used)]

use serde_json::{Value, json};

use super::Environment;

/// A GPU workspace. Two of its three resources are ready, and `third` is the third resource.
pub fn half_made(third: &Value) -> Value {
    json!({
        "apiVersion": "platform.acme.io/v1alpha1", "kind": "GpuDevWorkspaceClaim",
        "metadata": {"name": "ada", "namespace": "team-vision", "uid": "u", "generation": 2,
            "creationTimestamp": "2026-01-01T10:00:00Z"},
        "spec": {"parameters": {"owner": "ada@acme.io"}, "resourceRef": {"name": "ada-x"}},
        "status": {
            "phase": "Provisioning", "progress": "2/3", "machine": "1 GPU",
            "conditions": [
                {"type": "Synced", "status": "True", "reason": "ReconcileSuccess", "observedGeneration": 2},
                {"type": "Ready", "status": "False", "reason": "Waiting", "observedGeneration": 2},
                {"type": "Provisioned", "status": "False", "reason": "Creating",
                    "message": "instance (Instance): is being created"},
            ],
            "resources": [
                {"slot": "egress", "kind": "SecurityGroupEgressRule", "name": "ada-x-1", "ready": true,
                    "since": "2026-01-01T10:00:30Z"},
                third,
                {"slot": "role", "kind": "Role", "name": "ada-x-3", "externalName": "ada-x-role", "ready": true,
                    "since": "2026-01-01T10:00:10Z"},
            ],
        },
    })
}

/// A resource that its provider is creating.
pub fn creating() -> Value {
    json!({"slot": "instance", "kind": "Instance", "name": "ada-x-2", "ready": false, "reason": "Creating",
        "message": "is being created", "since": "2026-01-01T10:00:00Z"})
}

/// A resource that its provider rejected.
pub fn refused_leaf() -> Value {
    json!({"slot": "instance", "kind": "Instance", "name": "ada-x-2", "externalName": "i-0abc", "ready": false,
        "reason": "Failed", "message": "VcpuLimitExceeded: your limit of 0 vCPUs allows no more",
        "since": "2026-01-01T10:00:40Z"})
}

/// The same workspace with all resources ready.
pub fn ready() -> Value {
    let mut object = half_made(&json!({"slot": "instance", "kind": "Instance", "name": "ada-x-2",
        "externalName": "i-0abc", "ready": true, "since": "2026-01-01T10:02:00Z"}));
    object["status"]["phase"] = json!("Ready");
    object["status"]["progress"] = json!("3/3");
    object["status"]["publicIp"] = json!("203.0.113.7");
    object["status"]["connection"] = json!("ssh developer@203.0.113.7");
    set(&mut object, "Ready", "True", "Available", "");
    set(&mut object, "Provisioned", "True", "Available", "all 3 resources are ready");
    object
}

/// A claim with a composite that Crossplane cannot compose, for example without a Composition.
pub fn uncomposed() -> Value {
    let mut object = half_made(&creating());
    object["status"] = json!({"conditions": [
        {"type": "Synced", "status": "True", "reason": "ReconcileSuccess", "observedGeneration": 2},
        {"type": "Ready", "status": "False", "reason": "Waiting", "observedGeneration": 2,
            "message": "Claim is waiting for composite resource to become Ready"},
    ]});
    object
}

/// The workspace as a namespaced composite, with Crossplane's condition that it cannot be composed.
pub fn unsynced() -> Value {
    let mut object = half_made(&creating());
    object["apiVersion"] = json!("platform.m.acme.io/v1alpha1");
    object["kind"] = json!("GpuDevWorkspace");
    object["spec"] = json!({"parameters": {"owner": "ada@acme.io"}, "crossplane": {}});
    set(&mut object, "Synced", "False", "ReconcileError", "cannot select a Composition");
    object
}

/// Sets a condition.
pub fn set(object: &mut Value, kind: &str, status: &str, reason: &str, message: &str) {
    let conditions = object["status"]["conditions"].as_array_mut().unwrap();
    let found = conditions.iter_mut().find(|condition| condition["type"] == kind).unwrap();
    found["status"] = json!(status);
    found["reason"] = json!(reason);
    found["message"] = json!(message);
}

/// The environment of an object.
pub fn environment(object: &Value) -> Environment {
    Environment::from_object(&serde_json::from_value(object.clone()).unwrap())
}
