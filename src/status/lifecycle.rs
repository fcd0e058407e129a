//! The lifecycle of an environment in its answer: status, condition, warnings, and when to ask
//! again.

use crossplane::command::Target;
use jiff::{SignedDuration, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Composition;
use super::condition::{Condition, Event, stored};
use super::power::PowerState;
use super::resource_status::seconds;
use super::status::Phase;
use crate::check::{Fields, quoted};
use crate::error::{Error, FieldError};
use crate::fingerprint::fingerprint;
use crate::lifecycle::{
    Age, CannotStop, Lifecycle, LifecycleSettings, NOTE, Note, OnExpiry, Plan, Requests, SINCE,
    Situation, Span, Stop, TtlFrom, leaves_resources, requested_at,
};
use crate::observe::{Resource, lenient};
use crate::pricing::{self, Price};
use crate::reason::Reason;
use crate::value::put;

/// The condition that warns of the end of an environment.
pub const EXPIRING: &str = "Expiring";

/// The largest difference between two clocks that counts as an error of one of them.
const FAR: SignedDuration = SignedDuration::from_hours(25);

/// End of the environment, and its last stop.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LifecycleStatus {
    /// Time of the expiry (RFC 3339, UTC). Absent without a time to live.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    /// Time of the deletion (RFC 3339, UTC). Absent if the environment is not deleted
    /// automatically.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletes_at: Option<String>,
    /// Longest time from now to the expiry that a renewal can set. Absent if there is no maximum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maximum: Option<String>,
    /// Source of the time to live.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_from: Option<TtlFrom>,
    /// Action at the end: Stop, Delete, or Mark, which only marks the environment as expired. Absent
    /// without a time to live.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_expiry: Option<EndAction>,
    /// Time of the last stop (RFC 3339, UTC). Absent while the environment runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped_at: Option<String>,
    /// Reason for the last stop. Absent while the environment runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<StopReason>,
    /// Time of the last warning of the expiry (RFC 3339, UTC).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warned_at: Option<String>,
    /// Time of the last request to stop or start (RFC 3339, UTC) that this status follows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested_at: Option<String>,
}

/// Action at the end of an environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum EndAction {
    /// The environment is stopped.
    Stop,
    /// The environment is deleted with its data.
    Delete,
    /// The environment is marked as expired, and still runs.
    Mark,
}

/// Reason for a stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum StopReason {
    /// A user asked for it.
    Requested,
    /// The time to live ended.
    Expired,
    /// The environment was idle.
    Idle,
    /// The cloud interrupted a spot machine.
    Interrupted,
    /// The machine stopped without a request.
    Unknown,
}

/// The plan that an answer carries out.
pub(super) struct ActivePlan {
    inputs: Inputs,
    plan: Plan,
    /// Sentences about requests and fields without effect, which no earlier call reported.
    ignored: Vec<(Reason, String)>,
    wakes_in: Option<std::time::Duration>,
}

/// The inputs of a plan: see [`Situation`].
struct Inputs {
    now: Timestamp,
    created: Option<Timestamp>,
    written: Option<Timestamp>,
    exists: bool,
    wishes: Option<Lifecycle>,
    settings: Option<LifecycleSettings>,
    announced_maximum: Option<Span>,
    requests: Requests,
    note: Option<Note>,
    cannot_stop: CannotStop,
    leaves_resources: bool,
}

/// The part of an answer that is about the lifecycle.
pub(super) struct Outlook {
    pub status: LifecycleStatus,
    pub phase: Option<Phase>,
    /// The condition `Expiring`, if it has to be set or withdrawn.
    pub expiring: Option<Condition>,
    pub events: Vec<Event>,
}

impl Composition<'_> {
    /// Plans the end and the power state. `settings` are those of the API, `None` if they cannot be
    /// read. The plan holds even if the claim's wishes are wrong.
    ///
    /// A Composition of an older schema revision carries no wishes. The plan of an environment with a
    /// note continues under it, by the note alone.
    ///
    /// # Errors
    /// Fields of `spec.lifecycle` that are wrong, or a note that cannot be read. Such a
    /// note has no effect, and stays as it is.
    pub fn plan(
        &mut self,
        stoppable: &'static [&'static str],
        cannot_stop: CannotStop,
        settings: Option<&LifecycleSettings>,
    ) -> Result<(), Error> {
        let is_carried = self.settings.revision() >= SINCE;
        let note = if is_carried {
            self.lifecycle_note()?
        } else {
            let note = self.lifecycle_note().ok().flatten();
            self.note_fields_without_effect(note.is_some());
            if note.is_none() {
                return Ok(());
            }
            note
        };
        self.stoppable = stoppable;
        // The observed resources are a better source than a spec that may be wrong.
        let cannot_stop = cannot_stop.filter(|_| !stoppable.iter().any(|slot| self.exists(slot)));
        let wishes = match &self.xr.lifecycle {
            Some(wishes) if is_carried => {
                crate::check::typed::<Lifecycle>(wishes, "spec.lifecycle")
                    .map_err(|field| Error::InvalidSpec(vec![field]))
            }
            _ => Ok(Lifecycle::default()),
        };
        let leaves_resources = leaves_resources(&self.xr.spec);
        let is_known = settings.is_some() && !self.settings.config_not_found;
        let announced_maximum =
            self.announced().maximum.filter(|_| !is_known).and_then(|text| text.parse().ok());
        let maximum = settings.and_then(|settings| settings.maximum).or(announced_maximum);
        let wishes = wishes.and_then(|wishes| {
            let mut fields = Fields::default();
            let note = note.as_ref();
            let path = "spec.lifecycle";
            wishes.check(path, maximum, note, cannot_stop, leaves_resources, &mut fields);
            fields.verdict(Error::InvalidSpec).map(|()| wishes)
        });
        let annotations = &self.xr.annotations;
        let now = self.clock();
        let age = Age { created: self.xr.created, is_claimed: self.xr.claim.is_some() };
        let requests = Requests::read(|name| annotations.get(name).map(String::as_str), now)
            .within(age, note.as_ref());
        let inputs = Inputs {
            now,
            created: self.xr.created,
            written: self.xr.written,
            exists: self.existed(),
            wishes: wishes.as_ref().ok().filter(|_| is_carried).cloned(),
            settings: settings.cloned(),
            announced_maximum,
            requests,
            note,
            cannot_stop,
            leaves_resources,
        };
        self.active_plan = Some(inputs.activate(false));
        wishes.map(drop)
    }

    /// Plans again, because the claim or the Settings are rejected.
    pub fn plan_for_rejection(&mut self) {
        self.active_plan = self.active_plan.take().map(|active| active.inputs.activate(true));
    }

    /// The time of this call. A clock that lies before the latest write of the composite is wrong.
    /// The API server sets that time. If it is more than a day ahead, it is ignored, because clocks
    /// do not differ so much.
    fn clock(&self) -> Timestamp {
        let written = self.xr.written.filter(|written| written.duration_since(self.now) <= FAR);
        written.map_or(self.now, |written| written.max(self.now))
    }

    /// Whether the environment has its first resource, which has the note, or had a ready resource
    /// that a person deleted. Other resources alone come from a first apply that was interrupted.
    fn existed(&self) -> bool {
        let listed = self.xr.status.get("resources").and_then(Value::as_array);
        self.api.first_slots.iter().any(|slot| self.exists(slot))
            || listed.into_iter().flatten().any(|resource| resource["ready"] == true)
    }

    /// The lifecycle in the status of an earlier call.
    fn announced(&self) -> LifecycleStatus {
        self.xr.status.get("lifecycle").and_then(lenient).unwrap_or_default()
    }

    /// The note of an earlier call.
    fn lifecycle_note(&self) -> Result<Option<Note>, Error> {
        let noted = self.api.first_slots.iter().find_map(|slot| {
            self.observation
                .resources
                .get(*slot)
                .and_then(|first| first.annotation(NOTE))
                .map(|text| (slot, text))
        });
        let Some((slot, text)) = noted else { return Ok(None) };
        Note::read(text).map(Some).map_err(|error| {
            let path = format!("annotation {NOTE} of {slot}");
            let message = format!(
                "found {}, {error}; allowed: the text of this or an earlier release. Install the \
                 release that wrote it, or remove the annotation to start the time to live again",
                quoted(text)
            );
            Error::InvalidSpec(vec![FieldError { path, message }])
        })
    }

    /// Why the environment is to be stopped; `None` if it is to run.
    pub fn stop(&self) -> Option<Stop> {
        self.active_plan.as_ref()?.plan.stop
    }

    /// Whether there are resources to stop.
    pub fn stops_what_exists(&self) -> bool {
        self.stop().is_some() && self.observation.resources.values().any(Resource::is_ours)
    }

    /// The time of the request to start that is still open.
    pub(super) fn opened(&self) -> Option<Timestamp> {
        self.active_plan.as_ref()?.plan.opened()
    }

    /// Closes the request to start.
    pub(super) fn close_request(&mut self) {
        if let Some(active) = &mut self.active_plan {
            active.plan.note.opened = None;
        }
    }

    /// Asks for a call within a time.
    pub(super) fn wakes_in(&mut self, time: std::time::Duration) {
        if let Some(active) = &mut self.active_plan {
            active.wakes_in = Some(active.wakes_in.map_or(time, |other| other.min(time)));
        }
    }

    /// Estimates the price of the environment. A stopped one keeps the price that it had while it
    /// ran.
    pub(super) fn estimate(&mut self) {
        let Some(active) = &self.active_plan else { return };
        let earlier = active.plan.note.price.as_ref();
        let runs = active.plan.stop.is_none() || earlier.is_none();
        let price = pricing::price(self.objects(), &self.settings.pricing, earlier, runs).ok();
        if let Some(active) = &mut self.active_plan {
            active.plan.note.price = price;
        }
    }

    /// The estimated price of the environment; `None` if it is not known.
    pub(super) fn price(&self) -> Option<&Price> {
        self.active_plan.as_ref()?.plan.note.price.as_ref()
    }

    /// The environment's name for users.
    fn asked_name(&self) -> &str {
        self.xr.claim.as_ref().map_or(&self.xr.name, |(name, _)| name)
    }

    /// A command about the environment.
    fn command(&self, verb: &str, arguments: &str) -> String {
        let kind = &self.api.called;
        let namespace = self.xr.user_namespace();
        Target { kind, namespace, name: self.asked_name() }.command(verb, arguments)
    }

    /// Writes the note on the environment's first resource.
    pub(super) fn keep_note(&mut self) {
        let Some(note) = self.active_plan.as_ref().and_then(|active| active.plan.note.write())
        else {
            return;
        };
        for slot in self.api.first_slots {
            if let Some(first) = self.desired.get_mut(*slot) {
                let annotation = ["metadata", "annotations", NOTE];
                put(&mut first.object, &annotation, Some(note.as_str().into()));
            }
        }
    }

    /// Status, phase, condition and warnings of the lifecycle.
    pub(super) fn outlook(&self, power: PowerState, phase: Phase) -> Option<Outlook> {
        let active = self.active_plan.as_ref()?;
        let plan = &active.plan;
        let before = self.announced();
        let warned: Option<Timestamp> =
            before.warned_at.as_ref().and_then(|time| time.parse().ok());
        let now = active.inputs.now;
        let due = plan.warning(now, warned);
        let warned_at = due.map(|_| now).or(warned).filter(|_| plan.expires_at.is_some());
        let (stopped_at, stop_reason) = self.last_stop(power, before).unzip();
        let status = LifecycleStatus {
            expires_at: plan.expires_at.map(seconds),
            deletes_at: plan.deletes_at.map(seconds),
            maximum: plan.maximum.map(|maximum| maximum.to_string()),
            ttl_from: plan.note.ttl_from.filter(|_| plan.expires_at.is_some()),
            on_expiry: plan.expires_at.map(|_| active.end_action()),
            stopped_at,
            stop_reason,
            warned_at: warned_at.map(seconds),
            requested_at: requested_at(|name| self.xr.annotations.get(name).map(String::as_str))
                .map(|at| at.to_string()),
        };
        let ignored = active.ignored.iter().cloned();
        let announced = due.map(|_| (Reason::Expiring, active.announcement(self)));
        let events = ignored.chain(announced);
        let events = events.map(|(reason, message)| Event::warning(&reason, message)).collect();
        Some(Outlook {
            phase: active.phase(power, phase),
            expiring: active.expiring(self),
            status,
            events,
        })
    }

    /// Time and reason of the last stop. A machine that stopped without a request did so when this
    /// was seen first: `before` is the lifecycle in the status.
    fn last_stop(
        &self,
        power: PowerState,
        before: LifecycleStatus,
    ) -> Option<(String, StopReason)> {
        match self.stop() {
            Some(Stop::Requested(at)) => Some((seconds(at), StopReason::Requested)),
            Some(Stop::Expired(at)) => Some((seconds(at), StopReason::Expired)),
            None if power == PowerState::Stopped => {
                let is_known = before.stop_reason == Some(StopReason::Unknown);
                let seen = before.stopped_at.filter(|_| is_known);
                Some((seen.unwrap_or_else(|| seconds(self.now)), StopReason::Unknown))
            }
            None => None,
        }
    }

    /// The sentence about a stopped environment.
    pub(super) fn told_of_stop(&self) -> String {
        match self.stop() {
            Some(_) => "the environment is stopped".to_owned(),
            None => format!(
                "the machine has stopped without a request. To start it, run: {}",
                self.command("start", "")
            ),
        }
    }
}

impl Inputs {
    /// Plans. Sentences about ignored annotations are reported, unless an earlier call reported
    /// them.
    fn activate(self, is_rejected: bool) -> ActivePlan {
        let mut plan = Plan::new(&Situation {
            now: self.now,
            created: self.created,
            written: self.written,
            exists: self.exists,
            wishes: self.wishes.as_ref(),
            settings: self.settings.as_ref(),
            is_rejected,
            announced_maximum: self.announced_maximum,
            requests: &self.requests,
            note: self.note.as_ref(),
            cannot_stop: self.cannot_stop,
            leaves_resources: self.leaves_resources,
        });
        let fields = self
            .wishes
            .as_ref()
            .map(|wishes| wishes.without_effect("spec.lifecycle", &plan.note, self.cannot_stop));
        let fields = fields.into_iter().flatten();
        let requests = self.requests.ignored.iter().cloned();
        let mut ignored: Vec<(Reason, String)> = requests
            .map(|told| (Reason::RequestIgnored, told))
            .chain(fields.map(|field| (Reason::NoEffect, field.to_string())))
            .collect();
        let sentences: Vec<&str> = ignored.iter().map(|(_, told)| told.as_str()).collect();
        let told = (!ignored.is_empty()).then(|| fingerprint(&sentences.join("\n")));
        if plan.note.ignored == told {
            ignored.clear();
        }
        plan.note.ignored = told;
        ActivePlan { inputs: self, plan, ignored, wakes_in: None }
    }
}

impl ActivePlan {
    /// How soon Crossplane should call again.
    pub fn requeue(&self, now: Timestamp, usual: std::time::Duration) -> std::time::Duration {
        let usual = self.wakes_in.map_or(usual, |time| usual.min(time));
        self.plan.requeue(now, usual)
    }

    /// The phase of an environment that is stopped, or being stopped or started.
    fn phase(&self, power: PowerState, phase: Phase) -> Option<Phase> {
        let is_fine = matches!(phase, Phase::Ready | Phase::Provisioning);
        match (self.plan.stop, power) {
            _ if !is_fine => None,
            (Some(_), PowerState::Stopped) if phase == Phase::Ready => Some(Phase::Stopped),
            (Some(_), _) | (None, PowerState::Stopping) => Some(Phase::Stopping),
            (None, _) if self.plan.is_expired => Some(Phase::Expired),
            // A new environment is being provisioned.
            (None, PowerState::Starting) if self.plan.opened().is_some() => Some(Phase::Starting),
            (None, PowerState::Stopped) => Some(Phase::Stopped),
            (None, _) => None,
        }
    }

    fn on_expiry(&self) -> OnExpiry {
        self.plan.note.on_expiry.unwrap_or(OnExpiry::Stop)
    }

    /// The action at the end.
    fn end_action(&self) -> EndAction {
        match (self.on_expiry(), self.inputs.cannot_stop) {
            (OnExpiry::Delete, _) => EndAction::Delete,
            (OnExpiry::Stop, None) => EndAction::Stop,
            (OnExpiry::Stop, Some(_)) => EndAction::Mark,
        }
    }

    /// The sentence that announces the end.
    fn announcement(&self, cx: &Composition<'_>) -> String {
        let Some((at, _)) = self.plan.end() else { return String::new() };
        let (name, at) = (cx.asked_name(), seconds(at));
        if self.plan.stop.is_some() && self.on_expiry() == OnExpiry::Stop {
            let (data, start) = (self.data(), cx.command("start", ""));
            return format!(
                "{name} is stopped, and is deleted {data} at {at}. To keep it, run: {start}"
            );
        }
        let action = match self.end_action() {
            EndAction::Delete => "is deleted with its data",
            EndAction::Stop => "is stopped",
            EndAction::Mark => "is marked as expired",
        };
        format!("{name} {action} at {at}. To renew it, run: {}", cx.command("extend", "4h"))
    }

    /// What a deletion after a stop does to the data, in words.
    fn data(&self) -> &'static str {
        if self.inputs.leaves_resources {
            "without its resources in the cloud"
        } else {
            "with its data"
        }
    }

    /// The condition, if it has to be set or withdrawn. It is true from the first warning on.
    fn expiring(&self, cx: &Composition<'_>) -> Option<Condition> {
        let is_stored = stored(&cx.xr.status, EXPIRING).is_some();
        let (is_true, reason, message) = match self.plan.expires_at {
            Some(at) if self.plan.is_expired => (true, Reason::Expired, self.obituary(cx, at)),
            Some(_) if self.plan.is_expiring(self.inputs.now) => {
                (true, Reason::Expiring, self.announcement(cx))
            }
            _ if is_stored => (
                false,
                Reason::NotExpiring,
                "the environment does not expire within the time of a warning".to_owned(),
            ),
            _ => return None,
        };
        Some(Condition::new(EXPIRING, is_true, &reason, message))
    }

    /// The sentence about an environment that has expired.
    fn obituary(&self, cx: &Composition<'_>, at: Timestamp) -> String {
        let (name, at) = (cx.asked_name(), seconds(at));
        let (start, delete) = (cx.command("start", ""), cx.command("delete", ""));
        match (self.on_expiry(), self.inputs.cannot_stop, self.plan.deletes_at) {
            (OnExpiry::Delete, ..) => format!(
                "{name} expired at {at}, and paved controller deletes it. Without a controller, \
                 run: {delete}"
            ),
            (OnExpiry::Stop, Some(reason), _) => format!(
                "{name} expired at {at} and still runs, because {reason}. To delete it, run: \
                 {delete}"
            ),
            (OnExpiry::Stop, None, Some(deletes_at)) => format!(
                "{name} expired at {at} and is stopped. It is deleted at {}. To start it, run: \
                 {start}",
                seconds(deletes_at)
            ),
            (OnExpiry::Stop, None, None) => {
                format!("{name} expired at {at} and is stopped. To start it, run: {start}")
            }
        }
    }
}
