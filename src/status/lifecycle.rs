//! The lifecycle of an environment in its answer: status, phase, condition and events.

use crossplane::command::Target;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Phase;
use super::condition::{Condition, Event, stored};
use crate::lifecycle::{NOTE, OnExpiry, Stop, TtlFrom, requested_at};
use crate::observe::{Observation, lenient};
use crate::plan::Active;
use crate::power::{Composed, Power, PowerState};
use crate::reason::Reason;
use crate::value::{put, seconds};

/// The condition that warns of the end of an environment.
pub const EXPIRING: &str = "Expiring";

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

/// The lifecycle of an answer.
pub(super) struct Outlook {
    pub status: LifecycleStatus,
    /// The phase, if the lifecycle decides on it.
    pub phase: Option<Phase>,
    /// The condition `Expiring`, if it has to be set or withdrawn.
    pub expiring: Option<Condition>,
    pub events: Vec<Event>,
}

impl Composed<'_> {
    /// Writes the note on the environment's first resource.
    pub(super) fn write_note(&mut self) {
        let Some(note) = self.note() else { return };
        for slot in self.observation.api.first_slots {
            if let Some(first) = self.desired.get_mut(*slot) {
                let annotation = ["metadata", "annotations", NOTE];
                put(&mut first.object, &annotation, Some(note.as_str().into()));
            }
        }
    }

    /// The lifecycle, for an environment with this phase of its resources. `None` without a
    /// lifecycle.
    pub(super) fn outlook(&self, phase: Phase) -> Option<Outlook> {
        let (power, active) = self.power()?;
        let observation = self.observation;
        let view = View { observation, power, active };
        let stored = observation.xr.status.get("lifecycle");
        let before: LifecycleStatus = stored.and_then(lenient).unwrap_or_default();
        let warned = before.warned_at.as_ref().and_then(|time| time.parse().ok());
        let due = active.plan.warning(active.inputs.now, warned);
        let warned_at = due.map(|_| active.inputs.now).or(warned);
        let announced = due.map(|_| (Reason::Expiring, view.announcement()));
        let events = active.ignored.iter().cloned().chain(announced);
        Some(Outlook {
            phase: view.phase(phase),
            expiring: view.expiring(),
            status: view.status(before, warned_at),
            events: events.map(|(reason, message)| Event::warning(&reason, message)).collect(),
        })
    }

    /// The sentence about a stopped environment.
    pub(super) fn stop_sentence(&self) -> String {
        match self.plan.stop() {
            Some(_) => "the environment is stopped".to_owned(),
            None => format!(
                "the machine has stopped without a request. To start it, run: {}",
                command(self.observation, "start", "")
            ),
        }
    }
}

/// The lifecycle of a composition.
struct View<'c> {
    observation: &'c Observation<'c>,
    power: &'c Power,
    active: &'c Active,
}

impl View<'_> {
    /// The status. `before` is the lifecycle in the stored status.
    fn status(&self, before: LifecycleStatus, warned_at: Option<Timestamp>) -> LifecycleStatus {
        let plan = &self.active.plan;
        let ends = plan.expires_at.is_some();
        let annotations = &self.observation.xr.annotations;
        let requested_at = requested_at(|name| annotations.get(name).map(String::as_str));
        let (stopped_at, stop_reason) = self.last_stop(before).unzip();
        LifecycleStatus {
            expires_at: plan.expires_at.map(seconds),
            deletes_at: plan.deletes_at.map(seconds),
            maximum: plan.maximum.map(|maximum| maximum.to_string()),
            ttl_from: plan.note.ttl_from.filter(|_| ends),
            on_expiry: ends.then(|| self.end_action()),
            stopped_at,
            stop_reason,
            warned_at: warned_at.filter(|_| ends).map(seconds),
            requested_at: requested_at.map(|at| at.to_string()),
        }
    }

    /// Time and reason of the last stop. The time of a machine that stopped without a request is
    /// the time of the first call that observed the stop.
    fn last_stop(&self, before: LifecycleStatus) -> Option<(String, StopReason)> {
        match self.active.plan.stop {
            Some(Stop::Requested(at)) => Some((seconds(at), StopReason::Requested)),
            Some(Stop::Expired(at)) => Some((seconds(at), StopReason::Expired)),
            None if self.power.state == PowerState::Stopped => {
                let is_known = before.stop_reason == Some(StopReason::Unknown);
                let observed_at = before.stopped_at.filter(|_| is_known);
                let observed_at = observed_at.unwrap_or_else(|| seconds(self.observation.now));
                Some((observed_at, StopReason::Unknown))
            }
            None => None,
        }
    }

    /// The phase of an environment that is stopped, or being stopped or started.
    fn phase(&self, phase: Phase) -> Option<Phase> {
        let plan = &self.active.plan;
        let is_fine = matches!(phase, Phase::Ready | Phase::Provisioning);
        match (plan.stop, self.power.state) {
            _ if !is_fine => None,
            (Some(_), PowerState::Stopped) if phase == Phase::Ready => Some(Phase::Stopped),
            (Some(_), _) | (None, PowerState::Stopping) => Some(Phase::Stopping),
            (None, _) if plan.is_expired => Some(Phase::Expired),
            // A new environment is being provisioned.
            (None, PowerState::Starting) if self.power.opened.is_some() => Some(Phase::Starting),
            (None, PowerState::Stopped) => Some(Phase::Stopped),
            (None, _) => None,
        }
    }

    fn on_expiry(&self) -> OnExpiry {
        self.active.plan.note.on_expiry.unwrap_or(OnExpiry::Stop)
    }

    /// The action at the end.
    fn end_action(&self) -> EndAction {
        match (self.on_expiry(), self.active.inputs.cannot_stop) {
            (OnExpiry::Delete, _) => EndAction::Delete,
            (OnExpiry::Stop, None) => EndAction::Stop,
            (OnExpiry::Stop, Some(_)) => EndAction::Mark,
        }
    }

    fn command(&self, verb: &str, arguments: &str) -> String {
        command(self.observation, verb, arguments)
    }

    /// The sentence that announces the end.
    fn announcement(&self) -> String {
        let Some((at, _)) = self.active.plan.end() else { return String::new() };
        let (name, at) = (name(self.observation), seconds(at));
        if self.active.plan.stop.is_some() && self.on_expiry() == OnExpiry::Stop {
            let (data, start) = (self.data(), self.command("start", ""));
            return format!(
                "{name} is stopped, and is deleted {data} at {at}. To keep it, run: {start}"
            );
        }
        let action = match self.end_action() {
            EndAction::Delete => "is deleted with its data",
            EndAction::Stop => "is stopped",
            EndAction::Mark => "is marked as expired",
        };
        format!("{name} {action} at {at}. To renew it, run: {}", self.command("extend", "4h"))
    }

    /// The effect of a deletion after a stop on the data, in words.
    fn data(&self) -> &'static str {
        if self.active.inputs.leaves_resources {
            "without its resources in the cloud"
        } else {
            "with its data"
        }
    }

    /// The condition, if it has to be set or withdrawn. It is true from the first warning on.
    fn expiring(&self) -> Option<Condition> {
        let plan = &self.active.plan;
        let is_stored = stored(&self.observation.xr.status, EXPIRING).is_some();
        let (is_true, reason, message) = match plan.expires_at {
            Some(at) if plan.is_expired => (true, Reason::Expired, self.expired(at)),
            Some(_) if plan.is_expiring(self.active.inputs.now) => {
                (true, Reason::Expiring, self.announcement())
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
    fn expired(&self, at: Timestamp) -> String {
        let (name, at) = (name(self.observation), seconds(at));
        let (start, delete) = (self.command("start", ""), self.command("delete", ""));
        let deletes_at = self.active.plan.deletes_at.map(seconds);
        match (self.on_expiry(), self.active.inputs.cannot_stop, deletes_at) {
            (OnExpiry::Delete, ..) => format!(
                "{name} expired at {at}, and paved controller deletes it. Without a controller, \
                 run: {delete}"
            ),
            (OnExpiry::Stop, Some(reason), _) => format!(
                "{name} expired at {at} and still runs, because {reason}. To delete it, run: \
                 {delete}"
            ),
            (OnExpiry::Stop, None, Some(deletes_at)) => format!(
                "{name} expired at {at} and is stopped. It is deleted at {deletes_at}. To start \
                 it, run: {start}"
            ),
            (OnExpiry::Stop, None, None) => {
                format!("{name} expired at {at} and is stopped. To start it, run: {start}")
            }
        }
    }
}

/// The environment's name for users.
fn name<'o>(observation: &'o Observation<'_>) -> &'o str {
    let xr = &observation.xr;
    xr.claim.as_ref().map_or(&xr.name, |(name, _)| name)
}

/// A command about the environment.
fn command(observation: &Observation<'_>, verb: &str, arguments: &str) -> String {
    let (kind, namespace) = (&observation.api.called, observation.xr.user_namespace());
    Target { kind, namespace, name: name(observation) }.command(verb, arguments)
}
