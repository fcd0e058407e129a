//! A demo for one test, and its client.

#![allow(dead_code, clippy::unwrap_used)]

use std::time::Duration;

use demo::Demo;
use demo::seed::Seed;
use kube::api::{Api, DynamicObject};
use kube::core::ApiResource;
use kube::{Client, Config};
use serde_json::Value;

/// The maximum duration of a wait.
const TIMEOUT: Duration = Duration::from_secs(90);

/// The fastest pace.
pub const FAST: f64 = 0.01;

pub async fn start(pace: f64, seeds: &[Seed]) -> (Demo, Client) {
    let demo = Demo::start(pace, seeds).await.unwrap();
    let client = client(&format!("http://{}", demo.address));
    (demo, client)
}

pub fn client(url: &str) -> Client {
    Client::try_from(Config::new(url.parse().unwrap())).unwrap()
}

/// The objects of a kind.
pub fn api(
    client: &Client,
    namespace: &str,
    api_version: &str,
    kind: &str,
    plural: &str,
) -> Api<DynamicObject> {
    let (group, version) = crossplane::api_version::split(api_version);
    let resource = ApiResource {
        group: group.to_owned(),
        version: version.to_owned(),
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
    };
    match namespace {
        "" => Api::all_with(client.clone(), &resource),
        namespace => Api::namespaced_with(client.clone(), namespace, &resource),
    }
}

/// Waits until `look` returns a value.
pub async fn eventually<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let begin = std::time::Instant::now();
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(begin.elapsed() < TIMEOUT, "{what}: not within {TIMEOUT:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// A condition of an object.
pub fn condition<'o>(object: &'o DynamicObject, kind: &str) -> &'o Value {
    crossplane::conditions::get(&object.data, kind)
}

pub fn is_ready(object: &DynamicObject) -> bool {
    ["Ready", "Synced", "Provisioned"]
        .iter()
        .all(|kind| condition(object, kind)["status"] == "True")
}
