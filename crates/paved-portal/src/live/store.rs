//! The last state that the watches have seen, and the changes since.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use kube::api::DynamicObject;
use paved_client::cluster::Kind;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use serde_json::Value;
use tokio::sync::{broadcast, watch};
use tokio::time::timeout;

use super::resume_token::StateHash;
use super::{DeletionProgress, View};
use crate::problem::Problem;

/// The maximum number of changes that a reader may be behind before it is dropped.
const BEHIND: usize = 1024;

/// The maximum number of remembered changes for resumed readers. A reader that was away for longer
/// gets a whole list.
const BACKLOG: usize = 4096;

/// The maximum size of remembered changes in bytes of JSON.
const REMEMBERED: usize = 32 << 20;

/// Distinguishes an environment from all others of the same time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    /// `Kind.group`
    pub(crate) kind: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
}

/// An environment.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) key: Key,
    pub(crate) kind: Arc<Kind>,
    /// The view for clients.
    pub(crate) view: View,
    pub(crate) spec: Value,
    /// The view as JSON, serialized once for all readers.
    pub(crate) text: String,
    /// The hash of the text.
    pub(super) known: StateHash,
    /// Its remaining resources during its deletion.
    left: Option<DeletionProgress>,
}

/// The change of an environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Added,
    Modified,
    Deleted,
}

/// A change.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) action: Action,
    pub(crate) entry: Arc<Entry>,
    /// The difference that the change makes to the sum of a client's state.
    pub(super) step: StateHash,
    /// Its size in bytes of JSON.
    size: usize,
}

/// All environments that the watches have seen.
pub(crate) struct Live {
    inner: Mutex<Inner>,
    changes: broadcast::Sender<Arc<Change>>,
    /// Distinguishes this process from all others.
    pub(crate) epoch: String,
    /// The kinds with a complete watch, and all watched kinds.
    synced: watch::Sender<(BTreeSet<String>, BTreeSet<String>)>,
    /// Whether all watches have been complete at once.
    whole: AtomicBool,
    pub(crate) count: Gauge,
    pub(crate) changed: Counter,
}

#[derive(Default)]
struct Inner {
    entries: BTreeMap<Key, Arc<Entry>>,
    backlog: VecDeque<Arc<Change>>,
    /// The size of the backlog in bytes of JSON.
    remembered: usize,
    /// The kinds with an interrupted watch, and the time of the interruption.
    interrupted: BTreeMap<String, Instant>,
}

impl Inner {
    /// Remembers a change, and forgets the oldest ones.
    fn remember(&mut self, change: Arc<Change>) {
        self.remembered += change.size;
        self.backlog.push_back(change);
        while self.backlog.len() > BACKLOG || self.remembered > REMEMBERED {
            let Some(oldest) = self.backlog.pop_front() else { break };
            self.remembered -= oldest.size;
        }
    }
}

/// The start of a reader.
pub(super) struct Start {
    /// All environments, sorted by kind, namespace and name.
    pub(super) entries: Vec<Arc<Entry>>,
    /// For a resumed reader: the earlier changes, the newest last.
    pub(super) backlog: Vec<Arc<Change>>,
    /// The later changes.
    pub(super) changes: broadcast::Receiver<Arc<Change>>,
}

impl Key {
    /// Its namespace. A permission counts for all environments there.
    pub(super) fn place(&self) -> (&str, &str) {
        (&self.kind, &self.namespace)
    }
}

impl Entry {
    /// Its kind and namespace. A permission counts for all environments of both.
    pub(crate) fn place(&self) -> (&Kind, &str) {
        (&self.kind, &self.key.namespace)
    }

    /// Reads an object.
    fn from_object(
        object: &DynamicObject,
        kind: &Arc<Kind>,
        left: Option<DeletionProgress>,
    ) -> Self {
        let mut view = View::from_object(object, &kind.resource.plural);
        if let Some(left) = &left {
            view = view.with_deletion_progress(left);
        }
        Self::new(kind, view, object.data["spec"].clone(), left)
    }

    fn new(kind: &Arc<Kind>, view: View, spec: Value, left: Option<DeletionProgress>) -> Self {
        let text = serde_json::to_string(&view).unwrap_or_default();
        Self {
            key: Key {
                kind: kind.full_name(),
                namespace: view.namespace.clone(),
                name: view.name.clone(),
            },
            kind: Arc::clone(kind),
            known: StateHash::new(&text),
            view,
            spec,
            text,
            left,
        }
    }

    /// Whether it is being deleted.
    pub(crate) fn is_deleting(&self) -> bool {
        self.view.deleted_at.is_some()
    }
}

impl Live {
    pub(crate) fn new(epoch: String) -> Self {
        Self {
            inner: Mutex::default(),
            changes: broadcast::channel(BEHIND).0,
            epoch,
            synced: watch::channel((BTreeSet::new(), BTreeSet::new())).0,
            whole: AtomicBool::new(false),
            count: Gauge::default(),
            changed: Counter::default(),
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records an added or changed object. An equal version is not a change.
    pub(super) fn put(&self, object: &DynamicObject, kind: &Arc<Kind>) {
        let mut inner = self.inner();
        let key = key(kind, object);
        let known = inner.entries.get(&key).cloned();
        let uid = object.metadata.uid.as_deref().unwrap_or_default();
        let version = object.metadata.resource_version.as_deref().unwrap_or_default();
        let same = known.clone().filter(|known| known.view.uid == uid);
        // An object with another version of its kind is read again.
        if same
            .as_ref()
            .is_some_and(|known| known.view.resource_version == version && known.kind == *kind)
        {
            return;
        }
        if same.is_none() {
            self.tell(&mut inner, known, None);
        }
        let left = same.as_ref().and_then(|known| known.left.clone());
        let left = left.filter(|_| object.metadata.deletion_timestamp.is_some());
        let entry = Arc::new(Entry::from_object(object, kind, left));
        inner.entries.insert(key, Arc::clone(&entry));
        self.tell(&mut inner, same, Some(entry));
    }

    /// Records a deleted object.
    pub(super) fn remove(&self, object: &DynamicObject, kind: &Arc<Kind>) {
        let mut inner = self.inner();
        let key = key(kind, object);
        let uid = object.metadata.uid.as_deref().unwrap_or_default();
        if inner.entries.get(&key).is_some_and(|known| known.view.uid == uid) {
            let entry = inner.entries.remove(&key);
            self.tell(&mut inner, entry, None);
        }
    }

    /// Records the complete list of a kind. It reveals changes that an interrupted watch missed.
    pub(super) fn keep_only(&self, kind: &str, keys: &BTreeSet<Key>) {
        let mut inner = self.inner();
        let gone: Vec<Key> = inner
            .entries
            .keys()
            .filter(|key| key.kind == kind && !keys.contains(*key))
            .cloned()
            .collect();
        for key in gone {
            let entry = inner.entries.remove(&key);
            self.tell(&mut inner, entry, None);
        }
    }

    /// Records the remaining resources of an environment during its deletion.
    pub(super) fn show_deletion_progress(&self, key: &Key, uid: &str, left: DeletionProgress) {
        let mut inner = self.inner();
        let Some(known) =
            inner.entries.get(key).filter(|known| known.view.uid == uid && known.is_deleting())
        else {
            return;
        };
        if known.left.as_ref() == Some(&left) {
            return;
        }
        let view = known.view.clone().with_deletion_progress(&left);
        let entry = Arc::new(Entry::new(&known.kind, view, known.spec.clone(), Some(left)));
        let before = inner.entries.insert(key.clone(), Arc::clone(&entry));
        self.tell(&mut inner, before, Some(entry));
    }

    /// Sends a change to all readers. The lock gives all readers the same order.
    fn tell(&self, inner: &mut Inner, before: Option<Arc<Entry>>, after: Option<Arc<Entry>>) {
        let known = |entry: Option<&Arc<Entry>>| entry.map(|entry| entry.known).unwrap_or_default();
        let step = known(after.as_ref()).without(known(before.as_ref()));
        let (action, entry) = match (before, after) {
            (None, Some(entry)) => (Action::Added, entry),
            (Some(_), Some(entry)) => (Action::Modified, entry),
            (Some(entry), None) => (Action::Deleted, entry),
            (None, None) => return,
        };
        let size = entry.text.len() + entry.spec.to_string().len();
        let change = Arc::new(Change { action, entry, step, size });
        inner.remember(Arc::clone(&change));
        self.changed.inc();
        self.count.set(i64::try_from(inner.entries.len()).unwrap_or(i64::MAX));
        // There may be no reader.
        let _ = self.changes.send(change);
    }

    /// All environments, sorted by kind, namespace and name.
    pub(crate) fn all(&self) -> Vec<Arc<Entry>> {
        self.inner().entries.values().cloned().collect()
    }

    /// An environment.
    pub(crate) fn get(&self, key: &Key) -> Option<Arc<Entry>> {
        self.inner().entries.get(key).cloned()
    }

    /// Starts or resumes a reader. No change is lost between the list and the later changes.
    pub(super) fn start(&self, comes_back: bool) -> Start {
        let inner = self.inner();
        let backlog = if comes_back { inner.backlog.iter().cloned().collect() } else { Vec::new() };
        Start {
            entries: inner.entries.values().cloned().collect(),
            backlog,
            changes: self.changes.subscribe(),
        }
    }

    /// Sets the watched kinds.
    pub(super) fn watching(&self, kinds: BTreeSet<String>) {
        self.inner().interrupted.retain(|kind, _| kinds.contains(kind));
        self.synced.send_if_modified(|(all, synced)| {
            let changed = *all != kinds;
            synced.retain(|kind| kinds.contains(kind));
            *all = kinds;
            changed
        });
        self.look_whether_whole();
    }

    /// Records an interrupted watch of a kind. No change of the kind is seen before the next
    /// complete list.
    pub(super) fn is_interrupted(&self, kind: &str) {
        self.inner().interrupted.entry(kind.to_owned()).or_insert_with(Instant::now);
    }

    /// The duration for which all watches have been interrupted.
    pub(crate) fn unseen(&self) -> Duration {
        let inner = self.inner();
        let kinds = &self.synced.borrow().0;
        let since =
            kinds.iter().map(|kind| inner.interrupted.get(kind)).collect::<Option<Vec<_>>>();
        since.and_then(|all| all.into_iter().max()).map_or(Duration::ZERO, Instant::elapsed)
    }

    /// Records the first complete list of a kind.
    pub(super) fn has_synced(&self, kind: &str) {
        self.inner().interrupted.remove(kind);
        self.synced.send_if_modified(|(_, synced)| synced.insert(kind.to_owned()));
        self.look_whether_whole();
    }

    fn look_whether_whole(&self) {
        if self.unsynced().is_empty() {
            self.whole.store(true, Ordering::Release);
        }
    }

    /// Whether the lists of all kinds were complete once. Before, an unseen environment may exist.
    /// A kind installed later does not change this.
    pub(crate) fn seen_whole(&self) -> Result<(), Problem> {
        if self.whole.load(Ordering::Acquire) {
            return Ok(());
        }
        let detail = "The portal is still loading the environments. Try again in a moment.";
        Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail))
    }

    /// The watched kinds without a complete list.
    pub(crate) fn unsynced(&self) -> Vec<String> {
        let synced = self.synced.borrow();
        synced.0.difference(&synced.1).cloned().collect()
    }

    /// Waits briefly until the watch has seen a new version, so that its writer finds it in a list.
    pub(crate) async fn seen(
        &self,
        key: &Key,
        patience: Duration,
        is_seen: impl Fn(Option<&Entry>) -> bool,
    ) {
        let mut changes = self.changes.subscribe();
        let _ = timeout(patience, async {
            while !is_seen(self.get(key).as_deref()) {
                if matches!(changes.recv().await, Err(broadcast::error::RecvError::Closed)) {
                    break;
                }
            }
        })
        .await;
    }
}

/// The key of an object of a kind.
pub(super) fn key(kind: &Kind, object: &DynamicObject) -> Key {
    Key {
        kind: kind.full_name(),
        namespace: object.metadata.namespace.clone().unwrap_or_default(),
        name: object.metadata.name.clone().unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests;
