//! The watches: one for each kind that the cluster serves.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use kube::api::{DynamicObject, TypeMeta};
use kube::runtime::watcher::Event;
use paved_client::cluster::{Cluster, Kind, cause, is_denied, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{MissedTickBehavior, interval};

use super::Live;
use super::store::key;
use crate::kinds::Catalog;

/// The pause between attempts to read the kinds while none is known.
const UNKNOWN: Duration = Duration::from_secs(2);

/// Watches every kind, in one namespace or in all, permanently. A kind that is installed later is
/// watched within `pause`.
pub(crate) async fn follow(
    cluster: Cluster,
    namespace: Option<String>,
    catalog: Arc<Catalog>,
    live: Arc<Live>,
    pause: Duration,
) {
    let mut watches = JoinSet::new();
    // The watched version and the task, by the kind's name.
    let mut running: BTreeMap<String, (String, AbortHandle)> = BTreeMap::new();
    let mut look = interval(pause);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        look.tick().await;
        let seen = match catalog.look().await {
            Ok(seen) => seen,
            Err(failure) => {
                tracing::warn!(%failure, "could not list the kinds of the cluster");
                // Until the first success, the portal cannot show environments.
                if !catalog.seen().is_known() {
                    look.reset_after(pause.min(UNKNOWN));
                }
                continue;
            }
        };
        let versions: BTreeMap<String, &str> = seen
            .all()
            .iter()
            .map(|kind| (kind.full_name(), kind.resource.version.as_str()))
            .collect();
        running.retain(|name, (version, watch)| {
            let now = versions.get(name);
            let stays = now == Some(&version.as_str());
            if !stays {
                watch.abort();
            }
            if now.is_none() {
                live.keep_only(name, &BTreeSet::new());
            }
            stays
        });
        live.watching(versions.into_keys().collect());
        for kind in seen.all() {
            running.entry(kind.full_name()).or_insert_with(|| {
                let watch = one(
                    cluster.clone(),
                    namespace.clone(),
                    Arc::new(kind.clone()),
                    Arc::clone(&live),
                );
                (kind.resource.version.clone(), watches.spawn(watch))
            });
        }
    }
}

/// Watches a kind. After an interruption it lists all objects again, and reports only differences.
async fn one(cluster: Cluster, namespace: Option<String>, kind: Arc<Kind>, live: Arc<Live>) {
    let types =
        TypeMeta { api_version: kind.resource.api_version.clone(), kind: kind.name().to_owned() };
    let complete = |object: DynamicObject| DynamicObject { types: Some(types.clone()), ..object };
    let mut listed = BTreeSet::new();
    let mut is_known = false;
    let mut events = std::pin::pin!(watch(&cluster, &kind, namespace.as_deref(), None));
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Init) => listed.clear(),
            Ok(Event::InitApply(object)) => {
                listed.insert(key(&kind, &object));
                live.put(&complete(object), &kind);
            }
            Ok(Event::InitDone) => {
                live.keep_only(&kind.full_name(), &std::mem::take(&mut listed));
                live.has_synced(&kind.full_name());
                is_known = true;
            }
            Ok(Event::Apply(object)) => live.put(&complete(object), &kind),
            Ok(Event::Delete(object)) => live.remove(&complete(object), &kind),
            Err(error) => {
                let error = cause(error);
                // The portal's role may not cover a foreign group. The other kinds are shown
                // anyway. Objects seen earlier are shown too, but the kind counts as interrupted.
                if is_denied(&error) && !is_known {
                    live.has_synced(&kind.full_name());
                } else {
                    live.is_interrupted(&kind.full_name());
                }
                let failure = cluster.explain(&error, &format!("watch {}", kind.name()));
                tracing::warn!(kind = kind.full_name(), %failure, "a watch was interrupted");
            }
        }
    }
}
