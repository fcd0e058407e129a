//! `paved doctor --dump` writes one archive in at most five seconds. It has no secrets.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::collections::BTreeMap;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fake_kube::access::{Access, User};
use fake_kube::kinds::{Kind, Kinds};
use fake_kube::{Cluster, Server};
use flate2::read::GzDecoder;
use jiff::Timestamp;
use k8s_schema::Schemas;
use serde_json::{Value, json};
use support::{folder, paved_typed, within};

/// The files of an archive.
fn unpacked(path: &str) -> BTreeMap<String, String> {
    let file = std::fs::File::open(path).unwrap();
    let mut archive = tar::Archive::new(GzDecoder::new(file));
    let mut files = BTreeMap::new();
    for entry in archive.entries().unwrap() {
        let mut entry = entry.unwrap();
        let name = entry.path().unwrap().display().to_string();
        let mut text = String::new();
        entry.read_to_string(&mut text).unwrap();
        files.insert(name, text);
    }
    files
}

fn cluster() -> Cluster {
    let names = json!({"kind": "UnifiedEnvironment", "plural": "unifiedenvironments",
        "categories": ["paved"]});
    let kind = Kind::from_names("platform.acme.io", "v1alpha1", &names, true);
    let kinds = Kinds::new([kind], Schemas::new([].iter()).unwrap(), Vec::new());
    Cluster::new(kinds, Access::open(User::new("ada", &[])))
}

/// Objects with a secret in every place that takes a text of others.
fn planted(secrets: &[String]) -> Vec<Value> {
    let at = |n: usize| secrets[n % secrets.len()].clone();
    let env: serde_json::Map<String, Value> =
        (0..30).map(|n| (format!("KEY_{n}"), json!(at(n)))).collect();
    let notes: serde_json::Map<String, Value> =
        (30..50).map(|n| (format!("note-{n}"), json!(at(n)))).collect();
    let labels: serde_json::Map<String, Value> =
        (50..60).map(|n| (format!("label-{n}"), json!(at(n)))).collect();
    let condition = |n: usize| {
        json!({"type": "Synced", "status": "False", "reason": at(n),
        "message": format!("cannot log in: password {}", at(n + 1)),
        "lastTransitionTime": "2026-01-01T00:00:00Z"})
    };
    let part = |n: usize| {
        json!({"slot": format!("slot-{n}"), "kind": "Instance", "ready": false,
        "since": at(n), "reason": at(n + 1), "externalName": at(n + 2),
        "message": format!("token={}", at(n + 3))})
    };
    let environment = json!({"apiVersion": "platform.acme.io/v1alpha1", "kind": "UnifiedEnvironment",
        "metadata": {"name": "shop", "namespace": "team", "uid": "u", "annotations": notes, "labels": labels},
        "spec": {"backend": {"image": format!("user:{}@registry.example.org:5000/a", at(60)), "env": env},
            "frontend": {"appName": "shop"}, "values": {"deep": [at(61), {"token": at(62)}]}},
        "status": {"phase": at(63), "backendUrl": format!("https://x?token={}", at(64)),
            "conditions": [condition(65), condition(67)],
            "resources": [part(69), part(73), part(77)]}});
    let package = |kind: &str, n: usize| {
        json!({"apiVersion": "pkg.crossplane.io/v1", "kind": kind,
        "metadata": {"name": "paved-road", "annotations": {"a": at(n)}},
        "spec": {"package": format!("https://user:{}@xpkg.example.org/a:v1?sig={}", at(n + 1), at(n + 2))},
        "status": {"conditions": [condition(n + 3)]}})
    };
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "conn", "namespace": "team"},
        "stringData": {"password": at(91), "token": at(92)}});
    let event = json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e", "namespace": "team"},
        "involvedObject": {"kind": "UnifiedEnvironment", "name": "shop"}, "reason": at(93),
        "message": format!("failed with {}", at(94)), "type": at(95), "count": 2});
    let settings = json!({"apiVersion": "apiextensions.crossplane.io/v1beta1", "kind": "EnvironmentConfig",
        "metadata": {"name": "paved-road"}, "data": {"webhook": at(96), "more": [at(97), at(98), at(99)]}});
    vec![environment, package("Function", 81), package("Provider", 86), secret, event, settings]
}

#[tokio::test(flavor = "multi_thread")]
async fn archive_has_none_of_a_hundred_planted_secrets() {
    let secrets: Vec<String> = (0..100).map(|n| format!("s3cret-{n:03}-hunter2")).collect();
    let cluster = Arc::new(cluster());
    let mut stored = String::new();
    for object in planted(&secrets) {
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
        let Some(kind) = cluster.kinds.for_object(&object) else { panic!("{object}") };
        let key = kind.key(text("namespace"), text("name"));
        stored.push_str(&object.to_string());
        cluster.store.put(&key, Timestamp::now(), |_| Some(object.clone()));
    }
    let absent: Vec<&String> = secrets.iter().filter(|one| !stored.contains(*one)).collect();
    assert!(absent.is_empty(), "planted: {absent:?}");
    let server = Server::start(cluster).await.unwrap();
    let kubeconfig = server.kubeconfig("c", "team", &json!({})).to_string();
    let folder = folder(&[("kubeconfig", kubeconfig.as_str())]);
    let (kubeconfig, archive) = (within(&folder, "kubeconfig"), within(&folder, "dump.tar.gz"));
    let args = ["doctor", "--dump", &archive, "--kubeconfig", &kubeconfig];
    let run = paved_typed(&args, None).await;
    assert_eq!(run.code, 0, "{}", run.told());
    let files = unpacked(&archive);
    let names: Vec<&str> =
        files.keys().map(|name| name.strip_prefix("paved-road-dump/").unwrap()).collect();
    let expected = [
        "README.txt",
        "checks.txt",
        "environments.json",
        "events.json",
        "packages.json",
        "versions.json",
    ];
    assert_eq!(names, expected, "{}", run.told());
    for (name, text) in &files {
        let found: Vec<&String> = secrets.iter().filter(|one| text.contains(*one)).collect();
        assert!(found.is_empty(), "{name}: {found:?}\n{text}");
    }
    let found: Vec<&String> = secrets.iter().filter(|one| run.told().contains(*one)).collect();
    assert!(found.is_empty(), "{found:?}");
    let environments = &files["paved-road-dump/environments.json"];
    for words in
        ["\"name\": \"shop\"", "\"spec.backend.env.KEY_7\": \"(hidden)\"", "\"slot\": \"slot-73\""]
    {
        assert!(environments.contains(words), "{words}: {environments}");
    }
    assert!(files["paved-road-dump/packages.json"].contains("xpkg.example.org"));
    let mode = std::fs::metadata(&archive).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    // An existing file stays.
    let again = paved_typed(&args, None).await;
    assert!(again.code == 1 && again.err.contains("exists"), "{}", again.told());
}

#[tokio::test(flavor = "multi_thread")]
async fn silent_cluster_does_not_delay_the_archive() {
    let cluster = Arc::new(cluster());
    let server = Server::start(Arc::clone(&cluster)).await.unwrap();
    let kubeconfig = server.kubeconfig("c", "team", &json!({})).to_string();
    let folder = folder(&[("kubeconfig", kubeconfig.as_str())]);
    let (kubeconfig, archive) = (within(&folder, "kubeconfig"), within(&folder, "dump.tar.gz"));
    cluster.faults.fall_silent();
    let begin = Instant::now();
    let run = paved_typed(&["doctor", "--dump", &archive, "--kubeconfig", &kubeconfig], None).await;
    assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
    assert_eq!(run.code, 0, "{}", run.told());
    assert!(run.err.contains("note: the archive lacks"), "{}", run.told());
    assert!(unpacked(&archive)["paved-road-dump/README.txt"].contains("Missing: "));
}
