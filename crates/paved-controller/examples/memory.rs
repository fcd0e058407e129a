//! The memory of a controller with 10,000 environments, and the time until it acts:
//!
//! ```console
//! cargo run --release --package=paved-controller --example=memory
//! ```
//!
//! The API server is another process, so that its memory does not count.
#![allow(clippy::unwrap_used)]

#[path = "../tests/controller/world.rs"]
#[allow(dead_code)]
mod world;

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use function_paved_road::lifecycle::{RENEWED_AT, RENEWED_FOR};
use jiff::{Timestamp, Unit};
use kube::Config;
use paved_client::cluster::{Access as Flags, Cluster};
use paved_controller::{Clock, Limits, Options, SettingsFrom};
use serde_json::{Value, json};
use world::{Environment, World, until};

/// How many environments there are.
const ENVIRONMENTS: usize = 10_000;

/// The time from the start of the server to the end of one more environment.
const AHEAD: Duration = Duration::from_secs(15);

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
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    measure(&lines.next().unwrap().unwrap()).await;
    println!("{}; allowed: 5 s", lines.next().unwrap().unwrap());
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
        settings_from: SettingsFrom::EnvironmentConfig,
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

/// Serves environments until the task ends, and says when the one that expires is deleted.
async fn serve() {
    let world = World::new().await;
    for index in 0..ENVIRONMENTS {
        world.put(&environment(index));
    }
    let mut last = Environment::new("last", json!({"ttl": "1h", "onExpiry": "Delete"}));
    world.compose(&mut last);
    let now = Timestamp::now().round(Unit::Second).unwrap();
    world.clocks.set_all(now);
    let seconds = AHEAD.as_secs();
    last.annotations = json!({RENEWED_AT: now.to_string(), RENEWED_FOR: format!("{seconds}s")});
    world.compose(&mut last);
    let end = now + AHEAD;
    println!("{}", world.server.address);
    until("the deletion", || world.is_deleted(&last)).await;
    println!(
        "deleted {:.1} s after its end",
        (Timestamp::now() - end).total(Unit::Second).unwrap()
    );
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
