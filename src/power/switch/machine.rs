//! Machines: an EC2 machine is stopped and started by an InstanceState beside it.
//!
//! The InstanceState exists only while a change is wanted: one that says `running` fights a machine
//! that powers itself off. Its external name is fixed, so each machine has a slot of its own.
//! Source: provider-upjet-aws, and `internal/service/ec2/ec2_instance_state.go` of
//! terraform-provider-aws.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use super::super::PowerState;
use super::Switch;
use crate::compose::LOOK;
use crate::diagnosis::{Cause, Code};
use crate::error::Error;
use crate::models::aws::ec2::{Instance, InstanceState};
use crate::observe::{Health, Resource, State, status_of};
use crate::reason::Reason;
use crate::value::{at, put, seconds, text};

/// Prefix of the slots of InstanceStates. The rest of a slot is the id of the machine.
const SLOT: &str = "power-";

/// The note of a request to start on the InstanceState that was made for it.
const REQUEST: &str = "request";

/// The annotation on a machine that could not be started: the time of the request, and the error of
/// the InstanceState.
const FAILED_ANNOTATION: &str = "paved-road.fn.crossplane.io/start-failed";

/// The path of the reference to a provider config.
const CONFIG: [&str; 2] = ["spec", "providerConfigRef"];

/// The path of a machine's type.
const TYPE: [&str; 3] = ["spec", "forProvider", "instanceType"];

/// The times between two looks: a look costs some eight calls of EC2.
const LOOK_INTERVALS: [Duration; 4] = [
    Duration::from_secs(15),
    Duration::from_secs(30),
    Duration::from_mins(1),
    Duration::from_mins(2),
];

/// The limit of the creation and of the start of a machine.
pub(crate) const MACHINE_LIMIT: Duration = Duration::from_mins(30);

/// The note of a start for which the provider never reported anything.
const UNANSWERED: &str = "the provider has not answered. Check that it runs";

/// Whether a provider has reported anything about a resource.
fn is_answered(resource: &Resource) -> bool {
    let conditions = at(resource.seen(), &["status", "conditions"]).and_then(Value::as_array);
    conditions.is_some_and(|conditions| !conditions.is_empty())
}

/// A machine as its provider saw it last.
struct Machine {
    id: String,
    region: Option<String>,
    state: String,
    /// Reference to its provider config.
    config: Option<Value>,
}

impl Switch<'_, '_> {
    /// Stops the machine in a slot, or starts it for an open request.
    pub(super) fn machine(&mut self, slot: &str) -> Result<PowerState, Error> {
        let stop = self.stop.is_some();
        // A composition that preserves the observed resources has InstanceStates.
        self.cx.desired.retain(|slot, _| !slot.starts_with(SLOT));
        let Some(machine) = self.machine_in(slot) else {
            self.cx.remove_rest(SLOT)?;
            return Ok(PowerState::Starting);
        };
        let switch = format!("{SLOT}{}", machine.id);
        let opened = self.opened.filter(|_| !stop);
        let is_over = opened.is_some_and(|opened| self.is_over(opened));
        let is_done = match (stop, opened) {
            (true, _) => machine.state == "stopped",
            (false, Some(opened)) => {
                self.has_started(&switch, opened) || is_over && machine.state == "running"
            }
            (false, None) => true,
        };
        let opened = opened.filter(|_| !is_done);
        let failed = opened.filter(|_| is_over);
        // A stopped machine keeps its type: AWS starts a machine after a change of its type.
        let is_off = opened.is_none() && machine.state == "stopped";
        if stop || is_off || failed.is_some() {
            self.keep_type(slot);
        }
        let failure = failed.map(|opened| self.failed_start(slot, &switch, opened));
        if is_done {
            self.opened = None;
        } else if failure.is_none() {
            // A change of the type starts the machine. The switch follows, because that start may
            // have failed.
            if stop || !self.changes_type(slot) {
                self.switch(&switch, &machine, opened)?;
            }
            self.look(slot);
        }
        self.cx.remove_rest(SLOT)?;
        Ok(self.tell_power(slot, &machine, stop, opened.is_some(), failure))
    }

    /// Whether the time of a request to start is over.
    fn is_over(&self, opened: Timestamp) -> bool {
        Duration::try_from(self.cx.now.duration_since(opened))
            .is_ok_and(|time| time > MACHINE_LIMIT)
    }

    /// The health of a machine that could not be started in time. The InstanceState is removed, so
    /// its error is noted on the machine. Without an error, the cloud had no capacity, unless the
    /// provider never answered.
    fn failed_start(&mut self, slot: &str, switch: &str, opened: Timestamp) -> Health {
        let request = format!("{} ", seconds(opened));
        let noted = self
            .cx
            .observation
            .resources
            .get(slot)
            .and_then(|seen| seen.annotation(FAILED_ANNOTATION));
        let noted = noted.and_then(|noted| noted.strip_prefix(&request)).map(str::to_owned);
        let said = noted.unwrap_or_else(|| {
            let Some(switch) = self.cx.observation.resources.get(switch) else {
                return UNANSWERED.to_owned();
            };
            let health = switch.health();
            let is_error = matches!(health.state, State::Failed | State::Waiting);
            if is_error {
                self.cx.secrets.scrub(&health.message)
            } else if is_answered(switch) {
                String::new()
            } else {
                UNANSWERED.to_owned()
            }
        });
        if let Some(machine) = self.cx.desired.get_mut(slot) {
            let annotation = ["metadata", "annotations", FAILED_ANNOTATION];
            put(&mut machine.object, &annotation, Some(format!("{request}{said}").into()));
        }
        let told = "has not started within 30 minutes. Start it again to retry";
        let code = match said.as_str() {
            "" => Some(Code::NoCapacity),
            UNANSWERED => Some(Code::TimedOut),
            _ => None,
        };
        if let Some(code) = code {
            let said = if said.is_empty() { said } else { format!(": {said}") };
            let message = format!("{told}{said}");
            let cause = Some(Cause::new(code, []));
            return Health { cause, ..Health::pending(State::Failed, Reason::Failed, message) };
        }
        Health::pending(State::Failed, Reason::Failed, format!("{told}: {said}"))
    }

    /// The machine in a slot, if it exists.
    fn machine_in(&self, slot: &str) -> Option<Machine> {
        let seen = self.cx.observation.resources.get(slot)?.seen();
        let state = status_of::<Instance>(seen)?.instance_state?;
        if ["terminated", "shutting-down"].contains(&state.as_str()) {
            return None;
        }
        Some(Machine {
            id: self.cx.external_name(slot)?,
            region: text(seen, &["spec", "forProvider", "region"]).map(str::to_owned),
            state,
            config: at(seen, &CONFIG).cloned(),
        })
    }

    /// Asks for the InstanceState of a machine.
    fn switch(
        &mut self,
        slot: &str,
        machine: &Machine,
        opened: Option<Timestamp>,
    ) -> Result<(), Error> {
        let state = if opened.is_some() { "running" } else { "stopped" };
        let model = InstanceState {
            region: machine.region.clone(),
            instance_id: Some(machine.id.clone()),
            state: Some(state.to_owned()),
        };
        let request = opened.map(seconds).unwrap_or_default();
        self.cx.managed(slot, model).updatable(&["state"]).annotate(REQUEST, request).add()?;
        if let Some(switch) = self.cx.desired.get_mut(slot) {
            switch.counted = false;
            // That of the machine, which may differ from the one in Settings.
            put(&mut switch.object, &CONFIG, machine.config.clone());
        }
        Ok(())
    }

    /// Whether an InstanceState that was made for a request to start has started the machine.
    fn has_started(&self, switch: &str, opened: Timestamp) -> bool {
        let Some(seen) = self.cx.observation.resources.get(switch) else { return false };
        let status = status_of::<InstanceState>(seen.seen());
        self.cx.noted(switch, REQUEST) == Some(seconds(opened).as_str())
            && seen.health().ready
            && status.and_then(|status| status.state).as_deref() == Some("running")
    }

    /// Makes the provider look at a machine that is being stopped or started.
    fn look(&mut self, slot: &str) {
        let seen = self.cx.observation.resources.get(slot).and_then(|seen| seen.annotation(LOOK));
        let last = seen.and_then(|noted| {
            let (count, time) = noted.split_once(' ')?;
            Some((count.parse::<usize>().ok()?, time.parse::<Timestamp>().ok()?))
        });
        let wait = |count: usize| LOOK_INTERVALS[count.min(LOOK_INTERVALS.len() - 1)];
        let (count, time) = match last {
            Some((count, time))
                if self.cx.now.duration_since(time).unsigned_abs() < wait(count) =>
            {
                (count, time)
            }
            Some((count, _)) => (count.saturating_add(1), self.cx.now),
            None => (0, self.cx.now),
        };
        let note = format!("{count} {}", seconds(time));
        if let Some(machine) = self.cx.desired.get_mut(slot) {
            put(&mut machine.object, &["metadata", "annotations", LOOK], Some(note.into()));
        }
        self.wake_in(wait(count));
    }

    /// Keeps the type of a machine that is to stay stopped: a change of it would start the machine.
    fn keep_type(&mut self, slot: &str) {
        let seen = self
            .cx
            .observation
            .resources
            .get(slot)
            .and_then(|seen| at(seen.seen(), &TYPE))
            .cloned();
        if let Some(machine) = self.cx.desired.get_mut(slot).filter(|_| seen.is_some()) {
            put(&mut machine.object, &TYPE, seen);
        }
    }

    /// Whether the machine in a slot has another type than this call asks for.
    fn changes_type(&self, slot: &str) -> bool {
        let seen = self.cx.observation.resources.get(slot).map(Resource::seen);
        let seen = seen.and_then(|seen| status_of::<Instance>(seen)?.instance_type);
        let asked = self.cx.desired.get(slot).and_then(|desired| text(&desired.object, &TYPE));
        seen.zip(asked).is_some_and(|(seen, asked)| seen != asked)
    }

    /// The power of a machine, and its health.
    fn tell_power(
        &mut self,
        slot: &str,
        machine: &Machine,
        stop: bool,
        is_opened: bool,
        failure: Option<Health>,
    ) -> PowerState {
        let pending = |message| Some(Health::pending(State::Creating, Reason::Creating, message));
        let (power, health) = match (stop, machine.state.as_str()) {
            (true, "stopped") => (PowerState::Stopped, Some(Health::available())),
            (true, _) => (PowerState::Stopping, pending("is being stopped")),
            (false, _) if is_opened && failure.is_none() => {
                (PowerState::Starting, pending("is being started"))
            }
            (false, "stopped") => (PowerState::Stopped, failure),
            (false, "stopping") => (PowerState::Stopping, failure),
            (false, "pending") => (PowerState::Starting, failure),
            (false, _) => (PowerState::Running, failure),
        };
        if let Some((machine, health)) = self.cx.desired.get_mut(slot).zip(health) {
            let is_worse = matches!(machine.health.state, State::Failed);
            if !is_worse || health.state == State::Available {
                machine.health = health;
            }
        }
        power
    }
}

/// Whether a resource is a machine.
pub(super) fn is_machine(object: &crate::value::Object) -> bool {
    let group = text(object, &["apiVersion"]).unwrap_or_default();
    text(object, &["kind"]) == Some("Instance")
        && group.starts_with("ec2.")
        && at(object, &["spec", "forProvider"]).is_some_and(Value::is_object)
}
