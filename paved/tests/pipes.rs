//! Readers that close a pipe. A command that only prints ends. Every other command continues, and
//! its exit code reports the result.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use support::kubernetes::{Cluster, ready, waiting};
use support::{example, folder, within};
use tokio::process::Command;
use tokio::time::timeout;

/// The exit code of a command whose standard output and standard error have no reader.
async fn unread(cluster: &Cluster, args: &[&str]) -> i32 {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = Command::new(env!("CARGO_BIN_EXE_paved"));
    command.args(args).env_clear().env("KUBECONFIG", cluster.kubeconfig()).stdin(Stdio::null());
    command.stdout(writer.try_clone().unwrap()).stderr(writer).kill_on_drop(true);
    let ended = timeout(Duration::from_mins(1), command.status()).await;
    ended.expect("the command does not end").unwrap().code().unwrap()
}

fn pool(name: &str) -> Value {
    let mut pool = ready("StockPool", json!({"replicas": 1}), json!({}));
    pool["metadata"]["name"] = name.into();
    pool["metadata"]["uid"] = name.into();
    pool
}

#[tokio::test(flavor = "multi_thread")]
async fn closed_pipe_does_not_stop_an_apply() {
    let path =
        |name: &str| format!("/apis/platform.acme.io/v1alpha1/namespaces/team/stockpools/{name}");
    let cluster = Cluster::with(pool("shop"), &[(&path("other"), pool("other"))]).await;
    let text = |name: &str| {
        json!({"apiVersion": "platform.acme.io/v1alpha1", "kind": "StockPool", "metadata": {"name": name}, "spec": {}})
            .to_string()
    };
    let folder = folder(&[("a.yaml", &text("shop")), ("b.yaml", &text("other"))]);
    assert_eq!(unread(&cluster, &["apply", &within(&folder, "")]).await, 0);
    let asked = cluster.asked();
    for name in ["shop", "other"] {
        let begin = format!("PATCH {}?", path(name));
        let applied = asked
            .iter()
            .filter(|asked| asked.starts_with(&begin) && !asked.contains("dryRun"))
            .count();
        assert_eq!(applied, 1, "{name}: {asked:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn closed_pipe_keeps_the_exit_code() {
    let cluster = Cluster::with(waiting(pool("shop")), &[]).await;
    assert_eq!(unread(&cluster, &["wait", "shop", "--timeout", "1s"]).await, 5);
    let wrong = json!({"apiVersion": "platform.acme.io/v1alpha1", "kind": "StockPool", "metadata": {"name": "shop"},
        "spec": {"replicas": "many"}});
    let folder = folder(&[("wrong.yaml", &wrong.to_string())]);
    assert_eq!(unread(&cluster, &["validate", &within(&folder, "wrong.yaml")]).await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn closed_pipe_ends_a_printing_command() {
    let cluster = Cluster::with(pool("shop"), &[]).await;
    let claim = example("gpu-workspace/claim.yaml");
    let goes_on = ["status", "shop", "-w"];
    for args in
        [&["list"][..], &["list", "-w"], &["status", "shop"], &goes_on, &["preview", &claim]]
    {
        assert_eq!(unread(&cluster, args).await, 0, "{args:?}");
    }
}
