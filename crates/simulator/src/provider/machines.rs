//! Machines: their power, their public addresses, and the resources that start and stop them.
//!
//! Sources: terraform-provider-aws v6.34.0, `internal/service/ec2`: `ec2_instance_state.go`, and
//! `modifyInstanceAttributeWithStopStart` and `waitInstanceReady` of `ec2_instance.go`. AWS's
//! documents have the addresses and the spot machines.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::kind_behaviour::KindBehaviour;
use super::rules::words;
use super::writes::{EXTERNAL_NAME, identify, may_update, wanted};
use super::{Provider, State, is_ready, registry, set_condition};
use crate::core::World;
use crossplane::json::text;

/// The effect of a kind on the power of machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// No effect.
    None,
    /// It is a machine.
    Machine,
    /// It starts or stops the machine that `spec.forProvider.instanceId` names.
    Switch,
}

/// The power of a machine, as EC2 calls it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Power {
    /// It is being started.
    Pending,
    /// It runs.
    Running,
    /// It is being stopped.
    Stopping,
    /// It is stopped.
    Stopped,
}

/// The state of a machine that its parameters do not have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Machine {
    /// Its power.
    pub power: Power,
    /// How often it was started again. Each start brings another public address.
    pub starts: u32,
    /// Whether AWS took back its spot capacity. Then only AWS starts it again.
    pub is_interrupted: bool,
}

impl Power {
    /// The power with this name.
    pub(super) fn named(name: &str) -> Option<Self> {
        serde_json::from_value(json!(name)).ok()
    }
}

impl Machine {
    /// A machine that was just created.
    pub(super) const NEW: Self = Self { power: Power::Running, starts: 0, is_interrupted: false };

    /// A machine as an object last showed it.
    pub(super) fn observed(object: &Value) -> Self {
        let power = text(object, &["status", "atProvider", "instanceState"]).and_then(Power::named);
        Self { power: power.unwrap_or(Power::Running), ..Self::NEW }
    }

    /// Whether it is being started or stopped.
    pub fn is_turning(&self) -> bool {
        matches!(self.power, Power::Pending | Power::Stopping)
    }

    /// Ends its start or its stop.
    pub fn settle(&mut self) {
        self.power = match self.power {
            Power::Pending | Power::Running => Power::Running,
            Power::Stopping | Power::Stopped => Power::Stopped,
        };
    }

    /// Begins to start or stop the machine, if it has the other power. A machine that is being
    /// started or stopped is waited for. `no_capacity` has the cloud's words if it cannot start.
    pub fn turn(
        &mut self,
        to: Power,
        id: &str,
        parameters: &Value,
        no_capacity: Option<&str>,
    ) -> Result<(), String> {
        match (to, self.power) {
            (Power::Stopped, Power::Running) if is_one_time(parameters) => Err(format!(
                "stopping EC2 Instance ({id}): operation error EC2: StopInstances, https response \
                 error StatusCode: 400, api error UnsupportedOperation: You can't stop the Spot \
                 Instance '{id}' because it is associated with a one-time Spot Instance request. \
                 You can only stop Spot Instances associated with persistent Spot Instance requests."
            )),
            (Power::Stopped, Power::Running) => {
                self.power = Power::Stopping;
                Ok(())
            }
            (Power::Running, Power::Stopped) if self.is_interrupted => Err(format!(
                "starting EC2 Instance ({id}): operation error EC2: StartInstances, https response \
                 error StatusCode: 400, api error IncorrectSpotRequestState: Only Amazon EC2 can \
                 restart an interrupted stopped Spot Instance"
            )),
            (Power::Running, Power::Stopped) => {
                if let Some(words) = no_capacity {
                    return Err(format!("starting EC2 Instance ({id}): {words}"));
                }
                self.start();
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Changes the `fields` of `there` that differ from the `wanted` ones. Terraform stops the
    /// machine, changes one field and starts the machine, also one that was stopped before. A start
    /// that fails leaves it stopped, and later fields unchanged.
    pub(super) fn restart_with(
        &mut self,
        fields: &[&str],
        there: &mut Value,
        wanted: &Value,
        id: &str,
        no_capacity: Option<&str>,
    ) -> Result<(), String> {
        for field in fields {
            if !is_changed(field, there, wanted) {
                continue;
            }
            let what = if *field == "instanceType" { "type" } else { "user data" };
            let told = |why: String| format!("updating EC2 Instance ({id}) {what}: {why}");
            self.settle();
            self.turn(Power::Stopped, id, there, None).map_err(told)?;
            self.settle();
            there[*field] = wanted[*field].clone();
            self.turn(Power::Running, id, there, no_capacity).map_err(told)?;
        }
        Ok(())
    }

    /// Shows the power and the public address in `status.atProvider`. The first address is there.
    /// Terraform shows no address as an empty text.
    pub fn show(&self, seen: &mut Value) {
        seen["instanceState"] = json!(self.power);
        let Some(first) = seen["publicIp"].as_str() else { return };
        let (ip, dns) = match self.power {
            Power::Running => {
                let ip = address_after(first, self.starts);
                (ip.clone(), public_dns(&ip))
            }
            _ => (String::new(), String::new()),
        };
        seen["publicIp"] = json!(ip);
        seen["publicDns"] = json!(dns);
    }

    /// Begins a start.
    pub(super) fn start(&mut self) {
        self.power = Power::Pending;
        self.starts += 1;
    }

    /// Stops the machine without its provider.
    pub(super) fn stop_at_once(&mut self, is_interrupted: bool) {
        self.power = Power::Stopped;
        self.is_interrupted = is_interrupted;
    }
}

/// The words of a provider about a machine that was terminated.
pub fn terminated(id: &str) -> String {
    format!(
        "waiting for EC2 Instance ({id}) ready: unexpected state 'terminated', wanted target \
         'running, stopped'. last error: Client.UserInitiatedShutdown: User initiated shutdown"
    )
}

/// The name that belongs to a public address.
pub(super) fn public_dns(ip: &str) -> String {
    format!("ec2-{}.compute-1.amazonaws.com", ip.replace('.', "-"))
}

/// Another address of the same network for each start.
fn address_after(first: &str, starts: u32) -> String {
    const STEP: u32 = 37;
    let (network, host) = first.rsplit_once('.').unwrap_or((first, "1"));
    let host: u32 = host.parse().unwrap_or(1);
    format!("{network}.{}", (host.max(1) - 1 + STEP * starts) % 254 + 1)
}

fn is_changed(field: &str, there: &Value, wanted: &Value) -> bool {
    !wanted[field].is_null() && wanted[field] != there[field]
}

/// The options of a spot machine.
fn spot(parameters: &Value) -> Option<&Value> {
    let market = &parameters["instanceMarketOptions"];
    (market["marketType"] == "spot").then_some(&market["spotOptions"])
}

/// Whether a machine is a spot machine.
pub(super) fn is_spot(parameters: &Value) -> bool {
    spot(parameters).is_some()
}

fn is_one_time(parameters: &Value) -> bool {
    spot(parameters).is_some_and(|options| options["spotInstanceType"] != "persistent")
}

/// Whether an interruption stops a spot machine. Otherwise it terminates the machine.
pub(super) fn stops_when_interrupted(parameters: &Value) -> bool {
    spot(parameters).is_some_and(|options| {
        let behavior = options["instanceInterruptionBehavior"].as_str();
        options["spotInstanceType"] == "persistent"
            && matches!(behavior, Some("stop" | "hibernate"))
    })
}

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
