//! From changes of environments to events.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::Limits;
use crate::clock::Clock;
use crate::lease::Election;
use crate::notify::Outbox;
use crate::notify::event::Event;
use crate::record::{Moments, Record, State};
use crate::store::{Key, News, Store};

/// The annotation of the Lease with the time up to which all events are sent.
const NOTIFIED: &str = "paved-road.fn.crossplane.io/notified-until";

/// How far before that time the next leader begins: clocks of the function's replicas differ, and
/// receivers drop repeats.
const OVERLAP: SignedDuration = SignedDuration::from_mins(5);

/// Finds the events to send.
pub(crate) struct Notices {
    pub store: Arc<Store>,
    pub election: Arc<Election>,
    pub outbox: Arc<Outbox>,
    pub clock: Clock,
    pub limits: Limits,
    /// Earlier moments are not sent.
    floor: i64,
    told: BTreeMap<Key, (Box<str>, Moments)>,
    /// When the time was written last, by the steady clock.
    written: Option<Duration>,
    /// The time that has to be written.
    done: Option<Timestamp>,
}

impl Notices {
    pub fn new(
        store: Arc<Store>,
        election: Arc<Election>,
        outbox: Arc<Outbox>,
        clock: Clock,
        limits: Limits,
    ) -> Self {
        let told = BTreeMap::new();
        Self {
            store,
            election,
            outbox,
            clock,
            limits,
            floor: i64::MAX,
            told,
            written: None,
            done: None,
        }
    }

    /// Goes on where an earlier leader stopped.
    pub async fn resume(&mut self) {
        let text = self.election.annotation(NOTIFIED).await;
        let until = text.and_then(|text| text.parse::<Timestamp>().ok());
        let now = self.clock.now();
        // Transitions before the first leader are not sent.
        let first = until.is_none().then_some(now).filter(|_| self.outbox.is_open());
        self.done = self.done.max(first);
        let begin = until.map_or(now, |until| until.min(now));
        let overlap = if until.is_some() { OVERLAP } else { SignedDuration::ZERO };
        self.floor = begin.checked_sub(overlap).unwrap_or(begin).as_second().min(self.floor);
        self.told.clear();
        let _ = self.store.news();
        for (key, record) in self.store.all() {
            self.tell(key, &record);
        }
    }

    /// The time, in seconds of Unix time, up to which transitions are not sent.
    pub fn floor(&self) -> i64 {
        self.floor
    }

    /// Sends the changes since the last call.
    pub async fn pass(&mut self) -> kube::Result<()> {
        let News { changed, gone } = self.store.news();
        for (key, record) in gone {
            self.told.remove(&key);
            self.outbox.put(Event::deleted(&key, &record, self.clock.now()));
        }
        for (key, record) in changed {
            self.tell(key, &record);
        }
        self.settle().await
    }

    /// Sends the states that an environment came into.
    fn tell(&mut self, key: Key, record: &Record) {
        let before = self.told.get(&key).filter(|(uid, _)| *uid == record.uid);
        let before = before.map_or([0; State::ALL.len()], |(_, moments)| *moments);
        for (state, (second, known)) in
            State::ALL.into_iter().zip(record.moments.iter().zip(before))
        {
            if *second != 0 && *second != known && *second > self.floor {
                self.outbox.put(Event::entered(state, *second, &key, record));
            }
        }
        self.told.insert(key, (record.uid.clone(), record.moments));
    }

    /// Notes up to when all events are sent.
    async fn settle(&mut self) -> kube::Result<()> {
        self.done = self.done.max(self.outbox.settled());
        let steady = self.clock.steady();
        let is_early =
            self.written.is_some_and(|at| steady.saturating_sub(at) < self.limits.settle);
        let Some(done) = self.done.filter(|_| !is_early) else { return Ok(()) };
        self.election.annotate(&[(NOTIFIED, done.to_string())]).await?;
        self.written = Some(steady);
        self.done = None;
        Ok(())
    }
}
