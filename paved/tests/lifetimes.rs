//! `paved extend`, `keep`, `stop` and `start` write a request that the function reads. If a request
//! would have no effect, they print the reason and change no object. `list`, `status` and `connect`
//! know the power state.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::sync::Arc;
use std::time::Duration;

use fake_kube::access::{Access, User};
use fake_kube::faults::Failure;
use fake_kube::kinds::{Kind, Kinds};
use fake_kube::{Cluster, Server};
use function_paved_road::lifecycle::{RENEWED_AT, RENEWED_FOR, Requests, STARTED_AT, STOPPED_AT};
use jiff::{SignedDuration, Timestamp};
use k8s_schema::Schemas;
use serde_json::{Value, json};
use support::{Run, folder, paved_typed, within};
use tempfile::TempDir;
use tokio::time::{sleep, timeout};

const PAUSED: &str = "crossplane.io/paused";

/// A cluster with environments in the namespace `team`.
struct World {
    cluster: Arc<Cluster>,
    home: TempDir,
    _server: Server,
}

impl World {
    async fn with(objects: &[&Value]) -> Self {
        Self::at(objects, a_while_ago).await
    }

    /// The same with this clock of the API server.
    async fn at(objects: &[&Value], clock: fn() -> Timestamp) -> Self {
        let kind = |kind: &str, categories: &[&str]| {
            let plural = format!("{}s", kind.to_lowercase());
            let names = json!({"kind": kind, "plural": plural, "categories": categories});
            Kind::from_names("platform.acme.io", "v1alpha1", &names, true)
        };
        let kinds = [
            kind("GpuDevWorkspaceClaim", &["claim", "paved"]),
            kind("StockPool", &["paved"]),
            kind("Environment", &["claim", "paved"]),
        ];
        let kinds = Kinds::new(kinds, Schemas::new([].iter()).unwrap(), Vec::new());
        let access = Access::open(User::new("ada", &[]));
        let cluster = Arc::new(Cluster::new(kinds, access).with_clock(clock));
        let server = Server::start(Arc::clone(&cluster)).await.unwrap();
        let kubeconfig = server.kubeconfig("c", "team", &json!({})).to_string();
        let home = folder(&[("kubeconfig", kubeconfig.as_str())]);
        let world = Self { cluster, home, _server: server };
        for object in objects {
            world.put(object);
        }
        world
    }

    fn put(&self, object: &Value) {
        let text = |field: &str| object["metadata"][field].as_str().unwrap();
        let kind = self.cluster.kinds.for_object(object).unwrap();
        let key = kind.key(text("namespace"), text("name"));
        self.cluster.store.put(&key, Timestamp::now(), |_| Some(object.clone()));
    }

    /// An object as it is now.
    fn now(&self, object: &Value) -> Value {
        self.find(object).unwrap()
    }

    /// An object as it is now, if it exists.
    fn find(&self, object: &Value) -> Option<Value> {
        let text = |field: &str| object["metadata"][field].as_str().unwrap();
        let kind = self.cluster.kinds.for_object(object).unwrap();
        let key = kind.key(text("namespace"), text("name"));
        self.cluster.store.get(&key).map(|object| Value::clone(&object))
    }

    /// The value of an annotation now.
    fn annotation(&self, object: &Value, name: &str) -> Option<String> {
        self.now(object)["metadata"]["annotations"][name].as_str().map(str::to_owned)
    }

    /// How many environments were written since the last call. Events are not counted.
    fn writes(&self) -> usize {
        let requests = self.cluster.requests().into_iter();
        requests.filter(|request| !["GET", "POST"].contains(&request.method.as_str())).count()
    }

    /// Runs `paved` without a user at a terminal.
    async fn paved(&self, args: &[&str]) -> Run {
        self.answered(args, None).await
    }

    /// Runs `paved` with a user that types the text.
    async fn answered(&self, args: &[&str], typed: Option<&'static str>) -> Run {
        let kubeconfig = within(&self.home, "kubeconfig");
        paved_typed(&[args, &["--kubeconfig", kubeconfig.as_str()]].concat(), typed).await
    }

    /// Runs `paved`, and sets the status once the environment has the annotation. The status follows
    /// that request.
    async fn reacting(&self, args: &[&str], name: &str, object: &Value, status: Value) -> Run {
        let react = async {
            let requested_at = loop {
                if let Some(time) = self.annotation(object, name) {
                    break time;
                }
                sleep(Duration::from_millis(20)).await;
            };
            let mut object = self.now(object);
            object["status"] = status;
            object["status"]["lifecycle"]["requestedAt"] = requested_at.into();
            self.put(&object);
        };
        let react = timeout(Duration::from_mins(1), react);
        tokio::join!(self.paved(args), react).0
    }
}

/// A clock of old writes that differs less than the function allows.
fn a_while_ago() -> Timestamp {
    ahead(-SignedDuration::from_mins(4))
}

fn an_hour_ago() -> Timestamp {
    ahead(-SignedDuration::from_hours(1))
}

/// A time this far ahead of now, in whole seconds.
fn ahead(time: SignedDuration) -> Timestamp {
    Timestamp::from_second(Timestamp::now().as_second()).unwrap() + time
}

/// The seconds from now to a time.
fn left(time: &str) -> i64 {
    time.parse::<Timestamp>().unwrap().as_second() - Timestamp::now().as_second()
}

/// An environment that is ready and expires in almost two hours.
fn environment(kind: &str, name: &str) -> Value {
    let conditions = ["Synced", "Ready", "Provisioned"].map(
        |kind| json!({"type": kind, "status": "True", "reason": "Available", "observedGeneration": 1}),
    );
    let expires_at = ahead(SignedDuration::from_secs(2 * 3600 - 30));
    json!({
        "apiVersion": "platform.acme.io/v1alpha1", "kind": kind,
        "metadata": {"name": name, "namespace": "team", "uid": name, "generation": 1,
            "creationTimestamp": "2026-01-01T10:00:00Z", "labels": {"team": "vision"}},
        "spec": {"parameters": {}},
        "status": {"phase": "Ready", "progress": "1/1", "power": "Running", "conditions": conditions,
            "lifecycle": {"expiresAt": expires_at.to_string()}},
    })
}

fn workspace() -> Value {
    environment("GpuDevWorkspaceClaim", "ada")
}

/// A workspace that a user stopped an hour ago.
fn stopped() -> Value {
    let mut object = workspace();
    object["status"]["phase"] = json!("Stopped");
    object["status"]["power"] = json!("Stopped");
    object["status"]["lifecycle"]["stoppedAt"] = json!(an_hour_ago().to_string());
    object["status"]["lifecycle"]["stopReason"] = json!("Requested");
    object
}

/// A virtual cluster, which cannot be stopped.
fn virtual_cluster() -> Value {
    let mut object = environment("Environment", "preview");
    object["spec"]["parameters"]["type"] = json!("vcluster");
    object
}

fn with_maximum(maximum: &str) -> Value {
    let mut object = workspace();
    object["status"]["lifecycle"]["maximum"] = json!(maximum);
    object
}

fn paused(mut object: Value) -> Value {
    object["metadata"]["annotations"][PAUSED] = json!("true");
    object
}

fn deleting(mut object: Value) -> Value {
    object["metadata"]["finalizers"] = json!(["finalizer.apiextensions.crossplane.io"]);
    object["metadata"]["deletionTimestamp"] = json!("2026-01-01T11:00:00Z");
    object
}

#[tokio::test(flavor = "multi_thread")]
async fn extend_writes_a_renewal_that_the_function_reads() {
    let ada = workspace();
    let end = ahead(SignedDuration::from_hours(100)).to_string();
    for (args, seconds) in [
        (&["4h"][..], 4 * 3600),
        (&["--until", &end], 100 * 3600),
        (&["3d"], 72 * 3600),
        (&["-n", "team", "4h"], 4 * 3600),
    ] {
        let world = World::with(&[&ada]).await;
        let told = world.paved(&[&["extend", "ada"], args].concat()).await;
        assert_eq!((told.code, told.err.as_str()), (0, ""), "{}", told.told());
        let line = told.out.strip_prefix("GpuDevWorkspaceClaim team/ada expires at ").unwrap();
        let (expires_at, _) = line.split_once(", in ").unwrap();
        assert!((seconds - 60..=seconds).contains(&left(expires_at)), "{}", told.out);

        let now = world.now(&ada);
        let requests =
            Requests::read(|name| now["metadata"]["annotations"][name].as_str(), Timestamp::now());
        let (at, span) = requests.renewed.unwrap();
        assert_eq!((at + span.length().unwrap()).to_string(), expires_at);
        assert!(requests.ignored.is_empty());
        assert_eq!(now["spec"], ada["spec"]);
        assert_eq!(now["metadata"]["managedFields"][0]["manager"], "paved-lifecycle");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn maximum_caps_a_renewal_and_is_named() {
    for (args, note) in [
        (&["2w"][..], "note: Settings allow at most 1d from now\n"),
        (&["--until", "2099-01-01T00:00:00Z"], "note: Settings allow at most 1d from now\n"),
        (&["--max"], ""),
    ] {
        let ada = with_maximum("1d");
        let world = World::with(&[&ada]).await;
        let told = world.paved(&[&["extend", "ada"], args].concat()).await;
        assert_eq!((told.code, told.err.as_str()), (0, note), "{}", told.told());
        assert_eq!(world.annotation(&ada, RENEWED_FOR).as_deref(), Some("1d"));
        assert!(left(&world.annotation(&ada, RENEWED_AT).unwrap()) <= 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn earlier_expiry_changes_nothing() {
    let ada = workspace();
    let world = World::with(&[&ada]).await;
    let told = world.paved(&["extend", "ada", "1h"]).await;
    let expires_at = ada["status"]["lifecycle"]["expiresAt"].as_str().unwrap();
    let begin = format!("GpuDevWorkspaceClaim team/ada already expires at {expires_at}, in 1");
    assert_eq!((told.code, world.writes()), (0, 0), "{}", told.told());
    assert!(told.out.starts_with(&begin), "{}", told.out);
    assert!(told.out.ends_with(". Nothing was changed\n"), "{}", told.out);
}

#[tokio::test(flavor = "multi_thread")]
async fn renewal_starts_an_expired_environment() {
    let mut ada = stopped();
    ada["status"]["lifecycle"]["stopReason"] = json!("Expired");
    ada["status"]["lifecycle"]["expiresAt"] = json!(an_hour_ago().to_string());
    for command in [&["extend", "ada", "4h"][..], &["keep", "ada"]] {
        let world = World::with(&[&ada]).await;
        let told = world.paved(command).await;
        let words = "\nGpuDevWorkspaceClaim team/ada is being started\n";
        assert!(told.code == 0 && told.out.ends_with(words), "{}", told.told());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn request_without_effect_is_an_error_and_writes_nothing() {
    let mut endless = workspace();
    endless["status"].as_object_mut().unwrap().remove("lifecycle");
    let mut old = workspace();
    old["status"].as_object_mut().unwrap().retain(|field, _| field == "phase");
    let pool = paused(environment("StockPool", "pool"));
    let gone = "is being deleted, and this request does not stop the deletion";
    let cut_off = "is paused by the annotation crossplane.io/paused, so the request does not reach \
                   its composite";
    let unseen = "has no lifecycle in its status. Crossplane has not composed it yet, or its \
                  Composition has a schemaRevision below 3, which carries no lifecycle. Ask the \
                  platform team to set spec.pipeline[].input.schemaRevision to 3";
    let mut cases = vec![
        (
            endless,
            vec!["extend", "ada", "4h"],
            1,
            "so there is nothing to renew. Set spec.lifecycle.ttl in the claim instead",
        ),
        (
            workspace(),
            vec!["extend", "ada", "--max"],
            1,
            "has no maximum in Settings. Use a duration",
        ),
        (
            workspace(),
            vec!["extend", "ada", "--until", "2026-01-01T00:00:00Z"],
            1,
            "cannot expire at 2026-01-01T00:00:00Z; allowed: a time after now",
        ),
        (
            with_maximum("14d"),
            vec!["keep", "ada"],
            3,
            "spec.lifecycle.ttl: found never; allowed: at most 14d, the maximum in Settings",
        ),
        (
            virtual_cluster(),
            vec!["stop", "preview"],
            3,
            "Environment team/preview: cannot be stopped, because a virtual cluster cannot be stopped",
        ),
        (pool, vec!["stop", "pool"], 1, "so Crossplane does not act on the request"),
        (workspace(), vec!["stop", "nobody"], 1, "no environment nobody in namespace team"),
        (workspace(), vec!["stop", "ada", "nobody"], 1, "no environment nobody in namespace team"),
        (workspace(), vec!["extend", "nobody", "4h"], 1, "no environment nobody in namespace team"),
    ];
    for args in
        [&["extend", "ada", "4h"][..], &["stop", "ada"], &["start", "ada"], &["keep", "ada"]]
    {
        for (object, words) in
            [(deleting(workspace()), gone), (paused(workspace()), cut_off), (old.clone(), unseen)]
        {
            cases.push((object, args.to_vec(), 1, words));
        }
    }
    for (object, args, code, words) in cases {
        let world = World::with(&[&object]).await;
        let told = world.paved(&args).await;
        assert_eq!((told.code, told.out.as_str()), (code, ""), "{args:?}: {}", told.told());
        assert!(told.err.contains(words), "{args:?}: {}", told.err);
        assert_eq!(world.writes(), 0, "{args:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_flag_names_the_allowed_values() {
    let world = World::with(&[&workspace()]).await;
    for (args, words) in [
        (&["extend", "ada"][..], "Usage: paved extend --kubeconfig <FILE> <NAME> <TIME>"),
        (&["extend", "ada", "4"], "allowed: a whole number with a unit (s, m, h, d or w)"),
        (&["extend", "ada", "1h30m"], "allowed: a whole number with a unit (s, m, h, d or w)"),
        (&["extend", "ada", "never"], "use paved keep for an environment that never expires"),
        (&["extend", "ada", "-1h"], "invalid value '-1h' for '[TIME]': allowed: a whole number"),
        (&["extend", "ada", "--until", "18:00"], "allowed: a time (RFC 3339), for example"),
        (&["extend", "ada", "--until", "-1h"], "'-1h' for '--until <TIME>': allowed: a time"),
        (&["extend", "ada", "4h", "--max"], "cannot be used with"),
        (&["extend", "ada", "--until", "2099-01-01T00:00:00Z", "--max"], "cannot be used with"),
        (&["stop"], "<NAME>..."),
        (&["stop", "ada", "--select", "a=b"], "cannot be used with"),
        (&["stop", "ada", "-A"], "cannot be used with"),
        (&["stop", "-A"], "<NAME>..."),
        (&["stop", "ada", "--all"], "cannot be used with"),
        (&["stop", "--all", "-l", "a=b"], "cannot be used with"),
        (&["start", "ada", "--timeout", "1m"], "--wait"),
        (&["list", "--sort", "power", "-o", "name"], "--sort sorts rows; allowed: -o wide"),
        (&["list", "--expiring", "never"], "for '--expiring <TIME>': allowed: a whole number with"),
        (&["list", "--expiring", "-1h"], "'-1h' for '--expiring <TIME>': allowed: a whole number"),
    ] {
        let told = world.paved(args).await;
        assert_eq!((told.code, told.out.as_str()), (1, ""), "{args:?}: {}", told.told());
        assert!(told.err.contains(words), "{args:?}: {}", told.err);
    }
    assert_eq!(world.writes(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn keep_removes_the_time_to_live() {
    let mut ada = workspace();
    ada["spec"]["lifecycle"] = json!({"ttl": "8h", "onExpiry": "Stop"});
    let world = World::with(&[&ada]).await;
    let told = world.paved(&["keep", "ada"]).await;
    let words = "GpuDevWorkspaceClaim team/ada has no time to live any more\n";
    assert_eq!((told.code, told.out.as_str()), (0, words), "{}", told.told());
    let lifecycle = world.now(&ada)["spec"]["lifecycle"].clone();
    assert_eq!(lifecycle, json!({"ttl": "never", "onExpiry": "Stop"}));
    assert_eq!(world.writes(), 1);
    let told = world.paved(&["keep", "ada"]).await;
    assert_eq!((told.code, world.writes()), (0, 0), "{}", told.told());
    assert!(told.out.contains("already has spec.lifecycle.ttl: never"), "{}", told.out);
}

#[tokio::test(flavor = "multi_thread")]
async fn keep_warns_if_a_tool_applies_the_claim_from_git() {
    for (marks, name, tool) in [
        ("annotations", "argocd.argoproj.io/tracking-id", "Argo CD"),
        ("labels", "argocd.argoproj.io/instance", "Argo CD"),
        ("labels", "kustomize.toolkit.fluxcd.io/name", "Flux"),
        ("labels", "helm.toolkit.fluxcd.io/name", "Flux"),
        ("annotations", "objectset.rio.cattle.io/id", "Fleet"),
        ("annotations", "configmanagement.gke.io/managed", "Config Sync"),
        ("labels", "kapp.k14s.io/app", "kapp"),
        ("labels", "app.kubernetes.io/instance", "Argo CD probably"),
    ] {
        let mut ada = workspace();
        ada["metadata"][marks][name] = json!("environments");
        let world = World::with(&[&ada]).await;
        let told = world.paved(&["keep", "ada"]).await;
        let words = format!(
            "warning: {tool} applies GpuDevWorkspaceClaim team/ada from Git. The next \
             synchronization restores the ttl, unless you change spec.lifecycle.ttl in Git\n"
        );
        assert_eq!((told.code, told.err), (0, words), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn stop_stops_all_named_environments_or_none() {
    let (ada, pool) = (workspace(), environment("StockPool", "pool"));
    let world = World::with(&[&ada, &pool, &virtual_cluster()]).await;
    let told = world.paved(&["stop", "ada", "preview", "pool"]).await;
    assert_eq!((told.code, told.out.as_str(), world.writes()), (3, "", 0), "{}", told.told());
    assert!(told.err.starts_with("note: nothing was stopped\n"), "{}", told.err);
    let told = world.paved(&["stop", "ada", "pool"]).await;
    let words =
        "GpuDevWorkspaceClaim team/ada is being stopped\nStockPool team/pool is being stopped\n";
    assert_eq!((told.code, told.out.as_str(), world.writes()), (0, words, 2), "{}", told.told());
    let notes = "warning: GpuDevWorkspaceClaim: Running work is lost. The disk keeps its data. Instance store data is lost. \
                 The address changes.\n\
                 warning: StockPool: Running work is lost. The pool keeps its specification and has no pods.\n";
    assert_eq!(told.err, notes);
    for object in [&ada, &pool] {
        assert!((-60..=0).contains(&left(&world.annotation(object, STOPPED_AT).unwrap())));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rejected_stop_does_not_prevent_the_others() {
    let [ada, grace, linus] =
        ["ada", "grace", "linus"].map(|name| environment("GpuDevWorkspaceClaim", name));
    for args in [&["stop", "--select", "team=vision"][..], &["stop", "ada", "grace", "linus"]] {
        let world = World::with(&[&ada, &grace, &linus]).await;
        world.cluster.faults.fail(Failure {
            verb: "patch",
            path: "/gpudevworkspaceclaims/ada".to_owned(),
            code: 422,
            message: "denied by a webhook",
            is_executed: false,
        });
        let told = world.paved(args).await;
        let words = "GpuDevWorkspaceClaim team/grace is being stopped\n\
                     GpuDevWorkspaceClaim team/linus is being stopped\n";
        assert_eq!((told.code, told.out.as_str()), (2, words), "{}", told.told());
        let notes = "warning: GpuDevWorkspaceClaim: Running work is lost. The disk keeps its data. Instance store data is \
                     lost. The address changes.\n\
                     error: GpuDevWorkspaceClaim team/ada is rejected\n  denied by a webhook\n";
        assert_eq!(told.err, notes);
        let stopped = [&ada, &grace, &linus].map(|one| world.annotation(one, STOPPED_AT).is_some());
        assert_eq!(stopped, [false, true, true]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn selection_skips_environments_that_cannot_be_stopped() {
    let (ada, preview) = (workspace(), virtual_cluster());
    let mut sound = environment("StockPool", "sound");
    sound["metadata"]["labels"]["team"] = json!("sound");
    let mut elsewhere = environment("StockPool", "elsewhere");
    elsewhere["metadata"]["namespace"] = json!("other");
    let world = World::with(&[&ada, &preview, &sound, &elsewhere]).await;
    let told = world.paved(&["stop", "--select", "team=vision"]).await;
    let words = "GpuDevWorkspaceClaim team/ada is being stopped\n";
    assert_eq!((told.code, told.out.as_str(), world.writes()), (0, words, 1), "{}", told.told());
    let notes = "note: not stopped: Environment team/preview cannot be stopped, because a virtual \
                 cluster cannot be stopped\n\
                 warning: GpuDevWorkspaceClaim: Running work is lost. The disk keeps its data. Instance store data is lost. \
                 The address changes.\n";
    assert_eq!(told.err, notes);
    let told = world.paved(&["stop", "-l", "team=vision", "-A"]).await;
    assert!(told.out.contains("StockPool other/elsewhere is being stopped\n"), "{}", told.told());
    assert_eq!(world.annotation(&sound, STOPPED_AT), None);
    let told = world.paved(&["stop", "--select", "team=none"]).await;
    let words = "no environments in namespace team with labels team=none\n";
    assert_eq!((told.code, told.out.as_str(), told.err.as_str()), (0, "", words));
}

#[tokio::test(flavor = "multi_thread")]
async fn empty_selection_stops_nothing() {
    let world = World::with(&[&workspace()]).await;
    let everywhere: [&[&str]; 2] = [&[], &["-A"]];
    for place in everywhere {
        for labels in ["", " ", ",", ", ,", "team=vision,", "team!=", "!", "=vision"] {
            let flag = format!("--select={labels}");
            for args in
                [&["stop", "--select", labels][..], &["stop", "-l", labels], &["stop", &flag]]
            {
                let outcome = world.paved(&[args, place].concat()).await;
                assert_eq!(
                    (outcome.code, outcome.out.as_str()),
                    (1, ""),
                    "{args:?}: {}",
                    outcome.told()
                );
                assert!(outcome.err.contains("LABEL=VALUE"), "{args:?}: {}", outcome.err);
            }
        }
        let outcome = world.paved(&[&["stop", "--select", ""], place].concat()).await;
        assert!(outcome.err.contains("Use --select LABEL=VALUE, or --all"), "{}", outcome.err);
    }
    assert_eq!(world.writes(), 0);
    let outcome = world.paved(&["stop", "--all"]).await;
    let words = "GpuDevWorkspaceClaim team/ada is being stopped\n";
    assert_eq!(
        (outcome.code, outcome.out.as_str(), world.writes()),
        (0, words, 1),
        "{}",
        outcome.told()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn listed_name_is_the_same_environment_in_the_next_command() {
    let here = workspace();
    let mut there = workspace();
    there["metadata"]["namespace"] = json!("audio");
    let soon = (Timestamp::now() + SignedDuration::from_mins(50)).to_string();
    there["status"]["lifecycle"]["expiresAt"] = json!(soon);
    there["status"]["connection"] = json!("ssh developer@203.0.113.8");
    there["status"]["publicIp"] = json!("203.0.113.8");
    there["status"]["instanceId"] = json!("i-5ff875086775dd860");
    let kind = "gpudevworkspaceclaim.platform.acme.io";
    let name = format!("audio/{kind}/ada");
    let world = World::with(&[&here, &there]).await;
    for (args, names) in [
        (&["list", "-A", "--expiring", "1h"][..], vec![name.clone()]),
        (&["list", "-A"], vec![name.clone(), format!("team/{kind}/ada")]),
        (&["list", "-n", "audio"], vec![name.clone()]),
        (&["status", "-n", "audio"], vec![name.clone()]),
        (&["status", "ada", "-n", "audio"], vec![name.clone()]),
        (&["status", &name], vec![name.clone()]),
        (&["list"], vec![format!("{kind}/ada")]),
        (&["status", "ada"], vec![format!("{kind}/ada")]),
    ] {
        let outcome = world.paved(&[args, &["-o", "name"]].concat()).await;
        let lines: Vec<&str> = outcome.out.lines().collect();
        assert_eq!(
            (outcome.code, lines),
            (0, names.iter().map(String::as_str).collect()),
            "{args:?}"
        );
    }
    for (args, words) in [
        (&["wait", &name][..], "audio/ada is ready"),
        (&["status", &name], "audio/ada"),
        (&["extend", &name, "4h"], "audio/ada expires at"),
        (&["stop", &name], "audio/ada is being stopped"),
        (&["start", &name], "audio/ada already runs"),
        (&["keep", &name], "audio/ada has no time to live"),
        (&["connect", &name, "--print", "--unprepared"], "developer@203.0.113.8"),
        (&["delete", "-n", "audio", &name, "--yes"], "audio/ada is being deleted"),
    ] {
        let world = World::with(&[&here, &there]).await;
        let outcome = world.paved(args).await;
        assert!(outcome.code == 0 && outcome.out.contains(words), "{args:?}: {}", outcome.told());
        assert_eq!(world.now(&here)["metadata"].get("annotations"), None, "{args:?}");
        let wrong = world.paved(&[args, &["-n", "team"]].concat()).await;
        assert_eq!((wrong.code, wrong.out.as_str()), (1, ""), "{args:?}: {}", wrong.told());
        if args[1] != "-n" {
            let words = "is in namespace audio, and --namespace is team. Leave one of them out";
            assert!(wrong.err.contains(words), "{args:?}: {}", wrong.err);
        }
    }
    // With more than eight names, each kind and namespace is listed once.
    let mut many: Vec<Value> =
        (0..10).map(|n| environment("GpuDevWorkspaceClaim", &format!("w{n}"))).collect();
    many.iter_mut().step_by(2).for_each(|one| one["metadata"]["namespace"] = json!("audio"));
    let world = World::with(&many.iter().collect::<Vec<_>>()).await;
    let names = world.paved(&["list", "-A", "-o", "name"]).await.out;
    let mut args = vec!["delete", "--yes"];
    args.extend(names.lines());
    let outcome = world.paved(&args).await;
    assert_eq!((outcome.code, outcome.out.lines().count()), (0, 10), "{}", outcome.told());
    assert!(many.iter().all(|one| world.find(one).is_none()), "{}", outcome.told());
}

#[tokio::test(flavor = "multi_thread")]
async fn reached_power_state_is_told() {
    let world = World::with(&[&stopped()]).await;
    let outcome = world.paved(&["stop", "ada"]).await;
    assert_eq!((outcome.code, world.writes()), (0, 0), "{}", outcome.told());
    assert_eq!(outcome.out, "GpuDevWorkspaceClaim team/ada is already stopped\n");
    let world = World::with(&[&workspace()]).await;
    let outcome = world.paved(&["start", "ada"]).await;
    let words = "GpuDevWorkspaceClaim team/ada already runs. The start renews its time to live\n";
    assert_eq!(
        (outcome.code, outcome.out.as_str(), world.writes()),
        (0, words, 1),
        "{}",
        outcome.told()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn start_waits_until_the_environment_runs() {
    let ada = stopped();
    let world = World::with(&[&ada]).await;
    let outcome = world.paved(&["start", "ada"]).await;
    let words = "GpuDevWorkspaceClaim team/ada is being started\n";
    assert_eq!(
        (outcome.code, outcome.out.as_str(), world.writes()),
        (0, words, 1),
        "{}",
        outcome.told()
    );

    let world = World::with(&[&ada]).await;
    let args = ["start", "ada", "--wait", "--timeout", "20s"];
    let outcome = world.reacting(&args, STARTED_AT, &ada, workspace()["status"].clone()).await;
    assert_eq!(outcome.code, 0, "{}", outcome.told());
    assert!(outcome.out.starts_with(words), "{}", outcome.out);
    assert!(outcome.out.contains("GpuDevWorkspaceClaim team/ada runs after "), "{}", outcome.out);

    // A stopped environment is ready, and does not end the wait.
    let world = World::with(&[&ada]).await;
    let outcome = world.paved(&["start", "ada", "--wait", "--timeout", "1s"]).await;
    assert_eq!(outcome.code, 5, "{}", outcome.told());
    assert!(outcome.err.contains("team/ada is not running after 1s: Stopped"), "{}", outcome.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn start_without_capacity_has_an_exit_code() {
    let ada = stopped();
    for (message, code, words) in [
        (
            "InsufficientInstanceCapacity: no g4dn.xlarge in us-east-1a",
            7,
            "Try again later, or choose another machine type or region.",
        ),
        ("VcpuLimitExceeded: your limit is 0", 4, "Choose a smaller size"),
    ] {
        let mut status = stopped()["status"].clone();
        status["phase"] = json!("Failed");
        status["conditions"][1]["status"] = json!("False");
        status["conditions"][2]["status"] = json!("False");
        status["resources"] = json!([{"slot": "instance", "kind": "Instance", "ready": false,
            "reason": "Failed", "message": message, "since": "2026-01-01T10:00:40Z"}]);
        let world = World::with(&[&ada]).await;
        let args = ["start", "ada", "--wait", "--patience", "1s", "--timeout", "20s"];
        let told = world.reacting(&args, STARTED_AT, &ada, status).await;
        assert_eq!(told.code, code, "{}", told.told());
        assert!(told.err.contains(words), "{}", told.err);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn fast_clock_is_a_warning() {
    let ada = workspace();
    let world = World::at(&[&ada], an_hour_ago).await;
    let told = world.paved(&["extend", "ada", "4h"]).await;
    let words = "warning: the clock of this machine is 60m ahead of the cluster's";
    assert!(told.code == 0 && told.err.starts_with(words), "{}", told.told());
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_right_is_no_access() {
    let world = World::with(&[&workspace()]).await;
    world.cluster.access.set("ada", "patch", "*", false);
    let told = world.paved(&["stop", "ada"]).await;
    assert_eq!((told.code, told.out.as_str()), (6, ""), "{}", told.told());
    assert!(told.err.contains("you may not stop GpuDevWorkspaceClaim team/ada"), "{}", told.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn list_shows_and_selects_by_power_and_time_left() {
    let ada = workspace();
    let mut pool = environment("StockPool", "pool");
    pool["status"]["lifecycle"]["expiresAt"] =
        json!(ahead(SignedDuration::from_secs(30 * 3600 - 30)).to_string());
    let mut kept = environment("StockPool", "kept");
    kept["status"]["lifecycle"] = json!({});
    let mut off = stopped();
    off["metadata"]["name"] = json!("off");
    off["status"]["lifecycle"]["deletesAt"] =
        json!(ahead(SignedDuration::from_secs(8 * 86_400 + 3600)).to_string());
    let world = World::with(&[&ada, &pool, &kept, &off]).await;
    let told = world.paved(&["list"]).await;
    assert_eq!(told.code, 0, "{}", told.told());
    for (name, power, left) in [
        ("ada", "Running", "119m"),
        ("pool", "Running", "29h"),
        ("kept", "Running", "never"),
        ("off", "Stopped", "8d (deletion)"),
    ] {
        let row = told.out.lines().find(|line| line.starts_with(name)).unwrap();
        assert!(row.contains(power) && row.contains(left), "{row}");
    }
    let names = |told: &Run| -> Vec<String> {
        let rows = told.out.lines().skip(1);
        rows.map(|row| row.split(' ').next().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&told), ["ada", "kept", "off", "pool"]);
    let sorted = world.paved(&["list", "--sort", "time-left"]).await;
    assert_eq!(names(&sorted), ["ada", "pool", "off", "kept"]);
    let sorted = world.paved(&["list", "--sort", "power"]).await;
    assert_eq!(names(&sorted), ["ada", "kept", "pool", "off"]);
    // The expiry of a stopped environment does not count, but its deletion does.
    let soon = world.paved(&["list", "--expiring", "24h", "-o", "name"]).await;
    assert_eq!(soon.out, "gpudevworkspaceclaim.platform.acme.io/ada\n", "{}", soon.told());
    let later = world.paved(&["list", "--expiring", "2w"]).await;
    assert_eq!(names(&later), ["ada", "off", "pool"]);
    let none = world.paved(&["list", "--expiring", "1m"]).await;
    let words = "no environments in namespace team expire or are deleted before ";
    assert!(none.code == 0 && none.err.contains(words), "{}", none.told());
}

#[tokio::test(flavor = "multi_thread")]
async fn status_has_power_and_times() {
    let mut ada = stopped();
    ada["status"]["lifecycle"]["deletesAt"] = json!("2099-01-01T00:00:00Z");
    let world = World::with(&[&ada]).await;
    let told = world.paved(&["status", "ada"]).await;
    let time = |field: &str| ada["status"]["lifecycle"][field].as_str().unwrap();
    for words in [
        "GpuDevWorkspaceClaim team/ada  Stopped 1/1",
        "\n  power:    Stopped\n",
        &format!("\n  stopped:  {}, 60m ago, by request\n", time("stoppedAt")),
        &format!("\n  expires:  {}, in 119m\n", time("expiresAt")),
        "\n  deletion: 2099-01-01T00:00:00Z, in ",
    ] {
        assert!(told.out.contains(words), "{words}: {}", told.out);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn connect_starts_a_stopped_workspace_after_a_question() {
    let ada = stopped();
    let world = World::with(&[&ada]).await;
    let told = world.paved(&["connect", "ada", "--print"]).await;
    let words = "GpuDevWorkspaceClaim team/ada is stopped. Use --start to start it\n";
    assert!(told.code == 1 && told.err.ends_with(words), "{}", told.told());
    let told = world.answered(&["connect", "ada", "--print"], Some("n\n")).await;
    assert_eq!((told.code, world.writes()), (1, 0), "{}", told.told());
    for words in ["team/ada is stopped. Start it? [y/N] ", "team/ada stays stopped\n"] {
        assert!(told.err.contains(words), "{}", told.err);
    }
    let mut status = workspace()["status"].clone();
    status["instanceId"] = json!("i-0abc");
    status["publicIp"] = json!("127.0.0.1");
    status["connection"] = json!("ssh developer@127.0.0.1");
    let args = ["connect", "ada", "--print", "--start", "--timeout", "20s"];
    let told = world.reacting(&args, STARTED_AT, &ada, status).await;
    assert_eq!(told.code, 0, "{}", told.told());
    assert_eq!(told.out, "ssh -o HostKeyAlias=i-0abc developer@127.0.0.1\n");
}
