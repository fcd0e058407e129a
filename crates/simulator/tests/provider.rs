//! Tests the behaviour of kinds in each round.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::needless_pass_by_value)]

mod support;

use serde_json::{Value, json};
use simulator::provider::model::Model;
use simulator::provider::{Pace, Provider, State};
use support::{SIBLING, aws, gcp, message, namespaced, rounds, status, world};

#[test]
fn an_unknown_managed_resource_is_ready_after_one_round() {
    let mut world =
        world(json!({"a": {"apiVersion": "x.example.org/v1", "kind": "Thing", "spec": {}}}));
    let changes = Provider::default().answer(&mut world);
    assert_eq!((changes[0].slot.as_str(), &changes[0].state), ("a", &State::Ready));
    let object = &world.resources()["a"];
    assert_eq!(
        object["metadata"]["annotations"]["crossplane.io/external-name"],
        object["metadata"]["name"]
    );
    assert_eq!(
        (status(&world, "a", "Synced"), status(&world, "a", "Ready")),
        ("True".into(), "True".into())
    );
}

#[test]
fn deleted_namespace_prevents_the_connection_of_namespaced_resources_only() {
    let resources = |family: &str| {
        json!({"i": {"apiVersion": format!("ec2.{family}.upbound.io/v1beta1"), "kind": "Instance",
            "spec": {"forProvider": {"region": "us-east-1"}}}})
    };
    let mut provider = Provider::new(Pace::Instant);
    provider.delete_namespace();
    let mut team = namespaced(resources("aws.m"));
    provider.answer(&mut team);
    let told = message(&team, "i", "Synced");
    assert!(told.starts_with("connect failed: cannot track ProviderConfig usage"), "{told}");
    let end = "in namespace team because it is being terminated";
    assert!(
        told.contains("providerconfigusages.aws.m.upbound.io") && told.ends_with(end),
        "{told}"
    );
    let mut cluster = world(resources("aws"));
    provider.answer(&mut cluster);
    assert_eq!(status(&cluster, "i", "Ready"), "True");
}

#[test]
fn second_answer_leaves_a_ready_resource_unchanged() {
    let mut world = world(json!({"i": aws("Instance", json!({"region": "us-east-1"}))}));
    let mut provider = Provider::new(Pace::Instant);
    assert_eq!(provider.answer(&mut world).len(), 1);
    let before = world.resources().clone();
    assert!(provider.answer(&mut world).is_empty());
    assert_eq!(*world.resources(), before);
}

#[test]
fn resource_changes_are_reported_once() {
    let mut world = world(json!({"db": gcp("sql", "DatabaseInstance", json!({}))}));
    let mut provider = Provider::new(Pace::Rounds);
    let told: Vec<usize> = (0..6).map(|_| provider.answer(&mut world).len()).collect();
    assert_eq!(told, [1, 0, 1, 0, 0, 0]);
}

#[test]
fn machine_becomes_ready_in_rounds_after_its_security_group() {
    let mut world = world(json!({
        "instance": aws("Instance", json!({"region": "eu-west-1", "vpcSecurityGroupIdSelector": SIBLING()})),
        "security-group": aws("SecurityGroup", json!({"region": "eu-west-1"})),
        "ssh": aws("SecurityGroupIngressRule", json!({"securityGroupIdSelector": SIBLING()})),
    }));
    assert_eq!(rounds(&mut world, &["security-group", "ssh", "instance"]), [1, 2, 4]);
    let instance = &world.resources()["instance"];
    let id = instance["metadata"]["annotations"]["crossplane.io/external-name"].as_str().unwrap();
    assert!(id.starts_with("i-") && id.len() == 19, "{id}");
    let group = &world.resources()["security-group"]["metadata"]["annotations"]["crossplane.io/external-name"];
    assert_eq!(instance["spec"]["forProvider"]["vpcSecurityGroupIds"], json!([group]));
    assert_eq!(instance["spec"]["forProvider"]["availabilityZone"], "eu-west-1a");
    let seen = &instance["status"]["atProvider"];
    assert_eq!((&seen["id"], &seen["instanceState"]), (&json!(id), &json!("running")));
    assert!(seen["publicIp"].is_string() && seen["privateIp"].is_string());
    assert_eq!(status(&world, "instance", "LastAsyncOperation"), "True");
}

#[test]
fn iam_resources_find_each_other() {
    let mut world = world(json!({
        "role": aws("Role", json!({})),
        "role-ssm": aws("RolePolicyAttachment", json!({"roleSelector": SIBLING(), "policyArn": "arn:aws:x"})),
        "instance-profile": aws("InstanceProfile", json!({"roleSelector": SIBLING()})),
    }));
    assert_eq!(rounds(&mut world, &["role", "role-ssm", "instance-profile"]), [1, 2, 2]);
    let role = &world.resources()["role"]["metadata"]["annotations"]["crossplane.io/external-name"];
    assert_eq!(world.resources()["role-ssm"]["spec"]["forProvider"]["role"], *role);
    assert_eq!(world.resources()["role-ssm"]["spec"]["forProvider"]["policyArn"], "arn:aws:x");
}

#[test]
fn unresolved_reference_waits() {
    let mut world =
        world(json!({"db": gcp("sql", "Database", json!({"instanceSelector": SIBLING()}))}));
    let changes = Provider::new(Pace::Rounds).answer(&mut world);
    let expected =
        "cannot resolve references: mg.Spec.ForProvider.Instance: no resources matched selector";
    assert_eq!(changes[0].state, State::Waiting(expected.into()));
    assert_eq!(
        (status(&world, "db", "Synced"), message(&world, "db", "Synced")),
        ("False".into(), expected.into())
    );
    assert!(
        world.resources()["db"]["metadata"]["annotations"]
            .get("crossplane.io/external-name")
            .is_none()
    );
}

#[test]
fn cluster_and_database_become_ready_in_rounds_and_write_secrets() {
    let secret = |name: &str| json!({"name": name, "namespace": "crossplane-system"});
    let mut cluster = gcp("container", "Cluster", json!({"location": "us-central1"}));
    cluster["spec"]["writeConnectionSecretToRef"] = secret("cluster");
    let mut instance = gcp("sql", "DatabaseInstance", json!({"region": "us-central1"}));
    instance["spec"]["writeConnectionSecretToRef"] = secret("instance");
    let password = json!({"name": "given", "namespace": "crossplane-system", "key": "password"});
    let mut user =
        gcp("sql", "User", json!({"instanceSelector": SIBLING(), "passwordSecretRef": password}));
    user["spec"]["writeConnectionSecretToRef"] = secret("user");
    let mut world = world(json!({
        "gke-cluster": cluster, "cloudsql-instance": instance, "database-user": user,
        "node-pool": gcp("container", "NodePool", json!({"clusterSelector": SIBLING()})),
        "bucket": gcp("storage", "Bucket", json!({"location": "US"})),
    }));
    world.put_secret(
        json!({"apiVersion": "v1", "kind": "Secret", "data": {"password": "aHVudGVyMg=="},
        "metadata": {"name": "given", "namespace": "crossplane-system"}}),
    );
    let slots = ["gke-cluster", "cloudsql-instance", "database-user", "node-pool", "bucket"];
    assert_eq!(rounds(&mut world, &slots), [4, 3, 4, 6, 1]);
    let details = |slot: &str| world.connection_details(&world.resources()[slot]);
    assert!(
        String::from_utf8_lossy(&details("gke-cluster")["kubeconfig"])
            .contains("https://198.51.100.")
    );
    assert!(
        String::from_utf8_lossy(&details("cloudsql-instance")["connectionName"])
            .starts_with("acme-dev:us-central1:")
    );
    assert_eq!(details("database-user")["password"], b"hunter2");
    let url = world.resources()["bucket"]["status"]["atProvider"]["url"].as_str().unwrap();
    assert!(url.starts_with("gs://demo-"), "{url}");
}

#[test]
fn a_user_waits_for_the_key_of_its_password() {
    let password = json!({"name": "given", "namespace": "x", "key": "password"});
    let mut world = world(
        json!({"user": gcp("sql", "User", json!({"instance": "i", "passwordSecretRef": password}))}),
    );
    let mut provider = Provider::new(Pace::Rounds);
    provider.answer(&mut world);
    assert_eq!(
        message(&world, "user", "Synced"),
        r#"cannot get secret "given" for passwordSecretRef: not found"#
    );
    let secret = |data: Value| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "given", "namespace": "x"}, "data": data});
    world.put_secret(secret(json!({})));
    provider.answer(&mut world);
    assert!(message(&world, "user", "Synced").ends_with(r#"has no key "password""#));
    world.put_secret(secret(json!({"password": "eA=="})));
    provider.answer(&mut world);
    assert_eq!(status(&world, "user", "Ready"), "True");
}

#[test]
fn resource_can_be_failed_and_repaired() {
    let mut world = world(
        json!({"i": aws("Instance", json!({})), "t": {"apiVersion": "x.org/v1", "kind": "T"}}),
    );
    let mut provider = Provider::new(Pace::Instant);
    provider.fail("i", "VcpuLimitExceeded");
    provider.fail("t", "no");
    provider.answer(&mut world);
    assert_eq!(
        message(&world, "i", "LastAsyncOperation"),
        "async create failed: VcpuLimitExceeded"
    );
    assert_eq!(status(&world, "i", "Synced"), "True");
    assert_eq!(message(&world, "t", "Synced"), "create failed: no");
    provider.mend("i");
    provider.answer(&mut world);
    assert_eq!(
        (status(&world, "i", "Ready"), status(&world, "i", "LastAsyncOperation")),
        ("True".into(), "True".into())
    );
}

#[test]
fn resources_at_instant_pace_are_ready_after_one_round() {
    let mut world = world(json!({
        "db": gcp("sql", "Database", json!({"instanceSelector": SIBLING()})),
        "instance": gcp("sql", "DatabaseInstance", json!({})),
    }));
    Provider::new(Pace::Instant).answer(&mut world);
    assert_eq!(
        (status(&world, "db", "Ready"), status(&world, "instance", "Ready")),
        ("True".into(), "True".into())
    );
}

#[test]
fn a_deployment_has_its_replicas_after_two_rounds() {
    let deployment =
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": 3}});
    let mut world = namespaced(json!({"d": deployment}));
    let mut provider = Provider::new(Pace::Rounds);
    provider.answer(&mut world);
    let seen = &world.resources()["d"]["status"];
    assert_eq!((&seen["unavailableReplicas"], seen.get("availableReplicas")), (&json!(3), None));
    provider.answer(&mut world);
    let seen = &world.resources()["d"]["status"];
    assert_eq!((&seen["availableReplicas"], &seen["observedGeneration"]), (&json!(3), &json!(1)));
    assert_eq!(status(&world, "d", "Available"), "True");
}

fn wrapped(policy: Value) -> Value {
    let manifest = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "p"}, "spec": {"replicas": 1}});
    json!({"apiVersion": "kubernetes.crossplane.io/v1alpha2", "kind": "Object",
        "spec": {"forProvider": {"manifest": manifest}, "readiness": policy}})
}

#[test]
fn object_readiness_follows_its_policy() {
    let query = |query: &str| wrapped(json!({"policy": "DeriveFromCelQuery", "celQuery": query}));
    let mut world = world(json!({
        "created": wrapped(json!({})),
        "all-true": wrapped(json!({"policy": "AllTrue"})),
        "query": query("object.status.availableReplicas == object.spec.replicas"),
        "never": query("object.status.availableReplicas == 7"),
        "derived": wrapped(json!({"policy": "DeriveFromObject"})),
    }));
    assert_eq!(
        rounds(&mut world, &["created", "all-true", "query", "never", "derived"]),
        [1, 2, 2, 0, 0]
    );
}

#[test]
fn a_release_waits_for_its_kubeconfig_and_hands_out_its_secrets() {
    let config = json!({"apiVersion": "helm.crossplane.io/v1beta1", "kind": "ProviderConfig", "metadata": {"name": "inner"},
        "spec": {"credentials": {"source": "Secret", "secretRef": {"name": "vc-v", "namespace": "n", "key": "config"}}}});
    let release = |params: Value| {
        json!({"apiVersion": "helm.crossplane.io/v1beta1", "kind": "Release",
        "metadata": {"name": if params["chart"]["name"] == "vcluster" { "v" } else { "app" }}, "spec": {"forProvider": params}})
    };
    let mut app = release(json!({"chart": {"name": "app"}, "namespace": "app"}));
    app["spec"]["providerConfigRef"] = json!({"name": "inner"});
    let mut vcluster = release(json!({"chart": {"name": "vcluster"}, "namespace": "n"}));
    vcluster["spec"]["writeConnectionSecretToRef"] = json!({"name": "out", "namespace": "x"});
    vcluster["spec"]["connectionDetails"] = json!([{"apiVersion": "v1", "kind": "Secret", "name": "vc-v",
        "namespace": "n", "fieldPath": "data.config", "toConnectionSecretKey": "kubeconfig"}]);
    let mut world = world(json!({"config": config, "vcluster": vcluster, "app": app}));
    assert_eq!(rounds(&mut world, &["vcluster", "app"]), [2, 4]);
    let kubeconfig = &world.connection_details(&world.resources()["vcluster"])["kubeconfig"];
    assert!(String::from_utf8_lossy(kubeconfig).contains("https://v.n.svc"));
}

#[test]
fn a_role_makes_its_credentials_and_a_database_waits_for_its_owner() {
    let sql = |kind: &str, params: Value| {
        json!({"apiVersion": "postgresql.sql.m.crossplane.io/v1alpha1", "kind": kind,
        "spec": {"forProvider": params, "writeConnectionSecretToRef": {"name": "creds"}}})
    };
    let mut world = namespaced(
        json!({"db": sql("Database", json!({"ownerSelector": SIBLING()})), "role": sql("Role", json!({}))}),
    );
    assert_eq!(rounds(&mut world, &["role", "db"]), [1, 2]);
    let keys: Vec<String> = world.secret_data("team", "creds").into_keys().collect();
    assert_eq!(keys, ["endpoint", "password", "port", "username"]);
}

#[test]
fn usage_labels_its_resource_and_provider_config_has_no_status() {
    let usage = json!({"apiVersion": "apiextensions.crossplane.io/v1beta1", "kind": "Usage",
        "spec": {"of": {"kind": "ProviderConfig", "resourceRef": {"name": "inner"}}, "reason": "x"}});
    let config = json!({"apiVersion": "helm.crossplane.io/v1beta1", "kind": "ProviderConfig", "metadata": {"name": "inner"}});
    let mut world = world(json!({"usage": usage, "config": config}));
    Provider::new(Pace::Rounds).answer(&mut world);
    assert_eq!(status(&world, "usage", "Ready"), "True");
    assert_eq!(world.resources()["config"]["metadata"]["labels"]["crossplane.io/in-use"], "true");
    assert!(world.resources()["config"].get("status").is_none());
}

#[test]
fn a_kind_answers_piece_by_piece_too() {
    let mut world = world(json!({
        "role": aws("Role", json!({})), "profile": aws("InstanceProfile", json!({"roleSelector": SIBLING()})),
    }));
    let mut profile = world.resources()["profile"].clone();
    let model = Model::for_object(&profile);
    assert_eq!((model.rounds(), model.is_asynchronous(), model.assigns_names()), (1, true, false));
    let waits = model.prepare(&mut profile, &world);
    assert!(waits.is_err_and(|why| why.contains("referenced field was empty")));
    Provider::new(Pace::Instant).answer(&mut world);
    assert_eq!(model.prepare(&mut profile, &world), Ok(()));
    model.identify(&mut profile);
    model.finish(&mut profile, &mut world);
    model.set_status(&mut profile, &State::Ready, &world);
    let answered = &world.resources()["profile"];
    assert_eq!((&profile["spec"], &profile["status"]), (&answered["spec"], &answered["status"]));
}

#[test]
fn model_lists_the_fields_written_by_the_provider() {
    let written = Model::for_object(&gcp("container", "NodePool", json!({}))).written();
    let params = &written["spec"]["forProvider"];
    assert_eq!((&params["cluster"], &params["clusterRef"]), (&json!("x"), &json!({"name": "x"})));
    assert_eq!((&params["maxPodsPerNode"], &params["project"]), (&json!(110), &json!("acme-dev")));
    let distribution =
        json!({"apiVersion": "cloudfront.aws.upbound.io/v1beta2", "kind": "Distribution"});
    let origin = json!([{"originAccessControlId": "x", "originAccessControlIdRef": {"name": "x"}}]);
    let written = Model::for_object(&distribution).written();
    assert_eq!(written["spec"]["forProvider"]["origin"], origin);
    assert!(written["status"]["atProvider"]["domainName"].is_string());
}

#[test]
fn cluster_version_is_late_initialized_if_policies_allow() {
    let cluster = |group: &str, kind: &str, policies: Value| {
        json!({"apiVersion": format!("{group}/v1beta2"), "kind": kind,
               "spec": {"forProvider": {}, "managementPolicies": policies}})
    };
    let facts: Value = serde_json::from_str(include_str!("../behaviour.json")).unwrap();
    for (group, kind, field) in [
        ("eks.aws.upbound.io", "Cluster", "version"),
        ("containerservice.azure.upbound.io", "KubernetesCluster", "kubernetesVersion"),
    ] {
        let chosen = &facts["kinds"][format!("{group}/{kind}")]["lateValues"][field];
        assert!(chosen.is_string(), "{chosen}");
        let mut world = world(json!({
            "all": cluster(group, kind, json!(["*"])),
            "some": cluster(group, kind, json!(["Observe", "Create", "Update", "Delete"])),
        }));
        Provider::new(Pace::Instant).answer(&mut world);
        let version = |slot: &str| world.resources()[slot]["spec"]["forProvider"][field].clone();
        assert_eq!((version("all"), version("some")), (chosen.clone(), Value::Null), "{kind}");
        let seen = &world.resources()["some"]["status"]["atProvider"][field];
        assert_eq!(seen, chosen, "the cloud chooses it without the policy too");
    }
}

#[test]
fn release_with_a_differently_spelled_version_is_never_ready() {
    let release = |version: &str| {
        json!({"apiVersion": "helm.crossplane.io/v1beta1", "kind": "Release", "spec": {"forProvider": {
            "chart": {"name": "knative-operator", "version": version}}}})
    };
    let mut world = world(json!({"index": release("v1.23.0"), "own": release("1.23.0")}));
    let mut provider = Provider::new(Pace::Instant);
    provider.answer(&mut world);
    provider.answer(&mut world);
    assert_eq!(
        (status(&world, "index", "Ready"), status(&world, "own", "Ready")),
        ("False".into(), "True".into())
    );
    assert_eq!(world.resources()["index"]["status"]["atProvider"]["version"], "1.23.0");
}
