//! Tests of the annotation that makes provider-helm observe an upgraded release.

use serde_json::{Value, json};

use super::{legacy, object};
use crate::models::helm::Release;

const LOOK: &str = "paved-road.fn.crossplane.io/look";

/// The annotation of a release that is observed with these values.
fn look(annotations: &Value, ready: &str, synced: &str, at_provider: &Value) -> Value {
    let observed = json!({
        "apiVersion": "helm.crossplane.io/v1beta1",
        "kind": "Release",
        "metadata": {"name": "app", "annotations": annotations},
        "spec": {"forProvider": {"chart": {"version": "1.0.0"}}},
        "status": {"atProvider": at_provider, "conditions": [
            {"type": "Ready", "status": ready, "reason": "Unavailable"},
            {"type": "Synced", "status": synced, "reason": "Reconcile", "message": "words"},
        ]},
    });
    let test = legacy().with("app", observed);
    let composed = test.compose(|cx| cx.managed("app", Release::default()).add().map(|_| ()));
    object(&composed.unwrap(), "app")["metadata"]["annotations"][LOOK].clone()
}

#[test]
fn upgraded_release_is_observed_at_once() {
    let upgraded = json!({"state": "deployed", "revision": 3, "version": "1.0.0"});
    assert_eq!(look(&json!({}), "False", "True", &upgraded), "3");
    assert_eq!(look(&json!({LOOK: "2"}), "False", "True", &upgraded), "3");
}

#[test]
fn observed_release_keeps_its_annotation() {
    let upgraded = json!({"state": "deployed", "revision": 3, "version": "1.0.0"});
    assert_eq!(look(&json!({LOOK: "2"}), "True", "True", &upgraded), "2");
    assert_eq!(look(&json!({}), "True", "True", &upgraded), Value::Null);
}

#[test]
fn failed_or_first_revision_gets_no_annotation() {
    let others = [
        json!({"state": "deployed", "revision": 1, "version": "1.0.0"}),
        json!({"state": "failed", "revision": 3, "version": "1.0.0"}),
        // provider-helm upgrades it at each observation, because the versions differ as texts.
        json!({"state": "deployed", "revision": 3, "version": "v1.0.0"}),
        json!({}),
    ];
    for at_provider in &others {
        assert_eq!(look(&json!({}), "False", "True", at_provider), Value::Null, "{at_provider}");
    }
    let upgraded = json!({"state": "deployed", "revision": 3, "version": "1.0.0"});
    assert_eq!(look(&json!({}), "False", "False", &upgraded), Value::Null);
}
