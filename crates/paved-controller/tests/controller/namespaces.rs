//! The list of namespaces that must not be deleted yet.

use serde_json::{Value, json};

use crate::world::{Environment, World, listed_namespaces, until};

/// An environment of the namespaced API.
fn workspace(name: &str, namespace: &str) -> Value {
    json!({
        "apiVersion": "platform.m.acme.io/v1alpha1",
        "kind": "GpuDevWorkspace",
        "metadata": {"name": name, "namespace": namespace},
    })
}

async fn list_becomes(world: &World, expected: Value) {
    let is_it = || world.listed_namespaces().is_some_and(|found| found == expected);
    until(&format!("the list {expected}"), is_it).await;
}

#[tokio::test]
async fn namespaces_of_the_namespaced_api_are_listed() {
    let world = World::new().await;
    world.compose(&mut Environment::new("claim", json!({})));
    world.put(&workspace("ada", "vision"));
    let _replica = world.start("a");
    list_becomes(&world, json!({"vision": "GpuDevWorkspace/ada"})).await;
    world.put(&workspace("bob", "shop"));
    world.put(&workspace("grace", "vision"));
    let both = "GpuDevWorkspace/ada, GpuDevWorkspace/grace";
    list_becomes(&world, json!({"shop": "GpuDevWorkspace/bob", "vision": both})).await;
    let mut deleted = workspace("ada", "vision");
    deleted["metadata"]["deletionTimestamp"] = json!("2026-01-01T12:00:00Z");
    deleted["metadata"]["finalizers"] = json!(["foregroundDeletion"]);
    world.put(&deleted);
    world.remove(&workspace("bob", "shop"));
    list_becomes(&world, json!({"vision": both})).await;
    world.remove(&deleted);
    world.remove(&workspace("grace", "vision"));
    list_becomes(&world, json!({})).await;
}

#[tokio::test]
async fn platform_without_environments_has_an_empty_list() {
    let world = World::new().await;
    let _replica = world.start("a");
    until("the list", || world.get(&listed_namespaces()).is_some()).await;
    assert_eq!(world.listed_namespaces().unwrap(), json!({}));
}

#[tokio::test]
async fn next_leader_corrects_the_list() {
    let world = World::new().await;
    world.put(&workspace("ada", "vision"));
    let first = world.start("a");
    list_becomes(&world, json!({"vision": "GpuDevWorkspace/ada"})).await;
    first.kill();
    world.remove(&workspace("ada", "vision"));
    world.put(&workspace("bob", "shop"));
    let _second = world.start("b");
    world.settle().await;
    assert_eq!(world.listed_namespaces().unwrap(), json!({"vision": "GpuDevWorkspace/ada"}));
    world.clocks.pass("3s");
    list_becomes(&world, json!({"shop": "GpuDevWorkspace/bob"})).await;
}

#[tokio::test]
async fn only_the_leader_writes_and_only_changes() {
    let world = World::new().await;
    world.put(&workspace("ada", "vision"));
    let _first = world.start("a");
    world.led().await;
    let _second = world.start("b");
    world.settle().await;
    assert_eq!(world.list_writes(), 1);
    world.put(&workspace("bob", "shop"));
    world.settle().await;
    assert_eq!(world.list_writes(), 2);
    let mut same = workspace("bob", "shop");
    same["spec"] = json!({"power": "Stopped"});
    world.put(&same);
    world.clocks.pass("5m");
    world.settle().await;
    assert_eq!(world.list_writes(), 2);
}

#[tokio::test]
async fn list_changed_by_another_writer_is_corrected() {
    let world = World::new().await;
    world.put(&workspace("ada", "vision"));
    let _replica = world.start("a");
    let expected = json!({"vision": "GpuDevWorkspace/ada"});
    list_becomes(&world, expected.clone()).await;
    let mut edited = listed_namespaces();
    edited["data"] = json!({"other": "x"});
    world.put(&edited);
    world.clocks.pass("2m");
    list_becomes(&world, expected.clone()).await;
    world.remove(&listed_namespaces());
    world.clocks.pass("2m");
    list_becomes(&world, expected).await;
}

#[tokio::test]
async fn refused_write_is_repeated() {
    let world = World::new().await;
    let _replica = world.start("a");
    list_becomes(&world, json!({})).await;
    let path = "/configmaps/paved-road-namespaces";
    for failure in [(409, "the object has been modified"), (403, "may not update configmaps")] {
        world.fail("update", path, failure);
        world.put(&workspace("ada", "vision"));
        world.settle().await;
        assert_eq!(world.listed_namespaces().unwrap(), json!({}));
        world.cluster.faults.mend();
        list_becomes(&world, json!({"vision": "GpuDevWorkspace/ada"})).await;
        world.remove(&workspace("ada", "vision"));
        list_becomes(&world, json!({})).await;
    }
}
