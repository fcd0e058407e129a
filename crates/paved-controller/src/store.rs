//! All environments that the watches see, as records.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use function_paved_road::apis::Flavour;
use function_paved_road::catalog::prices::Usd;
use jiff::Timestamp;
use kube::api::DynamicObject;
use paved_client::cluster::Kind;

use crate::clock::Clock;
use crate::record::Record;
use crate::verdict::Hold;

/// Where an environment is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    /// `Kind.group`
    pub kind: Arc<str>,
    /// The namespace.
    pub namespace: Arc<str>,
    /// The name.
    pub name: Box<str>,
}

impl fmt::Display for Key {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}/{}", self.namespace, self.kind, self.name)
    }
}

/// All records.
pub(crate) struct Store {
    inner: Mutex<Inner>,
    clock: Clock,
}

#[derive(Default)]
struct Inner {
    kinds: BTreeMap<Arc<str>, Watched>,
    namespaces: BTreeSet<Arc<str>>,
    records: BTreeMap<Key, Record>,
    /// The announced deletions, earliest first.
    due: BTreeSet<(Timestamp, Key)>,
    held: BTreeMap<Key, Held>,
    /// Environments that are gone since the last look.
    gone: Vec<(Key, Record)>,
    /// Environments that changed since the last look.
    changed: BTreeSet<Key>,
    /// Counts new and removed environments, and changes of prices and of annotations with a budget.
    version: u64,
}

struct Watched {
    kind: Kind,
    is_listed: bool,
    /// Since when the watch is interrupted, by the steady clock.
    interrupted: Option<Duration>,
}

/// An environment that stays after its end.
struct Held {
    why: Hold,
    /// When it is looked at again, by the steady clock.
    again: Duration,
    /// The pause before that.
    pause: Duration,
}

/// The environments that stay for one reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Staying {
    pub count: usize,
    /// The earliest announced end.
    pub oldest: Timestamp,
}

/// The changes since the last look.
pub(crate) struct News {
    /// Environments that changed, as they are now.
    pub changed: Vec<(Key, Record)>,
    /// Environments that are gone, as they were last.
    pub gone: Vec<(Key, Record)>,
}

/// The cost of a namespace.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Cost {
    /// The sum of the known prices of an hour.
    pub hourly: Usd,
    /// The same without environments that are being deleted.
    pub staying: Usd,
    /// The environments that are not being deleted, each with its annotation.
    pub environments: Vec<(Key, Box<str>, Option<Box<str>>)>,
}

impl Store {
    pub fn new(clock: Clock) -> Self {
        Self { inner: Mutex::default(), clock }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Watches these kinds from now on, and forgets the environments of all others.
    pub fn keep_kinds(&self, kinds: &[Kind]) {
        let mut inner = self.inner();
        let names: BTreeSet<String> = kinds.iter().map(Kind::full_name).collect();
        let lost: Vec<Arc<str>> =
            inner.kinds.keys().filter(|name| !names.contains(&***name)).cloned().collect();
        for name in lost {
            inner.kinds.remove(&name);
            inner.keep_only(&name, &BTreeSet::new(), false);
        }
        for kind in kinds {
            let watched = Watched { kind: kind.clone(), is_listed: false, interrupted: None };
            let watched = inner.kinds.entry(kind.full_name().into()).or_insert(watched);
            watched.kind = kind.clone();
        }
    }

    /// Remembers an environment.
    pub fn put(&self, kind: &Kind, object: &DynamicObject) -> Option<Key> {
        let record = Record::from_object(object);
        let mut inner = self.inner();
        inner.hear(&kind.full_name());
        let key = inner.key(kind, object)?;
        inner.put(key.clone(), record);
        Some(key)
    }

    /// Forgets an environment that is gone.
    pub fn remove(&self, kind: &Kind, object: &DynamicObject) {
        let mut inner = self.inner();
        inner.hear(&kind.full_name());
        if let Some(key) = inner.key(kind, object) {
            inner.remove(&key, true);
        }
    }

    /// A kind was listed whole: environments that are not in the list are gone.
    pub fn listed(&self, kind: &Kind, keys: &BTreeSet<Key>) {
        let mut inner = self.inner();
        let name = kind.full_name();
        inner.hear(&name);
        inner.keep_only(&name, keys, true);
        if let Some(watched) = inner.kinds.get_mut(name.as_str()) {
            watched.is_listed = true;
        }
    }

    /// A watch was interrupted. If the controller has no right to list the kind, the others count.
    pub fn interrupted(&self, kind: &Kind, is_denied: bool) {
        let now = self.clock.steady();
        let mut inner = self.inner();
        if let Some(watched) = inner.kinds.get_mut(kind.full_name().as_str()) {
            watched.is_listed |= is_denied;
            watched.interrupted = watched.interrupted.or((!is_denied).then_some(now));
        }
    }

    /// The missing parts of a view of all environments. `patience` is the longest interruption of a
    /// watch.
    pub fn missing(&self, patience: Duration) -> Vec<String> {
        let now = self.clock.steady();
        let inner = self.inner();
        if inner.kinds.is_empty() {
            return vec!["the cluster's kinds".to_owned()];
        }
        let is_away = |since: Duration| now.saturating_sub(since) > patience;
        let missing = inner
            .kinds
            .iter()
            .filter(|(_, watched)| !watched.is_listed || watched.interrupted.is_some_and(is_away));
        missing.map(|(name, _)| format!("the watch of {name}")).collect()
    }

    /// A kind by its full name.
    pub fn kind(&self, name: &str) -> Option<Kind> {
        self.inner().kinds.get(name).map(|watched| watched.kind.clone())
    }

    /// Whether a group has kinds of environments, and so of their composites.
    pub fn has_group(&self, group: &str) -> bool {
        self.inner().kinds.values().any(|watched| watched.kind.resource.group == group)
    }

    /// The number of environments by kind.
    pub fn counts(&self) -> BTreeMap<Arc<str>, usize> {
        let inner = self.inner();
        let mut counts: BTreeMap<Arc<str>, usize> =
            inner.kinds.keys().map(|name| (Arc::clone(name), 0)).collect();
        for key in inner.records.keys() {
            *counts.entry(Arc::clone(&key.kind)).or_default() += 1;
        }
        counts
    }

    /// A record.
    pub fn get(&self, key: &Key) -> Option<Record> {
        self.inner().records.get(key).cloned()
    }

    /// The environments after their announced end, earliest first. Environments that were looked at
    /// a short while ago are left out.
    pub fn due(&self, now: Timestamp) -> Vec<Key> {
        let steady = self.clock.steady();
        let inner = self.inner();
        let due = inner.due.iter().take_while(|(at, _)| *at <= now).map(|(_, key)| key);
        let is_next = |key: &&Key| inner.held.get(key).is_none_or(|held| held.again <= steady);
        due.filter(is_next).cloned().collect()
    }

    /// Notes that an environment stays, and why. `true` if this is new.
    pub fn hold(&self, key: &Key, why: Hold, first: Duration, longest: Duration) -> bool {
        let steady = self.clock.steady();
        let mut inner = self.inner();
        if !inner.records.contains_key(key) {
            return false;
        }
        let before = inner.held.get(key).filter(|held| held.why == why);
        let pause = before.map_or(first, |held| (held.pause * 2).min(longest));
        let is_new = before.is_none();
        inner.held.insert(key.clone(), Held { why, again: steady + pause, pause });
        is_new
    }

    /// Forgets why environments stay: another replica looks at them.
    pub fn unhold(&self) {
        self.inner().held.clear();
    }

    /// The environments that stay, by reason.
    pub fn held(&self) -> BTreeMap<Hold, Staying> {
        let inner = self.inner();
        let mut all: BTreeMap<Hold, Staying> = BTreeMap::new();
        for (key, held) in inner.held.iter().filter(|(_, held)| held.why != Hold::InProgress) {
            let Some(end) = inner.records.get(key).and_then(|record| record.deletes_at) else {
                continue;
            };
            let staying = all.entry(held.why).or_insert(Staying { count: 0, oldest: end });
            staying.count += 1;
            staying.oldest = staying.oldest.min(end);
        }
        all
    }

    /// Changes whenever an environment comes or goes, or its price or annotation with a budget
    /// changes.
    pub fn version(&self) -> u64 {
        self.inner().version
    }

    /// The cost of each namespace.
    pub fn costs(&self) -> BTreeMap<Arc<str>, Cost> {
        let inner = self.inner();
        let mut costs: BTreeMap<Arc<str>, Cost> = BTreeMap::new();
        for (key, record) in &inner.records {
            let cost = costs.entry(Arc::clone(&key.namespace)).or_default();
            let hourly = record.hourly.unwrap_or_default();
            cost.hourly = cost.hourly.plus(hourly);
            if !record.is_deleting() {
                cost.staying = cost.staying.plus(hourly);
                let environment = (key.clone(), record.uid.clone(), record.budget.clone());
                cost.environments.push(environment);
            }
        }
        costs
    }

    /// The environments of the namespaced API by namespace, each as `Kind/name`.
    pub fn by_namespace(&self) -> BTreeMap<Arc<str>, Vec<String>> {
        let inner = self.inner();
        let mut all: BTreeMap<Arc<str>, Vec<String>> = BTreeMap::new();
        for key in inner.records.keys() {
            let kind = inner.kinds.get(&key.kind).map(|watched| &watched.kind);
            if let Some(kind) = kind.filter(|kind| kind.flavour() == Flavour::Namespaced) {
                let names = all.entry(Arc::clone(&key.namespace)).or_default();
                names.push(format!("{}/{}", kind.name(), key.name));
            }
        }
        all
    }

    /// The environments that changed, and those that are gone, since the last call.
    pub fn news(&self) -> News {
        let mut inner = self.inner();
        let changed = std::mem::take(&mut inner.changed);
        let changed = changed
            .into_iter()
            .filter_map(|key| inner.records.get(&key).cloned().map(|record| (key, record)))
            .collect();
        News { changed, gone: std::mem::take(&mut inner.gone) }
    }

    /// All environments.
    pub fn all(&self) -> Vec<(Key, Record)> {
        self.inner().records.iter().map(|(key, record)| (key.clone(), record.clone())).collect()
    }
}

impl Inner {
    /// A watch speaks: it is not interrupted.
    fn hear(&mut self, kind: &str) {
        if let Some(watched) = self.kinds.get_mut(kind) {
            watched.interrupted = None;
        }
    }

    /// The key of an object of a kind that is watched. Names of kinds and namespaces are shared.
    fn key(&mut self, kind: &Kind, object: &DynamicObject) -> Option<Key> {
        let (kind, _) = self.kinds.get_key_value(kind.full_name().as_str())?;
        let kind = Arc::clone(kind);
        let namespace = object.metadata.namespace.as_deref().unwrap_or_default();
        let name = object.metadata.name.as_deref()?.into();
        let namespace = if let Some(known) = self.namespaces.get(namespace) {
            Arc::clone(known)
        } else {
            let namespace: Arc<str> = namespace.into();
            self.namespaces.insert(Arc::clone(&namespace));
            namespace
        };
        Some(Key { kind, namespace, name })
    }

    fn put(&mut self, key: Key, record: Record) {
        // The change may remove the reason why the environment stays.
        if let Some(held) = self.held.get_mut(&key) {
            held.again = Duration::ZERO;
        }
        if record.is_deleting() || record.deletes_at.is_none() {
            self.held.remove(&key);
        }
        let before = self.records.get(&key);
        if before == Some(&record) {
            return;
        }
        if before.is_some_and(|before| before.deletes_at != record.deletes_at) {
            self.held.remove(&key);
        }
        if let Some(before) = before.filter(|before| before.uid != record.uid) {
            // Another one of the same name.
            self.gone.push((key.clone(), before.clone()));
        }
        let priced = |record: &Record| (record.hourly, record.budget.clone(), record.is_deleting());
        if before.map(priced) != Some(priced(&record)) {
            self.version += 1;
        }
        if let Some(at) = before.and_then(|before| before.deletes_at) {
            self.due.remove(&(at, key.clone()));
        }
        if let Some(at) = record.deletes_at.filter(|_| !record.is_deleting()) {
            self.due.insert((at, key.clone()));
        }
        self.changed.insert(key.clone());
        self.records.insert(key, record);
    }

    fn remove(&mut self, key: &Key, is_gone: bool) {
        let Some(record) = self.records.remove(key) else { return };
        if let Some(at) = record.deletes_at {
            self.due.remove(&(at, key.clone()));
        }
        self.held.remove(key);
        self.changed.remove(key);
        self.version += 1;
        if is_gone {
            self.gone.push((key.clone(), record));
        }
    }

    /// Forgets all environments of a kind but these.
    fn keep_only(&mut self, kind: &str, keys: &BTreeSet<Key>, is_gone: bool) {
        let lost = self.records.keys().filter(|key| *key.kind == *kind && !keys.contains(key));
        for key in lost.cloned().collect::<Vec<_>>() {
            self.remove(&key, is_gone);
        }
    }
}
