//! The clock of a resource: the times that its limits are measured from.
//!
//! The function keeps no state, so both times are in the resource's line of the status. `since` is
//! the begin of the stretch in which the resource is ready, or is not. A change of the reason does
//! not restart it. The begin of the present reason is in the message if it is later:
//! `since 2026-11-21T09:00:00Z: is being created; its last error: quota`.

use std::time::Duration;

use jiff::Timestamp;

use super::ResourceStatus;
use crate::compose::cut;
use crate::observe::State;
use crate::value::seconds;

/// The limit of an error, of a missing object, and of all kinds without a longer limit.
pub(super) const ERROR: Duration = Duration::from_mins(15);

/// The beginning of the message of a resource that its provider worked on until its limit.
pub(super) const NOT_READY: &str = "not ready within ";

/// The beginning of the message of a resource that waited until its limit.
pub(super) const WAITED: &str = "has waited for more than ";

/// A change of the reason in the first minutes of a stretch is not recorded.
const YOUNG: Duration = Duration::from_mins(2);

/// The beginning of a message with the begin of its reason.
const SINCE: &str = "since ";

/// The text before the error that a resource had before its present reason.
const LAST_ERROR: &str = "; its last error: ";

/// The times of a resource, and its last error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Clock {
    /// The begin of the stretch, as in the status.
    pub since: String,
    /// The begin of the present reason, if it is later.
    changed: Option<Timestamp>,
    /// The error before the present reason.
    last_error: Option<String>,
}

/// The parts of a message that [`Clock::write`] and a limit made.
struct Told<'m> {
    timed_out: Option<&'static str>,
    changed: Option<Timestamp>,
    words: &'m str,
    last_error: Option<&'m str>,
}

impl<'m> Told<'m> {
    fn new(message: &'m str) -> Self {
        let timed_out = [WAITED, NOT_READY].into_iter().find(|begin| message.starts_with(begin));
        let rest = timed_out.and_then(|begin| message[begin.len()..].split_once(" minutes: "));
        let message = rest.map_or(message, |(_, rest)| rest);
        let marked = message.strip_prefix(SINCE).and_then(|rest| {
            let (time, rest) = rest.split_once(": ")?;
            Some((time.parse().ok()?, rest))
        });
        let (changed, message) = marked.map_or((None, message), |(time, rest)| (Some(time), rest));
        let (words, last_error) = match message.split_once(LAST_ERROR) {
            Some((words, error)) if changed.is_some() => (words, Some(error)),
            _ => (message, None),
        };
        Self { timed_out, changed, words, last_error }
    }

    /// Whether a reason continues the work or the wait that reached its limit.
    fn is_continued_by(&self, reason: &str) -> bool {
        match self.timed_out {
            Some(WAITED) => ["Waiting", "NotAccepted"].contains(&reason),
            Some(_) => is_work(reason) || reason == "Unavailable",
            None => false,
        }
    }
}

/// The time between two times. Zero if the second one is earlier.
pub(super) fn between(begin: Timestamp, end: Timestamp) -> Duration {
    Duration::try_from(end.duration_since(begin)).unwrap_or_default()
}

fn is_work(reason: &str) -> bool {
    ["Creating", "Deleting"].contains(&reason)
}

impl Clock {
    /// A clock that begins now.
    pub fn begin(now: Timestamp) -> Self {
        Self { since: seconds(now), changed: None, last_error: None }
    }

    /// The clock of a line, which continues that of the line `before`. `limit` is that of its kind.
    /// `is_edited` is true if a person has changed the environment since then.
    pub fn of(
        line: &ResourceStatus,
        before: Option<&ResourceStatus>,
        limit: Duration,
        now: Timestamp,
        is_edited: bool,
    ) -> Self {
        let before = before.filter(|before| !before.since.is_empty());
        let Some(before) = before else { return Self::begin(now) };
        let (reason, old) = match (line.reason.as_deref(), before.reason.as_deref()) {
            (Some(reason), Some(old)) => (reason, old),
            (None, None) if line.ready == before.ready => return Self::of_stretch(before),
            _ => return Self::begin(now),
        };
        let told = Told::new(before.message.as_deref().unwrap_or_default());
        let was_work = is_work(old) || told.timed_out == Some(NOT_READY);
        let continues = reason == old || told.is_continued_by(reason);
        if is_edited && !(continues && reason == "Failed") {
            return Self::begin(now);
        }
        let Ok(since) = before.since.parse::<Timestamp>() else {
            return if continues { Self::of_stretch(before) } else { Self::begin(now) };
        };
        let lasted = between(told.changed.unwrap_or(since), now);
        if continues {
            let is_calm = is_work(reason) && (ERROR..limit).contains(&lasted);
            return Self::of_stretch(before).continued(&told, is_calm);
        }
        // Without a recorded change, the work may have begun a little later than the stretch.
        let calm = if told.changed.is_some() { ERROR } else { ERROR + YOUNG };
        let was_calm = was_work && told.timed_out.is_none() && lasted > calm;
        if [reason, old].contains(&"Paused") || was_calm {
            return Self::begin(now);
        }
        if between(since, now) < YOUNG {
            return Self::of_stretch(before);
        }
        let error = told.last_error.or_else(|| (!was_work).then_some(told.words));
        let error = error.filter(|error| is_work(reason) && !error.is_empty());
        Self {
            changed: Some(now),
            last_error: error.map(str::to_owned),
            ..Self::of_stretch(before)
        }
    }

    /// A clock of the stretch of a line.
    fn of_stretch(line: &ResourceStatus) -> Self {
        Self { since: line.since.clone(), changed: None, last_error: None }
    }

    /// This clock, continued with the times of the message `told`. A calm stretch of work begins
    /// with the work.
    fn continued(self, told: &Told<'_>, is_calm: bool) -> Self {
        match told.changed {
            Some(changed) if is_calm => Self { since: seconds(changed), ..self },
            changed => Self { changed, last_error: told.last_error.map(str::to_owned), ..self },
        }
    }

    /// The begin of the stretch.
    pub fn begun(&self) -> Option<Timestamp> {
        self.since.parse().ok()
    }

    /// The begin of the present reason.
    pub fn changed(&self) -> Option<Timestamp> {
        self.changed.or_else(|| self.begun())
    }
}

/// A resource's entry in the status, and internal data.
pub(super) struct ComposedResource {
    pub status: ResourceStatus,
    pub state: State,
    pub counted: bool,
    /// The times that its limits are measured from.
    pub clock: Clock,
    /// Whether the engine delays it for an object that it does not name.
    pub is_delayed: bool,
    /// Whether it has reached a limit.
    pub timed_out: bool,
}

impl ComposedResource {
    /// Writes the times into the line.
    pub(super) fn write_clock(&mut self) {
        self.status.since.clone_from(&self.clock.since);
        let Some(changed) = self.clock.changed else { return };
        let words = self.status.message.as_deref().unwrap_or("its provider says nothing");
        let error = self.clock.last_error.as_deref();
        let error = error.map(|error| format!("{LAST_ERROR}{error}")).unwrap_or_default();
        let message = format!("{SINCE}{}: {words}{error}", seconds(changed));
        self.status.message = Some(cut(&message));
    }
}
