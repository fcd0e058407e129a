//! The end and the power state of an environment, at one reading of the clock.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::note::{Defaults, Grant, PowerChange};
use super::{
    CannotStop, Lifecycle, LifecycleSettings, Note, OnExpiry, Power, Requests, Span, TtlFrom,
};

/// A change of the claim never moves the expiry or the deletion closer than this.
const LEAST_AFTER_CHANGE: SignedDuration = SignedDuration::from_mins(30);

/// An environment that is deleted at its end is stopped first if the deletion is late by this time,
/// for example without a controller.
const DELETION_IS_LATE: SignedDuration = SignedDuration::from_mins(5);

/// The times before an expiry at which its user is warned.
const WARNINGS: [SignedDuration; 3] =
    [SignedDuration::from_hours(48), SignedDuration::from_hours(2), SignedDuration::from_mins(30)];

/// The inputs of the plan for an environment.
#[derive(Clone, Copy, Debug)]
pub struct Situation<'a> {
    /// The function's clock.
    pub now: Timestamp,
    /// The creation of the composite; absent in a preview.
    pub created: Option<Timestamp>,
    /// The latest write of the composite by the API server's clock, if it is known. A clock that
    /// lies before it is wrong.
    pub written: Option<Timestamp>,
    /// Whether resources of the environment were observed.
    pub exists: bool,
    /// The claim's wishes; `None` if they are rejected, and then the note decides.
    pub wishes: Option<&'a Lifecycle>,
    /// The Settings of the API; `None` if they cannot be read, and then the note decides.
    pub settings: Option<&'a LifecycleSettings>,
    /// Whether the claim or the Settings are rejected for any reason. Then the noted time to live
    /// and action stay: nothing of a rejected claim is applied but its power state.
    pub is_rejected: bool,
    /// The maximum that the status announces, while the Settings cannot be read or found. It holds
    /// if they have no maximum.
    pub announced_maximum: Option<Span>,
    /// The requests in annotations.
    pub requests: &'a Requests,
    /// The note of an earlier call.
    pub note: Option<&'a Note>,
    /// The reason why the API cannot stop.
    pub cannot_stop: CannotStop,
    /// Whether a deletion leaves the resources in the cloud: see [`leaves_resources`].
    ///
    /// [`leaves_resources`]: super::leaves_resources
    pub leaves_resources: bool,
}

/// The end and the power state of an environment.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The note to keep on the environment's first resource.
    pub note: Note,
    /// When the environment expires.
    pub expires_at: Option<Timestamp>,
    /// When the environment is deleted, unless it is renewed or started before.
    pub deletes_at: Option<Timestamp>,
    /// How far ahead of now a renewal may move the expiry.
    pub maximum: Option<Span>,
    /// Why the environment is to be stopped; `None` if it is to run.
    pub stop: Option<Stop>,
    /// Whether the environment has expired: stopped or deleted for this, or only marked.
    pub is_expired: bool,
    /// When an environment is stopped that is not deleted in time.
    late: Option<Timestamp>,
}

/// Why and since when an environment is to be stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The user asked for it.
    Requested(Timestamp),
    /// The time to live ended.
    Expired(Timestamp),
}

impl Plan {
    /// The plan in a situation. The same situation gives the same plan, with or without the note
    /// of an earlier plan for it.
    pub fn new(situation: &Situation<'_>) -> Self {
        let situation = &situation.with_a_possible_clock();
        let mut note = situation.carried();
        let maximum = situation.maximum();
        situation.note_requests(&mut note);
        situation.note_power(&mut note);
        situation.note_ttl(&mut note, maximum);
        situation.note_action(&mut note);
        situation.note_grants(&mut note, maximum);

        let expires_at = expiry(&note);
        let expired = expires_at.filter(|at| *at <= situation.now);
        let is_deleted = note.on_expiry == Some(OnExpiry::Delete);
        let can_stop = situation.cannot_stop.is_none();
        let not_before = note.deletes_not_before;
        let no_sooner = |at: Timestamp| not_before.unwrap_or(at).max(at);
        let deletion = expires_at.filter(|_| is_deleted).map(no_sooner);
        let late = deletion.and_then(|at| at.checked_add(DELETION_IS_LATE).ok());
        let is_late = late.is_some_and(|at| at <= situation.now);
        // An environment that was stopped by its expiry is not started for its deletion.
        let stops = can_stop && (!is_deleted || is_late || note.expired_at.is_some());
        let expired_stop = expired.filter(|_| stops);
        let stop = situation.stop(&note, expired_stop);
        let since = note.expired_at.unwrap_or(situation.now);
        note.expired_at = stop.and(expired_stop).map(|_| since);
        situation.note_start(&mut note, stop);
        let deletes_at = match expires_at {
            Some(at) if can_stop && !is_deleted => {
                let from = note.expired_at.unwrap_or(at);
                let keep = note.keep_stopped_for.and_then(Span::length);
                keep.and_then(|keep| from.checked_add(keep).ok()).map(no_sooner)
            }
            _ => deletion,
        };
        let late = late.filter(|_| can_stop);
        Self { note, expires_at, deletes_at, maximum, stop, is_expired: expired.is_some(), late }
    }

    /// The warning that is due: how long before the end it is given. `warned` is the time of the
    /// last one.
    pub fn warning(&self, now: Timestamp, warned: Option<Timestamp>) -> Option<SignedDuration> {
        let (end, _) = self.end().filter(|(end, _)| now < *end)?;
        let due = self.warnings().filter(|(time, _)| *time <= now).last()?;
        let is_given = warned.is_some_and(|warned| warned >= due.0 && warned < end);
        (!is_given).then_some(due.1)
    }

    /// Whether the end is near: the time of the first warning has come, and the end has not.
    pub fn is_expiring(&self, now: Timestamp) -> bool {
        let is_near = self.warnings().next().is_some_and(|(first, _)| first <= now);
        is_near && self.end().is_some_and(|(end, _)| now < end)
    }

    /// The next end to warn of, and the time that leads to it: the expiry, or the deletion of an
    /// environment that is stopped already.
    pub(crate) fn end(&self) -> Option<(Timestamp, Span)> {
        if self.note.on_expiry == Some(OnExpiry::Delete) {
            return self.deletes_at.zip(self.note.ttl);
        }
        match self.stop {
            Some(_) => self.deletes_at.zip(self.note.keep_stopped_for),
            None => self.expires_at.zip(self.note.ttl),
        }
    }

    /// The times of the warnings, earliest first: those that fit into the time before the end.
    fn warnings(&self) -> impl Iterator<Item = (Timestamp, SignedDuration)> {
        let end = self.end().and_then(|(end, whole)| Some((end, whole.length()?)));
        WARNINGS.into_iter().filter_map(move |before| {
            let (end, _) = end.filter(|(_, whole)| before < *whole)?;
            Some((end.checked_sub(before).ok()?, before))
        })
    }

    /// The time of the request to start that is still open. A machine that stopped by itself is
    /// started only for such a request.
    pub fn opened(&self) -> Option<Timestamp> {
        self.note.opened
    }

    /// How soon Crossplane should call again, if `usual` is the time without a lifecycle: soon
    /// after the next boundary, and at least each minute in the last ten minutes before it.
    pub fn requeue(&self, now: Timestamp, usual: Duration) -> Duration {
        const LEAST: Duration = Duration::from_secs(5);
        let warnings = self.warnings().map(|(time, _)| time);
        let ends = [self.expires_at, self.deletes_at, self.late].into_iter().flatten();
        let Some(next) = warnings.chain(ends).filter(|time| *time > now).min() else {
            return usual;
        };
        let remaining = Duration::try_from(next.duration_since(now)).unwrap_or_default();
        let most = if remaining <= Duration::from_mins(10) {
            usual.min(Duration::from_mins(1))
        } else {
            usual
        };
        // Whole seconds: a TTL has no more.
        let soon = Duration::from_secs(remaining.as_secs().saturating_add(2));
        soon.clamp(LEAST.min(most), most)
    }
}

impl Situation<'_> {
    /// The situation at the creation or at the latest write, if the clock lies before that. Such a
    /// clock is wrong: no action follows it, and no time is noted from it.
    fn with_a_possible_clock(&self) -> Self {
        let known = self.created.max(self.written);
        Self { now: known.map_or(self.now, |known| known.max(self.now)), ..*self }
    }

    /// The note to go on with: that of an earlier call, or a new one.
    fn carried(&self) -> Note {
        if let Some(note) = self.note {
            return note.clone();
        }
        // An environment that exists without a note was made without defaults, and today's are not
        // for it. It has no end until its user sets one.
        let settings = self.settings.filter(|_| !self.exists);
        let defaults = settings.map(Defaults::from_settings).unwrap_or_default();
        Note { defaults, ..Note::default() }
    }

    /// The longest time to the expiry that is allowed now.
    fn maximum(&self) -> Option<Span> {
        self.settings.and_then(|settings| settings.maximum).or(self.announced_maximum)
    }

    /// Whether this is the first call for the environment.
    fn is_new(&self) -> bool {
        self.note.is_none() && !self.exists
    }

    /// Keeps the latest requests, because a lost annotation is not a request.
    fn note_requests(&self, note: &mut Note) {
        note.obeyed.started = self.requests.started.max(note.obeyed.started);
        note.obeyed.stopped = self.requests.stopped.max(note.obeyed.stopped);
    }

    fn note_power(&self, note: &mut Note) {
        let Some(wishes) = self.wishes else { return };
        let before = note.power.map_or(Power::Running, |change| change.to);
        if wishes.power != before {
            let at = self.created.filter(|_| self.is_new()).unwrap_or(self.now);
            note.power = Some(PowerChange { to: wishes.power, at, after: note.obeyed.latest() });
        }
    }

    /// The claim's wishes for its end. Those of a rejected claim would count from a later time at
    /// each call, because the answer to it keeps no note.
    fn wishes_for_the_end(&self) -> Option<&Lifecycle> {
        self.wishes.filter(|_| !(self.is_rejected && self.note.is_some()))
    }

    fn note_ttl(&self, note: &mut Note, maximum: Option<Span>) {
        let Some(wishes) = self.wishes_for_the_end() else { return };
        let own = wishes.ttl.map(|ttl| (ttl, TtlFrom::Claim));
        let wanted = own.or(note.defaults.ttl.map(|ttl| (ttl, TtlFrom::Settings)));
        if wanted == note.ttl.zip(note.ttl_from) {
            return;
        }
        (note.ttl, note.ttl_from) = wanted.unzip();
        let since = self.created.filter(|_| self.is_new()).unwrap_or(self.now);
        note.since = wanted.map(|_| since);
        // A claim may have been wrong, or waiting, for longer than its time to live.
        let is_changed = !self.is_new() || expiry(note).is_some_and(|end| end <= self.now);
        if is_changed {
            let most = maximum.and_then(Span::length).unwrap_or(LEAST_AFTER_CHANGE);
            let least = self.now.checked_add(most.min(LEAST_AFTER_CHANGE));
            note.not_before = wanted.and_then(|_| least.ok());
        }
    }

    fn note_action(&self, note: &mut Note) {
        let Some(wishes) = self.wishes_for_the_end() else { return };
        // `Delete` has no effect here: it leaves running resources without an owner.
        let is_allowed = |action: &OnExpiry| !self.leaves_resources || *action == OnExpiry::Stop;
        let wanted = (
            wishes.on_expiry.or(note.defaults.on_expiry).filter(is_allowed),
            wishes.keep_stopped_for.or(note.defaults.keep_stopped_for),
        );
        if wanted == (note.on_expiry, note.keep_stopped_for) {
            return;
        }
        (note.on_expiry, note.keep_stopped_for) = wanted;
        if !self.is_new() {
            note.deletes_not_before = self.now.checked_add(LEAST_AFTER_CHANGE).ok();
        }
    }

    /// Grants each renewal and start once, under the maximum of that moment.
    fn note_grants(&self, note: &mut Note, maximum: Option<Span>) {
        let most = maximum.and_then(Span::length);
        let grant = |at: Timestamp, span: Span, before: Option<Grant>| {
            if before.is_some_and(|before| at <= before.at) {
                return before;
            }
            let length = match (span.length(), most) {
                (Some(length), Some(most)) => length.min(most),
                (Some(length), None) => length,
                (None, Some(most)) => most,
                // A renewal without an end is the claim's to ask for.
                (None, None) => return before,
            };
            // From now, if the request's clock is ahead.
            let until = at.min(self.now).checked_add(length).ok()?;
            Some(Grant { at, until: before.map_or(until, |before| before.until.max(until)) })
        };
        if let Some((at, span)) = self.requests.renewed {
            note.renewal = grant(at, span, note.renewal);
        }
        if let Some((at, ttl)) = started(note).zip(note.ttl) {
            note.start = grant(at, ttl, note.start);
        }
    }

    /// Opens a request to start when a stop ends, and for each new request.
    fn note_start(&self, note: &mut Note, stop: Option<Stop>) {
        let started = started(note);
        let is_new = started > note.started && self.exists;
        note.started = started.max(note.started);
        note.opened = match stop {
            Some(_) => None,
            None if note.stopping || is_new => Some(self.now),
            None => note.opened,
        };
        note.stopping = stop.is_some();
    }

    /// The latest request or expiry decides. At the same time, running wins.
    fn stop(&self, note: &Note, expired: Option<Timestamp>) -> Option<Stop> {
        let started = started(note);
        let stopped = note.obeyed.stopped.max(by_claim(note, Power::Stopped));
        let stop = match (stopped, expired) {
            (Some(stopped), Some(expired)) if stopped > expired => Stop::Requested(stopped),
            (_, Some(expired)) => Stop::Expired(expired),
            (Some(stopped), None) => Stop::Requested(stopped),
            (None, None) => return None,
        };
        let can_stop = self.cannot_stop.is_none();
        Some(stop).filter(|stop| can_stop && started.is_none_or(|started| started < stop.at()))
    }
}

impl Stop {
    /// The time of the request, or of the expiry.
    pub fn at(self) -> Timestamp {
        match self {
            Self::Requested(at) | Self::Expired(at) => at,
        }
    }
}

/// The latest of the end of the time to live and of its renewals.
fn expiry(note: &Note) -> Option<Timestamp> {
    let end = note.since?.checked_add(note.ttl?.length()?).ok()?;
    let grants = [note.renewal, note.start].into_iter().flatten().map(|grant| grant.until);
    grants.chain(note.not_before).chain([end]).max()
}

/// The time of the latest start, by request or by the claim.
fn started(note: &Note) -> Option<Timestamp> {
    note.obeyed.started.max(by_claim(note, Power::Running))
}

/// The time of the claim's last change of its power state, if it was to this one.
fn by_claim(note: &Note, to: Power) -> Option<Timestamp> {
    let change = note.power.filter(|change| change.to == to)?;
    let at = change.at.max(change.after.unwrap_or(change.at));
    let requests = [note.obeyed.started, note.obeyed.stopped].into_iter().flatten();
    let next = requests.filter(|request| Some(*request) > change.after).min();
    Some(next.map_or(at, |next| at.min(next - SignedDuration::from_secs(1))))
}
