//! Machines: their power and their public addresses.
//!
//! Sources: terraform-provider-aws v6.34.0, `internal/service/ec2`: `ec2_instance_state.go`, and
//! `modifyInstanceAttributeWithStopStart` and `waitInstanceReady` of `ec2_instance.go`. AWS's
//! documents have the addresses and the spot machines.

use crossplane::json::text;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

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
