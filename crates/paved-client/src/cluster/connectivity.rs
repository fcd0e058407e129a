//! Tracks whether the API server responds to watches, and reports when that changes.

use std::collections::BTreeMap;
use std::time::Duration;

use kube::api::DynamicObject;
use kube::runtime::watcher::Event;
use tokio::time::Instant;

use super::Cluster;
use super::error::no_credentials;
use crate::Failure;

/// The maximum duration of rejections of a request that has succeeded before. While the API server
/// starts, it does not know any user.
const STARTING: Duration = Duration::from_secs(45);

/// The maximum duration of failed renewals of credentials that have been valid before. Their plugin
/// may need a service that is temporarily unavailable.
const RENEWAL: Duration = Duration::from_mins(3);

/// The state of the API server, as seen by several watches.
#[derive(Default)]
pub struct Contact {
    /// The broken watches. The time is the start of continuous rejections.
    lost: BTreeMap<usize, Option<Instant>>,
}

impl Contact {
    /// Whether any watch is broken. The known state may then be outdated.
    pub fn is_lost(&self) -> bool {
        !self.lost.is_empty()
    }

    /// Records an event of a watch. Returns a message when the last broken watch has recovered.
    pub fn heard(
        &mut self,
        watch: usize,
        event: &Event<DynamicObject>,
        cluster: &Cluster,
    ) -> Option<String> {
        // `Init` is sent before any request, and one page is not the whole list.
        let answered = matches!(event, Event::InitDone | Event::Apply(_) | Event::Delete(_));
        let is_back = answered && self.lost.remove(&watch).is_some() && self.lost.is_empty();
        is_back.then(|| format!("{} responds again", cluster.server))
    }

    /// Records that a watch broke. It restarts automatically. Missing rights are an error, because
    /// retries do not help, unless the watch had been `listed` before. `act` is the attempted
    /// action, for example `watch StockPool`.
    pub fn broke(
        &mut self,
        watch: usize,
        error: &kube::Error,
        listed: bool,
        act: &str,
        cluster: &Cluster,
    ) -> Result<Option<String>, Failure> {
        let code = match error {
            kube::Error::Api(status) => status.code,
            _ => 0,
        };
        let lacking = no_credentials(error);
        // The server may close a watch as too old at any time, which is not worth a message.
        if code == 410 {
            return Ok(None);
        }
        let first = self.lost.is_empty();
        let refused = self.lost.entry(watch).or_default();
        if lacking.is_some() || [401, 403, 404].contains(&code) {
            let since = *refused.get_or_insert_with(Instant::now);
            let longest = if lacking.is_some() { RENEWAL } else { STARTING };
            if !listed || since.elapsed() > longest {
                return Err(cluster.explain(error, act));
            }
        } else {
            // Another error restarts the time limit of rejections.
            *refused = None;
        }
        let what = match (code, lacking) {
            (_, Some(lacking)) => format!("cannot be reached without credentials ({lacking})"),
            (401, _) => "rejects your credentials".to_owned(),
            (403 | 404, _) => "denies access".to_owned(),
            _ => "does not respond".to_owned(),
        };
        Ok(first.then(|| format!("{} {what}; retrying", cluster.server)))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use kube::client::AuthError;
    use serde_json::json;
    use tokio::time::advance;

    use super::*;
    use crate::cluster::samples::nowhere;

    fn api(code: u16) -> kube::Error {
        kube::Error::Api(Box::new(
            serde_json::from_value(json!({"code": code, "message": "no"})).unwrap(),
        ))
    }

    #[tokio::test]
    async fn contact_returns_once_all_watches_have_synced() {
        let (cluster, mut contact) = (nowhere(), Contact::default());
        let broke = |contact: &mut Contact, watch| {
            contact.broke(watch, &api(503), true, "watch X", &cluster).unwrap().is_some()
        };
        assert!(broke(&mut contact, 0), "first break is reported");
        assert!(!broke(&mut contact, 1) && !broke(&mut contact, 0));
        for (watch, event, told) in [
            (0, Event::Init, false),
            (0, Event::InitDone, false),
            (1, Event::Init, false),
            (1, Event::InitDone, true),
            (1, Event::InitDone, false),
        ] {
            assert_eq!(contact.heard(watch, &event, &cluster).is_some(), told, "{watch} {event:?}");
        }
        assert!(broke(&mut contact, 0), "next break is reported again");
    }

    #[tokio::test(start_paused = true)]
    async fn start_time_counts_from_the_first_response() {
        let (cluster, mut contact) = (nowhere(), Contact::default());
        let goes_on = |contact: &mut Contact, code| {
            contact.broke(0, &api(code), true, "watch X", &cluster).is_ok()
        };
        assert!(goes_on(&mut contact, 403), "server stops");
        assert!(goes_on(&mut contact, 503));
        advance(STARTING * 2).await;
        assert!(goes_on(&mut contact, 503) && goes_on(&mut contact, 403), "outages do not count");
        advance(STARTING).await;
        assert!(goes_on(&mut contact, 403));
        advance(Duration::from_secs(1)).await;
        assert!(!goes_on(&mut contact, 401), "no start takes as long");
    }

    #[tokio::test(start_paused = true)]
    async fn credentials_that_cannot_be_renewed_end_it() {
        let (cluster, mut contact) = (nowhere(), Contact::default());
        let start = std::io::Error::from(std::io::ErrorKind::NotFound);
        let failed = kube::Error::Service(Box::new(AuthError::AuthExecStart(start)));
        let mut broke = || contact.broke(0, &failed, true, "watch X", &cluster);
        let told = broke().unwrap().unwrap();
        assert!(
            told.contains("cannot be reached without credentials (the credential plugin"),
            "{told}"
        );
        advance(RENEWAL).await;
        assert!(broke().is_ok());
        advance(Duration::from_secs(1)).await;
        assert!(matches!(broke(), Err(Failure::NoAccess { .. })));
    }

    #[tokio::test]
    async fn denied_first_watch_is_an_error_and_expired_one_is_silent() {
        let (cluster, mut contact) = (nowhere(), Contact::default());
        assert!(contact.broke(0, &api(410), true, "watch X", &cluster).unwrap().is_none());
        for (code, words) in
            [(401, "rejects your credentials"), (403, "denies access"), (503, "does not respond")]
        {
            let told = Contact::default()
                .broke(0, &api(code), true, "watch X", &cluster)
                .unwrap()
                .unwrap();
            assert!(told.contains(&format!(" {words}; retrying")), "{told}");
        }
        assert!(contact.broke(0, &api(401), true, "watch X", &cluster).unwrap().is_some());
        assert!(contact.broke(0, &api(403), false, "watch X", &cluster).is_err());
    }
}
