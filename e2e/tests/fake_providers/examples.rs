//! Every managed resource of every example becomes ready, cluster-scoped and namespaced, and leaves
//! no traces after its deletion.

use std::collections::BTreeSet;
use std::path::Path;

use function_paved_road::models::KINDS;
use futures::future::join_all;
use serde_json::{Value, json};

use super::bench::{Bench, Composite};

/// Kinds of other providers, the kind that changes an existing machine, which `power` tests, and the
/// kind that reads a Secret, which the scenarios test.
const ELSEWHERE: [&str; 4] = ["Function", "Object", "Release", "InstanceState"];

/// The examples' resources in their ready state.
const READY: [&str; 2] = ["observed/ready.yaml", "namespaced/observed/ready.yaml"];

pub async fn every_example_becomes_ready_and_goes(bench: &Bench) {
    let more = bench.composite("no-example").await;
    let rest = kinds_without_example(&more);
    let mut all = vec![(more, rest)];
    let mut met = BTreeSet::new();
    // One scope after the other, because databases and roles of PostgreSQL have the same names in
    // both.
    for (flavour, file) in READY.iter().enumerate() {
        for example in std::fs::read_dir(xtask::workspace::root().join("examples")).unwrap() {
            let example = example.unwrap().path();
            let name = format!("{}-{flavour}", example.file_name().unwrap().to_str().unwrap());
            let composite = bench.composite(&name).await;
            let resources = resources(&composite, &example.join(file));
            all.push((composite, resources));
        }
        met.extend(live_and_die(std::mem::take(&mut all)).await);
    }
    let played = KINDS.iter().map(|info| info.kind.kind).filter(|kind| !ELSEWHERE.contains(kind));
    let missing: Vec<_> = played.filter(|kind| !met.contains(*kind)).collect();
    assert!(missing.is_empty(), "never tried: {missing:?}");
}

/// Resources of the kinds that only variants of the examples have.
fn kinds_without_example(composite: &Composite<'_>) -> Vec<Value> {
    let sibling = json!({"matchControllerRef": true});
    let region = "us-east-1";
    let eks = |kind, version, name, params| {
        composite.resource(&format!("eks.aws.upbound.io/{version}"), kind, name, params)
    };
    let password = json!({"name": "no-example-given", "namespace": "default", "key": "password"});
    let rds = json!({"region": region, "engine": "postgres", "instanceClass": "db.t4g.micro", "username": "app",
        "skipFinalSnapshot": true, "autoGeneratePassword": true, "passwordSecretRef": password});
    let pool = json!({"name": "default", "vmSize": "Standard_B2s", "nodeCount": 1});
    vec![
        composite.resource("rds.aws.upbound.io/v1beta3", "Instance", "rds", rds),
        composite.resource(
            "iam.aws.upbound.io/v1beta1",
            "Role",
            "role",
            json!({"assumeRolePolicy": "{}"}),
        ),
        composite.resource(
            "iam.aws.upbound.io/v1beta1",
            "RolePolicy",
            "policy",
            json!({"roleSelector": sibling, "policy": "{}"}),
        ),
        eks(
            "Addon",
            "v1beta1",
            "addon",
            json!({"region": region, "addonName": "a", "clusterNameSelector": sibling}),
        ),
        composite.resource(
            "cloudplatform.gcp.upbound.io/v1beta2",
            "ProjectIAMMember",
            "project-access",
            json!({"project": "p", "role": "roles/r", "member": "user:ada@example.org"}),
        ),
        composite.resource(
            "storage.gcp.upbound.io/v1beta2",
            "BucketIAMMember",
            "bucket-access",
            json!({"bucket": "b", "role": "roles/r", "member": "user:ada@example.org"}),
        ),
        eks(
            "Cluster",
            "v1beta2",
            "eks",
            json!({"region": region, "roleArn": "arn:r", "vpcConfig": {"subnetIds": ["s"]}}),
        ),
        eks(
            "NodeGroup",
            "v1beta2",
            "nodes",
            json!({"region": region, "clusterNameSelector": sibling, "nodeRoleArn": "arn:n",
            "subnetIds": ["s"], "scalingConfig": {"desiredSize": 1, "maxSize": 1, "minSize": 1}}),
        ),
        eks(
            "ClusterAuth",
            "v1beta1",
            "auth",
            json!({"region": region, "clusterNameSelector": sibling}),
        ),
        composite.resource(
            "containerservice.azure.upbound.io/v1beta2",
            "KubernetesCluster",
            "aks",
            json!({"location": "westeurope", "resourceGroupName": "g", "defaultNodePool": pool}),
        ),
    ]
}

/// Makes the resources of all composites at once and deletes them. Returns their kinds.
async fn live_and_die(all: Vec<(Composite<'_>, Vec<Value>)>) -> BTreeSet<String> {
    let resources = || {
        all.iter()
            .flat_map(|(composite, resources)| resources.iter().map(move |one| (composite, one)))
    };
    for (composite, resource) in resources() {
        provide(composite.bench, resource).await;
    }
    join_all(all.iter().map(|(composite, resources)| live_and_die_together(composite, resources)))
        .await;
    resources().map(|(_, resource)| resource["kind"].as_str().unwrap().to_owned()).collect()
}

/// Creates all resources of a composite, waits until they are ready, deletes them, and checks that
/// none is left.
async fn live_and_die_together(composite: &Composite<'_>, resources: &[Value]) {
    let bench = composite.bench;
    let made = join_all(resources.iter().map(|resource| composite.make(resource.clone()))).await;
    join_all(made.iter().map(|resource| bench.ready(resource))).await;
    has_generated_passwords(bench, &made).await;
    // A Grant needs its database, and a database its owner.
    for last in [None, Some("Database"), Some("Role")] {
        let is_last = |one: &&Value| {
            let in_postgres = one["apiVersion"].as_str().unwrap().starts_with("postgresql");
            last == Some(one["kind"].as_str().unwrap())
                .filter(|kind| in_postgres && *kind != "Grant")
        };
        let going: Vec<_> = made.iter().filter(is_last).collect();
        join_all(going.iter().map(|resource| bench.delete(resource))).await;
        join_all(going.iter().map(|resource| bench.gone(resource))).await;
    }
    assert_eq!(
        bench.cloud(&composite.name).await,
        Vec::<Value>::new(),
        "{} left something",
        composite.name
    );
}

/// A password that the provider generates is in the Secret that the resource refers to, and in its
/// connection Secret if it has one.
async fn has_generated_passwords(bench: &Bench, made: &[Value]) {
    for resource in
        made.iter().filter(|one| one["spec"]["forProvider"]["autoGeneratePassword"] == true)
    {
        let reference = &resource["spec"]["forProvider"]["passwordSecretRef"];
        let secret = json!({"apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": reference["name"], "namespace": reference["namespace"]}});
        let found = bench.get(&secret).await;
        assert!(found["data"][reference["key"].as_str().unwrap()].is_string(), "{found:#}");
        assert_eq!(found["metadata"]["ownerReferences"][0]["uid"], resource["metadata"]["uid"]);
    }
}

/// The managed resources with fake providers, as a user would create them.
fn resources(composite: &Composite<'_>, file: &Path) -> Vec<Value> {
    let documents = xtask::yaml::read(file).unwrap();
    let played = documents.into_iter().filter(|document| {
        let group = document["apiVersion"].as_str().unwrap_or_default();
        (group.contains("upbound.io") || group.starts_with("postgresql"))
            && (composite.bench.postgres.is_some() || !group.starts_with("postgresql"))
    });
    let remade = played.map(|document| {
        let metadata = &document["metadata"];
        let api_version = document["apiVersion"].as_str().unwrap();
        let mut resource =
            composite.resource(api_version, document["kind"].as_str().unwrap(), "", json!({}));
        resource["metadata"]["name"] = metadata["name"].clone();
        if metadata["namespace"].is_string() {
            resource["metadata"]["namespace"] = metadata["namespace"].clone();
        }
        for (label, value) in metadata["labels"].as_object().into_iter().flatten() {
            if label != "crossplane.io/composite" {
                resource["metadata"]["labels"][label] = value.clone();
            }
        }
        resource["spec"] = unresolved(&document["spec"]);
        resource
    });
    remade.collect()
}

/// A spec before any provider wrote into it. The external resource and its contents are deleted
/// with it.
fn unresolved(spec: &Value) -> Value {
    let mut spec = spec.clone();
    let parts = spec.as_object_mut().unwrap();
    parts.remove("deletionPolicy");
    parts.remove("managementPolicies");
    let params = parts["forProvider"].as_object_mut().unwrap();
    if let Some(force) = params.get_mut("forceDestroy") {
        *force = json!(true);
    }
    let selectors: Vec<String> =
        params.keys().filter_map(|key| key.strip_suffix("Selector")).map(str::to_owned).collect();
    for base in selectors {
        for end in ["", "s", "Ref", "Refs"] {
            params.remove(&format!("{base}{end}"));
        }
    }
    spec
}

/// Creates the namespaces and Secrets that a resource requires.
async fn provide(bench: &Bench, resource: &Value) {
    let own = &resource["metadata"]["namespace"];
    let references = [
        &resource["spec"]["writeConnectionSecretToRef"],
        &resource["spec"]["forProvider"]["passwordSecretRef"],
    ];
    for namespace in references.iter().map(|reference| &reference["namespace"]).chain([own]) {
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        if namespace["metadata"]["name"].is_string() && bench.get(&namespace).await.is_null() {
            bench.create(namespace).await;
        }
    }
    let password = references[1];
    if password.is_object() && resource["spec"]["forProvider"]["autoGeneratePassword"] != true {
        let namespace = if own.is_null() { &password["namespace"] } else { own };
        let mut data = json!({});
        data[password["key"].as_str().unwrap()] = json!("secret");
        bench
            .create(json!({"apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": password["name"], "namespace": namespace}, "stringData": data}))
            .await;
    }
}
