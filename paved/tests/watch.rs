//! A command that continues reports changes, a lost connection, and the changes that it missed.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::process::Stdio;
use std::time::Duration;

use serde_json::json;
use support::kubernetes::{Cluster, ready, waiting};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStderr, ChildStdout, Command};
use tokio::time::{sleep, timeout};

/// A command that continues.
struct Watching {
    child: Child,
    out: Lines<BufReader<ChildStdout>>,
    err: Lines<BufReader<ChildStderr>>,
}

impl Watching {
    fn start(cluster: &Cluster, args: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_paved"))
            .args(args)
            .arg("--kubeconfig")
            .arg(cluster.kubeconfig())
            .env_remove("GITHUB_OUTPUT")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let out = BufReader::new(child.stdout.take().unwrap()).lines();
        let err = BufReader::new(child.stderr.take().unwrap()).lines();
        Self { child, out, err }
    }

    async fn says(&mut self, words: &str) {
        until(words, async || self.out.next_line().await.unwrap()).await;
    }

    async fn notes(&mut self, words: &str) {
        until(words, async || self.err.next_line().await.unwrap()).await;
    }

    async fn signal(&self, signal: &str) {
        let id = self.child.id().unwrap().to_string();
        Command::new("kill").args([signal, &id]).status().await.unwrap();
    }

    /// Waits for the end. Returns the exit code.
    async fn ends(&mut self) -> Option<i32> {
        timeout(Duration::from_secs(20), self.child.wait()).await.unwrap().unwrap().code()
    }
}

async fn until(words: &str, mut next: impl AsyncFnMut() -> Option<String>) {
    let mut seen = String::new();
    let found = timeout(Duration::from_secs(30), async {
        while let Some(line) = next().await {
            seen.push_str(&line);
            seen.push('\n');
            if line.contains(words) {
                return true;
            }
        }
        false
    });
    let found = found.await;
    assert_eq!(found, Ok(true), "{words:?} is missing: {seen}");
}

fn pool() -> serde_json::Value {
    ready("StockPool", json!({"replicas": 1}), json!({}))
}

#[tokio::test(flavor = "multi_thread")]
async fn continuing_status_reports_a_lost_connection_and_a_deletion() {
    let cluster = Cluster::with(pool(), &[]).await;
    let mut run = Watching::start(&cluster, &["status", "shop", "-w"]);
    run.says("StockPool team/shop  Ready").await;
    // The watch may not have begun yet, but the change is still seen.
    cluster.becomes(waiting(pool()));
    run.says("StockPool team/shop  Provisioning").await;
    cluster.answers(false);
    run.notes("does not respond; retrying").await;
    cluster.answers(true);
    run.notes("responds again").await;
    cluster.answers(false);
    run.notes("does not respond; retrying").await;
    cluster.loses_it();
    cluster.answers(true);
    run.says("StockPool team/shop is gone").await;
    assert_eq!(run.child.wait().await.unwrap().code(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn continuing_list_reports_a_lost_connection() {
    let cluster = Cluster::with(pool(), &[]).await;
    for flags in [&["list", "-w"][..], &["list", "-A", "-w", "-o", "wide"]] {
        cluster.comes_back();
        cluster.becomes(pool());
        let mut run = Watching::start(&cluster, flags);
        run.says("PHASE").await;
        run.says("Ready").await;
        cluster.becomes(waiting(pool()));
        run.says("Provisioning").await;
        cluster.answers(false);
        run.notes("does not respond; retrying").await;
        cluster.loses_it();
        cluster.answers(true);
        run.notes("responds again").await;
        run.says("Gone").await;
        cluster.comes_back();
        run.says("Provisioning").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn wait_ignores_the_state_before_a_lost_connection() {
    let mut refused = waiting(pool());
    refused["status"]["resources"] = json!([{"slot": "deployment", "kind": "Deployment", "name": "shop-x",
        "ready": false, "reason": "Failed", "message": "exceeded quota", "since": "2026-01-01T10:00:00Z"}]);
    let cluster = Cluster::with(refused, &[]).await;
    let mut run =
        Watching::start(&cluster, &["wait", "shop", "--patience", "2s", "--timeout", "1m"]);
    run.says("exceeded quota").await;
    cluster.answers(false);
    run.says("does not respond; retrying").await;
    // Longer than the patience.
    sleep(Duration::from_secs(3)).await;
    cluster.becomes(pool());
    cluster.answers(true);
    run.says("responds again").await;
    run.says("is ready after").await;
    assert_eq!(run.child.wait().await.unwrap().code(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn empty_list_waits_for_the_first_environment() {
    let cluster = Cluster::with(pool(), &[]).await;
    cluster.loses_it();
    let mut run = Watching::start(&cluster, &["list", "-w"]);
    run.notes("no environments in namespace team; waiting for new environments").await;
    cluster.comes_back();
    run.says("shop").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn continuing_command_ends_at_either_signal() {
    let cluster = Cluster::with(waiting(pool()), &[]).await;
    for (args, said, told) in [
        (&["wait", "shop"][..], "StockPool team/shop", Some("interrupted: the cluster continues")),
        (&["list", "-w"], "shop", None),
        (&["status", "shop", "-w"], "StockPool team/shop", None),
    ] {
        for signal in ["-TERM", "-INT"] {
            let mut run = Watching::start(&cluster, args);
            run.says(said).await;
            run.signal(signal).await;
            match told {
                Some(told) => run.notes(told).await,
                None => assert_eq!(run.err.next_line().await.unwrap(), None, "{args:?}"),
            }
            assert_eq!(run.ends().await, Some(130), "{args:?} {signal}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn deletion_ends_at_the_second_signal() {
    let path = "DELETE /apis/platform.acme.io/v1alpha1/namespaces/team/stockpools/shop";
    let cluster = Cluster::with(pool(), &[(path, serde_json::Value::Null)]).await;
    let mut run = Watching::start(&cluster, &["delete", "shop", "--yes"]);
    while !cluster.asked().iter().any(|asked| asked.starts_with("DELETE ")) {
        sleep(Duration::from_millis(10)).await;
    }
    run.signal("-TERM").await;
    run.notes("finishing the request for StockPool team/shop; press Ctrl-C again to abort").await;
    run.signal("-INT").await;
    run.notes("interrupted: could not confirm that StockPool team/shop is being deleted").await;
    assert_eq!(run.ends().await, Some(130));
}
