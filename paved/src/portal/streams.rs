//! The streams that are open: how many each person has, and when they end.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use axum::http::StatusCode;
use jiff::Timestamp;
use prometheus_client::metrics::gauge::Gauge;
use tokio::sync::watch;

use super::Portal;
use super::live::End;
use super::problem::Problem;
use super::who::{Credential, Person};

/// How many streams a person may have at once in one process.
const EACH: usize = 128;

/// How many streams there may be at once in one process.
const ALL: usize = 8192;

/// The streams of one process.
pub(super) struct Streams {
    counts: Arc<Mutex<HashMap<[u8; 32], usize>>>,
    stop: watch::Sender<bool>,
    pub(super) open: Gauge,
}

/// A place among the streams, for as long as it is held.
pub(super) struct Slot {
    counts: Arc<Mutex<HashMap<[u8; 32], usize>>>,
    person: [u8; 32],
    open: Gauge,
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

impl Streams {
    pub(super) fn new() -> Self {
        Self { counts: Arc::default(), stop: watch::channel(false).0, open: Gauge::default() }
    }

    /// A place for one more of this person.
    pub(super) fn take(&self, person: &Person) -> Result<Slot, Problem> {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let all: usize = counts.values().sum();
        let own = counts.entry(person.key()).or_default();
        if *own >= EACH || all >= ALL {
            let detail = format!("You have {own} streams open: close some, and come back.");
            return Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, detail));
        }
        *own += 1;
        self.open.inc();
        Ok(Slot { counts: Arc::clone(&self.counts), person: person.key(), open: self.open.clone() })
    }

    /// Ends all of them.
    pub(super) fn stop(&self) {
        self.stop.send_replace(true);
    }

    /// Waits until a person's streams end: the portal stops, they sign out, or their session's time is over.
    pub(super) async fn ended(&self, portal: &Portal, person: &Person) -> End {
        let mut stop = self.stop.subscribe();
        let stopped = async {
            // The sender lives as long as the portal.
            let _ = stop.wait_for(|stop| *stop).await;
            End::Shutdown
        };
        let (Some(sessions), Credential::Session { id, expires }) = (&portal.sessions, person.credential())
        else {
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
    use super::*;

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
}
