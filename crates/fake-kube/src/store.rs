//! Objects, stored as in etcd and the API server. Each write creates a version of the whole store,
//! and a watch sees all versions in order.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::json::{list, remove, seconds, text};

/// The maximum number of past events that a watch can still receive.
const BACKLOG: usize = 10_000;

/// The key of an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// Its resource: `plural.group`.
    pub resource: String,
    /// The namespace. Empty if the kind has no namespaces.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// A change of an object.
#[derive(Clone, Debug)]
pub struct Event {
    /// The version that the change created.
    pub version: u64,
    /// The type of the watch event: ADDED, MODIFIED or DELETED.
    pub verb: &'static str,
    /// The key of the object.
    pub key: Key,
    /// The object after the change. For a deletion, its last state.
    pub object: Arc<Value>,
}

/// All objects.
pub struct Store {
    inner: Mutex<Inner>,
    /// The newest version, for watches.
    newest: watch::Sender<u64>,
}

#[derive(Default)]
struct Inner {
    objects: BTreeMap<Key, Arc<Value>>,
    events: VecDeque<Event>,
    version: u64,
}

/// The result of a change.
pub struct Changed {
    /// The object after the change. For a deletion, its last state.
    pub object: Arc<Value>,
    /// Whether the object was deleted.
    pub gone: bool,
}

impl Default for Store {
    fn default() -> Self {
        Self { inner: Mutex::default(), newest: watch::channel(0).0 }
    }
}

impl Store {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An object.
    pub fn get(&self, key: &Key) -> Option<Arc<Value>> {
        self.inner().objects.get(key).cloned()
    }

    /// The objects of a resource in one namespace or in all, and the version of the list.
    pub fn list(&self, resource: &str, namespace: Option<&str>) -> (u64, Vec<(Key, Arc<Value>)>) {
        let inner = self.inner();
        let is_one = |key: &Key| {
            key.resource == resource && namespace.is_none_or(|namespace| namespace == key.namespace)
        };
        let found = inner.objects.iter().filter(|(key, _)| is_one(key));
        (inner.version, found.map(|(key, object)| (key.clone(), Arc::clone(object))).collect())
    }

    /// The objects of a resource at a version. `None` if the store does not have all changes up to
    /// that version.
    pub fn list_at(&self, resource: &str, version: u64) -> Option<Vec<(Key, Arc<Value>)>> {
        let inner = self.inner();
        let oldest = inner.events.front().map_or(inner.version + 1, |event| event.version);
        if oldest > 1 || version > inner.version {
            return None;
        }
        let mut objects = BTreeMap::new();
        for event in inner.events.iter().take_while(|event| event.version <= version) {
            if event.key.resource == resource && event.verb == "DELETED" {
                objects.remove(&event.key);
            } else if event.key.resource == resource {
                objects.insert(event.key.clone(), Arc::clone(&event.object));
            }
        }
        Some(objects.into_iter().collect())
    }

    /// The keys of all objects.
    pub fn keys(&self) -> Vec<Key> {
        self.inner().objects.keys().cloned().collect()
    }

    /// Forgets all changes. Only watches from the newest version can continue.
    pub fn forget(&self) {
        self.inner().events.clear();
    }

    /// The changes since a version. `None` if the store has forgotten some of them.
    pub fn since(&self, version: u64) -> Option<Vec<Event>> {
        let inner = self.inner();
        let oldest = inner.events.front().map_or(inner.version + 1, |event| event.version);
        let known = version + 1 >= oldest || version == inner.version;
        let begin = inner.events.partition_point(|event| event.version <= version);
        known.then(|| inner.events.range(begin..).cloned().collect())
    }

    /// A receiver of the newest version.
    pub fn follow(&self) -> watch::Receiver<u64> {
        self.newest.subscribe()
    }

    /// Creates, changes or removes an object. `change` gets the current object and returns the new
    /// one. It runs without concurrent writes. Like an API server, the store sets the metadata, and
    /// it removes a deleted object after its last finalizer.
    pub fn change<E>(
        &self,
        key: &Key,
        now: Timestamp,
        change: impl FnOnce(Option<&Value>) -> Result<Option<Value>, E>,
    ) -> Result<Option<Changed>, E> {
        let mut inner = self.inner();
        let before = inner.objects.get(key).cloned();
        let after = change(before.as_deref())?.map(|object| kept(object, before.as_deref(), now));
        let done = |object: &Value| {
            let goes = !text(object, "/metadata/deletionTimestamp").is_empty();
            goes && list(object, "/metadata/finalizers").is_empty()
        };
        let (verb, mut object) = match (before, after) {
            (None, None) => return Ok(None),
            (Some(before), Some(after)) if *before == after => {
                return Ok(Some(Changed { object: before, gone: false }));
            }
            (Some(_), Some(after)) if done(&after) => ("DELETED", after),
            (Some(_), Some(after)) => ("MODIFIED", after),
            (None, Some(after)) => ("ADDED", after),
            (Some(before), None) => ("DELETED", Value::clone(&before)),
        };
        inner.version += 1;
        object["metadata"]["resourceVersion"] = json!(inner.version.to_string());
        let object = Arc::new(object);
        if verb == "DELETED" {
            inner.objects.remove(key);
        } else {
            inner.objects.insert(key.clone(), Arc::clone(&object));
        }
        if inner.events.len() == BACKLOG {
            inner.events.pop_front();
        }
        let version = inner.version;
        inner.events.push_back(Event {
            version,
            verb,
            key: key.clone(),
            object: Arc::clone(&object),
        });
        self.newest.send_replace(version);
        Ok(Some(Changed { object, gone: verb == "DELETED" }))
    }

    /// Like [`change`](Self::change), for a change that cannot fail.
    pub fn put(
        &self,
        key: &Key,
        now: Timestamp,
        change: impl FnOnce(Option<&Value>) -> Option<Value>,
    ) -> Option<Changed> {
        let changed =
            self.change(key, now, |before| Ok::<_, std::convert::Infallible>(change(before)));
        changed.unwrap_or_else(|never| match never {})
    }
}

/// An object with the metadata that the API server sets.
pub fn kept(mut object: Value, before: Option<&Value>, now: Timestamp) -> Value {
    let generation = before.and_then(|before| before["metadata"]["generation"].as_i64());
    let changed = before.is_none_or(|before| wanted(before) != wanted(&object));
    let own = object["metadata"]["generation"].as_i64();
    let metadata = &mut object["metadata"];
    let Some(before) = before else {
        if metadata["uid"].is_null() {
            metadata["uid"] = json!(unique());
        }
        if metadata["creationTimestamp"].is_null() {
            metadata["creationTimestamp"] = json!(seconds(now).to_string());
        }
        metadata["generation"] = json!(own.unwrap_or(1));
        return object;
    };
    for field in ["uid", "creationTimestamp", "resourceVersion"] {
        metadata[field] = before["metadata"][field].clone();
    }
    metadata["generation"] = json!(generation.unwrap_or(1) + i64::from(changed));
    object
}

/// The fields of an object that change its generation.
fn wanted(object: &Value) -> Value {
    let mut object = object.clone();
    remove(&mut object, "metadata");
    remove(&mut object, "status");
    object
}

fn unique() -> String {
    let mut bytes = [0; 16];
    // Without random numbers all UIDs are equal, and no test or demo could continue.
    let _ = getrandom::fill(&mut bytes);
    uuid::Builder::from_random_bytes(bytes).into_uuid().to_string()
}
