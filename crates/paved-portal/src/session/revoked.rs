//! Sessions that were ended early. Each replica watches one ConfigMap in the portal's namespace. It
//! contains hashes of the sessions' IDs until their expiry.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use futures::StreamExt as _;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ObjectMeta, Patch, PatchParams, PostParams};
use kube::runtime::watcher::{Config, Event};
use paved_client::cluster::{Api, Cluster, anew};
use serde_json::json;
use tokio::sync::watch;

use crate::problem::Problem;

/// The ConfigMap.
const NAME: &str = "paved-portal-revoked";

/// The maximum number of listed sessions of one user, so that a single user cannot fill the shared
/// list.
const EACH: usize = 200;

/// Seconds that a watch stays open. Without changes, the API server may send no data until then, so
/// this must be less than the longest silence.
const OPEN: u32 = 90;

/// The ended sessions: the hash of the ID and the original expiry.
pub(crate) struct Revoked {
    known: watch::Sender<BTreeMap<String, i64>>,
    maps: Option<Api<ConfigMap>>,
    /// Whether the ended sessions of other replicas have been read once.
    synced: AtomicBool,
    /// The start of an interruption of the watch.
    interrupted: Mutex<Option<Instant>>,
    /// The expiries of the sessions that each user has ended here, by the hash of the user.
    noted: Mutex<HashMap<String, Vec<i64>>>,
}

impl Revoked {
    /// Creates the record of revoked sessions that all replicas share.
    pub(crate) fn for_cluster(cluster: &Cluster) -> Self {
        let maps = Api::namespaced(cluster.client.clone(), &cluster.namespace);
        Self { maps: Some(maps), synced: AtomicBool::new(false), ..Self::local() }
    }

    /// A record for a single replica.
    pub(crate) fn local() -> Self {
        Self {
            known: watch::channel(BTreeMap::new()).0,
            maps: None,
            synced: AtomicBool::new(true),
            interrupted: Mutex::default(),
            noted: Mutex::default(),
        }
    }

    /// Whether a session was ended.
    pub(super) fn holds(&self, id: &str) -> bool {
        self.known.borrow().contains_key(id)
    }

    /// Whether the ended sessions of other replicas are known. Before that, an ended session could
    /// be reused.
    pub(crate) fn is_known(&self) -> bool {
        self.synced.load(Ordering::Acquire)
    }

    /// The duration of the current interruption of the watch.
    pub(crate) fn unheard(&self) -> Duration {
        let since = *self.interrupted.lock().unwrap_or_else(PoisonError::into_inner);
        since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    fn is_interrupted(&self) {
        self.interrupted
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get_or_insert_with(Instant::now);
    }

    fn has_synced(&self) {
        *self.interrupted.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.synced.store(true, Ordering::Release);
    }

    /// Waits until a session is ended.
    pub(crate) async fn wait(&self, id: &str) {
        // The sender exists as long as the portal.
        let _ = self.known.subscribe().wait_for(|known| known.contains_key(id)).await;
    }

    /// Ends a session of a user: immediately in this replica, and shortly after in the others.
    pub(crate) async fn add(&self, id: &str, person: &str, expires: i64) -> Result<(), Problem> {
        self.known.send_modify(|known| {
            known.insert(id.to_owned(), expires);
        });
        if !self.has_room(person, expires) {
            let detail = format!(
                "You are signed out here. Other replicas accept the session until it expires, \
                 because you ended {EACH} other sessions recently."
            );
            return Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, detail));
        }
        let Some(maps) = &self.maps else { return Ok(()) };
        write(maps, id, expires).await.map_err(|error| {
            tracing::error!(%error, "could not notify the other replicas of an ended session");
            let detail = "You are signed out here. Other replicas of the portal may accept the \
                          session until it expires.";
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail)
        })
    }

    /// Takes one of a user's places on the list, if one is free.
    fn has_room(&self, person: &str, expires: i64) -> bool {
        let now = Timestamp::now().as_second();
        let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        let own = noted.entry(person.to_owned()).or_default();
        own.retain(|expires| *expires > now);
        if own.len() >= EACH {
            return false;
        }
        own.push(expires);
        true
    }

    /// Follows the ended sessions of other replicas. At each `prune` interval, it removes expired
    /// sessions. It never returns.
    pub(crate) async fn follow(&self, prune: Duration) {
        let Some(maps) = &self.maps else { return };
        let config = Config::default().fields(&format!("metadata.name={NAME}")).timeout(OPEN);
        let begin = || maps.watcher(config.clone());
        let mut events = std::pin::pin!(anew(begin(), begin));
        let mut prune = tokio::time::interval(prune);
        loop {
            tokio::select! {
                event = events.next() => match event {
                    Some(Ok(Event::Apply(map) | Event::InitApply(map))) => self.learn(map),
                    Some(Ok(Event::InitDone)) => self.has_synced(),
                    Some(Ok(_)) => {}
                    Some(Err(error)) => {
                        self.is_interrupted();
                        tracing::warn!(%error, "could not read the sessions that other replicas ended");
                    }
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
        self.noted.lock().unwrap_or_else(PoisonError::into_inner).retain(|_, own| {
            own.retain(|expires| *expires > now);
            !own.is_empty()
        });
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
        let gone: serde_json::Map<_, _> =
            over.into_iter().map(|id| (id, serde_json::Value::Null)).collect();
        if let Err(error) =
            maps.patch(NAME, &PatchParams::default(), &Patch::Merge(json!({"data": gone}))).await
        {
            tracing::warn!(%error, "could not remove expired sessions from the list");
        }
    }
}

/// Adds an entry, with the same field manager as all others. With separate managers, the API
/// server's managedFields would be longer than the entries. The first entry creates the ConfigMap.
async fn write(maps: &Api<ConfigMap>, id: &str, expires: i64) -> kube::Result<()> {
    let data = BTreeMap::from([(id.to_owned(), expires.to_string())]);
    let patch = Patch::Merge(json!({"data": data}));
    let metadata = ObjectMeta {
        name: Some(NAME.to_owned()),
        namespace: maps.namespace().map(str::to_owned),
        ..ObjectMeta::default()
    };
    let map = ConfigMap { metadata, data: Some(data), ..ConfigMap::default() };
    match maps.patch(NAME, &PatchParams::default(), &patch).await {
        Err(error) if is(&error, 404) => {}
        answer => return answer.map(drop),
    }
    match maps.create(&PostParams::default(), &map).await {
        // Another replica was first.
        Err(error) if is(&error, 409) => {
            maps.patch(NAME, &PatchParams::default(), &patch).await.map(drop)
        }
        answer => answer.map(drop),
    }
}

fn is(error: &kube::Error, code: u16) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_since_a_break_counts_until_the_next_sync() {
        let revoked = Revoked::local();
        assert_eq!(revoked.unheard(), Duration::ZERO);
        revoked.is_interrupted();
        let first = *revoked.interrupted.lock().unwrap_or_else(PoisonError::into_inner);
        revoked.is_interrupted();
        assert_eq!(
            *revoked.interrupted.lock().unwrap_or_else(PoisonError::into_inner),
            first,
            "time starts at the first break"
        );
        assert!(
            revoked.unheard() > Duration::ZERO && revoked.is_known(),
            "the known sessions remain"
        );
        revoked.has_synced();
        assert_eq!(revoked.unheard(), Duration::ZERO);
    }

    #[tokio::test]
    async fn revoked_sessions_have_a_limit_for_each_person() {
        let revoked = Revoked::local();
        let later = Timestamp::now().as_second() + 3600;
        for number in 0..EACH {
            assert!(
                revoked.add(&format!("over-{number}"), "ada", 1).await.is_ok(),
                "an expired session needs no place"
            );
            assert!(revoked.add(&number.to_string(), "ada", later).await.is_ok());
        }
        let refused =
            revoked.add("one more", "ada", later).await.map_err(|problem| problem.status());
        assert_eq!(refused, Err(StatusCode::TOO_MANY_REQUESTS));
        assert!(revoked.holds("one more"), "it has ended in this replica");
        assert!(revoked.add("another's", "bob", later).await.is_ok());
    }
}
