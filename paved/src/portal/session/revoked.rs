//! Sessions that were ended before their time. Each replica watches one ConfigMap in the portal's namespace, which holds hashes of
//! their ids until they would have ended anyway.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::http::StatusCode;
use futures::StreamExt;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{Patch, PatchParams};
use kube::runtime::watcher::{Config, Event};
use kube::runtime::{WatchStreamExt, watcher};
use serde_json::json;
use tokio::sync::watch;

use crate::cluster::Cluster;
use crate::portal::problem::Problem;

/// The ConfigMap.
const NAME: &str = "paved-portal-revoked";

/// How often what has ended anyway is forgotten.
const PRUNE: Duration = Duration::from_mins(5);

/// The sessions that were ended, by the hash of their id, and when they would have ended.
pub(in crate::portal) struct Revoked {
    known: watch::Sender<BTreeMap<String, i64>>,
    maps: Option<Api<ConfigMap>>,
    /// Whether those of other replicas have been read once.
    synced: AtomicBool,
}

impl Revoked {
    /// Those of all replicas.
    pub(in crate::portal) fn of(cluster: &Cluster) -> Self {
        let maps = Api::namespaced(cluster.client.clone(), &cluster.namespace);
        Self { known: watch::channel(BTreeMap::new()).0, maps: Some(maps), synced: AtomicBool::new(false) }
    }

    #[cfg(test)]
    pub(super) fn local() -> Self {
        Self { known: watch::channel(BTreeMap::new()).0, maps: None, synced: AtomicBool::new(true) }
    }

    /// Whether a session was ended.
    pub(super) fn holds(&self, id: &str) -> bool {
        self.known.borrow().contains_key(id)
    }

    /// Whether those of other replicas are known: before, a session that has ended could be played again.
    pub(in crate::portal) fn is_known(&self) -> bool {
        self.synced.load(Ordering::Acquire)
    }

    /// Waits until a session is ended.
    pub(in crate::portal) async fn wait(&self, id: &str) {
        // The sender lives as long as the portal.
        let _ = self.known.subscribe().wait_for(|known| known.contains_key(id)).await;
    }

    /// Ends a session: here at once, in other replicas within moments.
    pub(super) async fn add(&self, id: &str, expires: i64) -> Result<(), Problem> {
        self.known.send_modify(|known| {
            known.insert(id.to_owned(), expires);
        });
        let Some(maps) = &self.maps else { return Ok(()) };
        let patch = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": NAME}, "data": {id: expires.to_string()}});
        // A manager of its own for each entry: applying one does not take the others away.
        let manager = format!("paved-portal-{}", &id[..16.min(id.len())]);
        let patched = maps.patch(NAME, &PatchParams::apply(&manager), &Patch::Apply(&patch)).await;
        patched.map(drop).map_err(|error| {
            tracing::error!(%error, "other replicas cannot be told that a session has ended");
            let detail = "You are signed out here; other replicas of the portal may not know it before the session ends by itself.";
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail)
        })
    }

    /// Takes in what other replicas have ended, for ever, and forgets what has ended anyway.
    pub(in crate::portal) async fn follow(&self) {
        let Some(maps) = &self.maps else { return };
        let config = Config::default().fields(&format!("metadata.name={NAME}"));
        let mut events = std::pin::pin!(watcher(maps.clone(), config).default_backoff());
        let mut prune = tokio::time::interval(PRUNE);
        loop {
            tokio::select! {
                event = events.next() => match event {
                    Some(Ok(Event::Apply(map) | Event::InitApply(map))) => self.learn(map),
                    Some(Ok(Event::InitDone)) => self.synced.store(true, Ordering::Release),
                    Some(Ok(_)) => {}
                    Some(Err(error)) => tracing::warn!(%error, "what other replicas have ended is not known just now"),
                    None => return,
                },
                _ = prune.tick() => self.prune(maps).await,
            }
        }
    }

    fn learn(&self, map: ConfigMap) {
        let entries = map.data.unwrap_or_default().into_iter();
        let entries = entries.filter_map(|(id, expires)| Some((id, expires.parse::<i64>().ok()?)));
        let entries: Vec<(String, i64)> = entries.collect();
        self.known.send_if_modified(|known| {
            let before = known.len();
            known.extend(entries);
            known.len() != before
        });
    }

    async fn prune(&self, maps: &Api<ConfigMap>) {
        let now = Timestamp::now().as_second();
        let over: Vec<String> = self
            .known
            .borrow()
            .iter()
            .filter(|(_, expires)| **expires <= now)
            .map(|(id, _)| id.clone())
            .collect();
        if over.is_empty() {
            return;
        }
        self.known.send_modify(|known| known.retain(|_, expires| *expires > now));
        let gone: serde_json::Map<_, _> = over.into_iter().map(|id| (id, serde_json::Value::Null)).collect();
        if let Err(error) =
            maps.patch(NAME, &PatchParams::default(), &Patch::Merge(json!({"data": gone}))).await
        {
            tracing::warn!(%error, "sessions that have ended cannot be taken off the list");
        }
    }
}
