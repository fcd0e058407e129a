//! The memory of a controller with 10,000 environments, and the time until it acts:
//!
//! ```console
//! cargo run --release --package=paved-controller --example=memory
//! ```
//!
//! The API server is another process, so that its memory does not count.
#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use fake_kube::access::{Access, User};
use fake_kube::kinds::{Kind, Kinds};
use fake_kube::{Cluster as FakeCluster, Server};
use jiff::Timestamp;
use k8s_schema::Schemas;
use kube::Config;
use paved_client::cluster::{Access as Flags, Cluster};
use paved_controller::{Clock, Limits, Options};
use serde_json::{Value, json};

/// How many environments there are.
const ENVIRONMENTS: usize = 10_000;

/// The argument of the process that serves.
const SERVE: &str = "serve";

#[tokio::main(flavor = "current_thread")]
async fn main() {
    if std::env::args().nth(1).as_deref() == Some(SERVE) {
        serve().await;
        return;
    }
    let mut server = Command::new(std::env::current_exe().unwrap())
        .arg(SERVE)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut address = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut address).unwrap();
    measure(address.trim()).await;
    server.kill().unwrap();
    server.wait().unwrap();
}

async fn measure(address: &str) {
    let mut config = Config::new(format!("http://{address}").parse().unwrap());
    config.default_retry = false;
    let cluster = Cluster::from_config(config, &Flags::default()).unwrap();
    let options = Options {
        namespace: "paved-road".to_owned(),
        identity: "one".to_owned(),
        settings: "paved-road".to_owned(),
        receiver: None,
        listen: Some(([127, 0, 0, 1], 0).into()),
        limits: Limits::default(),
        clock: Clock::system(),
    };
    let before = memory("VmRSS");
    let begin = Instant::now();
    let time = tokio::time::sleep(Duration::from_secs(30));
    paved_controller::run(cluster, options, time).await.unwrap();
    println!("{ENVIRONMENTS} environments, {:.0} s", begin.elapsed().as_secs_f64());
    println!("memory before: {before} MiB, after: {} MiB", memory("VmRSS"));
    println!("largest: {} MiB; allowed: 100 MiB", memory("VmHWM"));
}

/// A figure of this process, in MiB.
fn memory(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1024
}

/// Serves environments until the task ends.
async fn serve() {
    let names = json!({"kind": "GpuDevWorkspaceClaim", "plural": "gpudevworkspaceclaims",
        "categories": ["claim", "paved"]});
    let lease = json!({"kind": "Lease", "plural": "leases"});
    let kinds = [
        Kind::from_names("platform.acme.io", "v1alpha1", &names, true),
        Kind::from_names("coordination.k8s.io", "v1", &lease, true),
    ];
    let kinds = Kinds::new(kinds, Schemas::new([].iter()).unwrap(), Vec::new());
    let access = Access::open(User::new("controller", &[]));
    let cluster = Arc::new(FakeCluster::new(kinds, access));
    for index in 0..ENVIRONMENTS {
        let object = environment(index);
        let kind = cluster.kinds.for_object(&object).unwrap();
        let text = |field: &str| object["metadata"][field].as_str().unwrap();
        let key = kind.key(text("namespace"), text("name"));
        cluster.store.put(&key, Timestamp::now(), |_| Some(object.clone()));
    }
    let server = Server::start(cluster).await.unwrap();
    println!("{}", server.address);
    std::future::pending::<()>().await;
}

/// An environment as large as one with twelve resources.
fn environment(index: usize) -> Value {
    let resource = |slot: usize| {
        json!({"slot": format!("resource-{slot}"), "kind": "SecurityGroupIngressRule",
            "name": format!("workspace-{index}-{slot}-0123456789ab"), "ready": true,
            "externalName": format!("sgr-0123456789abcdef{slot}"), "since": "2026-01-01T12:00:00Z",
            "message": "x".repeat(200)})
    };
    json!({
        "apiVersion": "platform.acme.io/v1alpha1",
        "kind": "GpuDevWorkspaceClaim",
        "metadata": {
            "name": format!("workspace-{index}"),
            "namespace": format!("team-{}", index % 100),
            "annotations": {"paved-road.fn.crossplane.io/owner": format!("user-{index}@acme.io")},
        },
        "spec": {"lifecycle": {"ttl": "8h"}, "parameters": {"sshPublicKey": "x".repeat(400)}},
        "status": {
            "phase": "Ready",
            "lifecycle": {"expiresAt": "2100-01-01T12:00:00Z", "deletesAt": "2100-02-01T12:00:00Z"},
            "estimatedHourlyUSD": "0.526",
            "resources": (0..12).map(resource).collect::<Vec<_>>(),
        },
    })
}
