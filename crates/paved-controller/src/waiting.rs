//! Usages that wait for the deletion of their user, so that deletions of environments are fast.
//!
//! Crossplane looks only every 30 s whether the user of a deleted Usage is gone (`waitPollInterval`
//! in `internal/controller/protection/usage/reconciler.go`). Each level of Usages so adds up to
//! 30 s. But Crossplane watches Usages, and looks at once when a Usage changes. So the leader
//! changes a condition of each deleted Usage that can end next. Without the right to do so,
//! deletions only take longer.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crossplane::api_version;
use futures::StreamExt;
use futures::future::join_all;
use kube::api::{DynamicObject, Patch, PatchParams};
use kube::runtime::watcher::{Config, Event};
use paved_client::cluster::{
    Api, Cluster, Reference, Served, anew, cause, is_denied, while_allowed,
};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::Limits;
use crate::clock::Clock;
use crate::lease::NAME;
use crate::metrics::Metrics;
use crate::store::Store;

/// The condition that the leader changes.
const CONDITION: &str = "DeletionFollowed";

/// The first pause between two changes of a Usage, in ticks of the leader.
const FIRST: u32 = 2;

/// The pause from which Crossplane's own looks are enough.
const LONGEST: Duration = Duration::from_secs(30);

/// How many Usages are changed in one pass, and how many at once.
const PASS: usize = 20;
const AT_ONCE: usize = 5;

/// API version and kind, namespace and name of a Usage.
type Key = ((&'static str, &'static str), Box<str>, Box<str>);

/// Group, kind and name of an end of a Usage.
type End = (Box<str>, Box<str>, Box<str>);

/// The deleted Usages of composites.
pub(crate) struct Waiting {
    cluster: Cluster,
    served: Served,
    clock: Clock,
    limits: Limits,
    usages: Mutex<BTreeMap<Key, Usage>>,
}

/// A deleted Usage of a composite.
#[derive(Clone, Debug)]
struct Usage {
    of: End,
    by: End,
    /// The group of the composite.
    group: Box<str>,
    /// Since when it can end as soon as its user is gone, by the steady clock.
    since: Duration,
    /// When it is changed next; `None` if Crossplane's own looks are enough.
    next: Option<Duration>,
}

impl Usage {
    /// Reads a Usage. `None` if it is not deleted, or if no composite owns it.
    fn read(object: &DynamicObject, now: Duration, first: Duration) -> Option<Self> {
        object.metadata.deletion_timestamp.as_ref()?;
        let owners = object.metadata.owner_references.as_deref().unwrap_or_default();
        let composite = owners.iter().find(|owner| owner.controller == Some(true))?;
        let spec = &object.data["spec"];
        Some(Self {
            of: end(&spec["of"])?,
            by: end(&spec["by"])?,
            group: api_version::group(&composite.api_version).into(),
            since: now,
            next: Some(now + first),
        })
    }
}

/// An end of a Usage. Crossplane writes the name for a selector.
fn end(value: &Value) -> Option<End> {
    let text = |value: &Value| value.as_str().map(Box::from);
    let group = api_version::group(value["apiVersion"].as_str()?).into();
    Some((group, text(&value["kind"])?, text(&value["resourceRef"]["name"])?))
}

impl Waiting {
    pub fn new(cluster: &Cluster, clock: Clock, limits: Limits) -> Self {
        let (cluster, served) = (cluster.clone(), Served::default());
        Self { cluster, served, clock, limits, usages: Mutex::default() }
    }

    /// The first pause between two changes of a Usage.
    fn first(&self) -> Duration {
        self.limits.tick * FIRST
    }

    fn usages(&self) -> MutexGuard<'_, BTreeMap<Key, Usage>> {
        self.usages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Watches the Usages of a kind until the task ends. A kind without a right, or one that is
    /// installed later, is tried again after a while.
    pub async fn follow(&self, kind: (&'static str, &'static str)) {
        loop {
            match self.api(kind, None).await {
                Ok(Some(api)) => {
                    let begin = move || api.watcher(Config::default());
                    let mut events = while_allowed(anew(begin(), begin));
                    let mut listed = BTreeSet::new();
                    while let Some(event) = events.next().await {
                        match event {
                            Ok(event) => self.hear(kind, event, &mut listed),
                            Err(error) => {
                                let error = cause(error);
                                let failure = self.cluster.explain(&error, "watch Usages");
                                if is_denied(&error) {
                                    tracing::info!(%failure, "deletions take longer");
                                } else {
                                    tracing::warn!(%failure, "a watch is interrupted");
                                }
                            }
                        }
                    }
                }
                Ok(None) => {}
                Err(error) => {
                    let failure = self.cluster.explain(&error, "list the kinds");
                    tracing::warn!(%failure, "Usages are not watched");
                }
            }
            sleep(self.limits.kinds).await;
        }
    }

    async fn api(
        &self,
        (api_version, kind): (&str, &str),
        namespace: Option<&str>,
    ) -> kube::Result<Option<Api<DynamicObject>>> {
        let any = json!({"apiVersion": api_version, "kind": kind, "name": "any"});
        match Reference::from_value(&any) {
            Some(any) => self.served.find(&self.cluster.client, &any, namespace).await,
            None => Ok(None),
        }
    }

    fn hear(
        &self,
        kind: (&'static str, &'static str),
        event: Event<DynamicObject>,
        listed: &mut BTreeSet<Key>,
    ) {
        let key = |object: &DynamicObject| -> Key {
            let text = |text: &Option<String>| text.as_deref().unwrap_or_default().into();
            (kind, text(&object.metadata.namespace), text(&object.metadata.name))
        };
        match event {
            Event::Init => listed.clear(),
            Event::InitApply(object) => {
                listed.insert(key(&object));
                self.put(key(&object), &object);
            }
            Event::InitDone => {
                self.usages().retain(|key, _| key.0 != kind || listed.contains(key));
                listed.clear();
            }
            Event::Apply(object) => self.put(key(&object), &object),
            Event::Delete(object) => drop(self.usages().remove(&key(&object))),
        }
    }

    fn put(&self, key: Key, object: &DynamicObject) {
        if let Some(usage) = Usage::read(object, self.clock.steady(), self.first()) {
            self.usages().entry(key).or_insert(usage);
        }
    }

    /// Changes the Usages that are due.
    pub async fn pass(&self, store: &Store, metrics: &Metrics) {
        let is_ours = |group: &str| store.has_group(group);
        let due = due(&mut self.usages(), self.clock.steady(), self.first(), is_ours);
        let changes = async {
            for keys in due.chunks(AT_ONCE) {
                let mut together = Vec::new();
                for key in keys {
                    together.push(self.touch(key, metrics));
                }
                join_all(together).await;
            }
        };
        // The rest has its turn in the next pass.
        drop(timeout(self.limits.pass, changes).await);
    }

    async fn touch(&self, key: &Key, metrics: &Metrics) {
        let (kind, namespace, name) = key;
        match self.change(*kind, namespace, name).await {
            Err(kube::Error::Api(status)) if status.code == 404 => {
                self.usages().remove(key);
                return;
            }
            Err(error) => {
                let failure = self.cluster.explain(&error, "change a Usage");
                tracing::warn!(%failure, namespace, name, "a deletion takes longer");
                metrics.failed();
            }
            Ok(()) => {}
        }
        let now = self.clock.steady();
        if let Some(usage) = self.usages().get_mut(key) {
            usage.next = next(usage.since, now, self.first());
        }
    }

    async fn change(&self, kind: (&str, &str), namespace: &str, name: &str) -> kube::Result<()> {
        let Some(api) = self.api(kind, Some(namespace)).await? else { return Ok(()) };
        let now = self.clock.now();
        let status = json!({
            "apiVersion": kind.0,
            "kind": kind.1,
            "status": {"conditions": [{
                "type": CONDITION,
                "status": "True",
                "reason": "WaitingForUser",
                "message": "the controller changes this condition, so that Crossplane looks at \
                    once whether the user of this Usage is gone",
                "lastTransitionTime": now,
            }]},
        });
        let params = PatchParams::apply(NAME).force();
        api.patch_status(name, &params, &Patch::Apply(&status)).await.map(drop)
    }
}

/// The next change: after a quarter of the wait so far, so that the user's end is seen within a
/// quarter of the time that its deletion takes.
fn next(since: Duration, now: Duration, first: Duration) -> Option<Duration> {
    let pause = (now.saturating_sub(since) / 4).max(first);
    (pause < LONGEST).then(|| now + pause)
}

/// The Usages to change now, at most [`PASS`], those that waited longest first. A Usage by a
/// protected user cannot end yet, so its wait has not begun.
fn due(
    usages: &mut BTreeMap<Key, Usage>,
    now: Duration,
    first: Duration,
    is_ours: impl Fn(&str) -> bool,
) -> Vec<Key> {
    let protected: BTreeSet<(Box<str>, End)> = usages
        .iter()
        .map(|((_, namespace, _), usage)| (namespace.clone(), usage.of.clone()))
        .collect();
    let mut due = Vec::new();
    for (key, usage) in usages {
        if protected.contains(&(key.1.clone(), usage.by.clone())) {
            (usage.since, usage.next) = (now, Some(now + first));
        } else if let Some(next) = usage.next
            && next <= now
            && is_ours(&usage.group)
        {
            due.push((next, key.clone()));
        }
    }
    due.sort();
    due.into_iter().take(PASS).map(|(_, key)| key).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::usages::KINDS;

    fn waiting(of: &str, by: &str) -> Usage {
        let end = |name: &str| -> End { ("a.org".into(), "Any".into(), name.into()) };
        let group = "platform.acme.io".into();
        Usage { of: end(of), by: end(by), group, since: Duration::ZERO, next: Some(Duration::ZERO) }
    }

    fn key(name: &str) -> Key {
        (KINDS[0], "team".into(), name.into())
    }

    #[test]
    fn usages_of_a_chain_are_changed_in_the_order_of_their_ends() {
        let first = Duration::from_secs(2);
        let mut usages = BTreeMap::from([
            (key("network-by-cluster"), waiting("network", "cluster")),
            (key("cluster-by-app"), waiting("cluster", "app")),
        ]);
        let second = Duration::from_secs;
        assert_eq!(due(&mut usages, second(1), first, |_| true), [key("cluster-by-app")]);
        usages.remove(&key("cluster-by-app"));
        assert_eq!(due(&mut usages, second(2), first, |_| true), []);
        assert_eq!(due(&mut usages, second(3), first, |_| true), [key("network-by-cluster")]);
        assert_eq!(due(&mut usages, second(3), first, |_| false), []);
    }

    #[test]
    fn pass_has_a_limit_and_begins_with_the_longest_wait() {
        let first = Duration::from_secs(2);
        let mut usages: BTreeMap<Key, Usage> = (0..1_000_u64)
            .map(|number| {
                let next = Some(Duration::from_secs(1_000 - number));
                let usage =
                    Usage { next, ..waiting(&format!("of-{number}"), &format!("by-{number}")) };
                (key(&format!("{number:03}")), usage)
            })
            .collect();
        let due = due(&mut usages, Duration::from_secs(2_000), first, |_| true);
        assert_eq!(due.len(), PASS);
        assert_eq!(due[0], key("999"));
    }

    #[test]
    fn pauses_grow_with_the_wait_until_crossplane_looks_as_often() {
        let first = Duration::from_secs(2);
        let (mut now, mut count) = (first, 0);
        while let Some(later) = next(Duration::ZERO, now, first) {
            let pause = later.saturating_sub(now);
            assert!(pause >= first && pause < LONGEST);
            (now, count) = (later, count + 1);
        }
        assert!(now < Duration::from_mins(3), "{now:?}");
        assert!(count < 20, "{count}");
    }
}
