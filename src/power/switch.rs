//! Power: stops the resources that can be stopped, and starts them again.
//!
//! A stop changes [`fields`] of composed resources.

#[path = "switch/machine.rs"]
mod machine;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{Composition, Desired};
use crate::error::Error;
use crate::lifecycle::Stop;
use crate::observe::{
    Health, INSIDE, Off, POLICIES, RUNNING, Resource, State, fields, from_object, path,
};
use crate::reason::Reason;
use crate::value::{at, put, text};

/// Power state of an environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum PowerState {
    /// All resources run.
    Running,
    /// All resources that can be stopped are stopped.
    Stopped,
    /// Something is being started.
    Starting,
    /// Something is being stopped.
    Stopping,
    /// The state is not known.
    Unknown,
}

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
    fn is_off(&self, seen: &Resource) -> bool {
        let kind = self.kind();
        if kind == "Deployment" {
            let object = match at(seen.seen(), &["status", "atProvider", "manifest"]) {
                Some(Value::Object(manifest)) => manifest,
                _ => seen.seen(),
            };
            let replicas = |path: &[&str]| at(object, path).and_then(Value::as_i64);
            return replicas(&["spec", "replicas"]) == Some(0)
                && replicas(&["status", "replicas"]).unwrap_or(0) == 0
                && from_object(object).ready;
        }
        fields(kind).iter().all(|(field, off)| {
            let path: Vec<&str> =
                ["status", "atProvider"].into_iter().chain(field.split('.')).collect();
            at(seen.seen(), &path) == Some(&off.value())
        })
    }
}

/// The management policies of an object inside a cluster that no person has changed: those of the
/// API server, and ours of an object that is deleted with its environment.
const OURS: [&[&str]; 2] = [&["*"], &["Observe", "Create", "Update", "Delete"]];

impl Composition<'_> {
    /// Stops the environment, or lets it run, as the plan says. An answer that stands still asks for
    /// the observed management policies, so that those do not show which are ours.
    ///
    /// # Errors
    /// [`Error::Defect`]: a slot that was used twice.
    pub fn apply_power(&mut self, stands_still: bool) -> Result<(), Error> {
        if self.active_plan.is_some() {
            self.power = Some(self.power(self.stop(), stands_still)?);
        }
        Ok(())
    }

    fn power(&mut self, stop: Option<Stop>, stands_still: bool) -> Result<PowerState, Error> {
        let slots: Vec<&'static str> = self
            .stoppable
            .iter()
            .copied()
            .filter(|slot| self.desired.contains_key(*slot))
            .collect();
        let mut states = Vec::new();
        for slot in slots {
            let is_machine =
                self.desired.get(slot).is_some_and(|desired| machine::is_machine(&desired.object));
            states.push(if is_machine {
                self.machine(slot, stop.is_some())?
            } else {
                self.power_of(slot, stop.is_some())
            });
        }
        let waits = self.stoppable.iter().any(|slot| self.waiting.contains_key(*slot));
        if stop.is_some() {
            self.rest(stands_still);
        }
        let order =
            [PowerState::Stopping, PowerState::Starting, PowerState::Stopped, PowerState::Running];
        let state = order.into_iter().find(|state| states.contains(state)).filter(|_| !waits);
        // An environment without stoppable resources runs as long as it exists.
        let exists = self.api.first_slots.iter().any(|slot| self.exists(slot));
        let otherwise = match stop {
            Some(_) => PowerState::Stopped,
            None if exists && !waits && states.is_empty() => PowerState::Running,
            None => PowerState::Unknown,
        };
        Ok(state.unwrap_or(otherwise))
    }

    /// Stops the resource in a slot, or lets it run.
    fn power_of(&mut self, slot: &str, stop: bool) -> PowerState {
        let seen = self.observation.resources.get(slot);
        let Some(desired) = self.desired.get_mut(slot) else { return PowerState::Unknown };
        if stop {
            desired.stop(fields(desired.kind()));
        }
        let Some(seen) = seen else { return PowerState::Starting };
        let is_off = desired.is_off(seen);
        if !stop && (is_off || seen.is_stopped()) {
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
        if stop || seen.is_stopped() || state == PowerState::Starting {
            let health = seen.health().unless_behind(&desired.object, seen.seen());
            desired.health = match pending {
                Some(message) => health.unless_done(message),
                None => health,
            };
        }
        state
    }

    /// Makes providers only observe the objects inside a cluster with stopped nodes. The objects do
    /// not count meanwhile. Policies that a person set stay.
    fn rest(&mut self, stands_still: bool) {
        let configs: Vec<&str> = self
            .observation
            .resources
            .values()
            .filter(|resource| text(&resource.object, &["kind"]) == Some("ProviderConfig"))
            .filter_map(Resource::name)
            .collect();
        for (slot, desired) in &mut self.desired {
            let config = text(&desired.object, &["spec", "providerConfigRef", "name"]);
            let is_inside = config.is_some_and(|config| configs.contains(&config));
            let needs_nodes = text(&desired.object, &["kind"]) == Some("Addon");
            let seen = self.observation.resources.get(slot);
            let is_asked = !stands_still && at(&desired.object, &["spec", POLICIES]).is_some();
            let is_ours = is_asked
                || seen.is_none_or(|seen| {
                    let policies = at(&seen.object, &["spec", POLICIES]);
                    seen.is_stopped()
                        || policies.is_none_or(|all| OURS.iter().any(|ours| *all == json!(ours)))
                });
            if is_inside && is_ours {
                desired.stop(INSIDE);
            }
            let rests = is_inside || needs_nodes && desired.health.state != State::Failed;
            if seen.is_some() && rests {
                desired.health = Health::available();
            }
        }
        self.waiting.retain(|_, _| false);
    }
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
