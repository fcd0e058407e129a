//! Environments that go: the function does not run for them any more, so what is left of them is read from the parts themselves.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, stream};
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::{Entry, Left, Live, Part};
use crate::cluster::{Cluster, Found};
use crate::delete::Parts;

/// How often the parts are looked at.
const LOOK: Duration = Duration::from_secs(3);

/// How many environments are looked at at once.
const AT_ONCE: usize = 4;

/// The longest that one may take: the others wait.
const LONGEST: Duration = Duration::from_secs(10);

/// Looks at the parts of every environment that goes, for ever, under the portal's own rights to read.
pub(in crate::portal) async fn follow(cluster: Cluster, live: Arc<Live>) {
    let mut known: BTreeMap<String, Parts> = BTreeMap::new();
    let mut look = interval(LOOK);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        look.tick().await;
        let going: Vec<Arc<Entry>> = live.all().into_iter().filter(|entry| entry.deleting).collect();
        let looked = going.into_iter().map(|entry| {
            let parts = known.remove(&entry.uid);
            let cluster = cluster.clone();
            async move { (read(&cluster, &entry, parts).await, entry) }
        });
        let looked: Vec<_> = looked.collect();
        let mut looked = stream::iter(looked).buffer_unordered(AT_ONCE);
        // What is gone is forgotten.
        known.clear();
        while let Some((parts, entry)) = looked.next().await {
            let Some(parts) = parts else { continue };
            let seen = parts.statuses().into_iter().map(Part::from).collect();
            let left = Left { parts: seen, count: parts.left_count(), of: parts.count() };
            live.show_left(&entry.key, &entry.uid, left);
            known.insert(entry.uid.clone(), parts);
        }
    }
}

/// The parts of one, as they stand. `None` where they cannot be read: then the last that its status said stays shown.
async fn read(cluster: &Cluster, entry: &Entry, known: Option<Parts>) -> Option<Parts> {
    let mut parts = match known {
        Some(parts) => parts,
        None => timeout(LONGEST, find(cluster, entry)).await.ok()??,
    };
    // What is not told in time stays as it was.
    _ = timeout(LONGEST, parts.look()).await;
    parts.is_seen().then_some(parts)
}

async fn find(cluster: &Cluster, entry: &Entry) -> Option<Parts> {
    let api = entry.kind.api(&cluster.client, Some(&entry.key.namespace));
    let object = api.get_opt(&entry.key.name).await.ok()??;
    let found = Found { kind: (*entry.kind).clone(), object, listed: None };
    Parts::of(cluster, &found).await.ok()
}
