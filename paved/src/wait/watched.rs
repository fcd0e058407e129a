//! What is waited for, as watches show it: one watch for each kind and namespace, whatever their number.

use std::collections::BTreeSet;

use futures::stream::{self, BoxStream, SelectAll};
use futures::{StreamExt, stream::select_all};
use kube::api::DynamicObject;
use kube::runtime::watcher::Event;

use crate::cluster::{self, Cluster, Contact, Found, Kind, cause, watch};
use crate::environment::Environment;
use crate::failure::Failure;

/// An environment that is waited for.
pub(crate) struct Seen {
    pub(crate) environment: Environment,
    pub(crate) gone: bool,
}

/// All of them, and the watches that show them.
pub(crate) struct Watched {
    pub(crate) seen: Vec<Seen>,
    groups: Vec<Group>,
    contact: Contact,
}

/// Environments of one kind in one namespace.
struct Group {
    kind: Kind,
    namespace: String,
    /// Places in [`Watched::seen`].
    members: Vec<usize>,
    /// Those that a list has not shown yet, while one is under way.
    missing: Option<BTreeSet<usize>>,
    listed: bool,
}

type Change = (usize, cluster::Seen);

impl Watched {
    pub(crate) fn new(targets: &[Found]) -> Self {
        let mut groups: Vec<Group> = Vec::new();
        for (index, found) in targets.iter().enumerate() {
            let namespace = found.object.metadata.namespace.clone().unwrap_or_default();
            match groups.iter_mut().find(|group| group.kind == found.kind && group.namespace == namespace) {
                Some(group) => group.members.push(index),
                None => groups.push(Group {
                    kind: found.kind.clone(),
                    namespace,
                    members: vec![index],
                    missing: None,
                    listed: false,
                }),
            }
        }
        let seen = |found: &Found| Seen { environment: Environment::of(&found.object), gone: false };
        Self { seen: targets.iter().map(seen).collect(), groups, contact: Contact::default() }
    }

    /// The watches' events, each with the number of its group.
    pub(crate) fn events(&self, cluster: &Cluster) -> SelectAll<BoxStream<'static, Change>> {
        let watches = self.groups.iter().enumerate().map(|(index, group)| {
            let only = match group.members.as_slice() {
                [one] => Some(self.seen[*one].environment.name.as_str()),
                _ => None,
            };
            let namespace = Some(group.namespace.as_str()).filter(|name| !name.is_empty());
            let events = watch(cluster, &group.kind, namespace, only);
            events.map(move |event| (index, event)).boxed()
        });
        let mut all: SelectAll<BoxStream<'static, Change>> = select_all(watches);
        // With nothing to watch there is nothing to come, rather than an end.
        all.push(stream::pending().boxed());
        all
    }

    /// Whether a list is under way, of which more is to come at once.
    pub(crate) fn is_listing(&self) -> bool {
        self.groups.iter().any(|group| group.missing.is_some())
    }

    /// Takes in an event; gives what there is to say of the connection.
    pub(crate) fn take(
        &mut self,
        group: usize,
        event: cluster::Seen,
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
        let members: BTreeSet<usize> = self.groups[group].members.iter().copied().collect();
        match event {
            Event::Init => self.groups[group].missing = Some(members),
            Event::InitApply(object) | Event::Apply(object) => self.update(group, &object),
            Event::Delete(object) => {
                if let Some(index) = self.place(group, &object) {
                    self.seen[index].gone = true;
                }
            }
            Event::InitDone => {
                self.groups[group].listed = true;
                for index in self.groups[group].missing.take().unwrap_or_default() {
                    self.seen[index].gone = true;
                }
            }
        }
    }

    /// One of the same name that was made anew is another: it stays missing.
    fn update(&mut self, group: usize, object: &DynamicObject) {
        let Some(index) = self.place(group, object) else { return };
        self.seen[index].environment = Environment::of(object);
        if let Some(missing) = &mut self.groups[group].missing {
            missing.remove(&index);
        }
    }

    fn place(&self, group: usize, object: &DynamicObject) -> Option<usize> {
        let uid = object.metadata.uid.as_deref().unwrap_or_default();
        self.groups[group].members.iter().copied().find(|index| self.seen[*index].environment.uid == uid)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use super::*;
    use crate::cluster::tests::kinds;
    use crate::environment::tests::ready;

    fn object(name: &str, uid: &str) -> DynamicObject {
        let mut object: Value = ready();
        object["metadata"]["name"] = json!(name);
        object["metadata"]["uid"] = json!(uid);
        serde_json::from_value(object).unwrap()
    }

    fn two() -> Watched {
        let kind = kinds().called("gpuws").unwrap().remove(0);
        let found = |name, uid| Found { kind: kind.clone(), object: object(name, uid) };
        Watched::new(&[found("ada", "1"), found("grace", "2")])
    }

    #[test]
    fn a_kind_in_a_namespace_is_watched_once() {
        assert_eq!(two().groups.len(), 1);
    }

    #[test]
    fn what_a_new_list_does_not_show_is_gone() {
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
    fn one_that_was_made_anew_is_not_the_one_that_is_waited_for() {
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
