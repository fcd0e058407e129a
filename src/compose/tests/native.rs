//! Native and wrapped objects keep their observed values.

use serde_json::{Value, json};

use super::{Test, legacy, namespaced, object};
use crate::compose::Composer;
use crate::error::Error;

/// A Deployment that one of our releases wants.
fn deployment(image: &str, cpu: &str, replicas: i64) -> Value {
    let container = json!({"name": "web", "image": image, "resources": {"limits": {"cpu": cpu}}});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {"replicas": replicas, "template": {"spec": {"containers": [container]}}},
    })
}

fn web(size: &str, wanted: Value) -> impl FnOnce(&mut Composer<'_>) -> Result<(), Error> {
    move |cx| {
        cx.object("web", wanted)
            .updatable(&["spec.replicas", "spec.template.spec.containers.web.image"])
            .resolved_from("size", size, &["spec.template.spec.containers.web.resources"])
            .add()
    }
}

/// The Deployment in its cluster: with defaults, a foreign sidecar, and all replicas available.
fn running() -> Value {
    let mut running = deployment("web:1", "1", 2);
    running["metadata"] = json!({"name": "web", "generation": 3, "annotations": {"paved-road.fn.crossplane.io/size": "small"}});
    running["spec"]["progressDeadlineSeconds"] = json!(600);
    running["spec"]["template"]["spec"]["containers"][0]["imagePullPolicy"] = json!("Always");
    let containers = running["spec"]["template"]["spec"]["containers"].as_array_mut().unwrap();
    containers.push(json!({"name": "proxy", "image": "proxy:1"}));
    running["status"] =
        json!({"observedGeneration": 3, "updatedReplicas": 2, "availableReplicas": 2});
    running
}

/// The same Deployment in a wrapper that its provider reports as ready.
fn wrapper() -> Value {
    json!({
        "apiVersion": "kubernetes.crossplane.io/v1alpha2", "kind": "Object",
        "metadata": {"annotations": {"paved-road.fn.crossplane.io/size": "small"}},
        "spec": {"forProvider": {"manifest": deployment("web:1", "1", 2)}, "providerConfigRef": {"name": "default"}},
        "status": {"atProvider": {"manifest": running()}, "conditions": [
            {"type": "Ready", "status": "True"}, {"type": "Synced", "status": "True"},
        ]},
    })
}

fn flavours() -> [(Test, &'static str); 2] {
    [
        (namespaced().with("web", running()), ""),
        (legacy().with("web", wrapper()), "/spec/forProvider/manifest"),
    ]
}

#[test]
fn only_the_users_fields_are_updated() {
    for (test, at) in flavours() {
        let answer = test.compose(web("small", deployment("web:2", "4", 3))).unwrap();
        let composed = object(&answer, "web").pointer(at).unwrap().clone();
        let expected = deployment("web:2", "1", 3);
        assert_eq!(composed["spec"], expected["spec"], "{at}");
        assert!(!answer.resources["web"].1, "ready before the change was observed: {at}");
    }
}

#[test]
fn another_choice_is_resolved_anew() {
    for (test, at) in flavours() {
        let answer = test.compose(web("large", deployment("web:1", "4", 2))).unwrap();
        let composed = object(&answer, "web").pointer(at).unwrap().clone();
        assert_eq!(composed["spec"], deployment("web:1", "4", 2)["spec"], "{at}");
        assert_eq!(
            object(&answer, "web")["metadata"]["annotations"]["paved-road.fn.crossplane.io/size"],
            "large"
        );
    }
}

#[test]
fn deployment_that_matches_its_spec_is_ready() {
    for (test, at) in flavours() {
        let answer = test.compose(web("small", deployment("web:1", "1", 2))).unwrap();
        assert!(answer.resources["web"].1, "{at}");
    }
}

#[test]
fn later_field_is_not_added_to_a_running_deployment() {
    for (test, at) in flavours() {
        let mut later = deployment("web:1", "1", 2);
        later["spec"]["template"]["spec"]["hostNetwork"] = json!(false);
        let composed = object(&test.compose(web("small", later)).unwrap(), "web");
        assert_eq!(composed.pointer(&format!("{at}/spec/template/spec/hostNetwork")), None, "{at}");
    }
}

#[test]
fn wrapped_deployment_derives_its_readiness_from_a_query() {
    let answer = legacy().compose(web("small", deployment("web:1", "1", 2))).unwrap();
    let composed = object(&answer, "web");
    assert_eq!(composed["spec"]["readiness"]["policy"], "DeriveFromCelQuery");
    assert_eq!(composed["spec"]["watch"], true);
}

#[test]
fn namespace_and_object_in_another_namespace_are_wrapped() {
    let elsewhere = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "other"}});
    for object in
        [json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}}), elsewhere]
    {
        let answer = namespaced().compose(|cx| cx.object("it", object).add()).unwrap();
        assert_eq!(super::object(&answer, "it")["kind"], "Object");
    }
}

#[test]
fn waiting_object_is_reported_with_its_own_kind() {
    for test in [legacy(), namespaced()] {
        let answer = test
            .compose(|cx| {
                cx.object("web", deployment("web:1", "1", 1)).needs(false, "its password").add()
            })
            .unwrap();
        let line = &answer.status["resources"][0];
        assert_eq!(
            (&line["kind"], &line["message"]),
            (&json!("Deployment"), &json!("waits for its password"))
        );
        assert!(answer.resources.is_empty());
    }
}

#[test]
fn failed_deployment_reports_its_replica_failure() {
    let mut failed = running();
    failed["status"] = json!({"observedGeneration": 3, "conditions": [
        {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "timed out progressing"},
        {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "exceeded quota: gpus"},
    ]});
    let answer = namespaced()
        .with("web", failed)
        .compose(web("small", deployment("web:1", "1", 2)))
        .unwrap();
    assert_eq!(answer.message(), "web (Deployment): timed out progressing: exceeded quota: gpus");
    assert_eq!(answer.reason(), "Failed");
}

#[test]
fn the_object_that_runs_is_found_inside_its_wrapper_too() {
    for (test, at) in flavours() {
        let check = |cx: &mut Composer<'_>| {
            let running = cx.manifest_of("web").cloned();
            assert_eq!(running.unwrap()["kind"], "Deployment", "{at}");
            assert_eq!(cx.manifest_of("other"), None);
            web("small", deployment("web:1", "1", 2))(cx)
        };
        test.compose(check).unwrap();
    }
}

/// The Deployment with variables, all of them updatable.
fn with_variables(names: &[(&str, &str)]) -> Value {
    let mut wanted = deployment("web:1", "1", 2);
    let variables = names.iter().map(|(name, value)| json!({"name": name, "value": value}));
    wanted["spec"]["template"]["spec"]["containers"][0]["env"] = variables.collect();
    wanted
}

fn web_with(names: &'static [(&str, &str)]) -> impl FnOnce(&mut Composer<'_>) -> Result<(), Error> {
    move |cx| {
        let updatable = ["spec.replicas", "spec.template.spec.containers.web.env"];
        cx.object("web", with_variables(names)).updatable(&updatable).add()
    }
}

/// An API server's answer to `names`, with additions of its webhooks.
fn answered(names: &'static [(&str, &str)], added: &[Value]) -> Value {
    let mut asked = object(&namespaced().compose(web_with(names)).unwrap(), "web");
    asked["metadata"]["generation"] = json!(3);
    let variables = &mut asked["spec"]["template"]["spec"]["containers"][0]["env"];
    variables.as_array_mut().unwrap().extend_from_slice(added);
    asked["status"] = running()["status"].clone();
    asked
}

#[test]
fn removed_variable_is_awaited_and_foreign_ones_are_ignored() {
    const BOTH: &[(&str, &str)] = &[("A", "1"), ("B", "1Gi")];
    let proxy = json!({"name": "PROXY", "value": "http://proxy"});
    for added in [vec![], vec![proxy]] {
        let test = namespaced().with("web", answered(BOTH, &added));
        let is_ready = |names| test.compose(web_with(names)).unwrap().resources["web"].1;
        assert!(is_ready(BOTH), "{added:?}");
        assert!(!is_ready(&[("A", "1")]), "{added:?}");
        assert!(!is_ready(&[]), "{added:?}");
        assert!(!is_ready(&[("A", "1"), ("B", "1024Mi")]), "a variable is not a quantity");
    }
}
