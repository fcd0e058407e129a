//! The environments of the streams: stock pools in a namespace per person, in an API server without
//! Crossplane. Also starts portals in front of that API server.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use crossplane::api_version;
use function_paved_road::apis::Flavour;
use futures::StreamExt;
use jiff::Timestamp;
use kube::Api;
use kube::api::{DynamicObject, ListParams, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::runtime::watcher;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{interval, sleep};

use super::super::{copy_kinds, released, write_all};
use super::{PEOPLE, Size};
use crate::control_plane::{Metrics, Process, Program, ports};
use crate::eventually::TIMEOUT;
use crate::fixture::Fixture;
use crate::objects::Objects;

/// The plural of their only kind.
const PLURAL: &str = "stockpools";

/// A person's account, in this person's namespace.
const ACCOUNT: &str = "reader";

/// How long the API server's other clients may take until they watch a new kind. Its garbage
/// collector checks every 30 s.
const SETTLED: Duration = Duration::from_secs(40);

/// Open watches at the API server, by resource and group.
pub type Watches = BTreeMap<String, f64>;

/// The objects of a namespace: names and resource versions.
pub type Known = BTreeMap<String, u64>;

/// An API server with stock pools.
pub struct World {
    fixture: Fixture,
    objects: Objects,
    /// One for each person.
    pub namespaces: Vec<String>,
    resource: ApiResource,
    each: usize,
}

/// A portal.
pub struct Replica {
    /// Its process.
    pub process: Process,
    /// The address that it listens at.
    pub address: String,
}

/// The changes that the API server's own watch received: namespaces by resource version.
#[derive(Clone, Default)]
pub struct Told(Arc<Mutex<BTreeMap<u64, String>>>);

impl World {
    /// Creates the pools, with the final status of a real pool.
    pub async fn set(fixture: &Fixture, size: &Size) -> Result<Self> {
        let objects = Objects::new(fixture.plane.inner.client.clone());
        copy_kinds(&fixture.objects, &objects).await?;
        let pool = fixture.ready("stock-pool", Flavour::Claims, json!({})).await?.object().await?;
        let (group, version) =
            api_version::split(pool["apiVersion"].as_str().context("an apiVersion")?);
        let kind = GroupVersionKind::gvk(group, version, "StockPool");
        let resource = ApiResource::from_gvk_with_plural(&kind, PLURAL);
        let namespaces: Vec<String> =
            (0..PEOPLE).map(|person| format!("{}-{person}", fixture.namespace)).collect();
        let each = size.environments / PEOPLE;
        let mut all = Vec::new();
        for namespace in &namespaces {
            for object in account(namespace, group) {
                objects.apply(&object).await?;
            }
            all.extend((0..each).map(|number| {
                let mut copy = pool.clone();
                copy["metadata"] =
                    json!({"name": format!("pool-{number}"), "namespace": namespace});
                copy
            }));
        }
        write_all(&objects, &all).await?;
        Ok(Self { fixture: fixture.clone(), objects, namespaces, resource, each })
    }

    /// Deletes the namespaces.
    pub async fn clear(&self) -> Result<()> {
        for namespace in &self.namespaces {
            self.objects.delete(&named("v1", "Namespace", "", namespace)).await?;
        }
        Ok(())
    }

    /// A person's token.
    pub async fn token(&self, person: usize) -> Result<String> {
        self.fixture.plane.inner.account_token(&self.namespaces[person], ACCOUNT).await
    }

    /// Starts a portal with the soft limit of open files that many nodes set, independently of our
    /// limit.
    pub async fn portal(&self, number: usize) -> Result<Replica> {
        let plane = &self.fixture.plane;
        let address = format!("127.0.0.1:{}", ports::free()?);
        let program = Program::new(format!("portal-load-{number}"), Path::new("sh"))
            .args(["-c", "ulimit -S -n 1024 && exec \"$0\" \"$@\""])
            .arg(released()?.display().to_string())
            .args([
                "portal",
                "--auth",
                "none",
                "--log-level",
                "warn",
                "--listen",
                &address,
                "--kubeconfig",
            ])
            .arg(plane.inner.kubeconfig.display().to_string());
        let process = Process::start(program, plane.folder(), &plane.workdir().logs())?;
        process.ready(TIMEOUT, async || is_ready(&address).await.unwrap_or(false)).await?;
        Ok(Replica { process, address })
    }

    fn pools(&self, namespace: Option<&str>) -> Api<DynamicObject> {
        let client = self.fixture.plane.inner.client.clone();
        match namespace {
            Some(namespace) => Api::namespaced_with(client, namespace, &self.resource),
            None => Api::all_with(client, &self.resource),
        }
    }

    /// All current pools, in the order of the namespaces.
    pub async fn listed(&self) -> Result<Vec<Known>> {
        let mut all = Vec::new();
        for namespace in &self.namespaces {
            let list = self
                .pools(Some(namespace))
                .list(&ListParams::default())
                .await
                .context("listing")?;
            let one =
                |object: DynamicObject| Some((object.metadata.name.clone()?, version(&object)?));
            all.push(list.items.into_iter().filter_map(one).collect());
        }
        Ok(all)
    }

    /// Changes pools at a fixed rate, one namespace after another. Returns the number of changes
    /// and their duration. Each change contains the time when it began.
    pub async fn change(&self, size: &Size) -> Result<(usize, Duration)> {
        let begin = Instant::now();
        let count = size.changes * size.seconds;
        let mut tick = interval(Duration::from_secs(1) / u32::try_from(size.changes)?);
        let mut writes = JoinSet::new();
        for number in 0..count {
            tick.tick().await;
            let api = self.pools(Some(&self.namespaces[number % PEOPLE]));
            let name = format!("pool-{}", number / PEOPLE % self.each);
            let patch =
                Patch::Merge(json!({"status": {"available": Timestamp::now().as_microsecond()}}));
            writes.spawn(async move {
                api.patch(&name, &PatchParams::default(), &patch).await.map(drop)
            });
        }
        while let Some(written) = writes.join_next().await {
            written?.context("changing a pool")?;
        }
        Ok((count, begin.elapsed()))
    }

    /// Open watches of the environments' kinds.
    pub async fn watches(&self) -> Result<Watches> {
        let metrics = Metrics::from_client(self.fixture.plane.inner.client.clone());
        let mut watches = Watches::new();
        for (labels, count) in metrics.samples("apiserver_longrunning_requests").await? {
            let label = |name: &str| labels.split(&format!("{name}=\"")).nth(1)?.split('"').next();
            let ours =
                Flavour::ALL.iter().any(|flavour| label("group") == Some(flavour.default_group()));
            if ours && label("verb") == Some("WATCH") {
                let resource = label("resource").unwrap_or_default();
                let group = label("group").unwrap_or_default();
                *watches.entry(format!("{resource}.{group}")).or_default() += count;
            }
        }
        Ok(watches)
    }

    /// The watches of the cluster's own controllers, once their number is stable.
    pub async fn watches_of_others(&self) -> Result<Watches> {
        let (mut last, mut since) = (Watches::new(), Instant::now());
        while since.elapsed() < SETTLED {
            sleep(Duration::from_secs(2)).await;
            let now = self.watches().await?;
            if now != last {
                (last, since) = (now, Instant::now());
            }
        }
        Ok(last)
    }
}

impl Told {
    /// Follows all pools.
    pub fn follow(&self, world: &World, tasks: &mut JoinSet<()>) {
        let (pools, told) = (world.pools(None), self.0.clone());
        tasks.spawn(async move {
            let events = watcher(pools, watcher::Config::default());
            let mut events = std::pin::pin!(events);
            while let Some(event) = events.next().await {
                let Ok(watcher::Event::Apply(object)) = event else { continue };
                let namespace = object.metadata.namespace.clone().unwrap_or_default();
                if let Some(version) = version(&object) {
                    told.lock().unwrap_or_else(PoisonError::into_inner).insert(version, namespace);
                }
            }
        });
    }

    /// Takes the changes since the last call.
    pub fn take(&self) -> BTreeMap<u64, String> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The number of these changes.
    pub fn count(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

fn version(object: &DynamicObject) -> Option<u64> {
    object.metadata.resource_version.as_ref()?.parse().ok()
}

fn named(api_version: &str, kind: &str, namespace: &str, name: &str) -> Value {
    let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}});
    if !namespace.is_empty() {
        object["metadata"]["namespace"] = namespace.into();
    }
    object
}

/// A namespace, and an account that may list its pools.
fn account(namespace: &str, group: &str) -> [Value; 4] {
    const RBAC: &str = "rbac.authorization.k8s.io/v1";
    let mut role = named(RBAC, "Role", namespace, ACCOUNT);
    role["rules"] = json!([{"apiGroups": [group], "resources": [PLURAL], "verbs": ["list"]}]);
    let mut binding = named(RBAC, "RoleBinding", namespace, ACCOUNT);
    binding["roleRef"] =
        json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": ACCOUNT});
    binding["subjects"] =
        json!([{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": namespace}]);
    let person = named("v1", "ServiceAccount", namespace, ACCOUNT);
    [named("v1", "Namespace", "", namespace), person, role, binding]
}

async fn is_ready(address: &str) -> Result<bool> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(format!("GET /readyz HTTP/1.0\r\nHost: {address}\r\n\r\n").as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer.split_whitespace().nth(1) == Some("200"))
}
