//! The open streams: the number for each user, and their ends.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use axum::http::StatusCode;
use jiff::Timestamp;
use prometheus_client::metrics::gauge::Gauge;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use super::identity::{Credential, Person};
use super::limits::Limits;
use super::problem::Problem;
use super::session::Revoked;

/// The number of streams of each user, by issuer and username. A user with several tokens counts as
/// one user.
type Counts = HashMap<(String, String), usize>;

/// The streams of one process.
pub(super) struct Streams {
    counts: Arc<Mutex<Counts>>,
    /// The maximum number of streams of one user, and of all users.
    most: (usize, usize),
    strangers: Arc<Semaphore>,
    stop: watch::Sender<bool>,
    pub(super) open: Gauge,
}

/// A permit for a socket without a known user. Dropping it frees the place.
pub(super) struct Stranger(#[allow(dead_code)] OwnedSemaphorePermit);

/// A permit for one stream. Dropping the permit frees its place.
pub(super) struct StreamPermit {
    counts: Arc<Mutex<Counts>>,
    person: (String, String),
    open: Gauge,
    /// [`Streams::closed`] waits until all receivers are dropped.
    _stop: watch::Receiver<bool>,
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(&self.person) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.person);
            }
        }
        self.open.dec();
    }
}

/// The reason why a stream ends. The client receives it, and reconnects if it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The client was too slow.
    Slow,
    /// The user's rights have changed.
    AccessChanged,
    /// The API server does not confirm the user's rights.
    Unavailable,
    SignedOut,
    /// The session has expired.
    Expired,
    /// The portal is shutting down.
    Shutdown,
}

impl End {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Slow => "slow",
            Self::AccessChanged => "access-changed",
            Self::Unavailable => "unavailable",
            Self::SignedOut => "signed-out",
            Self::Expired => "expired",
            Self::Shutdown => "shutdown",
        }
    }
}

impl Streams {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            counts: Arc::default(),
            most: (limits.streams_per_person, limits.streams),
            strangers: Arc::new(Semaphore::new(limits.anonymous_sockets)),
            stop: watch::channel(false).0,
            open: Gauge::default(),
        }
    }

    /// A permit for a socket without a credential.
    pub(super) fn admit(&self) -> Result<Stranger, Problem> {
        Arc::clone(&self.strangers).try_acquire_owned().map(Stranger).map_err(|_| {
            let detail = "Too many connections wait for authentication. Try again in a moment.";
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail)
        })
    }

    /// Takes a permit for one more stream of this user.
    pub(super) fn take(&self, person: &Person) -> Result<StreamPermit, Problem> {
        let (each, all) = self.most;
        let crowded = |detail: String| Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, detail));
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        if counts.values().sum::<usize>() >= all {
            return crowded(format!(
                "The portal has reached its limit of {all} open streams. Try again later."
            ));
        }
        let person = (person.issuer().to_owned(), person.username().to_owned());
        let own = counts.get(&person).copied().unwrap_or_default();
        if own >= each {
            return crowded(format!("You have {own} open streams. Close some, and try again."));
        }
        counts.insert(person.clone(), own + 1);
        self.open.inc();
        Ok(StreamPermit {
            counts: Arc::clone(&self.counts),
            person,
            open: self.open.clone(),
            _stop: self.stop.subscribe(),
        })
    }

    /// Ends all streams.
    pub(super) fn stop(&self) {
        self.stop.send_replace(true);
    }

    /// Waits until all streams have ended.
    pub(super) async fn closed(&self) {
        self.stop.closed().await;
    }

    /// Waits until a user's streams end: the portal stops, the user signs out, or the session
    /// expires.
    pub(super) async fn ended(&self, revoked: Option<&Revoked>, person: &Person) -> End {
        let mut stop = self.stop.subscribe();
        let stopped = async {
            // The sender exists as long as the portal.
            let _ = stop.wait_for(|stop| *stop).await;
            End::Shutdown
        };
        let (Some(revoked), Credential::Session { id, expires }) = (revoked, person.credential())
        else {
            return stopped.await;
        };
        let left = expires.duration_since(Timestamp::now()).unsigned_abs();
        let left = if *expires > Timestamp::now() { left } else { std::time::Duration::ZERO };
        tokio::select! {
            end = stopped => end,
            () = revoked.wait(id) => End::SignedOut,
            () = tokio::time::sleep(left) => End::Expired,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::time::Duration;

    use futures::FutureExt as _;
    use tokio::time::Instant;

    use super::*;
    use crate::identity::Token;

    const LIMITS: (usize, usize) = (3, 7);

    fn streams() -> Streams {
        let (streams_per_person, streams) = LIMITS;
        Streams::new(&Limits { streams_per_person, streams, ..Limits::default() })
    }

    #[test]
    fn person_gets_no_more_than_a_share_of_the_streams() {
        let streams = streams();
        let (ada, bob) = (Person::for_tests("ada", &[]), Person::for_tests("bob", &[]));
        let mut permits: Vec<StreamPermit> =
            (0..LIMITS.0).map(|_| streams.take(&ada).unwrap()).collect();
        assert_eq!(
            streams.take(&ada).map(drop).unwrap_err().status(),
            StatusCode::TOO_MANY_REQUESTS
        );
        assert!(streams.take(&bob).is_ok());
        permits.pop();
        assert!(streams.take(&ada).is_ok());
    }

    fn person(credential: Credential) -> Person {
        Person::new("ada", "ada", "kubernetes", Vec::new(), "", credential)
    }

    #[test]
    fn tokens_of_one_person_share_that_persons_streams() {
        let streams = streams();
        let by = |token: String| person(Credential::Bearer(Token::new(&token)));
        let permits: Vec<StreamPermit> =
            (0..LIMITS.0).map(|number| streams.take(&by(number.to_string())).unwrap()).collect();
        let detail = streams.take(&by("another".into())).map(drop).unwrap_err().detail().to_owned();
        assert_eq!(
            detail,
            format!("You have {} open streams. Close some, and try again.", permits.len())
        );
    }

    #[tokio::test]
    async fn stream_of_a_full_portal_is_rejected_and_not_counted() {
        let streams = streams();
        let person =
            |number: usize| Person::for_tests(&format!("person-{}", number / LIMITS.0), &[]);
        let permits: Vec<StreamPermit> =
            (0..LIMITS.1).map(|number| streams.take(&person(number)).unwrap()).collect();
        let late = streams.take(&Person::for_tests("late", &[])).map(drop).unwrap_err();
        assert!(late.detail().contains("limit of 7 open streams"), "{}", late.detail());
        assert_eq!(streams.counts.lock().unwrap().len(), LIMITS.1.div_ceil(LIMITS.0));
        assert!(streams.closed().now_or_never().is_none());
        drop(permits);
        assert!(
            streams.closed().now_or_never().is_some() && streams.counts.lock().unwrap().is_empty()
        );
    }

    #[tokio::test(start_paused = true)]
    async fn stream_ends_when_its_session_expires() {
        let (streams, revoked) = (streams(), Revoked::local());
        let hour = Duration::from_hours(1);
        let session = |expires| person(Credential::Session { id: "id".to_owned(), expires });
        let began = Instant::now();
        let expires = Timestamp::now() + hour;
        assert_eq!(streams.ended(Some(&revoked), &session(expires)).await, End::Expired);
        assert!(began.elapsed() > hour / 2, "{:?}", began.elapsed());
        let over = session(Timestamp::now() - hour);
        assert_eq!(streams.ended(Some(&revoked), &over).now_or_never(), Some(End::Expired));
    }

    #[tokio::test(start_paused = true)]
    async fn stream_ends_when_its_session_is_ended() {
        let (streams, revoked) = (streams(), Revoked::local());
        let expires = Timestamp::now() + Duration::from_hours(1);
        let ada = person(Credential::Session { id: "id".to_owned(), expires });
        let sign_out = async {
            tokio::task::yield_now().await;
            revoked.add("id", "ada", expires.as_second()).await
        };
        let (end, noted) = tokio::join!(streams.ended(Some(&revoked), &ada), sign_out);
        assert!(end == End::SignedOut && noted.is_ok(), "{end:?}");
    }

    #[tokio::test]
    async fn stream_ends_when_the_portal_stops() {
        let streams = streams();
        let own = person(Credential::Own);
        assert!(streams.ended(None, &own).now_or_never().is_none());
        streams.stop();
        assert_eq!(streams.ended(None, &own).await, End::Shutdown);
    }
}
