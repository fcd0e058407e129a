//! GPU workspaces: machines that are stopped and started by an InstanceState.

use jiff::SignedDuration;
use serde_json::{Value, json};
use simulator::provider::{Pace, Provider};

use super::{Environment, condition};
use crate::support::simulated::{self, Case};
use crate::support::world;

const MACHINE: &str = "instance";
const STARTED_AT: &str = "paved-road.fn.crossplane.io/started-at";

fn workspaces() -> Vec<Case> {
    let is_workspace = |case: &Case| case.api().info().name == "gpu-workspace";
    simulated::all().into_iter().filter(is_workspace).collect()
}

impl Environment {
    /// The slots of InstanceStates.
    fn switches(&self) -> Vec<&String> {
        self.world.resources().keys().filter(|slot| slot.starts_with("power-")).collect()
    }

    fn states(&self) -> [&Value; 3] {
        let status = self.status();
        [&status["phase"], &status["power"], &status["lifecycle"]["stopReason"]]
    }

    /// The codes of all causes.
    fn causes(&self) -> Vec<&Value> {
        let resources = self.status()["resources"].as_array().unwrap();
        resources.iter().map(|one| &one["cause"]["code"]).filter(|code| !code.is_null()).collect()
    }

    fn wait_minutes(&mut self, minutes: i64) {
        let later = self.world.now().checked_add(SignedDuration::from_mins(minutes)).unwrap();
        self.world.set_now(later);
    }

    /// A stopped workspace with a start in progress. The cloud has no capacity.
    fn without_capacity(case: Case) -> Self {
        let mut environment = Self::ready(case, json!({"power": "Stopped"}));
        environment.provider.exhaust(MACHINE);
        environment.wish("power", json!("Running"));
        (0..6).for_each(|_| environment.round());
        environment
    }

    /// Asks for a start by the annotation.
    fn start(&mut self) {
        let now = self.world.now().to_string();
        self.world.composite_mut()["metadata"]["annotations"][STARTED_AT] = now.into();
    }

    fn machine(&self) -> &Value {
        &self.world.resources()[MACHINE]
    }
}

#[test]
fn stopped_workspace_keeps_its_machine_and_has_no_connection() {
    for case in workspaces() {
        let mut environment = Environment::ready(case, json!({}));
        let name = environment.name();
        let before = environment.machine()["spec"].clone();
        let address = environment.status()["publicIp"].clone();
        assert!(address.is_string() && environment.status()["connection"].is_string(), "{name}");

        environment.wish("power", json!("Stopped"));
        environment.settle();
        assert_eq!(environment.states(), ["Stopped", "Stopped", "Requested"], "{name}");
        assert_eq!(environment.switches(), [""; 0], "{name}: the change is over");
        assert_eq!(environment.machine()["spec"], before, "{name}");
        assert!(environment.status()["connection"].is_null(), "{name}");

        environment.wait(1);
        environment.wish("power", json!("Running"));
        environment.settle();
        assert_eq!(environment.states(), [&json!("Ready"), &json!("Running"), &Value::Null]);
        assert_eq!(environment.switches(), [""; 0], "{name}: it would fight a shutdown");
        assert_ne!(environment.status()["publicIp"], address, "{name}: another address");
        assert!(environment.status()["connection"].is_string(), "{name}");
    }
}

#[test]
fn switch_of_a_stop_names_the_machine_and_is_not_counted() {
    for case in workspaces() {
        let mut environment = Environment::ready(case, json!({}));
        let progress = environment.status()["progress"].clone();
        environment.provider = Provider::new(Pace::Rounds);
        environment.wish("power", json!("Stopped"));
        let response = environment.call();
        let id = environment.machine()["status"]["atProvider"]["id"].as_str().unwrap();
        let switch = world::desired(&response)[&format!("power-{id}")].clone();
        assert_eq!(switch["spec"]["forProvider"]["instanceId"], id);
        assert_eq!(switch["spec"]["forProvider"]["state"], "stopped");
        let status = world::status(&response);
        assert_eq!((&status["phase"], &status["power"]), (&json!("Stopping"), &json!("Stopping")));
        let total =
            |progress: &Value| progress.as_str().unwrap().rsplit('/').next().unwrap().to_owned();
        assert_eq!(total(&status["progress"]), total(&progress));
    }
}

#[test]
fn machine_that_stopped_by_itself_is_started_only_on_request() {
    for case in workspaces() {
        let mut environment = Environment::ready(case, json!({"ttl": "8h"}));
        let name = environment.name();
        environment.provider.power_off(MACHINE);
        environment.provider.answer(&mut environment.world);
        let response = environment.settle();
        assert_eq!(environment.states(), ["Stopped", "Stopped", "Unknown"], "{name}");
        let told = condition(&response, "Provisioned").unwrap();
        assert!(told.2.contains("paved start"), "{name}: {told:?}");
        let stopped_at = environment.status()["lifecycle"]["stoppedAt"].clone();

        environment.wait(1);
        environment.settle();
        assert_eq!(environment.states(), ["Stopped", "Stopped", "Unknown"], "{name}");
        assert_eq!(environment.status()["lifecycle"]["stoppedAt"], stopped_at, "{name}");

        environment.start();
        environment.settle();
        assert_eq!(environment.states(), [&json!("Ready"), &json!("Running"), &Value::Null]);
    }
}

#[test]
fn new_type_of_a_stopped_workspace_waits_for_the_start() {
    for case in workspaces() {
        let mut environment = Environment::ready(case, json!({"power": "Stopped"}));
        let name = environment.name();
        let before = environment.machine()["spec"]["forProvider"]["instanceType"].clone();
        let wanted = json!("g4dn.2xlarge");
        assert_ne!(before, wanted);
        environment.world.composite_mut()["spec"]["parameters"]["instanceType"] = wanted.clone();
        environment.settle();
        assert_eq!(environment.states(), ["Stopped", "Stopped", "Requested"], "{name}");
        assert_eq!(environment.machine()["spec"]["forProvider"]["instanceType"], before, "{name}");

        environment.wish("power", json!("Running"));
        environment.settle();
        assert_eq!(environment.states(), [&json!("Ready"), &json!("Running"), &Value::Null]);
        let seen = &environment.machine()["status"]["atProvider"]["instanceType"];
        assert_eq!(*seen, wanted, "{name}");
    }
}

#[test]
fn new_type_does_not_start_a_machine_that_stopped_by_itself() {
    for case in workspaces() {
        let mut environment = Environment::ready(case, json!({}));
        let name = environment.name();
        environment.provider.power_off(MACHINE);
        environment.provider.answer(&mut environment.world);
        environment.settle();
        environment.world.composite_mut()["spec"]["parameters"]["instanceType"] =
            json!("g4dn.2xlarge");
        environment.settle();
        assert_eq!(environment.states(), ["Stopped", "Stopped", "Unknown"], "{name}");
        environment.start();
        environment.settle();
        assert_eq!(environment.states(), [&json!("Ready"), &json!("Running"), &Value::Null]);
        let seen = &environment.machine()["status"]["atProvider"]["instanceType"];
        assert_eq!(seen, "g4dn.2xlarge", "{name}");
    }
}

#[test]
fn start_without_capacity_names_the_cause_until_there_is_some() {
    for case in workspaces() {
        let mut environment = Environment::without_capacity(case);
        let name = environment.name();
        assert_eq!(environment.causes(), ["NoCapacity"], "{name}");
        assert_eq!(environment.states()[..2], ["Failed", "Starting"], "{name}");

        environment.provider.mend(MACHINE);
        environment.settle();
        assert_eq!(environment.states()[..2], ["Ready", "Running"], "{name}");
    }
}

/// Otherwise the machine would start when its user no longer waits.
#[test]
fn request_to_start_ends_after_half_an_hour_with_the_reported_error() {
    const DENIED: &str = "UnauthorizedOperation: You are not authorized to perform: \
                          ec2:StartInstances";
    for (error, cause) in [(None, "NoCapacity"), (Some(DENIED), "AccessDenied")] {
        for case in workspaces() {
            let mut environment = Environment::ready(case, json!({"power": "Stopped"}));
            let name = environment.name();
            let id = environment.machine()["status"]["atProvider"]["id"].as_str().unwrap();
            let switch = format!("power-{id}");
            match error {
                Some(error) => environment.provider.fail(&switch, error),
                None => environment.provider.exhaust(MACHINE),
            }
            environment.wish("power", json!("Running"));
            (0..6).for_each(|_| environment.round());
            assert_eq!(environment.causes(), [cause], "{name}");

            environment.wait_minutes(31);
            for _ in 0..2 {
                environment.settle();
                assert_eq!(environment.causes(), [cause], "{name}");
                assert_eq!(environment.states()[..2], ["Failed", "Stopped"], "{name}");
                assert_eq!(environment.switches(), [""; 0], "{name}");
                // The request stays over, although a start would succeed now.
                environment.provider.mend(MACHINE);
                environment.provider.mend(&switch);
                environment.wait(4);
            }
            environment.start();
            environment.settle();
            assert_eq!(environment.states()[..2], ["Ready", "Running"], "{name}");
        }
    }
}

#[test]
fn start_that_no_provider_answered_is_not_a_lack_of_capacity() {
    for case in workspaces() {
        let mut environment = Environment::ready(case, json!({"power": "Stopped"}));
        let name = environment.name();
        // The provider is away: the InstanceState of the function does not change.
        environment.wish("power", json!("Running"));
        let start = environment.world.now();
        for minute in [0, 10, 20, 31] {
            let now = start.checked_add(SignedDuration::from_mins(minute)).unwrap();
            environment.world.set_now(now);
            let response = environment.case.call(&environment.world);
            environment.world.apply(&response).unwrap();
        }
        assert_eq!(environment.causes(), ["TimedOut"], "{name}");
        let status = environment.world.composite()["status"].to_string();
        assert!(status.contains("the provider has not answered"), "{name}: {status}");
    }
}

#[test]
fn new_type_of_a_workspace_that_did_not_start_waits_for_the_next_start() {
    for case in workspaces() {
        let mut environment = Environment::without_capacity(case);
        let name = environment.name();
        environment.wait_minutes(31);
        environment.settle();
        environment.provider.mend(MACHINE);
        environment.world.composite_mut()["spec"]["parameters"]["instanceType"] =
            json!("g4dn.2xlarge");
        environment.settle();
        assert_eq!(environment.states()[..2], ["Failed", "Stopped"], "{name}");
        environment.start();
        environment.settle();
        assert_eq!(environment.states()[..2], ["Ready", "Running"], "{name}");
        let seen = &environment.machine()["status"]["atProvider"]["instanceType"];
        assert_eq!(seen, "g4dn.2xlarge", "{name}");
    }
}

#[test]
fn provider_is_made_to_look_while_a_change_is_awaited_only() {
    const LOOK: &str = "paved-road.fn.crossplane.io/look";
    for case in workspaces() {
        let mut environment = Environment::ready(case, json!({}));
        let note = |environment: &Environment| {
            let asked = world::desired(&environment.call())[MACHINE].clone();
            asked["metadata"]["annotations"][LOOK].clone()
        };
        assert!(note(&environment).is_null(), "a look costs some eight calls of EC2");
        environment.wish("power", json!("Stopped"));
        assert!(note(&environment).is_string());
        environment.settle();
        assert!(note(&environment).is_null());
    }
}
