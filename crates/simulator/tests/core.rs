//! Crossplane's requests, applies and output. Names and orders are from Crossplane 2.3.4 and the
//! command line 2.5.0 for the same input.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::needless_pass_by_value)]

use std::convert::Infallible;

use function_proto::structs;
use function_proto::v1::{RunFunctionRequest, RunFunctionResponse};
use prost::Message as _;
use serde_json::{Value, json};
use simulator::core::{ComposeError, RunError, World, composite_from_claim, rendered};

fn xrd() -> Value {
    json!({
        "apiVersion": "apiextensions.crossplane.io/v1", "kind": "CompositeResourceDefinition",
        "metadata": {"name": "xdemos.acme.io"},
        "spec": {"group": "acme.io", "names": {"kind": "XDemo"}, "claimNames": {"kind": "Demo"},
            "connectionSecretKeys": ["host"]},
    })
}

fn composition() -> Value {
    json!({
        "metadata": {"name": "demo-comp"},
        "spec": {"writeConnectionSecretsToNamespace": "crossplane-system", "pipeline": [{"step": "s"}]},
    })
}

fn legacy() -> World {
    let composite = json!({
        "apiVersion": "acme.io/v1alpha1", "kind": "XDemo",
        "metadata": {"name": "my-demo", "labels": {
            "team": "a", "crossplane.io/claim-name": "demo", "crossplane.io/claim-namespace": "default"}},
        "spec": {"size": 3},
    });
    World::new(composite).defined_by(&xrd()).select(&composition())
}

fn namespaced() -> World {
    let composite = json!({
        "apiVersion": "acme.io/v1alpha1", "kind": "XDemo",
        "metadata": {"name": "my-demo", "namespace": "team-a", "generation": 4}, "spec": {"size": 3},
    });
    World::new(composite).select(&composition())
}

fn response() -> RunFunctionResponse {
    parsed(json!({
        "desired": {
            "composite": {
                "resource": {"status": {"foo": "bar", "n": 1}},
                "connectionDetails": {"host": "aA==", "hidden": "aA=="},
            },
            "resources": {
                "one": {"ready": "READY_TRUE", "resource": {"apiVersion": "ec2.aws.m.upbound.io/v1beta1",
                    "kind": "Instance", "metadata": {"labels": {"z": "y"}}, "spec": {"forProvider": {"n": 3.5}}}},
                "two": {"ready": "READY_FALSE", "resource": {"apiVersion": "v1", "kind": "Secret",
                    "metadata": {"name": "pinned", "namespace": "default"}, "data": {"p": "cHc="}}},
                "three": {"resource": {"apiVersion": "s3.aws.m.upbound.io/v1beta1", "kind": "Bucket", "spec": {}}},
            },
        },
        "conditions": [
            {"type": "Provisioned", "status": "STATUS_CONDITION_FALSE", "reason": "Waiting", "message": "hm",
                "target": "TARGET_COMPOSITE_AND_CLAIM"},
            {"type": "Ready", "status": "STATUS_CONDITION_TRUE", "reason": "Mine"},
        ],
        "results": [
            {"severity": "SEVERITY_WARNING", "message": "warn", "reason": "R"},
            {"severity": "SEVERITY_NORMAL", "message": "norm"},
        ],
    }))
}

fn parsed(response: Value) -> RunFunctionResponse {
    let parsed: function_sdk_rust::proto::v1::RunFunctionResponse =
        serde_json::from_value(response).unwrap();
    RunFunctionResponse::decode(&*parsed.encode_to_vec()).unwrap()
}

/// A response with these desired resources, all of them ready.
fn desiring(resources: Value) -> RunFunctionResponse {
    let mut desired = json!({});
    for (slot, resource) in resources.as_object().unwrap() {
        desired[slot] = json!({"ready": "READY_TRUE", "resource": resource});
    }
    parsed(json!({"desired": {"resources": desired}}))
}

fn condition<'a>(object: &'a Value, kind: &str) -> &'a Value {
    let conditions = object["status"]["conditions"].as_array().unwrap();
    conditions.iter().find(|condition| condition["type"] == kind).unwrap()
}

#[test]
fn a_claim_becomes_a_composite() {
    let claim = json!({
        "apiVersion": "acme.io/v1alpha1", "kind": "Demo",
        "metadata": {"name": "demo", "namespace": "team", "labels": {"a": "b", "app.kubernetes.io/name": "x"},
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}", "note": "n"}},
        "spec": {"size": 3, "compositeDeletePolicy": "Foreground", "writeConnectionSecretToRef": {"name": "x"},
            "compositionSelector": {"matchLabels": {"provider": "aws"}}},
    });
    let composite = composite_from_claim(&claim, &xrd()).unwrap();
    assert_eq!(composite, composite_from_claim(&claim, &xrd()).unwrap());
    let name = composite["metadata"]["name"].as_str().unwrap();
    assert!(name.starts_with("demo-") && name.len() == "demo-".len() + 5, "{name}");
    assert_eq!(
        composite["metadata"]["labels"],
        json!({"a": "b", "crossplane.io/claim-name": "demo", "crossplane.io/claim-namespace": "team"})
    );
    assert_eq!(composite["metadata"]["annotations"], json!({"note": "n"}));
    let claim_ref = json!({"apiVersion": "acme.io/v1alpha1", "kind": "Demo", "name": "demo", "namespace": "team"});
    let selector = json!({"matchLabels": {"provider": "aws"}});
    assert_eq!(
        composite["spec"],
        json!({"size": 3, "compositionSelector": selector, "claimRef": claim_ref})
    );
}

#[test]
fn a_claim_of_another_kind_is_refused() {
    let claim =
        json!({"apiVersion": "acme.io/v1alpha1", "kind": "Demos", "metadata": {"name": "x"}});
    let error = composite_from_claim(&claim, &xrd()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "kind: found Demos; the definition xdemos.acme.io has the claim Demo"
    );
}

#[test]
fn core_fills_the_request() {
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "sec", "namespace": "ns"},
        "data": {"username": "YWRtaW4="}});
    let instance = json!({"apiVersion": "ec2.aws.upbound.io/v1beta1", "kind": "Instance",
        "metadata": {"name": "old", "annotations": {"crossplane.io/composition-resource-name": "one"}},
        "spec": {"writeConnectionSecretToRef": {"name": "sec", "namespace": "ns"}}});
    let composite = legacy().composite().clone();
    let world = World::from_documents(composite, [secret, instance])
        .defined_by(&xrd())
        .select(&composition());
    let request = world.request(Some(&json!({"a": 1})));
    let observed = request.observed.unwrap();
    assert_eq!(observed.resources["one"].connection_details["username"], b"admin");
    assert_eq!(observed.resources.len(), 1);
    let composite = Value::Object(structs::object(observed.composite.unwrap().resource.unwrap()));
    assert_eq!(composite["metadata"]["uid"], "8ba21b04-c0bc-50ea-801e-d85299a96bc7");
    assert_eq!(composite["metadata"]["labels"]["crossplane.io/composite"], "my-demo");
    assert_eq!(composite["spec"]["compositionRef"], json!({"name": "demo-comp"}));
    let secret_ref =
        json!({"name": "8ba21b04-c0bc-50ea-801e-d85299a96bc7", "namespace": "crossplane-system"});
    assert_eq!(composite["spec"]["writeConnectionSecretToRef"], secret_ref);
    let refs =
        json!([{"apiVersion": "ec2.aws.upbound.io/v1beta1", "kind": "Instance", "name": "old"}]);
    assert_eq!(composite["spec"]["resourceRefs"], refs);
    assert_eq!(condition(&composite, "Responsive")["reason"], "WatchCircuitClosed");
    assert_eq!(request.meta.unwrap().capabilities, [1, 2, 3, 4, 5]);
}

#[test]
fn function_gets_its_required_resources() {
    let config = json!({"apiVersion": "apiextensions.crossplane.io/v1beta1", "kind": "EnvironmentConfig",
        "metadata": {"name": "paved-road"}, "data": {"x": 1}});
    let world = legacy().with_others([config]);
    let selector = json!({"apiVersion": "apiextensions.crossplane.io/v1beta1", "kind": "EnvironmentConfig",
        "matchName": "paved-road"});
    let asking = parsed(
        json!({"requirements": {"resources": {"new": selector}, "extraResources": {"old": selector}}}),
    );
    let mut requests: Vec<RunFunctionRequest> = Vec::new();
    let run = world.run(None, |request| {
        requests.push(request);
        Ok::<_, Infallible>(asking.clone())
    });
    assert_eq!(run.unwrap(), asking);
    assert_eq!(requests.len(), 2);
    assert!(requests[0].required_resources.is_empty());
    for answered in [&requests[1].required_resources["new"], &requests[1].extra_resources["old"]] {
        assert_eq!(
            structs::object(answered.items[0].resource.clone().unwrap())["data"],
            json!({"x": 1})
        );
    }
}

#[test]
fn a_function_that_never_stops_asking_is_stopped() {
    let mut calls = 0;
    let run = legacy().run(None, |_| {
        calls += 1;
        let selector = json!({"apiVersion": "v1", "kind": "Pod", "matchName": format!("p{calls}")});
        Ok::<_, Infallible>(parsed(json!({"requirements": {"resources": {"a": selector}}})))
    });
    assert!(matches!(run, Err(RunError::Unstable)));
    assert_eq!(calls, 6);
}

#[test]
fn render_prints_the_composite_its_resources_and_the_results() {
    let rendered = rendered(&legacy(), &response()).unwrap();
    assert_eq!(
        rendered.composite["metadata"],
        json!({"name": "my-demo", "labels": {
        "team": "a", "crossplane.io/claim-name": "demo", "crossplane.io/claim-namespace": "default"}})
    );
    assert_eq!(
        rendered.composite["spec"],
        json!({"size": 3, "resourceRefs": [
            {"apiVersion": "ec2.aws.m.upbound.io/v1beta1", "kind": "Instance", "name": "my-demo-d1f89c3d861f"},
            {"apiVersion": "s3.aws.m.upbound.io/v1beta1", "kind": "Bucket", "name": "my-demo-8cd1c9534381"},
            {"apiVersion": "v1", "kind": "Secret", "name": "pinned", "namespace": "default"},
        ]})
    );
    let time = "2024-01-01T00:00:00Z";
    assert_eq!(
        rendered.composite["status"],
        json!({
            "claimConditionTypes": ["Provisioned"],
            "conditions": [
                {"lastTransitionTime": time, "reason": "WatchCircuitClosed", "status": "True", "type": "Responsive"},
                {"lastTransitionTime": time, "message": "hm", "reason": "Waiting", "status": "False", "type": "Provisioned"},
                {"lastTransitionTime": time, "reason": "ReconcileSuccess", "status": "True", "type": "Synced"},
                {"lastTransitionTime": time, "message": "Unready resources: three, two", "reason": "Creating",
                    "status": "False", "type": "Ready"},
            ],
            "foo": "bar", "n": 1,
        })
    );
    assert_eq!(
        rendered.resources[0],
        json!({
            "apiVersion": "ec2.aws.m.upbound.io/v1beta1", "kind": "Instance",
            "metadata": {
                "annotations": {"crossplane.io/composition-resource-name": "one"},
                "generateName": "my-demo-", "name": "my-demo-d1f89c3d861f",
                "labels": {"crossplane.io/claim-name": "demo", "crossplane.io/claim-namespace": "default",
                    "crossplane.io/composite": "my-demo", "z": "y"},
                "ownerReferences": [{"apiVersion": "acme.io/v1alpha1", "blockOwnerDeletion": true, "controller": true,
                    "kind": "XDemo", "name": "my-demo", "uid": "8ba21b04-c0bc-50ea-801e-d85299a96bc7"}],
            },
            "spec": {"forProvider": {"n": 3.5}},
        })
    );
    assert!(rendered.resources[2]["metadata"].get("generateName").is_none());
    let messages: Vec<_> =
        rendered.results.iter().map(|result| result["message"].as_str().unwrap()).collect();
    assert_eq!(
        messages,
        [
            "Successfully selected composition: demo-comp",
            r#"Pipeline step "s": warn"#,
            r#"Pipeline step "s": norm"#,
            r#"Composed resource "three" is not yet ready"#,
            r#"Composed resource "two" is not yet ready"#,
        ]
    );
}

#[test]
fn a_namespaced_composite_keeps_its_resources_in_its_namespace() {
    let rendered = rendered(&namespaced(), &response()).unwrap();
    let name = "my-demo-3ae5891a3545";
    assert_eq!(rendered.composite["spec"]["crossplane"]["resourceRefs"][0]["name"], name);
    assert!(rendered.composite["spec"]["crossplane"]["resourceRefs"][2].get("namespace").is_none());
    assert!(rendered.composite["status"].get("claimConditionTypes").is_none());
    assert_eq!(condition(&rendered.composite, "Responsive")["observedGeneration"], 4);
    assert!(condition(&rendered.composite, "Provisioned").get("observedGeneration").is_none());
    assert!(
        rendered.resources.iter().all(|resource| resource["metadata"]["namespace"] == "team-a")
    );
    let warning = "cannot create composed resource \"two\" in namespace \"default\", using XR namespace \"team-a\" instead";
    assert!(
        rendered
            .results
            .iter()
            .any(|result| result["message"] == warning && result["severity"] == "Warning")
    );
}

#[test]
fn a_long_name_is_cut_before_its_hash() {
    for (name, prefix) in [("a".repeat(63), "a".repeat(50)), ("b".repeat(50), "b".repeat(50))] {
        let composite =
            json!({"apiVersion": "acme.io/v1", "kind": "X", "metadata": {"name": name}});
        let bucket =
            desiring(json!({"b": {"apiVersion": "s3.aws.upbound.io/v1beta2", "kind": "Bucket"}}));
        let rendered = rendered(&World::new(composite), &bucket).unwrap();
        let made = rendered.resources[0]["metadata"]["name"].as_str().unwrap();
        assert_eq!((made.len(), &made[..51]), (63, format!("{prefix}-").as_str()));
    }
}

#[test]
fn a_namespaced_composite_composes_no_cluster_scoped_kind() {
    let bucket =
        desiring(json!({"b": {"apiVersion": "s3.aws.upbound.io/v1beta2", "kind": "Bucket"}}));
    assert!(matches!(namespaced().apply(&bucket), Err(ComposeError::ClusterScoped { .. })));
    assert!(legacy().apply(&bucket).is_ok());
}

#[test]
fn apply_keeps_foreign_fields_and_removes_omitted_own_ones() {
    let bucket = |spec: Value| {
        desiring(
            json!({"b": {"apiVersion": "s3.aws.upbound.io/v1beta2", "kind": "Bucket", "spec": spec}}),
        )
    };
    let mut world = legacy();
    let first = world.apply(&bucket(json!({"forProvider": {"a": 1, "b": {"c": 1}}}))).unwrap();
    assert_eq!(first.created, ["b"]);
    world.resources_mut().get_mut("b").unwrap()["spec"]["forProvider"]["b"]["late"] = json!(true);
    let second = world.apply(&bucket(json!({"forProvider": {"a": 2}}))).unwrap();
    assert_eq!((second.created.len(), second.changed.as_slice()), (0, &["b".to_owned()][..]));
    assert_eq!(world.resources()["b"]["spec"]["forProvider"], json!({"a": 2, "b": {"late": true}}));
    assert_eq!(world.resources()["b"]["metadata"]["generation"], 2);
    let third = world.apply(&bucket(json!({"forProvider": {"a": 2}}))).unwrap();
    assert!(third.changed.is_empty());
}

#[test]
fn undesired_resource_is_deleted() {
    let mut world = legacy();
    world.apply(&response()).unwrap();
    let left =
        desiring(json!({"three": {"apiVersion": "s3.aws.upbound.io/v1beta2", "kind": "Bucket"}}));
    assert_eq!(world.apply(&left).unwrap().deleted, ["one", "two"]);
    assert_eq!(world.composite()["spec"]["resourceRefs"].as_array().unwrap().len(), 1);
    assert!(world.is_ready());
}

#[test]
fn a_fatal_response_changes_conditions_only() {
    let mut world = legacy();
    world.apply(&response()).unwrap();
    let before = world.clone();
    let fatal = parsed(json!({
        "results": [{"severity": "SEVERITY_FATAL", "message": "spec.x: bad"}],
        "conditions": [{"type": "Other", "status": "STATUS_CONDITION_TRUE", "reason": "Ok"}],
    }));
    assert_eq!(world.apply(&fatal).unwrap().fatal.as_deref(), Some("spec.x: bad"));
    assert_eq!(world.resources(), before.resources());
    assert_eq!(world.composite()["status"]["foo"], "bar");
    let message =
        r#"cannot compose resources: pipeline step "s" returned a fatal result: spec.x: bad"#;
    assert_eq!(condition(world.composite(), "Synced")["message"], message);
    assert_eq!(condition(world.composite(), "Provisioned")["status"], "Unknown");
    assert_eq!(condition(world.composite(), "Ready"), condition(before.composite(), "Ready"));
    assert_eq!(condition(world.composite(), "Other")["status"], "True");
}

#[test]
fn a_legacy_composites_connection_details_are_published_and_read_back() {
    let mut world = legacy();
    world.apply(&response()).unwrap();
    let observed = world.request(None).observed.unwrap().composite.unwrap();
    assert_eq!(
        observed.connection_details.into_iter().collect::<Vec<_>>(),
        [("host".to_owned(), b"h".to_vec())]
    );
    assert!(world.composite()["status"]["connectionDetails"]["lastPublishedTime"].is_string());
    let mut world = namespaced();
    world.apply(&response()).unwrap();
    assert!(world.request(None).observed.unwrap().composite.unwrap().connection_details.is_empty());
}
