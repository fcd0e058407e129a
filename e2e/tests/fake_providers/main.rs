//! The fake providers on a real API server: managed resources behave there as with real providers.
//!
//! Needs etcd and kube-apiserver (`cargo xtask tools`), and PostgreSQL for the kinds of
//! provider-sql.
#![allow(clippy::unwrap_used, clippy::needless_pass_by_value)]

mod bench;
mod examples;
mod postgres;
mod power;
mod server;

use std::time::Duration;

use bench::{Bench, Composite, condition, external_name, until};
use serde_json::{Value, json};

const EC2: &str = "ec2.aws.upbound.io/v1beta1";
const GKE: &str = "container.gcp.upbound.io/v1beta2";
const IAM: &str = "iam.aws.upbound.io/v1beta1";
const CLOUD_SQL: &str = "sql.gcp.upbound.io/v1beta2";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn resources_live_and_die_as_with_a_real_provider() {
    let Some(mut bench) = Bench::start().await else { return };
    {
        let bench = &bench;
        tokio::join!(
            siblings_find_each_other_and_go_in_the_clouds_order(bench),
            a_refusal_is_told_and_recovers(bench),
            resource_in_creation_cannot_be_deleted_yet(bench),
            missing_provider_config_prevents_creation(bench),
            immutable_field_is_reported_and_other_fields_change(bench),
            a_paused_resource_rests(bench),
            an_orphan_stays_in_the_cloud_and_is_found_again(bench),
            observed_resource_must_exist(bench),
            resource_that_is_only_observed_stays_in_the_cloud(bench),
            released_policy_is_deleted_with_its_role(bench),
            connection_details_go_into_a_secret_of_the_resource(bench),
            vanished_resource_comes_back_under_another_name(bench),
            a_namespaced_resource_answers_too(bench),
            power::machine_is_stopped_and_started(bench),
            power::start_without_capacity_recovers(bench),
            power::instance_state_of_a_deleted_machine_fails(bench),
            examples::every_example_becomes_ready_and_goes(bench),
            postgres_answers(bench),
        );
    }
    restart_keeps_all_resources(&mut bench).await;
}

async fn postgres_answers(bench: &Bench) {
    if bench.postgres.is_some() {
        tokio::join!(
            postgres::an_app_gets_a_database_of_its_own(bench),
            postgres::database_in_use_cannot_be_dropped(bench),
            postgres::a_grant_hangs_without_its_database(bench),
        );
    }
}

fn sibling() -> Value {
    json!({"matchControllerRef": true})
}

fn security_group(composite: &Composite<'_>) -> Value {
    composite.resource(
        EC2,
        "SecurityGroup",
        "group",
        json!({"region": "us-east-1", "description": "d", "vpcId": "vpc-1"}),
    )
}

fn instance(composite: &Composite<'_>) -> Value {
    let params = json!({"region": "us-east-1", "ami": "ami-1", "instanceType": "t3.micro",
        "vpcSecurityGroupIdSelector": sibling()});
    composite.resource("ec2.aws.upbound.io/v1beta2", "Instance", "instance", params)
}

fn bucket(composite: &Composite<'_>) -> Value {
    let params = json!({"region": "us-east-1", "forceDestroy": true});
    composite.resource("s3.aws.upbound.io/v1beta2", "Bucket", "bucket", params)
}

async fn siblings_find_each_other_and_go_in_the_clouds_order(bench: &Bench) {
    let composite = bench.composite("siblings").await;
    let instance = composite.make(instance(&composite)).await;
    bench
        .told(
            &instance,
            "Synced",
            "False",
            "cannot resolve references: mg.Spec.ForProvider.VPCSecurityGroupIds",
        )
        .await;
    let group = composite.make(security_group(&composite)).await;
    let seen = bench.ready(&instance).await;
    let group_id = external_name(&bench.ready(&group).await);
    assert!(group_id.starts_with("sg-"));
    assert_eq!(seen["spec"]["forProvider"]["vpcSecurityGroupIds"], json!([group_id]));
    assert_eq!(
        seen["spec"]["forProvider"]["vpcSecurityGroupIdRefs"],
        json!([{"name": "siblings-group"}])
    );
    assert_eq!(seen["spec"]["forProvider"]["tenancy"], "default", "late initialisation");
    assert_eq!(seen["status"]["atProvider"]["id"], json!(external_name(&seen)));
    assert_eq!(seen["status"]["atProvider"]["instanceState"], "running");
    assert_eq!(seen["metadata"]["finalizers"], json!(["finalizer.managedresource.crossplane.io"]));
    assert!(seen["metadata"]["annotations"]["crossplane.io/external-create-succeeded"].is_string());
    assert_eq!(condition(&seen, "Synced")["observedGeneration"], seen["metadata"]["generation"]);

    tokio::time::sleep(Duration::from_secs(2)).await;
    let later = bench.get(&instance).await;
    assert_eq!(
        seen["metadata"]["resourceVersion"], later["metadata"]["resourceVersion"],
        "an idle resource is not written"
    );

    bench.delete(&group).await;
    let refused = bench.told(&group, "Synced", "False", "DependencyViolation").await;
    assert_eq!(condition(&refused, "LastAsyncOperation")["reason"], "AsyncDeleteFailure");
    assert_eq!(condition(&refused, "Ready")["reason"], "Deleting");
    bench.delete(&instance).await;
    bench.gone(&instance).await;
    bench.gone(&group).await;
    assert_eq!(bench.cloud("siblings").await, Vec::<Value>::new());
}

async fn missing_provider_config_prevents_creation(bench: &Bench) {
    let composite = bench.composite("unconfigured").await;
    let mut bucket = bucket(&composite);
    bucket["spec"]["providerConfigRef"] = json!({"name": "later"});
    let bucket = composite.make(bucket).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let seen = bench.get(&bucket).await;
    assert_eq!(
        (&seen["status"], &seen["metadata"]["finalizers"]),
        (&Value::Null, &Value::Null),
        "the provider is silent"
    );
    assert_eq!(bench.cloud("unconfigured").await, Vec::<Value>::new());
    let config = json!({"apiVersion": "aws.upbound.io/v1beta1", "kind": "ProviderConfig", "metadata": {"name": "later"},
        "spec": {"credentials": {"source": "IRSA"}}});
    bench.create(config).await;
    bench.ready(&bucket).await;
    bench.delete(&bucket).await;
    bench.gone(&bucket).await;
}

async fn a_refusal_is_told_and_recovers(bench: &Bench) {
    let composite = bench.composite("refused").await;
    let quota = "kind: SecurityGroup\nlabels: {crossplane.io/composite: refused}\ncreate: The maximum number has been reached";
    bench.rule("refused", Some(quota)).await;
    let group = composite.make(security_group(&composite)).await;
    let refused = bench
        .told(&group, "LastAsyncOperation", "False", "async create failed: The maximum number")
        .await;
    assert_eq!(condition(&refused, "Ready")["reason"], "Creating");
    assert_eq!(bench.cloud("refused").await, Vec::<Value>::new());
    bench.rule("refused", None).await;
    bench.ready(&group).await;

    bench
        .rule(
            "refused",
            Some("{labels: {crossplane.io/composite: refused}, unavailable: It is on fire, delete: Not now}"),
        )
        .await;
    bench.told(&group, "Ready", "False", "It is on fire").await;
    bench.delete(&group).await;
    bench.told(&group, "Synced", "False", "delete failed: async delete failed: Not now").await;
    bench.rule("refused", None).await;
    bench.gone(&group).await;
}

async fn resource_in_creation_cannot_be_deleted_yet(bench: &Bench) {
    bench.rule("slow", Some("{labels: {crossplane.io/composite: slow}, seconds: 600}")).await;
    let composite = bench.composite("slow").await;
    let group = composite.make(security_group(&composite)).await;
    bench.told(&group, "Ready", "False", "Creating").await;
    bench.delete(&group).await;
    let refused = bench
        .told(&group, "Synced", "False", "delete failed: create operation that started at 2")
        .await;
    assert_eq!(condition(&refused, "Ready")["reason"], "Deleting");
    assert_eq!(condition(&refused, "LastAsyncOperation"), Value::Null, "no deletion has begun");
    assert_eq!(bench.cloud("slow").await.len(), 1);
    bench.rule("slow", None).await;
    bench.gone(&group).await;
    assert_eq!(bench.cloud("slow").await, Vec::<Value>::new());
}

async fn immutable_field_is_reported_and_other_fields_change(bench: &Bench) {
    let composite = bench.composite("changed").await;
    let group = composite.make(security_group(&composite)).await;
    bench.ready(&group).await;
    bench.patch(&group, json!({"spec": {"forProvider": {"description": "other"}}})).await;
    let words = r#"cannot change the value of the argument "description" from "d" to "other""#;
    let refused = bench.told(&group, "Synced", "False", words).await;
    assert_eq!(condition(&refused, "LastAsyncOperation")["reason"], "AsyncUpdateFailure");
    assert_eq!(condition(&refused, "Ready")["status"], "True");
    bench
        .patch(&group, json!({"spec": {"forProvider": {"description": "d", "tags": {"a": "1"}}}}))
        .await;
    bench.told(&group, "Synced", "True", "").await;
    until("the change in the cloud", || async {
        let cloud = bench.cloud("changed").await;
        let entry = cloud[0]["data"]["external.json"].as_str().unwrap().to_owned();
        if entry.contains(r#""a": "1""#) { Ok(()) } else { Err(entry) }
    })
    .await;
}

async fn a_paused_resource_rests(bench: &Bench) {
    let composite = bench.composite("paused").await;
    let mut group = security_group(&composite);
    group["metadata"]["annotations"] = json!({"crossplane.io/paused": "true"});
    let group = composite.make(group).await;
    bench.told(&group, "Synced", "False", "ReconcilePaused").await;
    assert_eq!(bench.cloud("paused").await, Vec::<Value>::new());
    let resume = json!({"metadata": {"annotations": {"crossplane.io/paused": null}}});
    bench.patch(&group, resume.clone()).await;
    bench.ready(&group).await;

    let pause = json!({"metadata": {"annotations": {"crossplane.io/paused": "true"}}});
    bench.patch(&group, pause).await;
    bench.told(&group, "Synced", "False", "ReconcilePaused").await;
    bench.delete(&group).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(bench.get(&group).await.is_object(), "a paused resource is not released");
    assert_eq!(bench.cloud("paused").await.len(), 1);
    bench.patch(&group, resume).await;
    bench.gone(&group).await;
    assert_eq!(bench.cloud("paused").await, Vec::<Value>::new());
}

async fn an_orphan_stays_in_the_cloud_and_is_found_again(bench: &Bench) {
    let composite = bench.composite("orphan").await;
    let mut bucket = bucket(&composite);
    bucket["spec"]["deletionPolicy"] = json!("Orphan");
    let made = composite.make(bucket.clone()).await;
    bench.ready(&made).await;
    bench.delete(&made).await;
    bench.gone(&made).await;
    let left = bench.cloud("orphan").await;
    assert_eq!(left.len(), 1, "{left:#?}");

    bucket["spec"]["deletionPolicy"] = json!("Delete");
    let again = composite.make(bucket).await;
    bench.ready(&again).await;
    assert_eq!(bench.cloud("orphan").await.len(), 1);
    bench.delete(&again).await;
    bench.gone(&again).await;
    assert_eq!(bench.cloud("orphan").await, Vec::<Value>::new());
}

async fn observed_resource_must_exist(bench: &Bench) {
    let composite = bench.composite("observed").await;
    let mut bucket = bucket(&composite);
    bucket["spec"]["managementPolicies"] = json!(["Observe"]);
    let bucket = composite.make(bucket).await;
    bench
        .told(&bucket, "Synced", "False", "observe failed: external resource does not exist")
        .await;
    bench.delete(&bucket).await;
    bench.gone(&bucket).await;
}

async fn resource_that_is_only_observed_stays_in_the_cloud(bench: &Bench) {
    let composite = bench.composite("released").await;
    let bucket = composite.make(bucket(&composite)).await;
    bench.ready(&bucket).await;
    bench.patch(&bucket, json!({"spec": {"managementPolicies": ["Observe"]}})).await;
    bench.delete(&bucket).await;
    bench.gone(&bucket).await;
    assert_eq!(bench.cloud("released").await.len(), 1);
}

async fn released_policy_is_deleted_with_its_role(bench: &Bench) {
    let composite = bench.composite("inside").await;
    let role = json!({"assumeRolePolicy": "{}", "forceDetachPolicies": true});
    let role = composite.make(composite.resource(IAM, "Role", "role", role)).await;
    bench.ready(&role).await;
    let policy = json!({"role": "inside-role", "policyArn": "arn:aws:iam::aws:policy/Example"});
    let mut policy = composite.resource(IAM, "RolePolicyAttachment", "policy", policy);
    policy["spec"]["managementPolicies"] = json!(["Observe", "Create", "Update"]);
    let policy = composite.make(policy).await;
    bench.ready(&policy).await;
    bench.delete(&policy).await;
    bench.gone(&policy).await;
    assert_eq!(bench.cloud("inside").await.len(), 2);
    bench.delete(&role).await;
    bench.gone(&role).await;
    assert_eq!(bench.cloud("inside").await.len(), 0);
}

async fn connection_details_go_into_a_secret_of_the_resource(bench: &Bench) {
    let composite = bench.composite("connected").await;
    let secret = |name: &str| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "default"}});
    let params = json!({"location": "us-central1", "deletionProtection": false});
    let mut cluster = composite.resource(GKE, "Cluster", "cluster", params);
    cluster["spec"]["writeConnectionSecretToRef"] =
        json!({"name": "connected-cluster", "namespace": "default"});
    let pool = composite.resource(
        GKE,
        "NodePool",
        "pool",
        json!({"location": "us-central1", "clusterSelector": sibling()}),
    );
    let cluster = composite.make(cluster).await;
    let pool = composite.make(pool).await;
    let made = bench.ready(&cluster).await;
    bench.ready(&pool).await;
    let published = bench.get(&secret("connected-cluster")).await;
    assert_eq!(published["type"], "connection.crossplane.io/v1alpha1");
    assert_eq!(published["metadata"]["ownerReferences"][0]["uid"], made["metadata"]["uid"]);
    assert_eq!(published["metadata"]["ownerReferences"][0]["controller"], true);
    assert!(published["data"]["kubeconfig"].is_string());

    let password = json!({"name": "connected-given", "namespace": "default", "key": "password"});
    let user = json!({"instance": "connected-server", "passwordSecretRef": password});
    let user = composite.make(composite.resource(CLOUD_SQL, "User", "user", user)).await;
    bench.told(&user, "Synced", "False", r#"cannot get secret "connected-given""#).await;
    let mut given = secret("connected-given");
    given["stringData"] = json!({"password": "x"});
    bench.create(given).await;
    bench.told(&user, "LastAsyncOperation", "False", "instance does not exist").await;
    let params = json!({"region": "us-central1", "databaseVersion": "POSTGRES_17"});
    composite.make(composite.resource(CLOUD_SQL, "DatabaseInstance", "server", params)).await;
    bench.ready(&user).await;

    // A cluster is deleted with its node pools.
    bench.delete(&cluster).await;
    bench.gone(&cluster).await;
    bench.delete(&pool).await;
    bench.gone(&pool).await;
}

async fn vanished_resource_comes_back_under_another_name(bench: &Bench) {
    let composite = bench.composite("vanished").await;
    let group = composite.make(security_group(&composite)).await;
    let before = external_name(&bench.ready(&group).await);
    bench.vanish(&bench.cloud("vanished").await[0]).await;
    until("another group", || async {
        let found = bench.get(&group).await;
        let (after, id) = (external_name(&found), &found["status"]["atProvider"]["id"]);
        let is_ready = condition(&found, "Ready")["status"] == "True";
        if after != before && *id == after && is_ready { Ok(()) } else { Err(format!("{found:#}")) }
    })
    .await;
}

async fn a_namespaced_resource_answers_too(bench: &Bench) {
    let composite = bench.composite("namespaced").await;
    let mut bucket = bucket(&composite);
    bucket["apiVersion"] = json!("s3.aws.m.upbound.io/v1beta1");
    bucket["metadata"]["namespace"] = json!("default");
    bucket["spec"]["writeConnectionSecretToRef"] = json!({"name": "namespaced-bucket"});
    bucket["spec"]["managementPolicies"] = json!(["Observe", "Create", "Update", "LateInitialize"]);
    let bucket = composite.make(bucket).await;
    bench.ready(&bucket).await;
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "namespaced-bucket", "namespace": "default"}});
    assert!(bench.get(&secret).await["data"]["arn"].is_string());
    bench.delete(&bucket).await;
    bench.gone(&bucket).await;
    assert_eq!(bench.cloud("namespaced").await.len(), 1, "without the right to delete it stays");
}

/// The fake providers are killed during the creation of a security group. After their restart, they
/// continue.
async fn restart_keeps_all_resources(bench: &mut Bench) {
    bench.rule("restart", Some("{labels: {crossplane.io/composite: restarted}, seconds: 1}")).await;
    let group = {
        let composite = bench.composite("restarted").await;
        composite.make(security_group(&composite)).await
    };
    bench.told(&group, "Ready", "False", "Creating").await;
    let begun = bench.cloud("restarted").await;
    assert_eq!(begun.len(), 1);
    bench.kill().await;
    bench.revive();
    let ready = bench.ready(&group).await;
    assert_eq!(bench.cloud("restarted").await, begun);
    assert!(begun[0]["data"]["external.json"].as_str().unwrap().contains(&external_name(&ready)));
}
