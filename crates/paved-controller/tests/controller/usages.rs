//! Deleted Usages are changed, so that Crossplane looks at them at once.

use fake_kube::faults::Failure;
use serde_json::{Value, json};

use crate::world::{Environment, World, until};

/// A Usage of a composite's resource in slot `of` by the one in slot `by`.
fn usage(of: &str, by: &str, group: &str) -> Value {
    let end = |name: &str| {
        json!({"apiVersion": "ec2.aws.m.upbound.io/v1beta1", "kind": "Any",
            "resourceRef": {"name": name}})
    };
    json!({
        "apiVersion": "protection.crossplane.io/v1beta1",
        "kind": "Usage",
        "metadata": {
            "name": format!("{of}-by-{by}"),
            "namespace": "team",
            "labels": {"crossplane.io/composite": "ada"},
            "finalizers": ["usage.apiextensions.crossplane.io"],
            "ownerReferences": [{"apiVersion": format!("{group}/v1alpha1"), "controller": true,
                "kind": "GpuDevWorkspace", "name": "ada", "uid": "1"}],
        },
        "spec": {"of": end(of), "by": end(by), "replayDeletion": true},
        "status": {"conditions": []},
    })
}

fn deleted(mut usage: Value) -> Value {
    usage["metadata"]["deletionTimestamp"] = json!("2026-01-01T12:00:00Z");
    usage
}

fn is_changed(world: &World, usage: &Value) -> bool {
    let object = world.get(usage).unwrap();
    let changed = object["status"]["conditions"][0]["type"] == "DeletionFollowed";
    assert_eq!(object["spec"], usage["spec"]);
    changed
}

#[tokio::test]
async fn deleted_usage_of_an_environment_is_changed_when_its_user_is_unprotected() {
    let world = World::new().await;
    let (network, cluster) = (
        deleted(usage("network", "cluster", "platform.acme.io")),
        deleted(usage("cluster", "app", "platform.acme.io")),
    );
    let stays = usage("bucket", "site", "platform.acme.io");
    let foreign = deleted(usage("a", "b", "example.org"));
    for usage in [&network, &cluster, &stays, &foreign] {
        world.put(usage);
    }
    let _replica = world.start("a");
    until("a change", || is_changed(&world, &cluster)).await;
    world.settle().await;
    assert!(![&network, &stays, &foreign].into_iter().any(|usage| is_changed(&world, usage)));
    world.remove(&cluster);
    until("the next change", || is_changed(&world, &network)).await;
    assert!(![&stays, &foreign].into_iter().any(|usage| is_changed(&world, usage)));
}

#[tokio::test]
async fn only_the_leader_changes_usages() {
    let world = World::new().await;
    let first = world.start("a");
    world.led().await;
    let _second = world.start("b");
    first.kill();
    let cluster = deleted(usage("cluster", "app", "platform.acme.io"));
    world.put(&cluster);
    world.settle().await;
    assert_eq!(world.leader().as_deref().map(|name| name.starts_with('a')), Some(true));
    assert!(!is_changed(&world, &cluster));
    until("a change by the next leader", || is_changed(&world, &cluster)).await;
}

#[tokio::test]
async fn controller_without_the_right_to_usages_does_all_else() {
    let world = World::new().await;
    for verb in ["list", "watch"] {
        world.cluster.faults.fail(Failure {
            verb,
            path: "/usages".to_owned(),
            code: 403,
            message: "usages is forbidden",
            is_executed: false,
        });
    }
    let cluster = deleted(usage("cluster", "app", "platform.acme.io"));
    world.put(&cluster);
    world.compose(&mut Environment::new("ada", json!({})));
    let _replica = world.start("a");
    world.led().await;
    assert!(!is_changed(&world, &cluster));
    until("the list of namespaces", || world.listed_namespaces().is_some()).await;
}
