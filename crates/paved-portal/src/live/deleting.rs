//! Environments that go: the function does not run for them any more, so what is left of them is
//! read from the parts themselves.
//!
//! Users write what their environments refer to, and can keep one of them going for ever. So what
//! is read has bounds: a budget for each round, and pauses that grow where nothing changes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::{StreamExt, stream};
use paved_client::cluster::{Cluster, Found, Served};
use paved_client::delete::Parts;
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::{Entry, Left, Live, Part};
use crate::limits::Limits;

/// How many parts are read in a round. One environment is read in any case.
const BUDGET: usize = 100;

/// What an environment counts whose parts are not known yet.
const UNKNOWN: usize = 20;

/// How many environments are looked at at once.
const AT_ONCE: usize = 4;

/// An environment that goes.
#[derive(Default)]
struct Followed {
    parts: Option<Parts>,
    /// What was shown of it last.
    left: Option<Left>,
    /// When it is looked at next, and the pause before that.
    next: Option<Instant>,
    pause: Duration,
}

/// Looks at the parts of every environment that goes, for ever, under the portal's own rights to
/// read.
#[expect(clippy::large_types_passed_by_value, reason = "the task owns them")]
pub(crate) async fn follow(cluster: Cluster, live: Arc<Live>, limits: Limits) {
    let served = Served::default();
    let mut known: BTreeMap<String, Followed> = BTreeMap::new();
    let mut look = interval(limits.deletions);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        look.tick().await;
        let going: Vec<Arc<Entry>> =
            live.all().into_iter().filter(|entry| entry.is_deleting()).collect();
        // What is gone is forgotten.
        known.retain(|uid, _| going.iter().any(|entry| entry.view.uid == *uid));
        let looked = due(going, &mut known).into_iter().map(|(entry, followed)| {
            let (cluster, served, limits) = (&cluster, &served, &limits);
            async move { (followed.look(cluster, served, &entry, limits).await, entry) }
        });
        let looked: Vec<_> = looked.collect();
        let mut looked = stream::iter(looked).buffer_unordered(AT_ONCE);
        while let Some((followed, entry)) = looked.next().await {
            if let Some(left) = &followed.left {
                live.show_left(&entry.key, &entry.view.uid, left.clone());
            }
            known.insert(entry.view.uid.clone(), followed);
        }
    }
}

/// Whose turn it is in this round: whoever has waited longest, as far as the budget goes.
fn due(
    going: Vec<Arc<Entry>>,
    known: &mut BTreeMap<String, Followed>,
) -> Vec<(Arc<Entry>, Followed)> {
    let now = Instant::now();
    let next = |entry: &Arc<Entry>| known.get(&entry.view.uid).and_then(|followed| followed.next);
    let mut waiting: Vec<Arc<Entry>> =
        going.into_iter().filter(|entry| next(entry).is_none_or(|next| next <= now)).collect();
    waiting.sort_by_key(next);
    let mut left = BUDGET;
    let mut due = Vec::new();
    for entry in waiting {
        let cost = known.get(&entry.view.uid).map_or(UNKNOWN, Followed::cost);
        if cost > left && !due.is_empty() {
            break;
        }
        left = left.saturating_sub(cost);
        let followed = known.remove(&entry.view.uid).unwrap_or_default();
        due.push((entry, followed));
    }
    due
}

impl Followed {
    /// How many parts a look reads.
    fn cost(&self) -> usize {
        self.parts.as_ref().map_or(UNKNOWN, Parts::left_count).max(1)
    }

    /// The parts as they stand. Where they cannot be read, the last that the status said stays
    /// shown.
    async fn look(
        mut self,
        cluster: &Cluster,
        served: &Served,
        entry: &Entry,
        limits: &Limits,
    ) -> Self {
        let patience = limits.deletion_answer;
        if self.parts.is_none() {
            self.parts = timeout(patience, find(cluster, served, entry)).await.ok().flatten();
        }
        let mut left = None;
        if let Some(parts) = &mut self.parts {
            // What is not told in time stays as it was.
            _ = timeout(patience, parts.look()).await;
            if parts.is_seen() {
                let seen = parts.statuses().into_iter().map(Part::from).collect();
                left = Some(Left { parts: seen, count: parts.left_count(), of: parts.count() });
            } else {
                // They are found anew the next time: there may be others by then.
                self.parts = None;
            }
        }
        let first = limits.deletions;
        let longest =
            if left.is_some() { limits.deletion_pause } else { limits.hidden_deletion_pause };
        let is_same = left.is_none() || left == self.left;
        self.pause = if is_same { (self.pause * 2).clamp(first, longest) } else { first };
        self.next = Some(Instant::now() + self.pause);
        self.left = left.or(self.left);
        self
    }
}

async fn find(cluster: &Cluster, served: &Served, entry: &Entry) -> Option<Parts> {
    let api = entry.kind.api(&cluster.client, Some(&entry.key.namespace));
    let object = api.get_opt(&entry.key.name).await.ok()??;
    let found = Found { kind: (*entry.kind).clone(), object, listed: None };
    Parts::find(cluster, served, &found).await.ok()
}
