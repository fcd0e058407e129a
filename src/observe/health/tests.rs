use super::*;
use serde_json::json;

fn read(object: Value) -> Health {
    let Value::Object(object) = object else { panic!("not an object") };
    from_object(&object)
}

fn health(object: Value) -> (bool, State) {
    let health = read(object);
    (health.ready, health.state)
}

fn with(conditions: &Value) -> Value {
    json!({"apiVersion": "ec2.aws.upbound.io/v1beta2", "kind": "Instance", "status": {"conditions": conditions}})
}

#[test]
fn only_a_true_condition_is_ready() {
    for (status, ready) in
        [("True", true), ("False", false), ("Unknown", false), ("", false), ("true", false)]
    {
        assert_eq!(
            health(with(&json!([{"type": "Ready", "status": status}]))).0,
            ready,
            "{status}"
        );
    }
    for none in [json!(null), json!([]), json!("Ready"), json!([{"type": "Ready"}]), json!([null])]
    {
        assert!(!health(with(&none)).0, "{none}");
    }
}

#[test]
fn waiting_is_not_failing() {
    let synced = |message: &str| {
        with(
            &json!([{"type": "Synced", "status": "False", "reason": "ReconcileError", "message": message}]),
        )
    };
    assert_eq!(
        health(synced(
            "cannot resolve references: mg.Spec.ForProvider.Role: referenced field was empty"
        ))
        .1,
        State::Waiting
    );
    assert_eq!(health(synced("cannot get credentials: Secret \"a\" not found")).1, State::Waiting);
    assert_eq!(health(synced("create failed: AccessDenied")).1, State::Failed);
    let last = json!([{"type": "Synced", "status": "True"}, {"type": "LastAsyncOperation", "status": "False", "reason": "AsyncCreateFailure", "message": "quota"}]);
    assert_eq!(health(with(&last)).1, State::Failed);
}

#[test]
fn rejected_update_fails_a_ready_resource() {
    let conditions = json!([{"type": "Ready", "status": "True"}, {"type": "Synced", "status": "False", "reason": "ReconcileError", "message": "update failed: cannot change"}]);
    assert_eq!(health(with(&conditions)), (true, State::Failed));
}

#[test]
fn unobserved_generation_is_not_ready() {
    let seen = |generation: Value| {
        let mut object = with(&json!([
            {"type": "Ready", "status": "True", "observedGeneration": 1},
            {"type": "Synced", "status": "True", "observedGeneration": generation},
        ]));
        object["metadata"]["generation"] = json!(3);
        health(object)
    };
    assert_eq!(seen(json!(2)), (false, State::Creating));
    assert_eq!(seen(json!(3)), (true, State::Available), "Ready may keep an older generation");
    assert_eq!(seen(json!(null)), (true, State::Available), "older providers report none");
}

#[test]
fn failed_cloud_state_overrides_ready_conditions() {
    let said = |api: &str, kind: &str, field: &str, state: &str| {
        health(json!({"apiVersion": api, "kind": kind, "status": {
            "atProvider": {field: state},
            "conditions": [{"type": "Ready", "status": "True"}, {"type": "Synced", "status": "True"}],
        }}))
    };
    for api in ["eks.aws.upbound.io/v1beta2", "eks.aws.m.upbound.io/v1beta1"] {
        let group = |state| said(api, "NodeGroup", "status", state);
        assert_eq!(group("CREATE_FAILED"), (false, State::Failed));
        assert_eq!(group("DEGRADED"), (false, State::Failed));
        for fine in ["ACTIVE", "UPDATING", ""] {
            assert_eq!(group(fine), (true, State::Available), "{fine}");
        }
        assert_eq!(said(api, "Cluster", "status", "FAILED"), (false, State::Failed));
    }
    let rds = "rds.aws.m.upbound.io/v1beta1";
    assert_eq!(said(rds, "Instance", "status", "storage-full"), (false, State::Failed));
    assert_eq!(said(rds, "Instance", "status", "modifying"), (true, State::Available));
    let ec2 = "ec2.aws.upbound.io/v1beta2";
    assert_eq!(said(ec2, "Instance", "instanceState", "stopped"), (false, State::Waiting));
    assert_eq!(said(ec2, "Instance", "instanceState", "running"), (true, State::Available));
}

#[test]
fn failed_cloud_state_keeps_the_providers_own_words() {
    let object = json!({"apiVersion": "eks.aws.upbound.io/v1beta2", "kind": "NodeGroup", "status": {
        "atProvider": {"status": "CREATE_FAILED"},
        "conditions": [
            {"type": "Ready", "status": "True"},
            {"type": "Synced", "status": "False", "reason": "ReconcileError", "message": "NodeCreationFailure"},
        ],
    }});
    let health = read(object);
    assert_eq!((health.ready, health.message.as_ref()), (false, "NodeCreationFailure"));
}

fn unavailable_release(status: &Value) -> Health {
    let mut status = status.clone();
    status["conditions"] = json!([
        {"type": "Ready", "status": "False", "reason": "Unavailable"},
        {"type": "Synced", "status": "True"},
    ]);
    let object = json!({"apiVersion": "helm.crossplane.io/v1beta1", "kind": "Release",
        "spec": {"rollbackLimit": 3, "forProvider": {"chart": {"version": "v1.21.1"}}}, "status": status});
    read(object)
}

#[test]
fn release_with_a_differently_spelled_chart_version_fails() {
    let health =
        unavailable_release(&json!({"atProvider": {"state": "deployed", "version": "1.21.1"}}));
    assert_eq!(health.state, State::Failed);
    assert!(health.message.contains("Write 1.21.1 in app.chart.version"), "{}", health.message);
    let same = json!({"atProvider": {"state": "deployed", "version": "v1.21.1"}});
    assert_eq!(unavailable_release(&same).state, State::Creating);
}

#[test]
fn release_at_its_rollback_limit_has_failed() {
    let status = |failed: i64| {
        json!({"failed": failed, "atProvider": {"state": "failed", "version": "v1.21.1",
               "releaseDescription": "context deadline exceeded"}})
    };
    assert_eq!(unavailable_release(&status(2)).state, State::Creating);
    let health = unavailable_release(&status(3));
    assert_eq!(health.state, State::Failed);
    assert!(health.message.contains("context deadline exceeded; it tries again after a change"));
}

#[test]
fn built_in_kinds_have_a_table() {
    let ready = [
        json!({"apiVersion": "v1", "kind": "Namespace", "status": {"phase": "Active"}}),
        json!({"apiVersion": "v1", "kind": "Secret", "data": {}}),
        json!({"apiVersion": "v1", "kind": "Service", "spec": {"type": "ClusterIP"}}),
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"generation": 2}, "spec": {"replicas": 1},
               "status": {"observedGeneration": 2, "updatedReplicas": 1, "availableReplicas": 1}}),
    ];
    for object in ready {
        assert!(health(object.clone()).0, "{object}");
    }
    let stale = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"generation": 3}, "spec": {"replicas": 1},
                       "status": {"observedGeneration": 2, "updatedReplicas": 1, "availableReplicas": 1}});
    assert!(!health(stale).0);
    assert!(
        !health(json!({"apiVersion": "v1", "kind": "Service", "spec": {"type": "LoadBalancer"}})).0
    );
}

fn application(status: &Value) -> Health {
    let source = json!({
        "repoURL": "https://charts.example.org", "chart": "podinfo", "targetRevision": "6.9.2",
        "helm": {"releaseName": "app", "valuesObject": {"replicaCount": 2}},
    });
    read(json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "spec": {"source": source}, "status": status,
    }))
}

#[test]
fn application_is_ready_for_the_source_that_was_compared() {
    let status = |source: Value| json!({"health": {"status": "Healthy"}, "sync": {"status": "Synced", "comparedTo": {"source": source}}});
    let same = json!({
        "repoURL": "https://charts.example.org", "chart": "podinfo", "targetRevision": "6.9.2",
        "helm": {"releaseName": "app", "valuesObject": {"replicaCount": 2}},
    });
    assert!(application(&status(same.clone())).ready);
    for (pointer, before) in [
        ("/repoURL", json!("https://others.example.org")),
        ("/chart", json!("hello")),
        ("/targetRevision", json!("6.9.1")),
        ("/helm/valuesObject", json!({"replicaCount": 1})),
    ] {
        let mut source = same.clone();
        crossplane::json::set(&mut source, &pointer[1..].split('/').collect::<Vec<_>>(), before);
        let health = application(&status(source));
        assert_eq!((health.ready, health.message.as_ref()), (false, "is being changed"));
    }
}

#[test]
fn failed_application_has_the_words_of_helm() {
    let pull = "Failed to load target state: failed to generate manifest for source 1 of 1: \
        rpc error: code = Unknown desc = error fetching chart: failed to fetch chart: failed \
        to get command args to log: `helm pull --destination \
        /tmp/8a1f2a52-0d2b-4e43-9d3e-5a9f4f0c7d10 --version 6.9.9 --repo \
        https://charts.example.org podinfo` failed exit status 1: Error: chart \"podinfo\" \
        version \"6.9.9\" not found in https://charts.example.org repository";
    let template = "Failed to load target state: `helm template . --name-template app` failed \
        exit status 1: Error: execution error at (podinfo/templates/a.yaml:5:3): host is \
        required\n\nUse --debug flag to render out invalid YAML";
    let slow = "`helm pull --destination /tmp/1 podinfo` failed timeout after 1m30s";
    for (said, words) in [
        (
            pull,
            "chart \"podinfo\" version \"6.9.9\" not found in https://charts.example.org \
             repository",
        ),
        (template, "execution error at (podinfo/templates/a.yaml:5:3): host is required"),
        (slow, "helm failed timeout after 1m30s"),
        ("repository not accessible", "repository not accessible"),
    ] {
        let condition = json!([{"type": "ComparisonError", "message": said}]);
        let health = application(&json!({
            "conditions": condition, "health": {"status": "Healthy"}, "sync": {"status": "Unknown"},
        }));
        assert_eq!((health.state, health.message.as_ref()), (State::Failed, words));
    }
}

#[test]
fn application_that_cannot_be_applied_has_failed_with_the_reason() {
    let why = "one or more objects failed to apply, reason: pods is forbidden: exceeded quota";
    let status = |phase: &str| {
        json!({
            "health": {"status": "Missing"}, "sync": {"status": "OutOfSync"},
            "operationState": {"phase": phase, "message": why},
        })
    };
    for phase in ["Failed", "Error"] {
        let health = application(&status(phase));
        assert_eq!((health.state, health.message.as_ref()), (State::Failed, why));
    }
    let running = application(&status("Running"));
    assert_eq!(running.state, State::Creating);
    assert_eq!(running.message, format!("is Missing and OutOfSync in Argo CD: {why}"));
}
