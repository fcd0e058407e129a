//! A cluster in memory with environments that the function would compose, and controllers on it.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fake_kube::access::{Access, User};
use fake_kube::faults::Failure;
use fake_kube::kinds::{Kind, Kinds};
use fake_kube::store::Key;
use fake_kube::{Cluster as FakeCluster, Server};
use function_paved_road::lifecycle::{
    Lifecycle, LifecycleSettings, NOTE, Note, Plan, Requests, Situation,
};
use function_paved_road::manifests::namespaces::NAME;
use jiff::{SignedDuration, Timestamp};
use k8s_schema::Schemas;
use kube::Config;
use paved_client::cluster::{Access as Flags, Cluster};
use paved_controller::{Clock, Limits, Options, Receiver, SettingsFrom};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

/// The beginning of all tests.
pub const BEGIN: &str = "2026-01-01T12:00:00Z";

/// The group of the APIs.
const GROUP: &str = "platform.acme.io";

/// Clocks that a test moves.
#[derive(Clone, Default)]
pub struct Clocks {
    /// The wall clock of the controller's node.
    wall: Arc<AtomicI64>,
    /// The clock of the API server, which is always right.
    server: Arc<AtomicI64>,
    steady: Arc<AtomicI64>,
}

impl Clocks {
    fn new() -> Self {
        let clocks = Self::default();
        clocks.set_all(time(BEGIN));
        clocks
    }

    pub fn now(&self) -> Timestamp {
        Timestamp::from_second(self.wall.load(Ordering::SeqCst)).unwrap()
    }

    /// Time passes.
    pub fn pass(&self, text: &str) {
        let length: SignedDuration = text.parse().unwrap();
        self.wall.fetch_add(length.as_secs(), Ordering::SeqCst);
        self.server.fetch_add(length.as_secs(), Ordering::SeqCst);
        self.steady.fetch_add(length.as_secs(), Ordering::SeqCst);
    }

    /// The wall clock of the controller's node jumps, and is wrong.
    pub fn set(&self, now: Timestamp) {
        self.wall.store(now.as_second(), Ordering::SeqCst);
    }

    /// It is another time, and all clocks are right.
    pub fn set_all(&self, now: Timestamp) {
        self.set(now);
        self.server.store(now.as_second(), Ordering::SeqCst);
    }

    /// The clock of the API server.
    fn of_server(&self) -> impl Fn() -> Timestamp + Send + Sync + use<> {
        let server = Arc::clone(&self.server);
        move || Timestamp::from_second(server.load(Ordering::SeqCst)).unwrap()
    }

    /// The clocks of a controller. Real time passes too, so that pauses end.
    pub fn clock(&self) -> Clock {
        let (wall, steady) = (self.clone(), self.clone());
        let begin = std::time::Instant::now();
        Clock::new(
            move || wall.now(),
            move || {
                let passed = steady.steady.load(Ordering::SeqCst);
                begin.elapsed() + Duration::from_secs(passed.try_into().unwrap())
            },
        )
    }
}

pub fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// An environment of the function: the wishes of its claim, and the function's note.
#[derive(Clone)]
pub struct Environment {
    pub name: String,
    pub namespace: String,
    pub kind: &'static str,
    pub lifecycle: Value,
    pub annotations: Value,
    pub labels: Value,
    pub note: Option<Note>,
    pub settings: LifecycleSettings,
    pub hourly: Option<&'static str>,
    pub conditions: Vec<Value>,
}

impl Environment {
    /// A GPU workspace with this lifecycle.
    pub fn new(name: &str, lifecycle: Value) -> Self {
        Self {
            name: name.to_owned(),
            namespace: "team".to_owned(),
            kind: "GpuDevWorkspaceClaim",
            lifecycle,
            annotations: json!({}),
            labels: json!({}),
            note: None,
            settings: LifecycleSettings::default(),
            hourly: None,
            conditions: Vec::new(),
        }
    }

    /// The same with these defaults of Settings.
    pub fn with_settings(mut self, settings: Value) -> Self {
        self.settings = serde_json::from_value(settings).unwrap();
        self
    }

    /// The function's plan at a time. It is noted.
    fn plan(&mut self, now: Timestamp) -> Plan {
        let wishes: Lifecycle = serde_json::from_value(self.lifecycle.clone()).unwrap();
        let requests = Requests::read(|name| self.annotations[name].as_str(), now);
        let plan = Plan::new(&Situation {
            now,
            created: Some(time(BEGIN)),
            written: None,
            exists: self.note.is_some(),
            wishes: Some(&wishes),
            settings: Some(&self.settings),
            announced_maximum: None,
            requests: &requests,
            note: self.note.as_ref(),
            cannot_stop: None,
            is_rejected: false,
            leaves_resources: false,
        });
        self.note = Some(plan.note.clone());
        plan
    }
}

/// A cluster and its API server.
pub struct World {
    pub cluster: Arc<FakeCluster>,
    pub clocks: Clocks,
    pub server: Server,
    requests: Mutex<Vec<fake_kube::Request>>,
}

/// A controller that runs.
pub struct Running {
    stop: Option<oneshot::Sender<()>>,
    task: Option<JoinHandle<()>>,
}

impl Running {
    /// Stops it as SIGTERM does.
    pub async fn stop(mut self) {
        drop(self.stop.take());
        if let Some(task) = self.task.take() {
            task.await.unwrap();
        }
    }

    /// Stops it as SIGKILL does.
    pub fn kill(mut self) {
        if let Some(task) = self.task.take() {
            task.abort();
        }
    }
}

impl World {
    pub async fn new() -> Self {
        let clocks = Clocks::new();
        let kind = |group: &str, version: &str, kind: &str, plural: &str, categories: &[&str]| {
            let names = json!({"kind": kind, "plural": plural, "categories": categories});
            Kind::from_names(group, version, &names, true)
        };
        let mut kinds = vec![
            kind("coordination.k8s.io", "v1", "Lease", "leases", &[]),
            kind(
                GROUP,
                "v1alpha1",
                "GpuDevWorkspaceClaim",
                "gpudevworkspaceclaims",
                &["claim", "paved"],
            ),
            kind(
                "platform.m.acme.io",
                "v1alpha1",
                "GpuDevWorkspace",
                "gpudevworkspaces",
                &["paved"],
            ),
            kind("ec2.aws.m.upbound.io", "v1beta1", "SecurityGroup", "securitygroups", &[]),
            kind("protection.crossplane.io", "v1beta1", "Usage", "usages", &[]),
        ];
        let cluster_scoped = |group: &str, version: &str, kind: &str, plural: &str| {
            Kind::from_names(group, version, &json!({"kind": kind, "plural": plural}), false)
        };
        kinds.push(cluster_scoped(GROUP, "v1alpha1", "GpuDevWorkspace", "gpudevworkspaces"));
        kinds.push(cluster_scoped(
            "ec2.aws.upbound.io",
            "v1beta1",
            "SecurityGroup",
            "securitygroups",
        ));
        kinds.push(cluster_scoped(
            "protection.crossplane.io",
            "v1beta1",
            "ClusterUsage",
            "clusterusages",
        ));
        for kind in kinds.iter_mut().filter(|kind| kind.categories.contains(&"paved".to_owned())) {
            kind.foreground = true;
        }
        let kinds = Kinds::new(kinds, Schemas::new([].iter()).unwrap(), Vec::new());
        let access = Access::open(User::new("controller", &[]));
        let cluster = Arc::new(FakeCluster::new(kinds, access).with_clock(clocks.of_server()));
        let server = Server::start(Arc::clone(&cluster)).await.unwrap();
        let world = Self { cluster, clocks, server, requests: Mutex::default() };
        world.configure(&json!({}));
        world
    }

    fn key(&self, object: &Value) -> Key {
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
        let kind = self.cluster.kinds.for_object(object).unwrap();
        kind.key(text("namespace"), text("name"))
    }

    pub fn put(&self, object: &Value) {
        let key = self.key(object);
        self.cluster.store.put(&key, time(BEGIN), |before| {
            let mut object = object.clone();
            if let Some(before) = before {
                object["metadata"]["uid"] = before["metadata"]["uid"].clone();
            }
            Some(object)
        });
    }

    /// Removes an object at once.
    pub fn remove(&self, object: &Value) {
        self.cluster.store.put(&self.key(object), time(BEGIN), |_| None);
    }

    /// An object as it is now.
    pub fn get(&self, object: &Value) -> Option<Value> {
        self.cluster.store.get(&self.key(object)).map(|object| Value::clone(&object))
    }

    /// Answers requests with an error. `path` is the end of the request's path.
    pub fn fail(&self, verb: &'static str, path: &str, (code, message): (u16, &'static str)) {
        let path = path.to_owned();
        let failure = Failure { verb, path, code, message, is_executed: false };
        self.cluster.faults.fail(failure);
    }

    /// Writes the Settings.
    pub fn configure(&self, data: &Value) {
        let mut config = environment_config();
        config["data"] = data.clone();
        self.put(&config);
    }

    /// Removes the EnvironmentConfig with the Settings.
    pub fn remove_settings(&self) {
        self.remove(&environment_config());
    }

    /// The function composes the environment now: the claim, its composite and the first resource.
    pub fn compose(&self, environment: &mut Environment) {
        let plan = environment.plan(self.clocks.now());
        for object in objects(environment, &plan) {
            self.put(&object);
        }
    }

    /// The environment's user changes the claim. The function has not seen the change yet.
    pub fn edit(&self, environment: &Environment, change: impl FnOnce(&mut Value)) {
        let mut claim = self.claim(environment).unwrap();
        change(&mut claim);
        self.put(&claim);
    }

    /// The claim as it is now.
    pub fn claim(&self, environment: &Environment) -> Option<Value> {
        self.get(&head(environment))
    }

    /// The composite as it is now.
    pub fn composite(&self, environment: &Environment) -> Option<Value> {
        self.get(&composite_head(environment))
    }

    /// Whether the deletion of an environment has begun.
    pub fn is_deleted(&self, environment: &Environment) -> bool {
        let claim = self.claim(environment);
        claim.is_none_or(|claim| claim["metadata"]["deletionTimestamp"].is_string())
    }

    pub fn annotation(&self, environment: &Environment, name: &str) -> Option<String> {
        let claim = self.claim(environment)?;
        claim["metadata"]["annotations"][name].as_str().map(str::to_owned)
    }

    /// The cluster as a controller reaches it.
    pub fn client(&self) -> Cluster {
        let mut config = Config::new(format!("http://{}", self.server.address).parse().unwrap());
        config.default_retry = false;
        Cluster::from_config(config, &Flags::default()).unwrap()
    }

    pub fn options(&self, identity: &str) -> Options {
        Options {
            namespace: "paved-road".to_owned(),
            identity: identity.to_owned(),
            settings: "paved-road".to_owned(),
            settings_from: SettingsFrom::EnvironmentConfig,
            receiver: None,
            listen: None,
            limits: limits(),
            clock: self.clocks.clock(),
        }
    }

    /// Starts a controller.
    pub fn start(&self, identity: &str) -> Running {
        self.start_with(self.options(identity))
    }

    /// Starts a controller that sends events.
    pub fn start_notifying(&self, identity: &str, receiver: Receiver) -> Running {
        self.start_with(Options { receiver: Some(receiver), ..self.options(identity) })
    }

    pub fn start_with(&self, options: Options) -> Running {
        let cluster = self.client();
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(async move {
            let stopped = async { drop(stopped.await) };
            paved_controller::run(cluster, options, stopped).await.unwrap();
        });
        Running { stop: Some(stop), task: Some(task) }
    }

    /// The writes since the last call, without those to the Lease and to the list of namespaces.
    pub fn writes(&self) -> Vec<String> {
        self.collect();
        let requests = std::mem::take(&mut *self.requests.lock().unwrap());
        let is_write = |one: &fake_kube::Request| {
            one.method != "GET" && !one.path.contains("/leases") && !one.path.ends_with(NAME)
        };
        let writes = requests.into_iter().filter(is_write);
        writes.map(|one| format!("{} {}", one.method, one.path)).collect()
    }

    /// How many writes to the list of namespaces since the last call of `writes`.
    pub fn list_writes(&self) -> usize {
        self.collect();
        let requests = self.requests.lock().unwrap();
        requests.iter().filter(|one| one.method != "GET" && one.path.ends_with(NAME)).count()
    }

    /// The list of namespaces with environments as it is now.
    pub fn listed_namespaces(&self) -> Option<Value> {
        let data = self.get(&listed_namespaces())?["data"].take();
        Some(if data.is_null() { json!({}) } else { data })
    }

    /// How many reads since the last call of `writes` had this text in their path.
    pub fn reads(&self, path: &str) -> usize {
        self.collect();
        let requests = self.requests.lock().unwrap();
        requests.iter().filter(|one| one.method == "GET" && one.path.contains(path)).count()
    }

    fn collect(&self) {
        self.requests.lock().unwrap().extend(self.cluster.requests());
    }

    /// The Lease as it is now.
    pub fn lease(&self) -> Value {
        let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": "paved-controller", "namespace": "paved-road"}});
        self.get(&lease).unwrap_or_default()
    }

    /// The holder of the Lease.
    pub fn leader(&self) -> Option<String> {
        self.lease()["spec"]["holderIdentity"].as_str().map(str::to_owned)
    }

    /// The lines of `--dry-run`, without kinds and namespaces.
    pub async fn plan(&self) -> Vec<String> {
        let lines = paved_controller::plan(self.client(), &self.options("plan")).await.unwrap();
        lines.iter().map(|line| line.rsplit('/').next().unwrap().to_owned()).collect()
    }

    /// The error of `--dry-run`.
    pub async fn plan_error(&self) -> String {
        let options = self.options("plan");
        paved_controller::plan(self.client(), &options).await.unwrap_err().to_string()
    }

    /// Waits until a controller leads, and its environments are known.
    pub async fn led(&self) {
        until("a leader", || self.leader().is_some()).await;
        self.settle().await;
    }

    /// Waits until the leader has looked at all environments several times.
    pub async fn settle(&self) {
        sleep(limits().tick * 40).await;
    }
}

/// Short times.
pub fn limits() -> Limits {
    let short = Duration::from_millis(10);
    Limits {
        tick: short,
        lease: Duration::from_secs(2),
        lead: Duration::from_secs(1),
        renew: short * 10,
        unknown_kinds: short,
        hold: short,
        longest_hold: short * 5,
        budgets: short,
        settle: short,
        resend: short,
        longest_resend: short * 5,
        ..Limits::default()
    }
}

/// Waits for something that happens soon.
pub async fn until(event: &str, is_so: impl Fn() -> bool) {
    let wait = async {
        while !is_so() {
            sleep(Duration::from_millis(10)).await;
        }
    };
    assert!(timeout(Duration::from_secs(30), wait).await.is_ok(), "{event}");
}

/// The ConfigMap with the namespaces, without data.
pub fn listed_namespaces() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": NAME, "namespace": "paved-road"},
    })
}

/// The EnvironmentConfig with the Settings, without data.
pub fn environment_config() -> Value {
    json!({
        "apiVersion": "apiextensions.crossplane.io/v1beta1",
        "kind": "EnvironmentConfig",
        "metadata": {"name": "paved-road"},
    })
}

/// A Usage that protects the claim or the composite of an environment.
pub fn usage(environment: &Environment, at: &str) -> Value {
    let (of, kind) = if at == "claim" {
        (head(environment), "Usage")
    } else {
        (composite_head(environment), "ClusterUsage")
    };
    let mut usage = json!({
        "apiVersion": "protection.crossplane.io/v1beta1",
        "kind": kind,
        "metadata": {"name": format!("of-{}", environment.name)},
        "spec": {"of": {"apiVersion": of["apiVersion"], "kind": of["kind"],
            "resourceRef": {"name": of["metadata"]["name"]}}, "reason": "a release"},
    });
    if at == "claim" {
        usage["metadata"]["namespace"] = json!(environment.namespace);
    }
    usage
}

/// Identity of a claim.
pub fn head(environment: &Environment) -> Value {
    json!({
        "apiVersion": format!("{GROUP}/v1alpha1"),
        "kind": environment.kind,
        "metadata": {"name": environment.name, "namespace": environment.namespace},
    })
}

fn composite_head(environment: &Environment) -> Value {
    json!({
        "apiVersion": format!("{GROUP}/v1alpha1"),
        "kind": "GpuDevWorkspace",
        "metadata": {"name": format!("{}-x", environment.name)},
    })
}

/// The claim, its composite and the resource with the note.
fn objects(environment: &Environment, plan: &Plan) -> [Value; 3] {
    let name = &environment.name;
    let seconds = |time: Timestamp| Timestamp::from_second(time.as_second()).unwrap().to_string();
    let status = json!({
        "phase": if plan.stop.is_some() { "Stopped" } else { "Ready" },
        "power": if plan.stop.is_some() { "Stopped" } else { "Running" },
        "lifecycle": {
            "expiresAt": plan.expires_at.map(seconds),
            "deletesAt": plan.deletes_at.map(seconds),
            "stoppedAt": plan.stop.map(|stop| seconds(stop.at())),
        },
        "estimatedHourlyUSD": environment.hourly,
        "resources": [{"slot": "security-group", "kind": "SecurityGroup",
            "name": format!("{name}-sg"), "ready": true, "since": BEGIN}],
        "conditions": environment.conditions,
    });
    let metadata = |object: &Value| {
        let mut metadata = object["metadata"].clone();
        metadata["creationTimestamp"] = json!(BEGIN);
        metadata["annotations"] = environment.annotations.clone();
        metadata["labels"] = environment.labels.clone();
        metadata
    };
    let mut claim = head(environment);
    claim["metadata"] = metadata(&claim);
    claim["spec"] = json!({
        "lifecycle": environment.lifecycle,
        "resourceRef": {"apiVersion": format!("{GROUP}/v1alpha1"), "kind": "GpuDevWorkspace",
            "name": format!("{name}-x")},
    });
    claim["status"] = status.clone();
    let mut composite = composite_head(environment);
    composite["metadata"] = metadata(&composite);
    let uid = format!("uid-of-{}-{name}", environment.namespace);
    composite["metadata"]["uid"] = json!(uid);
    composite["spec"] = json!({
        "lifecycle": environment.lifecycle,
        "claimRef": {"apiVersion": format!("{GROUP}/v1alpha1"), "kind": environment.kind,
            "name": name, "namespace": environment.namespace},
        "resourceRefs": [
            {"apiVersion": "v1", "kind": "Secret", "name": "another"},
            {"apiVersion": "ec2.aws.upbound.io/v1beta1", "kind": "SecurityGroup",
                "name": format!("{name}-sg")},
        ],
    });
    composite["status"] = status;
    let note = environment.note.as_ref().and_then(Note::write).unwrap_or_default();
    let first = json!({
        "apiVersion": "ec2.aws.upbound.io/v1beta1",
        "kind": "SecurityGroup",
        "metadata": {
            "name": format!("{name}-sg"),
            "annotations": {NOTE: note, "crossplane.io/composition-resource-name": "security-group"},
            "ownerReferences": [{"apiVersion": format!("{GROUP}/v1alpha1"), "kind": "GpuDevWorkspace",
                "name": format!("{name}-x"), "uid": uid, "controller": true}],
        },
    });
    [claim, composite, first]
}
