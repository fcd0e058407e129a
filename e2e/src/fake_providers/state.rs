//! The pretended clouds: which external resources exist, each of them a ConfigMap.
//!
//! ConfigMaps and not files: whoever looks for leaks asks with kubectl, a scenario deletes one to
//! make a resource vanish behind its owner's back, and a comparison of everything in etcd with what
//! was there before finds what was left over.

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

use super::{NAMESPACE, Trouble, written};

/// The label that says of which kind a ConfigMap's external resource is.
pub const KIND_LABEL: &str = "fake-providers/kind";
/// The label that names the composite resource for which it was made, where there is one.
pub const COMPOSITE_LABEL: &str = "fake-providers/composite";
/// The only key of a ConfigMap's data.
const ENTRY: &str = "external.json";

/// Something that exists in a cloud.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct External {
    /// Where it exists: the API group of its kind without the flavour's `m`, such as
    /// `ec2.aws.upbound.io`.
    pub group: String,
    /// Its kind.
    pub kind: String,
    /// Its name in the cloud.
    pub name: String,
    /// The name of what it is a part of and goes with, such as a node pool's cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// What its ids and addresses follow from.
    pub identity: String,
    /// When it is, or was, ready.
    pub ready_at: Timestamp,
    /// When it is gone, once its deletion began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gone_at: Option<Timestamp>,
    /// What it was made of, or last changed to: `spec.forProvider` without references.
    pub parameters: Value,
    /// The managed resource that holds it.
    pub owner: Owner,
}

/// A managed resource, from its external resource's side.
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
    /// The composite resource that it was made for, where there is one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub composite: String,
}

/// Everything that exists: kept in memory, written through to the cluster.
pub struct Cloud {
    api: Api<ConfigMap>,
    externals: RwLock<BTreeMap<String, (u64, External)>>,
}

impl Cloud {
    /// The clouds as they were left.
    pub async fn open(client: Client) -> anyhow::Result<Self> {
        let cloud = Self { api: Api::namespaced(client, NAMESPACE), externals: RwLock::default() };
        for map in cloud.api.list(&ListParams::default().labels(KIND_LABEL)).await? {
            cloud.learn(&map);
        }
        Ok(cloud)
    }

    /// Follows what others do to the ConfigMaps, for as long as the future is polled.
    pub async fn follow(&self) {
        let ours = watcher::Config::default().labels(KIND_LABEL);
        let mut listed: BTreeMap<String, u64> = BTreeMap::new();
        let mut events = std::pin::pin!(watcher(self.api.clone(), ours).default_backoff());
        while let Some(event) = events.next().await {
            // A watch that broke begins anew by itself.
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

    /// What a managed resource holds, by its uid.
    pub fn held_by(&self, uid: &str) -> Option<External> {
        self.read().values().find(|(_, one)| one.owner.uid == uid).map(|(_, one)| one.clone())
    }

    /// What exists under a name.
    pub fn get(&self, key: &str) -> Option<External> {
        self.read().get(key).map(|(_, one)| one.clone())
    }

    /// Looks at everything that exists.
    pub fn look<T>(&self, look: impl FnOnce(&[&External]) -> T) -> T {
        let externals = self.read();
        let all: Vec<&External> = externals.values().map(|(_, one)| one).collect();
        look(&all)
    }

    /// Makes or changes something.
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

    /// Removes something, and what is a part of it.
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

    /// Takes in what the cluster says, unless it is older than what is known.
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
                    "fake-providers: ConfigMap {:?} is no external resource: {error}",
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
    /// The ConfigMap's name: two external resources that the cloud tells apart have two.
    pub fn key(&self) -> String {
        key(&self.group, &self.kind, self.parent.as_deref(), &self.name)
    }

    /// Whether it is being made or deleted.
    pub fn is_busy(&self) -> bool {
        self.gone_at.is_some() || self.ready_at > Timestamp::now()
    }

    /// What a ConfigMap of [`NAMESPACE`] says; nothing where it is about something else.
    pub fn from_config_map(map: &Value) -> Option<Self> {
        serde_json::from_str(map["data"][ENTRY].as_str()?).ok()
    }

    fn config_map(&self) -> anyhow::Result<ConfigMap> {
        let mut labels = json!({KIND_LABEL: self.kind});
        if !self.owner.composite.is_empty() {
            labels[COMPOSITE_LABEL] = json!(self.owner.composite);
        }
        let entry =
            serde_json::to_string_pretty(self).context("an external resource that is no JSON")?;
        let map = json!({
            "metadata": {"name": self.key(), "namespace": NAMESPACE, "labels": labels}, "data": {ENTRY: entry},
        });
        serde_json::from_value(map).context("an external resource that is no ConfigMap")
    }
}

/// The ConfigMap's name for an external resource: its service and kind, its name, and a hash that
/// tells apart what these leave alike.
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

/// The API server counts its writes: a higher number is a later one.
fn version(map: &ConfigMap) -> u64 {
    map.metadata
        .resource_version
        .as_deref()
        .and_then(|version| version.parse().ok())
        .unwrap_or_default()
}
