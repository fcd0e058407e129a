//! Environments become ready one resource at a time, with connection details. They fail and
//! recover, and their deletion leaves no objects.

#![expect(clippy::unwrap_used, reason = "a failed test panics")]

mod support;

use crossplane::json::overlay;
use demo::seed::{self, example};
use function_paved_road::apis::{APIS, Flavour};
use futures::future::join_all;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use kube::discovery::pinned_kind;
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use support::{FAST, condition, eventually, is_ready, start};

const NAMESPACE: &str = "team-shop";

/// Applies an example, and returns the API of its kind and the object's name.
async fn apply(
    client: &Client,
    api: &str,
    flavour: Flavour,
    over: &Value,
) -> (Api<DynamicObject>, String) {
    let mut object = example(api, flavour).unwrap();
    let name = format!("{api}-{flavour:?}").to_lowercase();
    object["metadata"]["name"] = json!(name);
    object["metadata"]["namespace"] = json!(NAMESPACE);
    overlay(&mut object["spec"], over);
    let kind = GroupVersionKind::gvk(
        flavour.default_group(),
        "v1alpha1",
        object["kind"].as_str().unwrap(),
    );
    let (resource, _) = pinned_kind(client, &kind).await.unwrap();
    let objects = Api::namespaced_with(client.clone(), NAMESPACE, &resource);
    objects.patch(&name, &PatchParams::apply("test"), &Patch::Apply(&object)).await.unwrap();
    (objects, name)
}

/// All objects in the cluster, without those that existed before the first environment.
async fn left(client: &Client) -> Vec<String> {
    const OURS: [&str; 4] =
        ["Namespace", "CompositeResourceDefinition", "Composition", "EnvironmentConfig"];
    let groups = client.list_api_groups().await.unwrap().groups;
    let mut versions: Vec<String> = groups
        .iter()
        .flat_map(|group| &group.versions)
        .map(|version| version.group_version.clone())
        .collect();
    versions.retain(|version| !version.starts_with("apiextensions.crossplane.io/v2"));
    let mut lists = vec![("v1".to_owned(), client.list_core_api_resources("v1").await.unwrap())];
    for version in versions {
        let list = client.list_api_group_resources(&version).await.unwrap();
        lists.push((version, list));
    }
    let mut left = Vec::new();
    for (version, list) in lists {
        for resource in list.resources.iter().filter(|one| !OURS.contains(&one.kind.as_str())) {
            let objects = support::api(client, "", &version, &resource.kind, &resource.name);
            let found = objects.list(&ListParams::default()).await.unwrap();
            left.extend(
                found.items.iter().map(|one| format!("{} {}", resource.kind, one.name_any())),
            );
        }
    }
    left.sort();
    left.dedup();
    left
}

/// The Secret for connection details in an environment's spec.
fn secret_of(object: &DynamicObject) -> Option<String> {
    let named = object.data["spec"]["writeConnectionSecretToRef"]["name"].as_str();
    named.map(str::to_owned)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn environment_of_each_kind_becomes_ready_and_leaves_no_resource() {
    let (_demo, client) = start(FAST, &[]).await;
    let before = left(&client).await;
    let each = APIS.iter().flat_map(|api| Flavour::ALL.map(|flavour| (api.info().name, flavour)));
    join_all(each.map(|(api, flavour)| comes_and_goes(&client, api, flavour))).await;
    assert_eq!(left(&client).await, before);
}

async fn comes_and_goes(client: &Client, api: &str, flavour: Flavour) {
    let (objects, name) = apply(client, api, flavour, &json!({})).await;
    let ready = eventually(&format!("{name} is ready"), async || {
        let object = objects.get(&name).await.unwrap();
        let parts = object.data["status"]["resources"].as_array().map_or(0, Vec::len);
        (is_ready(&object) && parts > 0).then_some(object)
    })
    .await;
    assert_eq!(ready.data["status"]["phase"], "Ready", "{name}");
    if let Some(secret) = secret_of(&ready) {
        let secrets: Api<Secret> = Api::namespaced(client.clone(), NAMESPACE);
        let secret = eventually(&format!("{name} has its Secret"), async || {
            secrets.get_opt(&secret).await.unwrap()
        })
        .await;
        assert!(!secret.data.unwrap_or_default().is_empty(), "{name}");
    }
    objects.delete(&name, &DeleteParams::foreground()).await.unwrap();
    eventually(&format!("{name} is gone"), async || {
        objects.get_opt(&name).await.unwrap().is_none().then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn resources_become_ready_and_are_deleted_one_after_the_other() {
    let (_demo, client) = start(0.1, &[]).await;
    let before = left(&client).await;
    let (objects, name) = apply(&client, "gpu-workspace", Flavour::Claims, &json!({})).await;
    let count = |object: &DynamicObject| {
        let parts = object.data["status"]["resources"].as_array().cloned().unwrap_or_default();
        parts.iter().filter(|part| part["ready"] == true).count()
    };
    let mut counts = Vec::new();
    eventually("the environment is ready", async || {
        let object = objects.get(&name).await.unwrap();
        counts.push(count(&object));
        is_ready(&object).then_some(())
    })
    .await;
    assert!(counts.is_sorted(), "{counts:?}");
    counts.dedup();
    assert!(counts.len() >= 4, "{counts:?}");

    // During the deletion, the resources themselves have the state.
    let machines = support::api(&client, "", "ec2.aws.upbound.io/v1beta2", "Instance", "instances");
    let groups =
        support::api(&client, "", "ec2.aws.upbound.io/v1beta1", "SecurityGroup", "securitygroups");
    objects.delete(&name, &DeleteParams::foreground()).await.unwrap();
    let going = async |parts: &Api<DynamicObject>| {
        let found = parts.list(&ListParams::default()).await.unwrap().items;
        found.first().map(|one| one.metadata.deletion_timestamp.is_some())
    };
    eventually("the machine goes", async || (going(&machines).await == Some(true)).then_some(()))
        .await;
    assert_eq!(going(&groups).await, Some(false), "the machine still uses its firewall");
    let claim = objects.get(&name).await.unwrap();
    assert_eq!(condition(&claim, "Ready")["reason"], "Deleting");
    eventually("the machine is gone", async || going(&machines).await.is_none().then_some(()))
        .await;
    assert!(going(&groups).await.is_some(), "the firewall remains until then");
    eventually("the claim is gone", async || {
        objects.get_opt(&name).await.unwrap().is_none().then_some(())
    })
    .await;
    assert_eq!(left(&client).await, before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refused_resource_is_named_and_recovers_after_a_change() {
    let (_demo, client) = start(FAST, &[]).await;
    let over = json!({"parameters": {"instanceType": "p5.4xlarge"}});
    for flavour in Flavour::ALL {
        let (objects, name) = apply(&client, "gpu-workspace", flavour, &over).await;
        let failed = eventually("the environment fails", async || {
            let object = objects.get(&name).await.unwrap();
            (object.data["status"]["phase"] == "Failed").then_some(object)
        })
        .await;
        let message = condition(&failed, "Provisioned")["message"].as_str().unwrap();
        assert!(
            message.contains("instance (Instance)") && message.contains("VcpuLimitExceeded"),
            "{message}"
        );
        let smaller = json!({"spec": {"parameters": {"instanceType": "g4dn.xlarge"}}});
        objects.patch(&name, &PatchParams::default(), &Patch::Merge(smaller)).await.unwrap();
        eventually("the environment recovers", async || {
            is_ready(&objects.get(&name).await.unwrap()).then_some(())
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn initial_environments_have_all_kinds_and_phases() {
    let (_demo, client) = start(1.0, &seed::all()).await;
    let mut phases = std::collections::BTreeMap::new();
    let mut unpriced = Vec::new();
    for (kind, plural) in [
        ("GpuDevWorkspaceClaim", "gpudevworkspaceclaims"),
        ("ApplicationEnvironment", "applicationenvironments"),
        ("EnvironmentClaim", "environmentclaims"),
        ("StockPool", "stockpools"),
        ("Environment", "environments"),
    ] {
        let objects = support::api(&client, "", "platform.acme.io/v1alpha1", kind, plural);
        for one in objects.list(&ListParams::default()).await.unwrap() {
            let phase = one.data["status"]["phase"].as_str().unwrap_or_default().to_owned();
            phases.insert(one.name_any(), phase);
            if one.data["status"]["estimatedHourlyUSD"].is_null() {
                unpriced.push(one.name_any());
            }
        }
    }
    let told: Vec<(&str, &str)> =
        phases.iter().map(|(name, phase)| (name.as_str(), phase.as_str())).collect();
    let expected = [
        ("ada", "Ready"),
        ("batch", "Stopped"),
        ("checkout", "Ready"),
        ("grace", "Provisioning"),
        ("preview", "Ready"),
        ("render", "Ready"),
        ("shop", "Ready"),
        ("training", "Failed"),
    ];
    assert_eq!(told, expected);
    assert_eq!(unpriced, ["preview"], "docs/getting-started/portal-tour.md names it");

    let objects = support::api(
        &client,
        "",
        "platform.m.acme.io/v1alpha1",
        "UnifiedEnvironment",
        "unifiedenvironments",
    );
    let found = objects.list(&ListParams::default()).await.unwrap().items;
    let going: Vec<String> = found.iter().map(ResourceExt::name_any).collect();
    assert_eq!(going, ["spring-sale"]);
    assert!(found[0].metadata.deletion_timestamp.is_some());
}

#[tokio::test]
async fn object_without_an_owner_stays() {
    let (_demo, client) = start(FAST, &[]).await;
    let before = left(&client).await;
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), NAMESPACE);
    let map = ConfigMap {
        metadata: kube::core::ObjectMeta { name: Some("mine".into()), ..Default::default() },
        ..ConfigMap::default()
    };
    maps.create(&PostParams::default(), &map).await.unwrap();
    let (objects, name) = apply(&client, "stock-pool", Flavour::Namespaced, &json!({})).await;
    eventually("it is ready", async || is_ready(&objects.get(&name).await.unwrap()).then_some(()))
        .await;
    objects.delete(&name, &DeleteParams::foreground()).await.unwrap();
    eventually("the environment is gone", async || {
        objects.get_opt(&name).await.unwrap().is_none().then_some(())
    })
    .await;
    let added: Vec<String> =
        left(&client).await.into_iter().filter(|one| !before.contains(one)).collect();
    assert_eq!(added, ["ConfigMap mine"]);
}
