//! Requests in annotations of a claim or of a namespaced composite.
//!
//! A request must survive a synchronization from Git, so it is an annotation and no field of the
//! spec. Crossplane copies the annotations of a claim to its composite.

use jiff::{SignedDuration, Timestamp};

use super::{Note, Span};
use crate::check;

/// Time of a renewal (RFC 3339).
pub const RENEWED_AT: &str = "paved-road.fn.crossplane.io/renewed-at";
/// Length of a renewal, for example `4h`.
pub const RENEWED_FOR: &str = "paved-road.fn.crossplane.io/renewed-for";
/// Time of a start (RFC 3339).
pub const STARTED_AT: &str = "paved-road.fn.crossplane.io/started-at";
/// Time of a stop (RFC 3339).
pub const STOPPED_AT: &str = "paved-road.fn.crossplane.io/stopped-at";

/// The annotations of all requests.
pub const REQUESTS: [&str; 4] = [RENEWED_AT, RENEWED_FOR, STARTED_AT, STOPPED_AT];

/// How far a request's time may lie ahead of the function's clock.
pub const SKEW: SignedDuration = SignedDuration::from_mins(5);

/// The age of an environment, which its requests cannot exceed. A copy of a claim has the requests
/// of the original.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Age {
    /// The creation of the composite; `None` in a preview.
    pub created: Option<Timestamp>,
    /// Whether the composite belongs to a claim, which is older than the composite.
    pub is_claimed: bool,
}

impl Age {
    /// The time of the earliest request that is valid.
    fn earliest(self) -> Option<Timestamp> {
        let allowance = if self.is_claimed {
            SignedDuration::from_hours(1)
        } else {
            SignedDuration::from_mins(5)
        };
        self.created?.checked_sub(allowance).ok()
    }
}

/// The requests of an environment's user.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Requests {
    /// Time and length of the last renewal.
    pub renewed: Option<(Timestamp, Span)>,
    /// Time of the last start.
    pub started: Option<Timestamp>,
    /// Time of the last stop.
    pub stopped: Option<Timestamp>,
    /// A sentence for each annotation that was ignored.
    pub ignored: Vec<String>,
}

/// The time of the latest stop or start in annotations, even if it is ignored because it lies too
/// far ahead. `annotation` returns the value of an annotation by its name.
pub fn requested_at<'a>(annotation: impl Fn(&str) -> Option<&'a str>) -> Option<Timestamp> {
    [STARTED_AT, STOPPED_AT].into_iter().filter_map(|name| annotation(name)?.parse().ok()).max()
}

impl Requests {
    /// Reads the annotations. `annotation` returns the value of an annotation by its name.
    pub fn read<'a>(annotation: impl Fn(&str) -> Option<&'a str>, now: Timestamp) -> Self {
        let mut requests = Self::default();
        let time = |name: &str, ignored: &mut Vec<String>| {
            let text = annotation(name)?;
            match text.parse::<Timestamp>() {
                Ok(time) if time.duration_since(now) <= SKEW => Some(time),
                Ok(time) => {
                    ignored.push(format!(
                        "annotation {name} is ignored: found {time}; allowed: a time that is at \
                         most five minutes ahead of now"
                    ));
                    None
                }
                Err(_) => {
                    let found = check::quoted(text);
                    ignored.push(format!(
                        "annotation {name} is ignored: found {found}; allowed: a time (RFC 3339), \
                         for example 2026-11-25T18:00:00Z"
                    ));
                    None
                }
            }
        };
        let renewed = time(RENEWED_AT, &mut requests.ignored);
        requests.started = time(STARTED_AT, &mut requests.ignored);
        requests.stopped = time(STOPPED_AT, &mut requests.ignored);
        requests.renewed = renewed.and_then(|at| {
            let text = annotation(RENEWED_FOR).unwrap_or_default();
            match text.parse() {
                Ok(span) => Some((at, span)),
                Err(allowed) => {
                    let found = check::quoted(text);
                    requests.ignored.push(format!(
                        "annotation {RENEWED_FOR} is ignored: found {found}; allowed: {allowed}"
                    ));
                    None
                }
            }
        });
        requests
    }

    /// Ignores requests that are older than the environment, with a sentence for each. Requests in
    /// the note stay: a restored environment is younger than its note.
    #[must_use]
    pub fn within(mut self, age: Age, note: Option<&Note>) -> Self {
        let Some(earliest) = age.earliest() else { return self };
        let is_noted =
            |has: fn(&Note, Timestamp) -> bool, at| note.is_some_and(|note| has(note, at));
        let mut old = Vec::new();
        let mut keep = |name: &'static str, at: Timestamp, is_noted: bool| {
            let is_valid = at >= earliest || is_noted;
            if !is_valid {
                old.push(format!(
                    "annotation {name} is ignored: found {at}; allowed: a time after the creation \
                     of this environment. Remove the annotation, which belongs to another one"
                ));
            }
            is_valid
        };
        self.renewed =
            self.renewed.filter(|(at, _)| keep(RENEWED_AT, *at, is_noted(Note::has_renewed, *at)));
        self.started =
            self.started.filter(|at| keep(STARTED_AT, *at, is_noted(Note::has_started, *at)));
        self.stopped =
            self.stopped.filter(|at| keep(STOPPED_AT, *at, is_noted(Note::has_stopped, *at)));
        self.ignored.extend(old);
        self
    }
}
