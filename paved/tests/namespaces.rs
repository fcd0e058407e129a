//! `paved delete --namespace` on a cluster with the providers' trap: once the deletion of a namespace
//! has begun, its managed resources are never deleted.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fake_kube::access::{Access, User};
use fake_kube::faults::Failure;
use fake_kube::kinds::{Kind, Kinds};
use fake_kube::{Cluster, Server};
use function_paved_road::manifests::namespaces;
use jiff::Timestamp;
use k8s_schema::Schemas;
use serde_json::{Value, json};
use support::{Run, folder, paved_typed, within};
use tempfile::TempDir;
use tokio::process::Command;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

const GROUP: &str = "platform.m.acme.io";

/// The finalizer of managed resources, and of namespaces.
const FINALIZER: &str = "test/finalizer";

/// A cluster with the admission policy, a controller that lists namespaces, and providers.
struct World {
    cluster: Arc<Cluster>,
    /// Whether the providers delete resources.
    acts: Arc<AtomicBool>,
    home: TempDir,
    _server: Server,
    controllers: JoinHandle<()>,
}

impl Drop for World {
    fn drop(&mut self) {
        self.controllers.abort();
    }
}

impl World {
    /// The namespace `team` with two environments and the resources of other composites, and the
    /// namespace `other` with an environment.
    async fn new() -> Self {
        let kind = |group: &str, kind: &str, categories: &[&str]| {
            let plural = format!("{}s", kind.to_lowercase());
            let names = json!({"kind": kind, "plural": plural, "categories": categories});
            Kind::from_names(group, "v1", &names, true)
        };
        let mut kinds = [
            kind(GROUP, "StockPool", &["paved"]),
            kind("other.example.org", "Queue", &[]),
            kind("ec2.aws.m.upbound.io", "Instance", &["managed"]),
            kind("sqs.aws.m.upbound.io", "Topic", &["managed"]),
        ];
        kinds[0].foreground = true;
        kinds[1].foreground = true;
        let policies = namespaces::policy("paved-controller").to_vec();
        let kinds = Kinds::new(kinds, Schemas::new([].iter()).unwrap(), policies);
        let access = Access::open(User::new("ada", &[]));
        let cluster = Arc::new(Cluster::new(kinds, access));
        let server = Server::start(Arc::clone(&cluster)).await.unwrap();
        let kubeconfig = server.kubeconfig("c", "default", &json!({})).to_string();
        let home = folder(&[("kubeconfig", kubeconfig.as_str())]);
        let acts = Arc::new(AtomicBool::new(true));
        let (there, flag) = (Arc::clone(&cluster), Arc::clone(&acts));
        for namespace in ["team", "other", "default"] {
            let metadata = json!({"name": namespace, "finalizers": [FINALIZER]});
            put(&there, &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}));
        }
        for (name, namespace) in [("a", "team"), ("b", "team"), ("c", "other")] {
            add_pool(&there, name, namespace);
        }
        let queue = made(&there, "other.example.org", "Queue", "jobs", None);
        made(&there, "sqs.aws.m.upbound.io", "Topic", "jobs-topic", Some(&queue));
        made(&there, "ec2.aws.m.upbound.io", "Instance", "by-hand", None);
        let controllers = tokio::spawn(async move {
            loop {
                act(&there, flag.load(Ordering::SeqCst));
                sleep(Duration::from_millis(20)).await;
            }
        });
        let world = Self { cluster, acts, home, _server: server, controllers };
        world.until("the list of namespaces", || world.has("ConfigMap", "")).await;
        world
    }

    /// Whether an object of this kind exists in a namespace, or a namespace of this name.
    fn has(&self, kind: &str, namespace: &str) -> bool {
        all(&self.cluster, kind).iter().any(|one| {
            let field = if kind == "Namespace" { "name" } else { "namespace" };
            namespace.is_empty() || one["metadata"][field] == namespace
        })
    }

    /// Whether the namespace `team` has all its objects, and none is being deleted.
    fn is_unchanged(&self) -> bool {
        let kinds = ["Namespace", "StockPool", "Queue", "Instance", "Topic"];
        let objects: Vec<Value> = kinds.iter().flat_map(|kind| all(&self.cluster, kind)).collect();
        objects.len() == 12 && objects.iter().all(|one| !is_deleted(one))
    }

    /// Whether no object of the namespace `team` is left, and the other namespaces are unchanged.
    fn has_lost_team(&self) -> bool {
        let kinds = ["Namespace", "StockPool", "Queue", "Instance", "Topic"];
        let left: Vec<String> = kinds
            .iter()
            .flat_map(|kind| all(&self.cluster, kind))
            .map(|one| format!("{} {}", one["kind"], one["metadata"]["name"]).replace('"', ""))
            .collect();
        left == ["Namespace default", "Namespace other", "StockPool c", "Instance c-machine"]
    }

    async fn until(&self, event: &str, is_so: impl Fn() -> bool) {
        let wait = async {
            while !is_so() {
                sleep(Duration::from_millis(10)).await;
            }
        };
        assert!(timeout(Duration::from_secs(30), wait).await.is_ok(), "{event}");
    }

    /// Runs `paved delete` with a user that types the text.
    async fn delete(&self, args: &[&str], typed: Option<&'static str>) -> Run {
        let kubeconfig = within(&self.home, "kubeconfig");
        let args = [&["delete"], args, &["--kubeconfig", kubeconfig.as_str()]].concat();
        paved_typed(&args, typed).await
    }

    /// Starts `paved delete --namespace team` as a process.
    fn start(&self) -> tokio::process::Child {
        let mut command = Command::new(env!("CARGO_BIN_EXE_paved"));
        command.args(["delete", "--namespace", "team", "--yes=team"]);
        command.args(["--kubeconfig", within(&self.home, "kubeconfig").as_str()]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.kill_on_drop(true).spawn().unwrap()
    }

    fn fail(&self, verb: &'static str, path: &str, message: &'static str) {
        let path = path.to_owned();
        self.cluster.faults.fail(Failure { verb, path, code: 403, message, is_executed: false });
    }
}

fn put(cluster: &Cluster, object: &Value) -> Value {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
    let kind = cluster.kinds.for_object(object).unwrap();
    let key = kind.key(text("namespace"), text("name"));
    let changed = cluster.store.put(&key, Timestamp::now(), |_| Some(object.clone())).unwrap();
    Value::clone(&changed.object)
}

/// An object in the namespace of its owner, or in `team`.
fn made(cluster: &Cluster, group: &str, kind: &str, name: &str, owner: Option<&Value>) -> Value {
    let namespace = owner.map_or(&json!("team"), |owner| &owner["metadata"]["namespace"]).clone();
    let mut object = json!({
        "apiVersion": format!("{group}/v1"),
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace},
    });
    if group.ends_with(".upbound.io") {
        object["metadata"]["finalizers"] = json!([FINALIZER]);
    }
    if let Some(owner) = owner {
        object["metadata"]["ownerReferences"] = json!([{
            "apiVersion": owner["apiVersion"], "kind": owner["kind"],
            "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"], "controller": true,
        }]);
    }
    put(cluster, &object)
}

/// Creates an environment with a machine.
fn add_pool(cluster: &Cluster, name: &str, namespace: &str) {
    let pool = put(
        cluster,
        &json!({
            "apiVersion": format!("{GROUP}/v1"), "kind": "StockPool",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"replicas": 1},
        }),
    );
    made(cluster, "ec2.aws.m.upbound.io", "Instance", &format!("{name}-machine"), Some(&pool));
}

/// All objects of a kind.
fn all(cluster: &Cluster, kind: &str) -> Vec<Value> {
    let kind = cluster.kinds.all().iter().find(|one| one.name == kind).unwrap();
    let (_, found) = cluster.store.list(&kind.resource(), None);
    let with_kind = |object: &Value| {
        let mut object = object.clone();
        object["apiVersion"] = json!(kind.api_version());
        object["kind"] = json!(kind.name);
        object
    };
    found.iter().map(|(_, object)| with_kind(object)).collect()
}

fn is_deleted(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}

/// Acts once as Kubernetes, as the providers and as the controller.
fn act(cluster: &Cluster, with_providers: bool) {
    let managed = || [all(cluster, "Instance"), all(cluster, "Topic")].concat();
    let composites = [all(cluster, "StockPool"), all(cluster, "Queue")].concat();
    for composite in composites.iter().filter(|one| is_deleted(one)) {
        let uid = &composite["metadata"]["uid"];
        let parts = managed().into_iter();
        let parts: Vec<Value> =
            parts.filter(|one| one["metadata"]["ownerReferences"][0]["uid"] == *uid).collect();
        for part in parts.iter().filter(|one| !is_deleted(one)) {
            mark_deleted(cluster, part);
        }
        if parts.is_empty() {
            release(cluster, composite);
        }
    }
    let namespaces = all(cluster, "Namespace");
    let is_terminating = |name: &Value| {
        namespaces.iter().any(|one| one["metadata"]["name"] == *name && is_deleted(one))
    };
    for one in managed().iter().filter(|one| is_deleted(one) && with_providers) {
        // In a namespace that is being deleted, no provider connects.
        if !is_terminating(&one["metadata"]["namespace"]) {
            release(cluster, one);
        }
    }
    for namespace in namespaces.iter().filter(|one| is_deleted(one)) {
        let name = &namespace["metadata"]["name"];
        let inside = managed().into_iter().filter(|one| one["metadata"]["namespace"] == *name);
        if inside.count() == 0 {
            release(cluster, namespace);
        }
    }
    let mut data = json!({});
    for pool in all(cluster, "StockPool") {
        let namespace = pool["metadata"]["namespace"].as_str().unwrap();
        data[namespace] = json!("StockPool/x");
    }
    let metadata = json!({"name": namespaces::NAME, "namespace": "paved-controller"});
    put(
        cluster,
        &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}),
    );
}

fn mark_deleted(cluster: &Cluster, object: &Value) {
    let mut object = object.clone();
    object["metadata"]["deletionTimestamp"] = json!("2026-11-28T10:00:00Z");
    put(cluster, &object);
}

fn release(cluster: &Cluster, object: &Value) {
    let mut object = object.clone();
    object["metadata"].as_object_mut().unwrap().remove("finalizers");
    put(cluster, &object);
}

#[tokio::test(flavor = "multi_thread")]
async fn namespace_is_deleted_after_its_managed_resources() {
    let world = World::new().await;
    let output = world.delete(&["--namespace", "team", "--yes=team"], None).await;
    assert_eq!(output.code, 0, "{}", output.told());
    assert!(world.has_lost_team(), "{}", output.told());
    assert!(output.out.contains("StockPool team/a, StockPool team/b are deleted after"));
    assert!(output.out.contains("namespace team is deleted after"), "{}", output.told());
    let requests = world.cluster.requests().into_iter();
    let pools: Vec<_> = requests
        .filter(|one| one.method == "DELETE" && one.path.contains("/namespaces/team/"))
        .map(|one| one.path.rsplit('/').next().unwrap().to_owned())
        .collect();
    assert_eq!(pools, ["a", "b", "by-hand", "jobs"], "composites are deleted, not their resources");
}

#[tokio::test(flavor = "multi_thread")]
async fn question_lists_the_whole_namespace() {
    let world = World::new().await;
    let output = world.delete(&["--namespace", "team"], Some("n\n")).await;
    let expected = "\
Namespace team
StockPool team/a
  The environment's resources are deleted. Its template lists the kept resources.
StockPool team/b
  The environment's resources are deleted. Its template lists the kept resources.
Deletes, without an environment: Instance by-hand, Queue jobs
Deletes all other objects of the namespace, for example Secrets.
Delete namespace team? [y/N] error: cancelled. Nothing was deleted
";
    assert_eq!((output.code, output.err.as_str()), (1, expected));
    assert!(world.is_unchanged());
    let output = world.delete(&["--namespace=team"], Some("y\n")).await;
    assert_eq!(output.code, 0, "{}", output.told());
    assert!(world.has_lost_team());
}

#[tokio::test(flavor = "multi_thread")]
async fn unclear_command_deletes_nothing() {
    let world = World::new().await;
    for (args, words) in [
        (&["-n", "team"][..], "no environment is named"),
        (&["-n", "team", "--yes"], "no environment is named"),
        (&["-nteam", "--yes=team"], "no environment is named"),
        (&["--namespace", "team"], "no terminal to ask for confirmation. Use --yes=team"),
        (&["--namespace", "team", "--yes"], "use --yes=team"),
        (&["--namespace", "team", "-y"], "use --yes=team"),
        (&["--namespace", "team", "--yes=other"], "--yes: found other"),
        (&["--namespace", "team", "--yes=team", "a"], "--yes: found the namespace team"),
        (&["--namespace", "", "--yes="], "namespace"),
        (&["--namespace", "tema", "--yes=tema"], "namespace tema does not exist at http"),
        (&["--yes"], "required arguments were not provided"),
        (&["--yes=default"], "required arguments were not provided"),
    ] {
        let output = world.delete(args, None).await;
        assert!(output.code != 0 && output.err.contains(words), "{args:?}: {}", output.told());
        assert!(output.out.is_empty() && world.is_unchanged(), "{args:?}");
    }
    let requests = world.cluster.requests();
    let is_dry_run = |path: &str| path == "/api/v1/namespaces/team";
    assert!(requests.iter().all(|one| one.method == "GET" || is_dry_run(&one.path)));
    let absent = world.delete(&["--namespace", "tema", "--yes=tema", "--ignore-not-found"], None);
    assert_eq!(absent.await.code, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_right_is_found_before_the_first_deletion() {
    let world = World::new().await;
    let args = ["--namespace", "team", "--yes=team"];
    world.fail(
        "list",
        "/topics",
        "topics is forbidden: User \"ada\" cannot list resource \"topics\"",
    );
    let output = world.delete(&args, None).await;
    assert_eq!(output.code, 6);
    let words =
        "you may not list topics.sqs.aws.m.upbound.io in namespace team. Nothing was deleted";
    assert!(output.err.contains(words), "{}", output.err);
    world.cluster.faults.mend();
    world.fail(
        "delete",
        "/namespaces/team",
        "namespaces \"team\" is forbidden: User \"ada\" cannot delete resource \"namespaces\"",
    );
    let output = world.delete(&args, None).await;
    assert!(
        output.code != 0 && output.err.contains("note: nothing was deleted"),
        "{}",
        output.told()
    );
    assert!(world.is_unchanged());
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_command_is_continued_by_the_next_one() {
    let world = World::new().await;
    world.acts.store(false, Ordering::SeqCst);
    let mut first = world.start();
    let has_begun = || all(&world.cluster, "StockPool").iter().any(is_deleted);
    world.until("the first deletion", has_begun).await;
    first.kill().await.unwrap();
    world.acts.store(true, Ordering::SeqCst);
    let output = world.delete(&["--namespace", "team", "--yes=team"], None).await;
    assert_eq!(output.code, 0, "{}", output.told());
    assert!(world.has_lost_team());
}

#[tokio::test(flavor = "multi_thread")]
async fn interrupted_command_names_the_command_that_continues() {
    let world = World::new().await;
    world.acts.store(false, Ordering::SeqCst);
    let mut command = world.start();
    let pid = command.id().unwrap().to_string();
    world
        .until("deletions", || {
            all(&world.cluster, "StockPool").iter().filter(|one| is_deleted(one)).count() == 2
        })
        .await;
    std::process::Command::new("kill").args(["-INT", &pid]).status().unwrap();
    assert_eq!(command.wait().await.unwrap().code(), Some(130));
    assert!(world.has("Namespace", "team"));
}

#[tokio::test(flavor = "multi_thread")]
async fn new_environment_prevents_the_deletion_of_the_namespace() {
    let world = World::new().await;
    let command = world.delete(&["--namespace", "team", "--yes=team"], None);
    let creates = async {
        world.until("the last environment", || !world.has("StockPool", "team")).await;
        add_pool(&world.cluster, "late", "team");
    };
    let (output, ()) = tokio::join!(command, creates);
    assert_eq!(output.code, 1, "{}", output.told());
    let words = "StockPool team/late was created meanwhile. Namespace team was not deleted";
    assert!(output.err.contains(words), "{}", output.err);
    assert!(world.has("Namespace", "team") && world.has("StockPool", "team"));
    let output = world.delete(&["--namespace", "team", "--yes=team"], None).await;
    assert_eq!(output.code, 0, "{}", output.told());
    assert!(world.has_lost_team());
}

#[tokio::test(flavor = "multi_thread")]
async fn stuck_resource_ends_the_wait_with_its_name() {
    let world = World::new().await;
    let called = |kind: &str, name: &str| {
        all(&world.cluster, kind).into_iter().find(|one| one["metadata"]["name"] == name).unwrap()
    };
    let machine = called("Instance", "by-hand");
    // A deleted namespace: its providers do not connect.
    let team = called("Namespace", "team");
    for pool in ["a", "b"] {
        let output = world.delete(&[pool, "-n", "team", "--yes", "--wait"], None).await;
        assert_eq!(output.code, 0, "{}", output.told());
    }
    mark_deleted(&world.cluster, &machine);
    mark_deleted(&world.cluster, &team);
    let args = ["--namespace", "team", "--yes=team", "--timeout", "2s"];
    let output = world.delete(&args, None).await;
    assert_eq!(output.code, 5, "{}", output.told());
    assert!(output.err.contains("Instance by-hand"), "{}", output.err);
    assert!(
        output.err.contains("The repair is in docs/how-to/offboard-a-team.md"),
        "{}",
        output.err
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn stale_list_of_a_stopped_controller_is_named() {
    let world = World::new().await;
    world.fail("delete", "/namespaces/team", "policy denied request: the namespace has environments, so its deletion would not end: StockPool/gone. Run: paved delete --namespace team");
    let args = ["--namespace", "team", "--yes=team", "--timeout", "20s"];
    let output = world.delete(&args, None).await;
    assert_eq!(output.code, 1, "{}", output.told());
    assert!(output.err.contains("Check that the controller runs"), "{}", output.err);
    assert!(world.has("Namespace", "team"));
}
