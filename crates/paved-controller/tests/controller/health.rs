//! Health and metrics over HTTP.

use paved_controller::{Limits, Options};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Duration, sleep, timeout};

use crate::world::{Environment, World, limits};

/// The response to a GET request, with its head.
async fn get(address: std::net::SocketAddr, path: &str) -> String {
    let Ok(mut stream) = TcpStream::connect(address).await else { return String::new() };
    let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    response
}

/// A controller of this world that serves.
async fn served(world: &World) -> (std::net::SocketAddr, crate::world::Running) {
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let limits = Limits { interrupted: Duration::ZERO, ..limits() };
    let options = Options { listen: Some(address), limits, ..world.options("a") };
    (address, world.start_with(options))
}

/// Waits until the controller is ready, or is not.
async fn wait(address: std::net::SocketAddr, status: &str) {
    for _ in 0..1_000 {
        if get(address, "/readyz").await.contains(status) {
            return;
        }
        sleep(Duration::from_millis(10)).await;
    }
    panic!("{}", get(address, "/readyz").await);
}

#[tokio::test]
async fn replica_is_ready_once_all_kinds_are_listed_and_the_lease_is_known() {
    let world = World::new().await;
    world.cluster.faults.set_down(true);
    let (address, controller) = served(&world).await;
    wait(address, "503 Service Unavailable").await;
    assert!(get(address, "/healthz").await.contains("200 OK"));
    world.cluster.faults.set_down(false);
    wait(address, "200 OK").await;
    world.cluster.faults.set_down(true);
    wait(address, "the watch of GpuDevWorkspaceClaim.platform.acme.io").await;
    controller.kill();
}

#[tokio::test]
async fn half_open_connections_are_bounded_and_probes_answered() {
    let world = World::new().await;
    let (address, controller) = served(&world).await;
    wait(address, "200 OK").await;
    let mut halves = Vec::new();
    for _ in 0..300 {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: a\r\nX: ").await.unwrap();
        halves.push(stream);
    }
    assert!(get(address, "/healthz").await.contains("200 OK"));
    let mut open = 0;
    for half in &mut halves {
        let mut byte = [0];
        let read = half.read(&mut byte);
        open += usize::from(timeout(Duration::from_millis(5), read).await.is_err());
    }
    assert!(open <= 64, "{open} connections are open");
    controller.stop().await;
}

#[tokio::test]
async fn missing_settings_and_the_age_of_held_environments_are_metrics() {
    let world = World::new().await;
    let mut ada = Environment::new("ada", json!({"ttl": "1h", "onExpiry": "Delete"}));
    world.compose(&mut ada);
    world.remove_settings();
    world.clocks.pass("3h");
    let (address, controller) = served(&world).await;
    world.led().await;
    let metrics = get(address, "/metrics").await;
    for sample in [
        "paved_controller_settings_missing 1",
        "paved_controller_held_environments{reason=\"no-settings\"} 1",
        "paved_controller_longest_held_seconds{reason=\"no-settings\"} 7200",
        "paved_controller_clock_ahead_seconds 0",
    ] {
        assert!(metrics.contains(sample), "{sample}: {metrics}");
    }
    controller.stop().await;
}

#[tokio::test]
async fn metrics_count_environments_and_those_that_stay() {
    let world = World::new().await;
    let mut ada = Environment::new("ada", json!({"ttl": "1h", "onExpiry": "Delete"}));
    ada.annotations = json!({"crossplane.io/paused": "true"});
    world.compose(&mut ada);
    let mut bob = Environment::new("bob", json!({"ttl": "1h", "onExpiry": "Delete"}));
    world.compose(&mut bob);
    world.fail("delete", "/bob", (500, "failed calling webhook"));
    world.clocks.pass("2h");
    let (address, controller) = served(&world).await;
    world.led().await;
    let metrics = get(address, "/metrics").await;
    let kind = "kind=\"GpuDevWorkspaceClaim.platform.acme.io\"";
    for sample in [
        "paved_controller_leader 1".to_owned(),
        "paved_controller_held_environments{reason=\"paused\"} 1".to_owned(),
        "paved_controller_held_environments{reason=\"refused\"} 1".to_owned(),
        format!("paved_controller_environments{{{kind}}} 2"),
    ] {
        assert!(metrics.contains(&sample), "{sample}: {metrics}");
    }
    controller.stop().await;
}
