//! The fake clouds: the existing external resources, each in a ConfigMap.
//!
//! ConfigMaps are better than files here. kubectl can list leaked resources. A scenario deletes a
//! ConfigMap to make a resource vanish without notice to its owner. Leftovers appear in a
//! comparison of all objects in etcd with those before.

use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use anyhow::Context as _;
use futures::StreamExt;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, ListParams};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use simulator::provider::Machine;

use super::{NAMESPACE, Trouble, written};

/// The label with the kind of an external resource.
pub const KIND_LABEL: &str = "fake-providers/kind";
/// The label with the composite resource of an external resource, if there is one.
pub const COMPOSITE_LABEL: &str = "fake-providers/composite";
/// The only key of a ConfigMap's data.
const ENTRY: &str = "external.json";

/// A resource in a cloud.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct External {
    /// The API group of its kind without the `m` of namespaced kinds, for example
    /// `ec2.aws.upbound.io`.
    pub group: String,
    /// Its kind.
    pub kind: String,
    /// Its name in the cloud.
    pub name: String,
    /// The name of the resource that contains it, for example a node pool's cluster. The cloud
    /// deletes it with that resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// The source of its ids and addresses.
    pub identity: String,
    /// The time when it becomes ready, or became ready.
    pub ready_at: Timestamp,
    /// The time when it is gone, once its deletion has begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gone_at: Option<Timestamp>,
    /// Its parameters after its creation or last change: `spec.forProvider` without references.
    pub parameters: Value,
    /// The power of a machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<Machine>,
    /// When the start or the stop of a machine ends, or ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turned_at: Option<Timestamp>,
    /// When a change ends that its provider follows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed_at: Option<Timestamp>,
    /// The managed resource that owns it.
    pub owner: Owner,
}

/// A managed resource, as the owner of an external resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Owner {
    /// The object's `apiVersion`.
    pub api_version: String,
    /// Its namespace, empty for a cluster-scoped one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// Its composite resource, if there is one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub composite: String,
}

/// All external resources, in memory and in the cluster.
pub struct Cloud {
    api: Api<ConfigMap>,
    externals: RwLock<BTreeMap<String, (u64, External)>>,
}

impl Cloud {
    /// Reads the existing external resources.
    pub async fn open(client: Client) -> anyhow::Result<Self> {
        let cloud = Self { api: Api::namespaced(client, NAMESPACE), externals: RwLock::default() };
        for map in cloud.api.list(&ListParams::default().labels(KIND_LABEL)).await? {
            cloud.learn(&map);
        }
        Ok(cloud)
    }

    /// Follows the changes of other clients to the ConfigMaps, for as long as the future is polled.
    pub async fn follow(&self) {
        let ours = watcher::Config::default().labels(KIND_LABEL);
        let mut listed: BTreeMap<String, u64> = BTreeMap::new();
        let mut events = std::pin::pin!(watcher(self.api.clone(), ours).default_backoff());
        while let Some(event) = events.next().await {
            // A broken watch starts again automatically.
            let Ok(event) = event else { continue };
            match event {
                watcher::Event::Init => listed.clear(),
                watcher::Event::InitApply(map) => {
                    listed.insert(name(&map), version(&map));
                    self.learn(&map);
                }
                watcher::Event::InitDone => {
                    let newest = listed.values().copied().max().unwrap_or_default();
                    self.write()
                        .retain(|key, (version, _)| listed.contains_key(key) || *version > newest);
                }
                watcher::Event::Apply(map) => self.learn(&map),
                watcher::Event::Delete(map) => {
                    self.write()
                        .retain(|key, (known, _)| *key != name(&map) || *known > version(&map));
                }
            }
        }
    }

    /// The external resource of a managed resource, by its uid.
    pub fn held_by(&self, uid: &str) -> Option<External> {
        self.read().values().find(|(_, one)| one.owner.uid == uid).map(|(_, one)| one.clone())
    }

    /// The external resource under a name.
    pub fn get(&self, key: &str) -> Option<External> {
        self.read().get(key).map(|(_, one)| one.clone())
    }

    /// Reads all external resources.
    pub fn look<T>(&self, look: impl FnOnce(&[&External]) -> T) -> T {
        let externals = self.read();
        let all: Vec<&External> = externals.values().map(|(_, one)| one).collect();
        look(&all)
    }

    /// Creates or changes an external resource.
    pub async fn put(&self, external: &External) -> Result<(), Trouble> {
        let map = external.config_map()?;
        let parameters = written();
        let stored = match self.api.create(&parameters, &map).await {
            Err(kube::Error::Api(status)) if status.is_already_exists() => {
                self.api.replace(&external.key(), &parameters, &map).await?
            }
            other => other?,
        };
        self.learn(&stored);
        Ok(())
    }

    /// Removes an external resource, and the resources that it contains.
    pub async fn remove(&self, external: &External) -> Result<(), Trouble> {
        let is_part = |one: &External| {
            one.parent.as_ref() == Some(&external.name)
                && one.group == external.group
                && one.kind != external.kind
        };
        let parts = |all: &[&External]| -> Vec<String> {
            all.iter().filter(|one| is_part(one)).map(|part| part.key()).collect()
        };
        for key in self.look(parts).into_iter().chain([external.key()]) {
            match self.api.delete(&key, &DeleteParams::default()).await {
                Err(kube::Error::Api(status)) if status.is_not_found() => {}
                other => drop(other?),
            }
            self.write().remove(&key);
        }
        Ok(())
    }

    /// Stores the cluster's state of a resource, unless it is older than the known state.
    fn learn(&self, map: &ConfigMap) {
        let source = map.data.as_ref().and_then(|data| data.get(ENTRY)).map_or("", String::as_str);
        match serde_json::from_str(source) {
            Ok(external) => {
                let mut externals = self.write();
                let known = externals.get(&name(map)).map_or(0, |(version, _)| *version);
                if version(map) >= known {
                    externals.insert(name(map), (version(map), external));
                }
            }
            Err(error) => {
                eprintln!(
                    "fake-providers: ConfigMap {:?} is not an external resource: {error}",
                    name(map)
                );
            }
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, BTreeMap<String, (u64, External)>> {
        self.externals.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, BTreeMap<String, (u64, External)>> {
        self.externals.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl External {
    /// The ConfigMap's name. External resources that the cloud distinguishes have different names.
    pub fn key(&self) -> String {
        key(&self.group, &self.kind, self.parent.as_deref(), &self.name)
    }

    /// The power of a machine by now.
    pub fn settled(&self) -> Option<Machine> {
        let mut machine = self.machine.clone()?;
        if self.turned_at.is_none_or(|turned_at| turned_at <= Timestamp::now()) {
            machine.settle();
        }
        Some(machine)
    }

    /// Whether it is being created or deleted.
    pub fn is_busy(&self) -> bool {
        self.gone_at.is_some() || self.ready_at > Timestamp::now()
    }

    /// The external resource in a ConfigMap of [`NAMESPACE`]. None if the ConfigMap has other
    /// contents.
    pub fn from_config_map(map: &Value) -> Option<Self> {
        serde_json::from_str(map["data"][ENTRY].as_str()?).ok()
    }

    /// The same as a ConfigMap of [`NAMESPACE`].
    pub fn config_map(&self) -> anyhow::Result<ConfigMap> {
        let mut labels = json!({KIND_LABEL: self.kind});
        if !self.owner.composite.is_empty() {
            labels[COMPOSITE_LABEL] = json!(self.owner.composite);
        }
        let entry =
            serde_json::to_string_pretty(self).context("encoding an external resource as JSON")?;
        let map = json!({
            "metadata": {"name": self.key(), "namespace": NAMESPACE, "labels": labels}, "data": {ENTRY: entry},
        });
        serde_json::from_value(map).context("encoding an external resource as a ConfigMap")
    }
}

/// Changes an external resource, as the cloud's console would. `map` is the ConfigMap of it. Its provider
/// notices at the next look.
pub async fn edit(
    client: &Client,
    map: &Value,
    change: impl FnOnce(&mut External),
) -> anyhow::Result<()> {
    let mut external = External::from_config_map(map).context("a ConfigMap of something else")?;
    change(&mut external);
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), NAMESPACE);
    api.replace(&external.key(), &written(), &external.config_map()?)
        .await
        .with_context(|| format!("cannot change {}", external.key()))?;
    Ok(())
}

/// The ConfigMap's name for an external resource: its service, kind and name, and a hash to
/// distinguish resources that are equal in these.
pub fn key(group: &str, kind: &str, parent: Option<&str>, name: &str) -> String {
    let identity = [group, kind, parent.unwrap_or_default(), name].join("/");
    let service = group.split('.').next().unwrap_or_default();
    let readable: String = format!("{service}-{kind}-{name}")
        .to_lowercase()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .take(200)
        .collect();
    let mut hash = super::digest(&identity);
    hash.truncate(8);
    format!("{readable}-{hash}")
}

fn name(map: &ConfigMap) -> String {
    map.metadata.name.clone().unwrap_or_default()
}

/// The API server counts its writes, so a higher number is later.
fn version(map: &ConfigMap) -> u64 {
    map.metadata
        .resource_version
        .as_deref()
        .and_then(|version| version.parse().ok())
        .unwrap_or_default()
}
