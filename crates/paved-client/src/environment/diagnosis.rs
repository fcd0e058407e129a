//! Why an environment is not ready. The command line and the portal both use this decision.

use std::time::Duration;

use function_paved_road::diagnosis::{Cause, Code, Line, causes, composite_cause};
use function_paved_road::function::CONDITION;
use function_paved_road::status::ResourceStatus;
use jiff::Timestamp;

use super::{Environment, Mark, is_refused};

/// How long Crossplane may take to compose a spec before the delay counts as a fault. If many
/// environments are created at once, one of them may wait for minutes.
const COMPOSING: Duration = Duration::from_mins(3);

/// A problem that blocks an environment, and may persist.
#[derive(Clone, Debug, PartialEq)]
pub enum Blocker {
    /// A rejected resource.
    Part(ResourceStatus),
    /// A problem of the whole environment: the cause, and Crossplane's message.
    Whole(Cause, String),
    /// The spec has not been composed yet. That takes some time even without a problem.
    Uncomposed(Cause),
}

/// Why an environment is not ready.
#[derive(Clone, Debug, PartialEq)]
pub struct Diagnosis {
    /// The cause.
    pub cause: Cause,
    /// The slot of the resource with the problem. `None` if the cause concerns the whole
    /// environment.
    pub slot: Option<String>,
    /// The message that contained the cause.
    pub message: String,
    /// When the cause counts as a fault. Before that, the environment may only be in progress.
    /// `None` if the cause counts immediately.
    pub from: Option<Timestamp>,
}

impl Blocker {
    /// The key of the blocker. It is stable while the blocker remains.
    pub fn key(&self) -> &str {
        match self {
            Self::Part(part) => &part.slot,
            Self::Whole(..) | Self::Uncomposed(_) => "",
        }
    }

    /// The code of its cause, if the cause is known.
    pub fn code(&self) -> Option<Code> {
        match self {
            Self::Part(part) => part.cause.as_ref().map(|cause| cause.code),
            Self::Whole(cause, _) | Self::Uncomposed(cause) => Some(cause.code),
        }
    }

    /// The minimum duration until the blocker counts as a fault.
    pub(crate) fn grace(&self) -> Duration {
        match self {
            Self::Part(_) => Duration::ZERO,
            Self::Whole(cause, _) if cause.code == Code::Paused => Duration::ZERO,
            Self::Whole(..) | Self::Uncomposed(_) => COMPOSING,
        }
    }
}

impl Diagnosis {
    /// Whether the cause counts as a fault at this time.
    pub fn counts(&self, now: Timestamp) -> bool {
        self.from.is_none_or(|from| from <= now)
    }
}

impl Environment {
    /// All blockers: the rejected resources, or else Crossplane's problem with the whole
    /// environment.
    pub fn blockers(&self) -> Vec<Blocker> {
        // A refusal of an older spec is not about the newest one.
        let tried = self.parts.iter().filter(|_| !self.is_overdue);
        // A ready resource remains ready while a change of it is rejected.
        let parts: Vec<Blocker> =
            tried.filter(|part| is_refused(part)).cloned().map(Blocker::Part).collect();
        if !parts.is_empty() {
            return parts;
        }
        let whole = self
            .condition("Synced")
            .filter(|synced| synced.status == "False" && !synced.message.is_empty());
        let uncomposed = |code| vec![Blocker::Uncomposed(Cause::new(code, []))];
        match whole {
            _ if self.paused => vec![Blocker::Whole(Cause::new(Code::Paused, []), String::new())],
            Some(synced) => {
                vec![Blocker::Whole(composite_cause(&synced.message), synced.message.clone())]
            }
            None if self.is_uncomposed() => uncomposed(Code::Uncomposed),
            None if self.is_overdue => uncomposed(Code::Overdue),
            None => Vec::new(),
        }
    }

    /// Why it is not ready: the rejection of its spec, or else the first blocker, or else the cause
    /// of the first waiting resource.
    pub fn diagnosis(&self) -> Option<Diagnosis> {
        let of_whole = |cause, message: &str, from| {
            Some(Diagnosis { cause, slot: None, message: message.to_owned(), from })
        };
        let of_part = |part: &ResourceStatus| {
            let message = part.message.clone().unwrap_or_default();
            Some(Diagnosis {
                cause: part.cause.clone()?,
                slot: Some(part.slot.clone()),
                message,
                from: None,
            })
        };
        if self.deleted.is_some() {
            return None;
        }
        if let Some(refused) = self.refused() {
            let cause = Cause::new(Code::rejection(&refused.reason)?, []);
            return of_whole(cause, &refused.message, None);
        }
        let blockers = self.blockers();
        let parts = blockers.iter().filter_map(|blocker| match blocker {
            Blocker::Part(part) => Some(part),
            _ => None,
        });
        // The same order as in the function's message.
        if let Some(first) = parts.min_by_key(|part| (&part.since, &part.slot)) {
            return of_part(first);
        }
        let first = blockers.into_iter().next();
        let grace = first.as_ref().map(Blocker::grace).filter(|grace| !grace.is_zero());
        let from = |since: Option<Timestamp>| since?.checked_add(grace?).ok();
        match first {
            Some(Blocker::Whole(cause, message)) => {
                let since = self.condition("Synced").and_then(|synced| synced.last_transition_time);
                of_whole(cause, &message, from(since.or(self.created)))
            }
            Some(Blocker::Uncomposed(cause)) => {
                of_whole(cause, "", from(self.edited.max(self.created)))
            }
            Some(Blocker::Part(_)) | None if self.mark() == Mark::Bad => {
                of_whole(Cause::new(Code::Unknown, [("kind", &self.kind)]), self.sentence(), None)
            }
            Some(Blocker::Part(_)) | None => {
                let is_waiting =
                    self.condition(CONDITION).is_some_and(|ours| ours.reason == "Waiting");
                let first = self.parts.iter().find(|part| !part.ready && part.cause.is_some());
                first.filter(|_| is_waiting).and_then(of_part)
            }
        }
    }

    /// A short summary: the cause, or else its own sentence.
    pub fn summary(&self, now: Timestamp) -> String {
        match self.diagnosis().filter(|diagnosis| diagnosis.counts(now)) {
            Some(diagnosis) => diagnosis.cause.headline(),
            None => self.sentence().to_owned(),
        }
    }

    /// Whether Crossplane has never called the function for it, according to its status. For a
    /// claim, only the composite has the reason.
    fn is_uncomposed(&self) -> bool {
        self.phase.is_empty() && self.parts.is_empty() && self.condition(CONDITION).is_none()
    }
}

/// The resources with causes. If an older function did not write them, the function's own table has
/// them. `api` is the name of the environment's API.
pub fn with_causes(mut parts: Vec<ResourceStatus>, api: Option<&str>) -> Vec<ResourceStatus> {
    let lines: Vec<Line<'_>> = parts.iter().map(ResourceStatus::line).collect();
    let found = causes(&lines, api);
    for (part, cause) in parts.iter_mut().zip(found) {
        part.cause = part.cause.take().or(cause);
    }
    parts
}
