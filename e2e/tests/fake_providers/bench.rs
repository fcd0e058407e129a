//! An API server with the CRDs of our managed resources, the fake providers, and short helper
//! functions for the tests.

use std::collections::BTreeMap;
use std::fs;
use std::future::ready;
use std::pin::pin;
use std::time::{Duration, Instant};

use e2e::control_plane::postgres::Postgres;
use e2e::fake_providers::state::{COMPOSITE_LABEL, External, KIND_LABEL, edit};
use e2e::fake_providers::{NAMESPACE, Options, configs, faults, run, schema};
use futures::{StreamExt, stream};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{
    ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams,
};
use kube::core::GroupVersionKind;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::watch_object;
use kube::{Api, Client};
use serde_json::{Value, json};
use simulator::provider::Power;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::server::Server;

const TIMEOUT: Duration = Duration::from_mins(1);

/// The common base of the tests.
pub struct Bench {
    pub client: Client,
    pub postgres: Option<Postgres>,
    /// By group and kind.
    plurals: BTreeMap<(String, String), String>,
    options: Options,
    fake_providers: JoinHandle<anyhow::Result<()>>,
    _server: Server,
}

impl Bench {
    /// Starts the servers and the fake providers. None if the tools are not built.
    pub async fn start() -> Option<Self> {
        let logs = tempfile::tempdir().unwrap();
        let (server, postgres) = tokio::join!(Server::start(), Postgres::start(logs.path()));
        let server = server?;
        let client = server.client.clone();
        let postgres = match postgres {
            Ok(postgres) => Some(postgres),
            Err(error) => {
                eprintln!("without PostgreSQL: {error:#}");
                None
            }
        };
        let options = Options {
            round: Duration::from_millis(100),
            poll: Duration::from_secs(1),
            retry: Duration::from_millis(200),
            postgres: postgres.as_ref().map(Postgres::url),
            clusters: None,
        };
        let fake_providers = tokio::spawn(run(client.clone(), options.clone()));
        let mut bench = Self {
            client,
            postgres,
            plurals: BTreeMap::new(),
            options,
            fake_providers,
            _server: server,
        };
        bench.install().await;
        for config in configs::from_guide().unwrap() {
            bench.create(config).await;
        }
        Some(bench)
    }

    /// Kills the fake providers, without notice.
    pub async fn kill(&mut self) {
        self.fake_providers.abort();
        _ = (&mut self.fake_providers).await;
    }

    /// Starts the fake providers again.
    pub fn revive(&mut self) {
        self.fake_providers = tokio::spawn(run(self.client.clone(), self.options.clone()));
    }

    /// Installs the CRDs of all managed resources.
    async fn install(&mut self) {
        let folder = xtask::workspace::root().join("tests/schemas");
        let mut crds = Vec::new();
        for file in fs::read_dir(folder).unwrap() {
            for mut crd in xtask::yaml::read(&file.unwrap().path()).unwrap() {
                schema::widen(&mut crd);
                let [group, kind, plural] =
                    ["/spec/group", "/spec/names/kind", "/spec/names/plural"]
                        .map(|pointer| crd.pointer(pointer).unwrap().as_str().unwrap().to_owned());
                self.plurals.insert((group, kind), plural);
                crds.push(crd);
            }
        }
        let bench = &*self;
        stream::iter(crds)
            .for_each_concurrent(8, |crd| async move {
                bench.create(crd).await;
            })
            .await;
    }

    /// A cluster-scoped object that can control resources of every namespace, like a composite.
    pub async fn composite(&self, name: &str) -> Composite<'_> {
        let owner = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name}});
        let uid = self.create(owner).await["metadata"]["uid"].as_str().unwrap().to_owned();
        Composite { bench: self, name: name.to_owned(), uid }
    }

    pub async fn create(&self, object: Value) -> Value {
        let decoded = serde_json::from_value(object.clone()).unwrap();
        // A kind is served a moment after its CRD exists.
        let made: DynamicObject = until(&format!("a {}", object["kind"]), || async {
            match self.api(&object).create(&PostParams::default(), &decoded).await {
                Err(kube::Error::Api(status)) if status.is_not_found() || status.code == 404 => {
                    Err(status.message)
                }
                other => Ok(other.unwrap_or_else(|error| panic!("{error}: {object:#}"))),
            }
        })
        .await;
        serde_json::to_value(made).unwrap()
    }

    /// The current object, or null if it is gone.
    pub async fn get(&self, object: &Value) -> Value {
        let found = self.api(object).get_opt(name(object)).await.unwrap();
        found.map_or(Value::Null, |found| serde_json::to_value(found).unwrap())
    }

    pub async fn patch(&self, object: &Value, change: Value) {
        self.api(object)
            .patch(name(object), &PatchParams::default(), &Patch::Merge(&change))
            .await
            .unwrap();
    }

    pub async fn delete(&self, object: &Value) {
        self.api(object).delete(name(object), &DeleteParams::default()).await.unwrap();
    }

    /// Waits until a condition has this status, and its reason or message has these words.
    pub async fn told(&self, object: &Value, kind: &str, status: &str, words: &str) -> Value {
        let tells = |found: &Value| {
            let said = condition(found, kind);
            let text =
                ["reason", "message"].map(|part| said[part].as_str().unwrap_or_default()).join(" ");
            said["status"] == *status && text.contains(words)
        };
        let what = format!("{kind}={status} {words:?}");
        self.fits(object, &what, |found| found.is_some_and(tells)).await.unwrap()
    }

    pub async fn ready(&self, object: &Value) -> Value {
        self.told(object, "Ready", "True", "").await
    }

    pub async fn gone(&self, object: &Value) {
        self.fits(object, "gone", |found| found.is_none()).await;
    }

    /// Waits until an object fits. `None` means that it is absent.
    async fn fits(
        &self,
        object: &Value,
        what: &str,
        fits: impl Fn(Option<&Value>) -> bool,
    ) -> Option<Value> {
        let document = |found: DynamicObject| serde_json::to_value(found).unwrap();
        let seen = watch_object(self.api(object), name(object))
            .default_backoff()
            .filter_map(|seen| ready(seen.ok().map(|found| found.map(document))))
            .filter(|found| ready(fits(found.as_ref())));
        let Ok(found) = timeout(TIMEOUT, pin!(seen).next()).await else {
            let found = self.get(object).await;
            panic!("{} {} did not become {what}:\n{found:#}", object["kind"], name(object));
        };
        found.unwrap_or_else(|| unreachable!("a watch has no end"))
    }

    /// The ConfigMaps of the external resources that were created for a composite.
    pub async fn cloud(&self, composite: &str) -> Vec<Value> {
        let api: Api<ConfigMap> = Api::namespaced(self.client.clone(), NAMESPACE);
        let label = format!("{KIND_LABEL},{COMPOSITE_LABEL}={composite}");
        let found = api.list(&ListParams::default().labels(&label)).await.unwrap();
        found.into_iter().map(|map| serde_json::to_value(map).unwrap()).collect()
    }

    /// Deletes an external resource without notice to its owner.
    pub async fn vanish(&self, external: &Value) {
        let api: Api<ConfigMap> = Api::namespaced(self.client.clone(), NAMESPACE);
        api.delete(name(external), &DeleteParams::default()).await.unwrap();
    }

    /// Lets the machine of a composite power itself off.
    pub async fn power_off(&self, composite: &str) {
        let all = self.cloud(composite).await;
        let map = all.iter().find(|map| map["metadata"]["labels"][KIND_LABEL] == "Instance");
        let power_off = |machine: &mut External| {
            machine.machine.as_mut().unwrap().power = Power::Stopped;
        };
        edit(&self.client, map.unwrap(), power_off).await.unwrap();
    }

    /// Waits until a field of `status.atProvider` has this value.
    pub async fn shows(&self, object: &Value, field: &str, value: &str) -> Value {
        let has = |found: &Value| found["status"]["atProvider"][field] == *value;
        let what = format!("{field}={value}");
        self.fits(object, &what, |found| found.is_some_and(has)).await.unwrap()
    }

    /// Sets a rule, or removes it.
    pub async fn rule(&self, name: &str, rule: Option<&str>) {
        let rule = rule.map(|rule| serde_saphyr::from_str(rule).unwrap());
        faults::set(&self.client, name, rule.as_ref()).await.unwrap();
    }

    fn api(&self, object: &Value) -> Api<DynamicObject> {
        let (group, version) =
            crossplane::api_version::split(object["apiVersion"].as_str().unwrap());
        let gvk = GroupVersionKind::gvk(group, version, object["kind"].as_str().unwrap());
        let plural = self.plurals.get(&(gvk.group.clone(), gvk.kind.clone()));
        let resource = plural.map_or_else(
            || ApiResource::from_gvk(&gvk),
            |plural| ApiResource::from_gvk_with_plural(&gvk, plural),
        );
        match object["metadata"]["namespace"].as_str() {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        }
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.fake_providers.abort();
    }
}

/// A substitute for a composite resource. Its resources find each other by it.
pub struct Composite<'a> {
    pub bench: &'a Bench,
    pub name: String,
    uid: String,
}

impl Composite<'_> {
    /// A cluster-scoped resource.
    pub fn resource(&self, api_version: &str, kind: &str, suffix: &str, params: Value) -> Value {
        let owner = json!([{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "name": self.name, "uid": self.uid,
            "controller": true, "blockOwnerDeletion": false}]);
        json!({"apiVersion": api_version, "kind": kind,
            "metadata": {"name": format!("{}-{suffix}", self.name), "ownerReferences": owner,
                "labels": {"crossplane.io/composite": self.name}},
            "spec": {"forProvider": params}})
    }

    pub async fn make(&self, object: Value) -> Value {
        self.bench.create(object).await
    }
}

pub fn condition(object: &Value, kind: &str) -> Value {
    crossplane::conditions::get(object, kind).clone()
}

pub fn external_name(object: &Value) -> String {
    object["metadata"]["annotations"]["crossplane.io/external-name"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

/// Retries until it works. A timeout shows the last error.
pub async fn until<T, F: Future<Output = Result<T, String>>>(
    what: &str,
    attempt: impl Fn() -> F,
) -> T {
    let start = Instant::now();
    loop {
        match attempt().await {
            Ok(done) => return done,
            Err(why) => assert!(start.elapsed() < TIMEOUT, "timed out waiting for {what}:\n{why}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap()
}
