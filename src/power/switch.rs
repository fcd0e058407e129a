//! Stops and starts the resources of a composition: a stop changes [`fields`] of them.

mod machine;

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

pub(crate) use machine::MACHINE_LIMIT;

use super::{Power, PowerState};
use crate::compose::{Composer, Desired};
use crate::error::Error;
use crate::lifecycle::Stop;
use crate::observe::{
    Health, INSIDE, Off, POLICIES, RUNNING, Resource, State, fields, from_object, path,
};
use crate::plan::Plan;
use crate::pricing::Price;
use crate::reason::Reason;
use crate::value::{at, put, text};

impl Desired {
    /// Gives the fields the values of a stopped resource, and notes those that they have now.
    fn stop(&mut self, fields: &[(&str, Off)]) {
        let mut running = Map::new();
        for (field, off) in fields {
            let path = path(&self.object, field);
            running
                .insert((*field).to_owned(), at(&self.object, &path).cloned().unwrap_or_default());
            put(&mut self.object, &path, Some(off.value()));
        }
        let note = Value::Object(running).to_string();
        put(&mut self.object, &["metadata", "annotations", RUNNING], Some(note.into()));
    }

    /// Sets the fields that would keep the resource stopped.
    fn start(&mut self) {
        for (field, off) in fields(self.kind()) {
            let path = path(&self.object, field);
            if let (None, Some(on)) = (at(&self.object, &path), off.default_on()) {
                put(&mut self.object, &path, Some(on));
            }
        }
    }

    /// Whether a resource was observed to be stopped: its provider reports the values of a stopped
    /// one.
    fn is_off(&self, observed: &Resource) -> bool {
        let kind = self.kind();
        if kind == "Deployment" {
            let object = match at(observed.seen(), &["status", "atProvider", "manifest"]) {
                Some(Value::Object(manifest)) => manifest,
                _ => observed.seen(),
            };
            let replicas = |path: &[&str]| at(object, path).and_then(Value::as_i64);
            return replicas(&["spec", "replicas"]) == Some(0)
                && replicas(&["status", "replicas"]).unwrap_or(0) == 0
                && from_object(object).ready;
        }
        fields(kind).iter().all(|(field, off)| {
            let path: Vec<&str> =
                ["status", "atProvider"].into_iter().chain(field.split('.')).collect();
            at(observed.seen(), &path) == Some(&off.value())
        })
    }
}

/// The management policies of an object inside a cluster that no person has changed: those of the
/// API server, and ours of an object that is deleted with its environment.
const OURS: [&[&str]; 2] = [&["*"], &["Observe", "Create", "Update", "Delete"]];

/// The change of the power of one composition.
pub(super) struct Switch<'c, 'o> {
    pub cx: &'c mut Composer<'o>,
    pub stop: Option<Stop>,
    /// The request to start that is still open.
    pub opened: Option<Timestamp>,
    wakes_in: Option<Duration>,
    /// Whether the composition preserves all observed resources. Such a composition has the
    /// observed management policies, and does not know whether a person set them.
    preserves: bool,
}

impl<'c, 'o> Switch<'c, 'o> {
    /// Stops the environment, or lets it run, as the plan says. Without a lifecycle, the
    /// resources stay the same. `preserves` is true if the composition preserves all observed
    /// resources.
    ///
    /// # Errors
    /// [`Error::Defect`]: a slot that was used twice.
    pub fn apply(
        cx: &'c mut Composer<'o>,
        plan: &Plan,
        price: Option<Price>,
        preserves: bool,
    ) -> Result<Option<Power>, Error> {
        let Some(active) = plan.active() else { return Ok(None) };
        let (stop, opened) = (active.plan.stop, active.plan.opened());
        let mut switch = Self { cx, stop, opened, wakes_in: None, preserves };
        let state = switch.environment(active.stoppable)?;
        Ok(Some(Power { state, opened: switch.opened, wakes_in: switch.wakes_in, price }))
    }

    /// Stops the environment, or lets it run.
    fn environment(&mut self, stoppable: &[&'static str]) -> Result<PowerState, Error> {
        let is_composed = |slot: &&&str| self.cx.desired.contains_key(**slot);
        let slots: Vec<&str> = stoppable.iter().filter(is_composed).copied().collect();
        let mut states = Vec::new();
        for slot in slots {
            let desired = self.cx.desired.get(slot);
            states.push(if desired.is_some_and(|desired| machine::is_machine(&desired.object)) {
                self.machine(slot)?
            } else {
                self.resource(slot)
            });
        }
        let waits = stoppable.iter().any(|slot| self.cx.waiting.contains_key(*slot));
        if self.stop.is_some() {
            self.only_observe_inside();
        }
        let order =
            [PowerState::Stopping, PowerState::Starting, PowerState::Stopped, PowerState::Running];
        let state = order.into_iter().find(|state| states.contains(state)).filter(|_| !waits);
        // An environment without stoppable resources runs as long as it exists.
        let exists = self.cx.observation.has_first_resource();
        let otherwise = match self.stop {
            Some(_) => PowerState::Stopped,
            None if exists && !waits && states.is_empty() => PowerState::Running,
            None => PowerState::Unknown,
        };
        Ok(state.unwrap_or(otherwise))
    }

    /// Stops the resource in a slot, or lets it run.
    fn resource(&mut self, slot: &str) -> PowerState {
        let stop = self.stop.is_some();
        let observed = self.cx.observation.resources.get(slot);
        let Some(desired) = self.cx.desired.get_mut(slot) else { return PowerState::Unknown };
        if stop {
            desired.stop(fields(desired.kind()));
        }
        let Some(observed) = observed else { return PowerState::Starting };
        let is_off = desired.is_off(observed);
        if !stop && (is_off || observed.is_stopped()) {
            desired.start();
        }
        let (state, pending) = match (stop, is_off) {
            (true, true) => (PowerState::Stopped, None),
            (true, false) => (PowerState::Stopping, Some("is being stopped")),
            (false, true) if !desired.wants_off() => {
                (PowerState::Starting, Some("is being started"))
            }
            (false, _) => (PowerState::Running, None),
        };
        if stop || observed.is_stopped() || state == PowerState::Starting {
            let health = observed.health().unless_behind(&desired.object, observed.seen());
            desired.health = match pending {
                Some(message) => health.unless_done(message),
                None => health,
            };
        }
        state
    }

    /// Makes providers only observe the objects inside a cluster with stopped nodes. The objects do
    /// not count meanwhile. Policies that a person set stay.
    fn only_observe_inside(&mut self) {
        let resources = &self.cx.observation.resources;
        let configs: Vec<&str> = resources
            .values()
            .filter(|resource| text(&resource.object, &["kind"]) == Some("ProviderConfig"))
            .filter_map(Resource::name)
            .collect();
        for (slot, desired) in &mut self.cx.desired {
            let config = text(&desired.object, &["spec", "providerConfigRef", "name"]);
            let is_inside = config.is_some_and(|config| configs.contains(&config));
            let needs_nodes = text(&desired.object, &["kind"]) == Some("Addon");
            let observed = resources.get(slot);
            let sets_policies =
                !self.preserves && at(&desired.object, &["spec", POLICIES]).is_some();
            if is_inside && (sets_policies || observed.is_none_or(has_our_policies)) {
                desired.stop(INSIDE);
            }
            let is_idle = is_inside || needs_nodes && desired.health.state != State::Failed;
            if observed.is_some() && is_idle {
                desired.health = Health::available();
            }
        }
        self.cx.waiting.clear();
    }

    /// Asks for a call within a time.
    pub(super) fn wake_in(&mut self, time: Duration) {
        self.wakes_in = Some(self.wakes_in.map_or(time, |other| other.min(time)));
    }
}

/// Whether no person has changed the management policies of an observed resource.
fn has_our_policies(observed: &Resource) -> bool {
    let policies = at(&observed.object, &["spec", POLICIES]);
    observed.is_stopped() || policies.is_none_or(|all| OURS.iter().any(|ours| *all == json!(ours)))
}

impl Desired {
    /// Whether the values of the running resource are those of a stopped one: a pool of no pods.
    fn wants_off(&self) -> bool {
        fields(self.kind())
            .iter()
            .all(|(field, off)| at(&self.object, &path(&self.object, field)) == Some(&off.value()))
    }
}

impl Health {
    /// This health, unless it is ready.
    fn unless_done(self, message: &'static str) -> Self {
        if self.state == State::Available {
            Self::pending(State::Creating, Reason::Creating, message)
        } else {
            self
        }
    }
}
