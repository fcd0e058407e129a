//! Outputs for the next step of a pipeline. Files are written only when all environments are ready.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};
use support::kubernetes::{Cluster, ready, waiting};
use tempfile::TempDir;
use tokio::process::Command;
use tokio::time::timeout;

fn workspace() -> Value {
    ready(
        "GpuDevWorkspaceClaim",
        json!({}),
        json!({"publicIp": "203.0.113.7", "machine": {"gpus": 1}}),
    )
}

/// Runs `paved wait` as a step of GitHub Actions. Returns its exit code and output.
async fn wait(cluster: &Cluster, folder: &TempDir, args: &[&str]) -> (i32, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_paved"));
    command.arg("wait").args(args).current_dir(folder).env_clear().kill_on_drop(true);
    command
        .env("KUBECONFIG", cluster.kubeconfig())
        .env("GITHUB_OUTPUT", folder.path().join("step"));
    let output = timeout(Duration::from_mins(2), command.output()).await.unwrap().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap(), text(&output.stdout) + &text(&output.stderr))
}

fn read(folder: &TempDir, name: &str) -> String {
    fs::read_to_string(folder.path().join(name)).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn ready_environment_writes_outputs_for_the_next_step() {
    let cluster = Cluster::with(workspace(), &[]).await;
    let folder = support::folder(&[("step", "before=1\n"), ("shop.env", "OLD=1\n")]);
    let (code, told) = wait(&cluster, &folder, &["shop", "--output-file", "shop.env"]).await;
    assert_eq!(code, 0, "{told}");
    let step = read(&folder, "step");
    assert!(step.starts_with("before=1\n") && step.contains("\npublicIp=203.0.113.7\n"), "{step}");
    assert!(step.contains("machine-gpus=1\n"), "{step}");
    let file = read(&folder, "shop.env");
    assert!(!file.contains("OLD") && file.contains("PAVED_PUBLIC_IP=203.0.113.7\n"), "{file}");
}

#[tokio::test(flavor = "multi_thread")]
async fn unready_environment_leaves_files_unchanged() {
    let folder = support::folder(&[("step", "before=1\n"), ("shop.env", "OLD=1\n")]);
    let cluster = Cluster::with(waiting(workspace()), &[]).await;
    for (args, code) in [
        (&["shop", "--timeout", "1s", "--output-file", "shop.env"][..], 5),
        (&["shop", "--for=condition=Synced"], 0),
        (&["shop", "--for=deleted", "--output-file", "shop.env"], 1),
        (&["another", "--for=deleted"], 0),
    ] {
        let (is, told) = wait(&cluster, &folder, args).await;
        assert_eq!(is, code, "{args:?}: {told}");
        assert_eq!(
            (read(&folder, "step").as_str(), read(&folder, "shop.env").as_str()),
            ("before=1\n", "OLD=1\n")
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn environment_named_twice_is_waited_for_once() {
    let folder = support::folder(&[]);
    let cluster = Cluster::with(waiting(workspace()), &[]).await;
    let becomes = async {
        cluster.is_watched(0).await;
        cluster.becomes(workspace());
    };
    let named = ["shop", "gpudevworkspaceclaim/shop", "shop"];
    let ((code, told), ()) = tokio::join!(wait(&cluster, &folder, &named), becomes);
    assert_eq!((code, told.matches("is ready after").count()), (0, 1), "{told}");
}
