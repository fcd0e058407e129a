//! The requests for many environments: a list and a watch of their kind, and no request for a
//! single environment.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use support::kubernetes::{Cluster, ready, waiting};
use tokio::process::Command;
use tokio::time::{sleep, timeout};

const ALL: &str = "/apis/platform.acme.io/v1alpha1/namespaces/team/stockpools";

/// The number of ready environments. `shop` is not ready.
const COUNT: usize = 12;

fn pool() -> Value {
    ready("StockPool", json!({"replicas": 1}), json!({}))
}

fn name(number: usize) -> String {
    format!("pool-{number}")
}

async fn many() -> Cluster {
    let one = |number| {
        let mut one = pool();
        one["metadata"]["name"] = name(number).into();
        one["metadata"]["uid"] = name(number).into();
        one
    };
    let items: Vec<Value> = (0..COUNT).map(one).chain([waiting(pool())]).collect();
    let list = json!({"apiVersion": "platform.acme.io/v1alpha1", "kind": "StockPoolList",
        "metadata": {"resourceVersion": "7"}, "items": items});
    Cluster::with(waiting(pool()), &[(ALL, list)]).await
}

fn command(cluster: &Cluster, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_paved"));
    command.args(args).env_clear().env("KUBECONFIG", cluster.kubeconfig());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    command
}

/// The lists and watches of all environments, and the other requests for environments.
fn asked(cluster: &Cluster) -> (usize, usize, Vec<String>) {
    let all = cluster.asked().into_iter().filter(|asked| asked.contains("/stockpools"));
    let (of_all, rest): (Vec<_>, Vec<_>) =
        all.partition(|asked| asked.starts_with(&format!("GET {ALL}?")));
    let watches = of_all.iter().filter(|asked| asked.contains("watch=")).count();
    (of_all.len() - watches, watches, rest)
}

async fn until_watched(cluster: &Cluster) {
    let watched = async {
        while asked(cluster).1 == 0 {
            sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(Duration::from_secs(30), watched).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_is_one_list() {
    let cluster = many().await;
    for format in [&[][..], &["-o", "wide"], &["-o", "name"], &["-o", "json"]] {
        let before = asked(&cluster).0;
        let output = command(&cluster, &[&["list"][..], format].concat()).output().await.unwrap();
        let out = String::from_utf8(output.stdout).unwrap();
        assert!((0..COUNT).all(|number| out.contains(&name(number))), "{out}");
        assert_eq!(asked(&cluster), (before + 1, 0, Vec::new()), "{format:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn continuing_list_is_a_list_and_a_watch() {
    let cluster = many().await;
    let _run = command(&cluster, &["list", "-w"]).spawn().unwrap();
    until_watched(&cluster).await;
    assert_eq!(asked(&cluster), (1, 1, Vec::new()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_for_many_is_a_list_and_a_watch() {
    let cluster = many().await;
    let names: Vec<String> = (0..COUNT).map(name).chain(["shop".to_owned()]).collect();
    let args: Vec<&str> =
        ["wait", "--timeout", "1m"].into_iter().chain(names.iter().map(String::as_str)).collect();
    let becomes = async {
        until_watched(&cluster).await;
        cluster.becomes(pool());
    };
    let mut command = command(&cluster, &args);
    let (output, ()) = tokio::join!(command.output(), becomes);
    let output = output.unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    assert_eq!(
        (output.status.code(), out.matches(" is ready after ").count()),
        (Some(0), COUNT + 1),
        "{out}"
    );
    assert_eq!(asked(&cluster), (1, 1, Vec::new()));
    assert!(
        cluster.asked().iter().any(|asked| asked.contains("resourceVersion=7")),
        "the watch starts at the list's version"
    );
}
