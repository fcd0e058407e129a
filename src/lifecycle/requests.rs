//! Requests in annotations of a claim or of a namespaced composite.
//!
//! A request must survive a synchronization from Git, so it is an annotation and no field of the
//! spec. Crossplane copies the annotations of a claim to its composite.

use jiff::{SignedDuration, Timestamp};

use super::Span;
use crate::check;

/// Time of a renewal (RFC 3339).
pub const RENEWED_AT: &str = "paved-road.fn.crossplane.io/renewed-at";
/// Length of a renewal, for example `4h`.
pub const RENEWED_FOR: &str = "paved-road.fn.crossplane.io/renewed-for";
/// Time of a start (RFC 3339).
pub const STARTED_AT: &str = "paved-road.fn.crossplane.io/started-at";
/// Time of a stop (RFC 3339).
pub const STOPPED_AT: &str = "paved-road.fn.crossplane.io/stopped-at";

/// How far a request's time may lie ahead of the function's clock.
pub const SKEW: SignedDuration = SignedDuration::from_mins(5);

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
}
