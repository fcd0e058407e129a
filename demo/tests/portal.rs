//! Tests the portal on the fake cluster, from the kinds to the stream of changes.

#![expect(clippy::unwrap_used, reason = "a failed test panics")]

mod support;

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use demo::Demo;
use futures::{AsyncBufReadExt, StreamExt};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use support::{client, eventually, start};

/// A portal. Dropping it stops the process.
struct Portal {
    process: Child,
    url: String,
    client: Client,
    _folder: tempfile::TempDir,
}

impl Drop for Portal {
    fn drop(&mut self) {
        _ = self.process.kill();
        _ = self.process.wait();
    }
}

/// The `paved` program, which was built with this test.
fn paved() -> PathBuf {
    let here = std::env::current_exe().unwrap();
    let built = here.parent().and_then(|folder| folder.parent()).unwrap().join("paved");
    let built = std::env::var_os("PAVED_ROAD_PROGRAMS")
        .map_or(built, |folder| PathBuf::from(folder).join("paved"));
    assert!(
        built.is_file(),
        "{} does not exist. Run `cargo build --workspace --bins`",
        built.display()
    );
    built
}

#[tokio::test(flavor = "multi_thread")]
async fn applied_environment_belongs_to_its_user() {
    let demo = Demo::start(support::FAST, &[]).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (kubeconfig, file) = (folder.path().join("kubeconfig"), folder.path().join("pool.yaml"));
    demo.write_kubeconfig(&kubeconfig).unwrap();
    let pools = support::api(
        &client(&format!("http://{}", demo.address)),
        demo::NAMESPACE,
        "platform.acme.io/v1alpha1",
        "StockPool",
        "stockpools",
    );
    let mut pool =
        demo::seed::example("stock-pool", function_paved_road::apis::Flavour::Claims).unwrap();
    pool["metadata"] = json!({"name": "mine", "namespace": demo::NAMESPACE});
    for (name, labels, owner) in [
        ("mine", json!({}), Some("ada")),
        // A second apply neither removes nor changes it.
        ("mine", json!({"team": "vision"}), Some("ada")),
        ("theirs", json!({"owner": "grace"}), Some("grace")),
    ] {
        pool["metadata"]["name"] = json!(name);
        pool["metadata"]["labels"] = labels;
        std::fs::write(&file, pool.to_string()).unwrap();
        let mut command = Command::new(paved());
        command.arg("apply").arg(&file).arg("--kubeconfig").arg(&kubeconfig);
        let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let metadata = pools.get(name).await.unwrap().metadata;
        let label = metadata.labels.as_ref().and_then(|labels| labels.get("owner"));
        assert_eq!(label.map(String::as_str), owner, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_accepts_the_fake_cluster() {
    let demo = Demo::start(support::FAST, &[]).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    demo.write_kubeconfig(&kubeconfig).unwrap();
    let mut command = Command::new(paved());
    command.arg("doctor").arg("--kubeconfig").arg(&kubeconfig);
    let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
    let told = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success() && !told.contains('✗'), "{told}");
    for line in
        ["2.3.4 serves both", "Function function-paved-road", "XRD environments.platform.m.acme.io"]
    {
        assert!(told.contains(line), "{line} is missing: {told}");
    }
}

impl Portal {
    async fn start(demo: &Demo) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let kubeconfig = folder.path().join("kubeconfig");
        demo.write_kubeconfig(&kubeconfig).unwrap();
        let mut command = Command::new(paved());
        command
            .args(["portal", "--auth", "none", "--listen", "127.0.0.1:0", "--kubeconfig"])
            .arg(&kubeconfig);
        let mut process = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines().map(Result::unwrap);
        let address = lines.find_map(|line| {
            let told: Value = serde_json::from_str(&line).unwrap_or_default();
            told["address"].as_str().map(str::to_owned)
        });
        std::thread::spawn(move || lines.for_each(drop));
        let url = format!("http://{}", address.unwrap());
        let portal = Self { process, client: client(&url), url, _folder: folder };
        eventually("the portal is ready", async || {
            (portal.ask("GET", "/readyz", &Value::Null).await.0 == 200).then_some(())
        })
        .await;
        portal
    }

    fn request(&self, method: &str, path: &str, body: &Value) -> http::Request<Vec<u8>> {
        let request = http::Request::builder().method(method).uri(path).header("origin", &self.url);
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        request.header("content-type", "application/json").body(body).unwrap()
    }

    async fn ask(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let answer =
            self.client.send(self.request(method, path, body).map(Body::from)).await.unwrap();
        let status = answer.status().as_u16();
        let bytes = answer.into_body().collect_bytes().await.unwrap();
        (status, serde_json::from_slice(&bytes).unwrap_or_default())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn user_creates_watches_connects_to_and_deletes_environment() {
    let (demo, _client) = start(0.05, &[]).await;
    let portal = Portal::start(&demo).await;
    let (_, me) = portal.ask("GET", "/api/v1/me", &Value::Null).await;
    assert_eq!((&me["login"], &me["namespaces"]), (&json!(demo::USER), &json!([demo::NAMESPACE])));
    let (_, kinds) = portal.ask("GET", "/api/v1/kinds", &Value::Null).await;
    assert_eq!(kinds.as_array().map(Vec::len), Some(10), "{kinds}");

    let stream = portal
        .client
        .request_stream(portal.request("GET", "/api/v1/watch", &Value::Null))
        .await
        .unwrap();
    let mut events = Box::pin(stream).lines().filter_map(|line| {
        let line = line.unwrap();
        let seen = line
            .strip_prefix("data:")
            .map(|text| serde_json::from_str::<Value>(text.trim()).unwrap());
        std::future::ready(seen.filter(|seen| seen["name"] == "mine"))
    });
    let document = json!({"apiVersion": "platform.acme.io/v1alpha1", "kind": "GpuDevWorkspaceClaim", "metadata": {"name": "mine"},
        "spec": {"parameters": {"owner": demo::USER}, "writeConnectionSecretToRef": {"name": "mine-conn"}}});
    let (status, previewed) = portal.ask("POST", "/api/v1/preview", &document).await;
    assert!(
        status == 200 && previewed["parts"].as_array().is_some_and(|parts| parts.len() > 4),
        "{previewed}"
    );
    let (status, made) = portal.ask("POST", "/api/v1/environments", &document).await;
    assert_eq!((status, &made["owner"]), (201, &json!(demo::USER)), "{made}");

    let mut progress = Vec::new();
    while let Some(seen) = events.next().await {
        progress.push(seen["progress"].as_str().unwrap().to_owned());
        if seen["ready"] == true {
            break;
        }
    }
    progress.dedup();
    assert!(progress.len() >= 4, "{progress:?}");
    let place = "/api/v1/environments/team-vision/gpudevworkspaceclaims.platform.acme.io/mine";
    let (_, connection) = portal.ask("POST", &format!("{place}/connection"), &Value::Null).await;
    assert!(connection["values"]["host"].is_string(), "{connection}");

    assert_eq!(portal.ask("DELETE", place, &Value::Null).await.0, 202);
    let mut last = Value::Null;
    let gone = async || portal.ask("GET", place, &Value::Null).await.0 == 404;
    while !gone().await {
        last = events.next().await.unwrap();
    }
    assert_eq!(
        (&last["phase"], &last["deletedAt"].is_string()),
        (&json!("Deleting"), &true),
        "{last}"
    );
}
