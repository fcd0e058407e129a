//! The environments of a wait, as seen by watches. There is one watch for each kind and namespace,
//! for any number of environments.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::StreamExt;
use futures::stream::{self, BoxStream, ReadyChunks, SelectAll, select_all};
use kube::api::DynamicObject;
use kube::runtime::watcher::Event;

use crate::Failure;
use crate::cluster::{self, Cluster, Contact, Found, Kind, cause, watch, watch_since};
use crate::environment::Environment;

/// The maximum number of events processed at once.
const BATCH_SIZE: usize = 100;

/// An environment in a wait.
pub struct Watched {
    /// The environment, as last seen.
    pub environment: Arc<Environment>,
    /// Whether it is deleted.
    pub gone: bool,
}

/// All environments of a wait, and their watches.
pub struct WatchSet {
    /// The environments, in the order of the targets.
    pub seen: Vec<Watched>,
    /// Indices in `seen` of the environments that have changed since the last call of `news`.
    news: BTreeSet<usize>,
    groups: Vec<Group>,
    contact: Contact,
}

/// Environments of one kind in one namespace.
struct Group {
    kind: Kind,
    namespace: String,
    /// Their indices in [`WatchSet::seen`], by UID.
    members: BTreeMap<String, usize>,
    /// The version of the list that contained them, if they were listed.
    version: Option<String>,
    /// While a list is in progress, the environments that it has not contained yet.
    missing: Option<BTreeSet<usize>>,
    listed: bool,
}

type Change = (usize, cluster::WatchItem);

impl WatchSet {
    /// Watches these environments.
    pub fn new(targets: Vec<Found<Environment>>) -> Self {
        let mut groups: Vec<Group> = Vec::new();
        let mut seen = Vec::new();
        for (index, found) in targets.into_iter().enumerate() {
            let namespace = found.object.namespace.clone();
            let known = groups
                .iter()
                .position(|group| group.kind == found.kind && group.namespace == namespace);
            let known = known.unwrap_or_else(|| {
                groups.push(Group::new(&found, namespace));
                groups.len() - 1
            });
            groups[known].members.insert(found.object.uid.clone(), index);
            seen.push(Watched { environment: Arc::new(found.object), gone: false });
        }
        Self { news: (0..seen.len()).collect(), seen, groups, contact: Contact::default() }
    }

    /// The watches' events. Each chunk has all events that have arrived, with the indices of their
    /// groups.
    pub fn events(&self, cluster: &Cluster) -> ReadyChunks<SelectAll<BoxStream<'static, Change>>> {
        let watches = self.groups.iter().enumerate().map(|(index, group)| {
            let mut members = group.members.values();
            let only = match (members.next(), members.next()) {
                (Some(one), None) => Some(self.seen[*one].environment.name.as_str()),
                _ => None,
            };
            let namespace = Some(group.namespace.as_str()).filter(|name| !name.is_empty());
            let events = match &group.version {
                Some(version) => {
                    watch_since(cluster, &group.kind, namespace, only, version).boxed()
                }
                None => watch(cluster, &group.kind, namespace, only).boxed(),
            };
            events.map(move |event| (index, event)).boxed()
        });
        let mut all: SelectAll<BoxStream<'static, Change>> = select_all(watches);
        // Without any watch, the stream stays pending instead of ending.
        all.push(stream::pending().boxed());
        all.ready_chunks(BATCH_SIZE)
    }

    /// Whether a list is in progress. More events then follow immediately.
    pub fn is_listing(&self) -> bool {
        self.groups.iter().any(|group| group.missing.is_some())
    }

    /// Whether any watch is broken. The known state may then be outdated.
    pub fn is_lost(&self) -> bool {
        self.contact.is_lost()
    }

    /// The indices of the environments that have changed since the last call. The first call
    /// returns all.
    pub fn news(&mut self) -> BTreeSet<usize> {
        std::mem::take(&mut self.news)
    }

    /// Processes events. Returns messages about the connection.
    pub fn take(
        &mut self,
        changes: Vec<Change>,
        cluster: &Cluster,
    ) -> Result<Vec<String>, Failure> {
        let mut notes = Vec::new();
        for (group, event) in changes {
            notes.extend(self.take_one(group, event, cluster)?);
        }
        Ok(notes)
    }

    fn take_one(
        &mut self,
        group: usize,
        event: cluster::WatchItem,
        cluster: &Cluster,
    ) -> Result<Option<String>, Failure> {
        match event {
            Ok(event) => {
                let note = self.contact.heard(group, &event, cluster);
                self.change(group, event);
                Ok(note)
            }
            Err(error) => {
                let one = &self.groups[group];
                let act = format!("watch {} in namespace {}", one.kind.name(), one.namespace);
                self.contact.broke(group, &cause(error), one.listed, &act, cluster)
            }
        }
    }

    fn change(&mut self, group: usize, event: Event<DynamicObject>) {
        match event {
            Event::Init => {
                let group = &mut self.groups[group];
                group.missing = Some(group.members.values().copied().collect());
            }
            Event::InitApply(object) | Event::Apply(object) => self.update(group, &object),
            Event::Delete(object) => {
                if let Some(index) = self.groups[group].place(&object) {
                    self.lose(index);
                }
            }
            Event::InitDone => {
                self.groups[group].listed = true;
                for index in self.groups[group].missing.take().unwrap_or_default() {
                    self.lose(index);
                }
            }
        }
    }

    /// A recreated object with the same name is another object. The original stays missing.
    fn update(&mut self, group: usize, object: &DynamicObject) {
        let group = &mut self.groups[group];
        let Some(index) = group.place(object) else { return };
        if let Some(missing) = &mut group.missing {
            missing.remove(&index);
        }
        let seen = &mut self.seen[index];
        seen.environment = Arc::new(seen.environment.now(object));
        self.news.insert(index);
    }

    fn lose(&mut self, index: usize) {
        self.seen[index].gone = true;
        self.news.insert(index);
    }
}

impl Group {
    /// Creates a group without members for the kind of `found`.
    fn new(found: &Found<Environment>, namespace: String) -> Self {
        Self {
            kind: found.kind.clone(),
            namespace,
            members: BTreeMap::new(),
            version: found.listed.clone(),
            missing: None,
            listed: found.listed.is_some(),
        }
    }

    /// The index of this object.
    fn place(&self, object: &DynamicObject) -> Option<usize> {
        self.members.get(object.metadata.uid.as_deref().unwrap_or_default()).copied()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use super::*;
    use crate::cluster::samples::kinds;
    use crate::environment::samples::ready;

    fn object(name: &str, uid: &str) -> DynamicObject {
        let mut object: Value = ready();
        object["metadata"]["name"] = json!(name);
        object["metadata"]["uid"] = json!(uid);
        serde_json::from_value(object).unwrap()
    }

    fn two() -> WatchSet {
        let kind = kinds().called("gpuws").unwrap().remove(0);
        let found = |name, uid| {
            let object = Environment::from_object(&object(name, uid));
            Found { kind: kind.clone(), object, listed: None }
        };
        WatchSet::new(vec![found("ada", "1"), found("grace", "2")])
    }

    #[test]
    fn a_kind_in_a_namespace_is_watched_once() {
        assert_eq!(two().groups.len(), 1);
    }

    #[test]
    fn first_news_has_all_subjects_later_news_only_changed_ones() {
        let mut two = two();
        assert_eq!(two.news(), BTreeSet::from([0, 1]));
        two.change(0, Event::Apply(object("other", "3")));
        assert_eq!(two.news(), BTreeSet::new());
        two.change(0, Event::Apply(object("grace", "2")));
        assert_eq!(two.news(), BTreeSet::from([1]));
        two.change(0, Event::Delete(object("ada", "1")));
        assert_eq!((two.news(), two.news()), (BTreeSet::from([0]), BTreeSet::new()));
    }

    #[test]
    fn subject_missing_in_a_new_list_is_gone() {
        let mut two = two();
        two.change(0, Event::Init);
        assert!(two.is_listing());
        two.change(0, Event::InitApply(object("ada", "1")));
        two.change(0, Event::InitApply(object("other", "3")));
        two.change(0, Event::InitDone);
        assert!(!two.is_listing());
        assert_eq!(two.seen.iter().map(|seen| seen.gone).collect::<Vec<_>>(), [false, true]);
    }

    #[test]
    fn recreated_object_counts_as_gone() {
        let mut two = two();
        two.change(0, Event::Init);
        two.change(0, Event::InitApply(object("ada", "1")));
        two.change(0, Event::InitApply(object("grace", "9")));
        two.change(0, Event::InitDone);
        assert!(two.seen[1].gone);
        two.change(0, Event::Delete(object("ada", "1")));
        assert!(two.seen[0].gone);
    }
}
