//! Resources that start and stop machines.
//!
//! Source: terraform-provider-aws v6.34.0, `internal/service/ec2/ec2_instance_state.go`.

use crossplane::json::text;
use serde_json::{Value, json};

use super::kind_behaviour::KindBehaviour;
use super::machines::{Power, Role, terminated};
use super::rules::words;
use super::writes::{EXTERNAL_NAME, identify, may_update, wanted};
use super::{Provider, State, is_ready, registry, set_condition};
use crate::core::World;

impl Provider {
    /// Works on a resource that starts or stops a machine. Its creation, and each later change,
    /// ends once the machine has the wanted power.
    pub(super) fn switch(
        &mut self,
        slot: &str,
        behaviour: &KindBehaviour,
        object: &mut Value,
        world: &World,
    ) -> State {
        let asked = wanted(object);
        let id = asked["instanceId"].as_str().unwrap_or_default();
        let machine = self.machine_slot(id, world);
        let power = machine.as_ref().and_then(|machine| self.clouds.power(machine));
        let (Some(machine), Some(power)) = (machine, power) else {
            self.clouds.forget(slot);
            set_condition(object, &world.now().to_string(), "Ready", "False", "Creating", "");
            return State::Failed(terminated(id));
        };
        let made = self.clouds.get_mut(slot);
        let is_made = made.is_some();
        if let Some(made) = made {
            made.parameters["state"] = json!(power);
            let refusal = behaviour.rules.forbids_change(behaviour.facts, &made.parameters, &asked);
            if let Some(why) = refusal {
                return State::Failed(why);
            }
        }
        let to = asked["state"].as_str().and_then(Power::named).unwrap_or(power);
        if to == power || is_made && !may_update(object) {
            identify(behaviour, object);
            if !is_made {
                self.clouds.put(slot, behaviour, object, world);
            }
            return State::Ready;
        }
        let no_capacity = self.no_start(&machine, world);
        if is_made {
            self.clouds.begin_change(slot, behaviour, object);
        }
        if let Err(why) = self.clouds.turn(&machine, to, no_capacity.as_deref()) {
            self.clouds.end_change(slot);
            return State::Failed(why);
        }
        if is_made { State::Ready } else { State::Creating }
    }

    /// The slot of the machine with an id, also if its provider has not looked at it yet.
    fn machine_slot(&mut self, id: &str, world: &World) -> Option<String> {
        let unseen = world.resources().iter().find(|(slot, object)| {
            let is_known = self.clouds.has(slot) || self.clouds.is_gone(slot);
            !is_known
                && is_ready(object)
                && text(object, &EXTERNAL_NAME) == Some(id)
                && registry::for_object(object).role == Role::Machine
        });
        if let Some((slot, object)) = unseen {
            self.clouds.put(slot, &registry::for_object(object), object, world);
        }
        self.clouds.machine(id).map(str::to_owned)
    }

    /// The cloud's words if it has no capacity to start the machine of a slot.
    fn no_start(&self, slot: &str, world: &World) -> Option<String> {
        let object = world.resources().get(slot)?;
        self.no_capacity(slot, &registry::for_object(object), object, "StartInstances")
    }

    /// The cloud's words if it has no capacity for an operation on the machine of a slot.
    pub(super) fn no_capacity(
        &self,
        slot: &str,
        behaviour: &KindBehaviour,
        object: &Value,
        operation: &str,
    ) -> Option<String> {
        let is_machine = behaviour.role == Role::Machine;
        is_machine.then_some(()).filter(|()| self.exhausted.contains(slot))?;
        let parameter = |field| text(object, &["spec", "forProvider", field]);
        let kind = parameter("instanceType").unwrap_or("g4dn.xlarge");
        let said = words(behaviour.facts, "capacity", "")
            .replace("g4dn.xlarge", kind)
            .replace("<az>", parameter("availabilityZone").unwrap_or("us-east-1a"));
        Some(format!(
            "operation error EC2: {operation}, https response error StatusCode: 500, {said}"
        ))
    }
}
