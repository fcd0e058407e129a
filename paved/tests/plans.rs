//! `apply`, `delete` and `stop` print a plan with a hash, and act on the hash only if no object has
//! changed since. A plan has no secrets. Each action is recorded.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::sync::Arc;

use fake_kube::access::{Access, User};
use fake_kube::kinds::{Kind, Kinds};
use fake_kube::{Cluster, Server};
use function_paved_road::apis::{self, Flavour};
use function_paved_road::manifests::example_composition;
use jiff::Timestamp;
use k8s_schema::Schemas;
use serde_json::{Value, json};
use support::{Run, folder, paved_typed, within};
use tempfile::TempDir;
use tokio::process::Command;

const GROUP: &str = "platform.acme.io";

/// A cluster of the user ada, and a folder with its kubeconfig and `claim.yaml`.
struct World {
    cluster: Arc<Cluster>,
    folder: TempDir,
    _server: Server,
}

impl World {
    async fn with(objects: &[Value]) -> Self {
        let names = |kind: &str, plural: &str| {
            let names = json!({"kind": kind, "plural": plural, "categories": ["paved"]});
            Kind::from_names(GROUP, "v1alpha1", &names, true)
        };
        let all = [
            names("GpuDevWorkspace", "gpudevworkspaces"),
            names("UnifiedEnvironment", "unifiedenvironments"),
        ];
        let kinds = Kinds::new(all, Schemas::new([].iter()).unwrap(), Vec::new());
        let cluster = Arc::new(Cluster::new(kinds, Access::open(User::new("ada", &[]))));
        let server = Server::start(Arc::clone(&cluster)).await.unwrap();
        let kubeconfig = server.kubeconfig("c", "team", &json!({})).to_string();
        let folder = folder(&[("kubeconfig", kubeconfig.as_str())]);
        let world = Self { cluster, folder, _server: server };
        let api = apis::find("GpuDevWorkspace").unwrap();
        for object in objects.iter().chain(&[example_composition(api, Flavour::Namespaced, GROUP)])
        {
            world.put(object);
        }
        world
    }

    fn put(&self, object: &Value) {
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
        let kind = self.cluster.kinds.for_object(object).unwrap();
        let key = kind.key(text("namespace"), text("name"));
        self.cluster.store.put(&key, Timestamp::now(), |_| Some(object.clone()));
    }

    fn find(&self, object: &Value) -> Option<Value> {
        let name = object["metadata"]["name"].as_str().unwrap();
        let kind = self.cluster.kinds.for_object(object).unwrap();
        self.cluster.store.get(&kind.key("team", name)).map(|object| Value::clone(&object))
    }

    /// Writes `claim.yaml`.
    fn file(&self, object: &Value) -> String {
        let path = within(&self.folder, "claim.yaml");
        std::fs::write(&path, object.to_string()).unwrap();
        path
    }

    async fn paved(&self, args: &[&str]) -> Run {
        self.answered(args, None).await
    }

    async fn answered(&self, args: &[&str], typed: Option<&'static str>) -> Run {
        let kubeconfig = within(&self.folder, "kubeconfig");
        paved_typed(&[args, &["--kubeconfig", kubeconfig.as_str()]].concat(), typed).await
    }

    /// The environments' writes since the last call.
    fn writes(&self) -> usize {
        let is_write = |one: &&fake_kube::Request| {
            ["PATCH", "DELETE", "PUT"].contains(&one.method.as_str())
                && !one.query.contains("dryRun")
        };
        self.cluster.requests().iter().filter(is_write).count()
    }

    /// The reasons and messages of all Events.
    fn events(&self) -> Vec<String> {
        let (_, events) = self.cluster.store.list("events.", Some("team"));
        let told = |event: &Value| {
            let text = |field: &str| event[field].as_str().unwrap_or_default().to_owned();
            format!("{} {} {}", text("reason"), event["involvedObject"]["name"], text("message"))
        };
        events.iter().map(|(_, event)| told(event)).collect()
    }
}

fn workspace(machine: &str) -> Value {
    let key =
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIMcE1jS2BvFskas8trZu8+v8qhFP45gtKswerSFXYPEP ada";
    json!({"apiVersion": "platform.acme.io/v1alpha1", "kind": "GpuDevWorkspace",
        "metadata": {"name": "ada", "namespace": "team"},
        "spec": {"parameters": {"owner": "ada", "instanceType": machine, "region": "us-east-1",
            "sshPublicKeys": [key], "allowedCidrs": ["203.0.113.0/24"]}}})
}

fn condition(kind: &str) -> Value {
    json!({"type": kind, "status": "True", "reason": "Available",
        "lastTransitionTime": "2026-01-01T00:00:00Z"})
}

/// A workspace that runs, with the resources that a deletion deletes and keeps.
fn running(machine: &str) -> Value {
    let mut object = workspace(machine);
    object["metadata"]["uid"] = json!("7");
    object["status"] = json!({"phase": "Ready", "power": "Running", "lifecycle": {},
        "estimatedHourlyUSD": "0.542", "estimatedStoppedHourlyUSD": "0.011",
        "priceAsOf": "2026-07-20",
        "onDeletion": {
            "deletes": [
                {"slot": "instance", "kind": "Instance", "name": "i-1", "hasData": true},
                {"slot": "role", "kind": "Role", "name": "ada-role", "hasData": false}],
            "keeps": [{"slot": "snapshot", "kind": "Snapshot", "name": "s-1"}]},
        "conditions": [
            condition("Synced"),
            condition("Ready"),
            condition("Provisioned")]});
    object
}

fn plan(run: &Run) -> Value {
    assert_eq!(run.code, 0, "{}", run.told());
    serde_json::from_str(&run.out).unwrap()
}

fn hash(plan: &Value) -> &str {
    plan["hash"].as_str().unwrap()
}

/// The run made no change, and said so in one sentence.
fn assert_stale(run: &Run, world: &World) {
    assert_eq!((run.code, run.out.as_str(), world.writes()), (8, "", 0), "{}", run.told());
    assert!(
        run.err.contains("error: something has changed since this plan was made"),
        "{}",
        run.err
    );
    let errors: Vec<&str> = run.err.lines().filter(|line| line.starts_with("error")).collect();
    assert_eq!(errors.len(), 1, "{}", run.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn apply_plan_has_the_diff_the_price_and_the_restart() {
    let world = World::with(&[running("g4dn.xlarge")]).await;
    let file = world.file(&workspace("g5.2xlarge"));
    let plan = plan(&world.paved(&["apply", &file, "--plan", "-o", "json"]).await);
    assert_eq!(world.writes(), 0);
    assert_eq!((&plan["version"], &plan["action"]), (&json!(1), &json!("apply")));
    let one = &plan["environments"][0];
    assert_eq!(one["change"], "update", "{plan:#}");
    assert_eq!(one["name"], "ada");
    let machine = json!({"path": "spec.parameters.instanceType", "before": "g4dn.xlarge", "after": "g5.2xlarge"});
    assert!(one["diff"].as_array().unwrap().contains(&machine), "{plan:#}");
    assert_eq!(one["price"]["before"]["hourlyUSD"], "0.542");
    assert!(one["price"]["after"]["hourlyUSD"].is_string(), "{plan:#}");
    assert_eq!(one["restarts"][0]["field"], "spec.parameters.instanceType");
    assert!(
        one["resources"]["changed"].as_array().unwrap().contains(&json!("instance")),
        "{plan:#}"
    );
    assert_eq!(hash(&plan).len(), 64);
    let text = world.paved(&["apply", &file, "--plan"]).await;
    for words in [
        "will be changed",
        "restart: The machine stops and starts. Running work is lost.",
        hash(&plan),
    ] {
        assert!(text.out.contains(words), "{words}: {}", text.told());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn confirmed_apply_acts_only_if_nothing_has_changed() {
    let world = World::with(&[running("g4dn.xlarge")]).await;
    let file = world.file(&workspace("g5.2xlarge"));
    let first = plan(&world.paved(&["apply", &file, "--plan", "-o", "json"]).await);
    // A new status does not make a plan stale.
    let mut busy = running("g4dn.xlarge");
    busy["status"]["progress"] = json!("7/7");
    world.put(&busy);
    let again = plan(&world.paved(&["apply", &file, "--plan", "-o", "json"]).await);
    assert_eq!(hash(&first), hash(&again));
    // The object, the file, the flags and the Settings.
    let mut edited = running("g4dn.xlarge");
    edited["spec"]["parameters"]["diskGB"] = json!(300);
    world.put(&edited);
    world.writes();
    assert_stale(&world.paved(&["apply", &file, "--confirm", hash(&first)]).await, &world);
    world.put(&busy);
    let other = world.file(&workspace("g5.4xlarge"));
    assert_stale(&world.paved(&["apply", &other, "--confirm", hash(&first)]).await, &world);
    world.file(&workspace("g5.2xlarge"));
    let forced =
        world.paved(&["apply", &file, "--force-conflicts", "--confirm", hash(&first)]).await;
    assert_stale(&forced, &world);
    let api = apis::find("GpuDevWorkspace").unwrap();
    let mut composition = example_composition(api, Flavour::Namespaced, GROUP);
    composition["spec"]["pipeline"][0]["input"]["tags"] = json!({"team": "new"});
    world.put(&composition);
    assert_stale(&world.paved(&["apply", &file, "--confirm", hash(&first)]).await, &world);
    world.put(&example_composition(api, Flavour::Namespaced, GROUP));

    let done = world.paved(&["apply", &file, "--confirm", hash(&first)]).await;
    assert_eq!(done.code, 0, "{}", done.told());
    let now = world.find(&workspace("")).unwrap();
    assert_eq!(now["spec"]["parameters"]["instanceType"], "g5.2xlarge");
    assert!(
        world
            .events()
            .iter()
            .any(|one| one == "Changed \"ada\" ada changed this environment with the command line"),
        "{:?}",
        world.events()
    );
    world.writes();
    assert_stale(&world.paved(&["apply", &file, "--confirm", hash(&first)]).await, &world);
}

#[tokio::test(flavor = "multi_thread")]
async fn confirmed_creation_does_not_change_an_existing_environment() {
    let world = World::with(&[]).await;
    let file = world.file(&workspace("g4dn.xlarge"));
    let new = plan(&world.paved(&["apply", &file, "--plan", "-o", "json"]).await);
    assert_eq!(new["environments"][0]["change"], "create");
    world.put(&running("g4dn.xlarge"));
    world.writes();
    assert_stale(&world.paved(&["apply", &file, "--confirm", hash(&new)]).await, &world);
}

#[tokio::test(flavor = "multi_thread")]
async fn confirmed_delete_and_stop_act_only_if_nothing_has_changed() {
    for (verb, change) in [("delete", "delete"), ("stop", "stop")] {
        let world = World::with(&[running("g4dn.xlarge")]).await;
        let first = plan(&world.paved(&[verb, "ada", "--plan", "-o", "json"]).await);
        let one = &first["environments"][0];
        assert_eq!((one["change"].as_str(), world.writes()), (Some(change), 0));
        if verb == "delete" {
            let instance =
                json!({"slot": "instance", "kind": "Instance", "name": "i-1", "hasData": true});
            assert_eq!(one["deletions"][0], instance, "{first:#}");
            assert_eq!(one["keeps"][0]["slot"], "snapshot", "{first:#}");
        } else {
            assert_eq!(one["price"]["after"]["hourlyUSD"], "0.011", "{first:#}");
        }
        let mut edited = running("g4dn.xlarge");
        edited["metadata"]["annotations"] = json!({"note": "do not touch"});
        world.put(&edited);
        world.writes();
        assert_stale(&world.paved(&[verb, "ada", "--confirm", hash(&first)]).await, &world);
        // A hash of another action is not valid.
        world.put(&running("g4dn.xlarge"));
        let other = if verb == "delete" { "stop" } else { "delete" };
        assert_stale(&world.paved(&[other, "ada", "--confirm", hash(&first)]).await, &world);
        let done = world.paved(&[verb, "ada", "--confirm", hash(&first)]).await;
        assert_eq!((done.code, world.writes()), (0, 1), "{}", done.told());
        assert!(!world.events().is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_flags_of_a_plan_change_nothing() {
    let world = World::with(&[running("g4dn.xlarge")]).await;
    for args in [
        &["delete", "ada", "--confirm", "abc"][..],
        &["stop", "ada", "--confirm", ""],
        &["delete", "ada", "-o", "json"],
        &["delete", "ada", "--plan", "--confirm", &"0".repeat(64)],
        &["delete", "--namespace", "team", "--plan"],
        &["stop", "ada", "--confirm", "--plan"],
    ] {
        let run = world.paved(args).await;
        assert_eq!(
            (run.code, run.out.as_str(), world.writes()),
            (1, "", 0),
            "{args:?} {}",
            run.told()
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn diff_and_restart_ask_on_a_terminal() {
    let world = World::with(&[running("g4dn.xlarge")]).await;
    let file = world.file(&workspace("g5.2xlarge"));
    for args in [&["apply", &file, "--diff"][..], &["apply", &file]] {
        let run = world.answered(args, Some("n\n")).await;
        assert_eq!((run.code, world.writes()), (1, 0), "{}", run.told());
        assert!(run.err.contains("Apply? [y/N]"), "{}", run.told());
        assert!(run.out.contains("restart: The machine stops and starts."), "{}", run.told());
        assert!(run.out.contains("price: 0.542 → "), "{}", run.told());
    }
    let run = world.answered(&["apply", &file, "--diff"], Some("y\n")).await;
    assert_eq!((run.code, world.writes()), (0, 1), "{}", run.told());
    let file = world.file(&workspace("g5.4xlarge"));
    // Without a terminal, the command warns and does not ask.
    let run = world.paved(&["apply", &file]).await;
    assert_eq!((run.code, world.writes()), (0, 1), "{}", run.told());
    assert!(run.out.contains("restart:") && !run.err.contains("[y/N]"), "{}", run.told());
    let file = world.file(&workspace("g5.8xlarge"));
    let run = world.answered(&["apply", &file, "--yes"], Some("")).await;
    assert_eq!((run.code, world.writes()), (0, 1), "{}", run.told());
    // A change that does not interrupt needs no question.
    let mut disk = workspace("g5.8xlarge");
    disk["spec"]["parameters"]["diskGB"] = json!(300);
    let run = world.answered(&["apply", &world.file(&disk)], Some("n\n")).await;
    assert_eq!((run.code, world.writes()), (0, 1), "{}", run.told());
}

#[tokio::test(flavor = "multi_thread")]
async fn stop_warns_and_asks_on_a_terminal() {
    let world = World::with(&[running("g4dn.xlarge")]).await;
    for typed in ["n\n", ""] {
        let run = world.answered(&["stop", "ada"], Some(typed)).await;
        assert_eq!((run.code, world.writes()), (1, 0), "{}", run.told());
        assert!(run.err.contains("Running work is lost."), "{}", run.told());
    }
    let run = world.answered(&["stop", "ada"], Some("y\n")).await;
    assert_eq!((run.code, world.writes()), (0, 1), "{}", run.told());
    let world = World::with(&[running("g4dn.xlarge")]).await;
    let run = world.answered(&["stop", "ada", "--yes"], Some("n\n")).await;
    assert_eq!((run.code, world.writes()), (0, 1), "{}", run.told());
}

/// Plants secrets in every place of a claim that takes any text.
fn planted() -> (Value, Value, Vec<String>) {
    let secrets: Vec<String> = (0..100).map(|n| format!("s3cret-{n:03}-hunter2")).collect();
    let claim = |offset: usize| {
        let at = |n: usize| secrets[(n + offset) % 100].clone();
        let env: serde_json::Map<String, Value> =
            (0..40).map(|n| (format!("KEY_{n}"), json!(at(n)))).collect();
        let annotations: serde_json::Map<String, Value> =
            (40..80).map(|n| (format!("note-{n}"), json!(at(n)))).collect();
        let labels: serde_json::Map<String, Value> =
            (80..98).map(|n| (format!("label-{n}"), json!(at(n)))).collect();
        json!({"apiVersion": "platform.acme.io/v1alpha1", "kind": "UnifiedEnvironment",
            "metadata": {"name": "shop", "namespace": "team", "annotations": annotations, "labels": labels},
            "spec": {"backend": {"image": format!("https://user:{}@registry.example.org/a:1", at(98)), "env": env},
                "frontend": {"appName": "shop"}, "unknown": {"deep": [{"token": at(99)}]}}})
    };
    let mut before = claim(1);
    before["metadata"]["uid"] = json!("8");
    before["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"] =
        json!(claim(2).to_string());
    (before, claim(0), secrets)
}

#[tokio::test(flavor = "multi_thread")]
async fn plan_has_none_of_a_hundred_planted_secrets() {
    let (before, after, secrets) = planted();
    for objects in [&[][..], &[before]] {
        let world = World::with(objects).await;
        let file = world.file(&after);
        for args in [
            &["apply", &file, "--plan", "-o", "json", "--no-validate"][..],
            &["apply", &file, "--plan", "--no-validate"],
            &["delete", "shop", "--plan", "-o", "json"],
            &["delete", "shop", "--plan"],
        ] {
            let run = world.paved(args).await;
            let told = run.told();
            assert!(run.code == 0 || (objects.is_empty() && args[0] == "delete"), "{told}");
            let found: Vec<&String> = secrets.iter().filter(|one| told.contains(*one)).collect();
            assert!(found.is_empty(), "{args:?}: {found:?}\n{told}");
            let has_paths = told.contains("spec.backend.env.KEY_7");
            assert!(args[0] == "delete" || has_paths, "{told}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_action_has_one_line_in_the_log() {
    let world = World::with(&[running("g4dn.xlarge")]).await;
    let kubeconfig = within(&world.folder, "kubeconfig");
    let log = within(&world.folder, "actions.jsonl");
    let file = world.file(&workspace("g5.2xlarge"));
    let run = async |args: &[&str], variables: &[(&str, &str)]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_paved"));
        command.args(args).env_clear().env("KUBECONFIG", &kubeconfig);
        let output = command.envs(variables.iter().copied()).output().await.unwrap();
        String::from_utf8(output.stderr).unwrap()
    };
    run(&["apply", &file], &[("PAVED_ACTION_LOG", &log)]).await;
    run(&["stop", "ada"], &[("PAVED_ACTION_LOG", &log)]).await;
    let lines = std::fs::read_to_string(&log).unwrap();
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told: Vec<[&Value; 4]> = lines
        .iter()
        .map(|line| ["actor", "verb", "result", "program"].map(|field| &line[field]))
        .collect();
    assert_eq!(
        json!(told),
        json!([["ada", "change", "configured", "paved"], ["ada", "stop", "requested", "paved"]])
    );
    assert_eq!(lines[0]["object"]["name"], "ada");
    let in_job = run(&["start", "ada"], &[("CI", "true")]).await;
    assert_eq!(
        in_job.lines().filter(|line| line.contains("\"verb\":\"start\"")).count(),
        1,
        "{in_job}"
    );
    let missing = run(&["stop", "ada"], &[("PAVED_ACTION_LOG", "/no/such/folder/x")]).await;
    assert!(missing.contains("note: could not write PAVED_ACTION_LOG"), "{missing}");
    let by_hand = run(&["delete", "ada", "--yes"], &[]).await;
    assert!(!by_hand.contains("\"verb\""), "{by_hand}");
}
