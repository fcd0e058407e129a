//! The streams that are open: how many each person has, and when they end.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use axum::http::StatusCode;
use jiff::Timestamp;
use prometheus_client::metrics::gauge::Gauge;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use super::problem::Problem;
use super::session::Sessions;
use super::who::{Credential, Person};

/// How many streams a person may have at once in one process.
const EACH: usize = 128;

/// How many streams there may be at once in one process.
const ALL: usize = 8192;

/// How many sockets may wait at once for their first message, which says whose they are.
const STRANGERS: usize = 256;

/// How many streams people have, by who says who they are, and their name: many tokens of one are still one.
type Counts = HashMap<(String, String), usize>;

/// The streams of one process.
pub(super) struct Streams {
    counts: Arc<Mutex<Counts>>,
    strangers: Arc<Semaphore>,
    stop: watch::Sender<bool>,
    pub(super) open: Gauge,
}

/// A place for a socket of which nobody knows yet whose it is, for as long as it is held.
pub(super) struct Stranger(#[allow(dead_code)] OwnedSemaphorePermit);

/// A place among the streams, for as long as it is held.
pub(super) struct Slot {
    counts: Arc<Mutex<Counts>>,
    person: (String, String),
    open: Gauge,
    /// While somebody may hear of a stop, there are streams.
    _stop: watch::Receiver<bool>,
}

impl Drop for Slot {
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

/// Why a stream ends. The reader is told, and comes back if it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// It was too slow.
    Slow,
    /// The person may see more or less than before.
    AccessChanged,
    /// The API server does not say what the person may see.
    Unavailable,
    SignedOut,
    /// The session's time is over.
    Expired,
    /// The portal stops.
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
    pub(super) fn new() -> Self {
        Self {
            counts: Arc::default(),
            strangers: Arc::new(Semaphore::new(STRANGERS)),
            stop: watch::channel(false).0,
            open: Gauge::default(),
        }
    }

    /// A place for a socket that comes without a credential.
    pub(super) fn admit(&self) -> Result<Stranger, Problem> {
        Arc::clone(&self.strangers).try_acquire_owned().map(Stranger).map_err(|_| {
            let detail = "Too many connections wait to say whose they are: try again in a moment.";
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail)
        })
    }

    /// A place for one more of this person.
    pub(super) fn take(&self, person: &Person) -> Result<Slot, Problem> {
        let crowded = |detail: String| Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, detail));
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        if counts.values().sum::<usize>() >= ALL {
            return crowded(format!(
                "The portal has {ALL} streams open, and takes no more: come back later."
            ));
        }
        let person = (person.issuer().to_owned(), person.username().to_owned());
        let own = counts.get(&person).copied().unwrap_or_default();
        if own >= EACH {
            return crowded(format!("You have {own} streams open: close some, and come back."));
        }
        counts.insert(person.clone(), own + 1);
        self.open.inc();
        Ok(Slot {
            counts: Arc::clone(&self.counts),
            person,
            open: self.open.clone(),
            _stop: self.stop.subscribe(),
        })
    }

    /// Ends all of them.
    pub(super) fn stop(&self) {
        self.stop.send_replace(true);
    }

    /// Waits until there are none.
    pub(super) async fn closed(&self) {
        self.stop.closed().await;
    }

    /// Waits until a person's streams end: the portal stops, they sign out, or their session's time is over.
    pub(super) async fn ended(&self, sessions: Option<&Sessions>, person: &Person) -> End {
        let mut stop = self.stop.subscribe();
        let stopped = async {
            // The sender lives as long as the portal.
            let _ = stop.wait_for(|stop| *stop).await;
            End::Shutdown
        };
        let (Some(sessions), Credential::Session { id, expires }) = (sessions, person.credential()) else {
            return stopped.await;
        };
        let left = expires.duration_since(Timestamp::now()).unsigned_abs();
        let left = if *expires > Timestamp::now() { left } else { std::time::Duration::ZERO };
        tokio::select! {
            end = stopped => end,
            () = sessions.revoked.wait(id) => End::SignedOut,
            () = tokio::time::sleep(left) => End::Expired,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use futures::FutureExt as _;

    use super::*;
    use crate::who::Token;

    #[test]
    fn nobody_takes_more_than_a_share() {
        let streams = Streams::new();
        let (ada, bob) = (Person::for_tests("ada", &[]), Person::for_tests("bob", &[]));
        let mut slots: Vec<Slot> = (0..EACH).map(|_| streams.take(&ada).unwrap()).collect();
        assert_eq!(streams.take(&ada).map(drop).unwrap_err().status(), StatusCode::TOO_MANY_REQUESTS);
        assert!(streams.take(&bob).is_ok());
        slots.pop();
        assert!(streams.take(&ada).is_ok());
    }

    #[test]
    fn many_tokens_of_one_person_are_one_person() {
        let streams = Streams::new();
        let by = |token: String| {
            Person::new("ada", "ada", "kubernetes", Vec::new(), "", Credential::Bearer(Token::new(&token)))
        };
        let slots: Vec<Slot> =
            (0..EACH).map(|number| streams.take(&by(number.to_string())).unwrap()).collect();
        let detail = streams.take(&by("another".into())).map(drop).unwrap_err().detail().to_owned();
        assert_eq!(detail, format!("You have {} streams open: close some, and come back.", slots.len()));
    }

    #[tokio::test]
    async fn whoever_finds_the_portal_full_is_told_so_and_leaves_nothing() {
        let streams = Streams::new();
        let person = |number: usize| Person::for_tests(&format!("person-{}", number / EACH), &[]);
        let slots: Vec<Slot> = (0..ALL).map(|number| streams.take(&person(number)).unwrap()).collect();
        let late = streams.take(&Person::for_tests("late", &[])).map(drop).unwrap_err();
        assert!(late.detail().starts_with("The portal has 8192 streams open"), "{}", late.detail());
        assert_eq!(streams.counts.lock().unwrap().len(), ALL / EACH);
        assert!(streams.closed().now_or_never().is_none());
        drop(slots);
        assert!(streams.closed().now_or_never().is_some() && streams.counts.lock().unwrap().is_empty());
    }
}
