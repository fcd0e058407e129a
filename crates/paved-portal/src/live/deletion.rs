//! Environments during their deletion. The function does not run for them, so the portal reads the
//! remaining resources itself.
//!
//! Users write the references of their environments, and can block a deletion without end. So the
//! reads are limited: each round has a budget, and pauses grow without changes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::{StreamExt, stream};
use paved_client::cluster::{Cluster, Found, Served};
use paved_client::delete::Parts;
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::{DeletionProgress, Entry, Live, Part};
use crate::limits::Limits;

/// The maximum number of resources read in a round. One environment is always read.
const BUDGET: usize = 100;

/// The number of resources that an environment counts before its resources are known.
const UNKNOWN: usize = 20;

/// The maximum number of environments read at once.
const CONCURRENCY: usize = 4;

/// An environment during its deletion.
#[derive(Default)]
struct Followed {
    parts: Option<Parts>,
    /// The resources that were last shown.
    left: Option<DeletionProgress>,
    /// The time of the next read, and the pause before it.
    next: Option<Instant>,
    pause: Duration,
}

/// Reads the resources of all environments in deletion, permanently, with the portal's own rights.
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
        // Deleted environments are forgotten.
        known.retain(|uid, _| going.iter().any(|entry| entry.view.uid == *uid));
        let looked = due(going, &mut known).into_iter().map(|(entry, followed)| {
            let (cluster, served, limits) = (&cluster, &served, &limits);
            async move { (followed.look(cluster, served, &entry, limits).await, entry) }
        });
        let looked: Vec<_> = looked.collect();
        let mut looked = stream::iter(looked).buffer_unordered(CONCURRENCY);
        while let Some((followed, entry)) = looked.next().await {
            if let Some(left) = &followed.left {
                live.show_deletion_progress(&entry.key, &entry.view.uid, left.clone());
            }
            known.insert(entry.view.uid.clone(), followed);
        }
    }
}

/// The environments of this round: the longest waiting ones, within the budget.
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
    /// The number of resources that the next read requests.
    fn cost(&self) -> usize {
        self.parts.as_ref().map_or(UNKNOWN, Parts::left_count).max(1)
    }

    /// Reads the remaining resources. If they are unreadable, the last status remains.
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
            // A resource without a timely response stays unchanged.
            _ = timeout(patience, parts.look()).await;
            if parts.is_seen() {
                let seen = parts.statuses().into_iter().map(Part::from).collect();
                left = Some(DeletionProgress {
                    parts: seen,
                    count: parts.left_count(),
                    of: parts.count(),
                });
            } else {
                // The next read searches again, because there may be other resources by then.
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
