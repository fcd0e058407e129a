//! Objects, as etcd and the API server keep them: each write is a version of the whole, and a watch
//! sees all of them in order.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::json::{list, remove, seconds, text};

/// How many events watches can catch up with.
const BACKLOG: usize = 10_000;

/// Where an object is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// Its resource: `plural.group`.
    pub resource: String,
    /// Empty where the kind lives in no namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// Something that happened to an object.
#[derive(Clone, Debug)]
pub struct Event {
    /// The version that it made.
    pub version: u64,
    /// In the words of a watch: ADDED, MODIFIED, DELETED.
    pub verb: &'static str,
    /// Where the object is, or was.
    pub key: Key,
    /// The object as it is since, or was last.
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
    /// The object as it is now, or was last.
    pub object: Arc<Value>,
    /// Whether it is gone.
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

    /// The objects of a resource, in a namespace or in all, and the version that they are of.
    pub fn list(&self, resource: &str, namespace: Option<&str>) -> (u64, Vec<(Key, Arc<Value>)>) {
        let inner = self.inner();
        let is_one = |key: &Key| {
            key.resource == resource && namespace.is_none_or(|namespace| namespace == key.namespace)
        };
        let found = inner.objects.iter().filter(|(key, _)| is_one(key));
        (inner.version, found.map(|(key, object)| (key.clone(), Arc::clone(object))).collect())
    }

    /// The objects of a resource as they were at a version. `None` where changes since then, or
    /// before it, are forgotten.
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

    /// Where all objects are.
    pub fn keys(&self) -> Vec<Key> {
        self.inner().objects.keys().cloned().collect()
    }

    /// Forgets all changes: only watches from the newest version can continue.
    pub fn forget(&self) {
        self.inner().events.clear();
    }

    /// The changes since a version. `None` if some of them are forgotten.
    pub fn since(&self, version: u64) -> Option<Vec<Event>> {
        let inner = self.inner();
        let oldest = inner.events.front().map_or(inner.version + 1, |event| event.version);
        let known = version + 1 >= oldest || version == inner.version;
        let begin = inner.events.partition_point(|event| event.version <= version);
        known.then(|| inner.events.range(begin..).cloned().collect())
    }

    /// Tells the newest version whenever there is another.
    pub fn follow(&self) -> watch::Receiver<u64> {
        self.newest.subscribe()
    }

    /// Creates, changes or removes an object: `change` gets the present object and returns the new
    /// one. No other write happens meanwhile. The store sets the metadata that an API server sets,
    /// and removes an object that is being deleted with its last finalizer.
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

    /// The same for a change that cannot fail.
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

/// An object with the metadata that the API server gives it.
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

/// The part of an object whose change makes a new generation.
fn wanted(object: &Value) -> Value {
    let mut object = object.clone();
    remove(&mut object, "metadata");
    remove(&mut object, "status");
    object
}

fn unique() -> String {
    let mut bytes = [0; 16];
    // Without random numbers all uids are equal, and no test or demo could continue.
    let _ = getrandom::fill(&mut bytes);
    uuid::Builder::from_random_bytes(bytes).into_uuid().to_string()
}
