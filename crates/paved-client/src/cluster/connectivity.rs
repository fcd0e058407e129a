//! Whether the API server answers, as watches show it: told when it does not any more, and when it
//! does again.

use std::collections::BTreeMap;
use std::time::Duration;

use kube::api::DynamicObject;
use kube::runtime::watcher::Event;
use tokio::time::Instant;

use super::Cluster;
use super::error::no_credentials;
use crate::Failure;

/// How long the API server may refuse what it has answered before: while it starts, it knows
/// nobody.
const STARTING: Duration = Duration::from_secs(45);

/// How long credentials may not be renewed that were good before: their plugin may need what is
/// away just now.
const RENEWAL: Duration = Duration::from_mins(3);

/// What several watches know of the API server.
#[derive(Default)]
pub struct Contact {
    /// The watches that are broken, and since when each has only been refused.
    lost: BTreeMap<usize, Option<Instant>>,
}

impl Contact {
    /// Whether a watch is broken: then what is known is what was.
    pub fn is_lost(&self) -> bool {
        !self.lost.is_empty()
    }

    /// A watch has brought something; gives what there is to say once none is broken any more.
    pub fn heard(
        &mut self,
        watch: usize,
        event: &Event<DynamicObject>,
        cluster: &Cluster,
    ) -> Option<String> {
        // That a list begins is said before anybody is asked, and a page of it is not all of it.
        let answered = matches!(event, Event::InitDone | Event::Apply(_) | Event::Delete(_));
        let is_back = answered && self.lost.remove(&watch).is_some() && self.lost.is_empty();
        is_back.then(|| format!("{} answers again", cluster.server))
    }

    /// A watch broke: it begins anew by itself. What the caller may not do will not be allowed by
    /// trying, unless the watch had been `listed` before. `act` is what was wanted, as in `watch
    /// StockPool`.
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
        // A watch may be closed as too old at any time: that is no news.
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
            // It starts only now, if at all.
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
        assert!(broke(&mut contact, 0), "the first is news");
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
        assert!(broke(&mut contact, 0), "another time is news again");
    }

    #[tokio::test(start_paused = true)]
    async fn start_time_counts_from_the_first_response() {
        let (cluster, mut contact) = (nowhere(), Contact::default());
        let goes_on = |contact: &mut Contact, code| {
            contact.broke(0, &api(code), true, "watch X", &cluster).is_ok()
        };
        assert!(goes_on(&mut contact, 403), "it goes down");
        assert!(goes_on(&mut contact, 503));
        advance(STARTING * 2).await;
        assert!(goes_on(&mut contact, 503) && goes_on(&mut contact, 403), "it was away for long");
        advance(STARTING).await;
        assert!(goes_on(&mut contact, 403));
        advance(Duration::from_secs(1)).await;
        assert!(!goes_on(&mut contact, 401), "nothing takes as long to start");
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
