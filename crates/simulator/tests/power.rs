//! Stops and starts: machines, node pools, database servers and Deployments.
//!
//! Each test names its fact. The facts are in the sources of Terraform and of the providers, and in
//! the documents of the clouds.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::needless_pass_by_value)]

mod support;

use jiff::SignedDuration;
use serde_json::{Value, json};
use simulator::core::World;
use simulator::provider::{Pace, Power, Provider};
use support::{SIBLING, aws, desire, gcp, message, status, world};

const MACHINE: &str = "machine";
const SWITCH: &str = "machine-power";

fn machine(params: Value) -> Value {
    let mut machine =
        aws("Instance", json!({"region": "us-east-1", "instanceType": "g4dn.xlarge"}));
    for (field, value) in params.as_object().unwrap() {
        machine["spec"]["forProvider"][field] = value.clone();
    }
    machine
}

fn switch(id: &str, state: &str) -> Value {
    aws("InstanceState", json!({"region": "us-east-1", "instanceId": id, "state": state}))
}

/// A machine with its provider.
struct Fixture {
    world: World,
    provider: Provider,
    params: Value,
}

impl Fixture {
    /// A machine that runs.
    fn running(provider: Provider, params: Value) -> Self {
        let world = world(json!({MACHINE: machine(params.clone())}));
        let mut fixture = Self { world, provider, params };
        fixture.settle();
        assert_eq!(fixture.power(), "running");
        fixture
    }

    /// The same with clouds that need no time.
    fn instant() -> Self {
        Self::running(Provider::new(Pace::Instant), json!({}))
    }

    fn answer(&mut self) {
        self.provider.answer(&mut self.world);
    }

    fn settle(&mut self) {
        for _ in 0..10 {
            self.answer();
            if !self.provider.is_at_work(&self.world) {
                return;
            }
        }
        panic!("still at work");
    }

    /// Asks for the machine, and for a switch to this state.
    fn ask(&mut self, state: &str) {
        let id = self.id();
        let resources = json!({MACHINE: machine(self.params.clone()), SWITCH: switch(&id, state)});
        desire(&mut self.world, resources);
    }

    /// Asks for the machine only.
    fn ask_for_nothing(&mut self) {
        desire(&mut self.world, json!({MACHINE: machine(self.params.clone())}));
    }

    /// Switches the machine.
    fn turn(&mut self, state: &str) {
        self.ask(state);
        self.settle();
        assert_eq!(status(&self.world, SWITCH, "Ready"), "True");
    }

    fn seen(&self, slot: &str, field: &str) -> String {
        let found = &self.world.resources()[slot]["status"]["atProvider"][field];
        found.as_str().unwrap_or_default().to_owned()
    }

    fn power(&self) -> String {
        self.seen(MACHINE, "instanceState")
    }

    fn id(&self) -> String {
        self.seen(MACHINE, "id")
    }

    fn wait(&mut self, minutes: i64) {
        let later = self.world.now() + SignedDuration::from_mins(minutes);
        self.world.set_now(later);
    }
}

#[test]
fn public_address_of_a_stopped_machine_is_empty_and_another_one_after_the_start() {
    let mut fixture = Fixture::instant();
    let address =
        |fixture: &Fixture| (fixture.seen(MACHINE, "publicIp"), fixture.seen(MACHINE, "publicDns"));
    let (before, private) = (address(&fixture), fixture.seen(MACHINE, "privateIp"));
    fixture.turn("stopped");
    let seen = &fixture.world.resources()[MACHINE]["status"]["atProvider"];
    // Terraform writes an absent address as an empty text.
    assert_eq!((&seen["publicIp"], &seen["publicDns"]), (&json!(""), &json!("")));
    assert_eq!(fixture.power(), "stopped");
    fixture.turn("running");
    let after = address(&fixture);
    assert_ne!(after, before);
    assert!(after.1.contains(&after.0.replace('.', "-")), "{after:?}");
    assert_eq!(fixture.seen(MACHINE, "privateIp"), private, "the private address stays");
}

#[test]
fn stopped_machine_is_ready_for_its_provider() {
    let mut fixture = Fixture::instant();
    fixture.turn("stopped");
    for kind in ["Ready", "Synced", "LastAsyncOperation"] {
        assert_eq!(status(&fixture.world, MACHINE, kind), "True", "{kind}");
    }
}

#[test]
fn instance_state_is_ready_once_the_machine_has_the_state() {
    let mut fixture = Fixture::running(Provider::new(Pace::Rounds), json!({}));
    fixture.ask("stopped");
    fixture.answer();
    assert_eq!(status(&fixture.world, SWITCH, "Ready"), "False");
    assert_eq!(status(&fixture.world, SWITCH, "Synced"), "True");
    let annotations = &fixture.world.resources()[SWITCH]["metadata"]["annotations"];
    assert_eq!(annotations.get("crossplane.io/external-name"), None, "its creation is not over");
    fixture.answer();
    assert_eq!(status(&fixture.world, SWITCH, "Ready"), "True");
    assert_eq!(
        (fixture.power(), fixture.seen(SWITCH, "state")),
        ("stopped".into(), "stopped".into())
    );
    assert_eq!(fixture.seen(SWITCH, "id"), fixture.id(), "its external name is the machine's id");
}

#[test]
fn changed_instance_state_is_ready_before_the_machine_has_the_state() {
    let mut fixture = Fixture::running(Provider::new(Pace::Rounds), json!({}));
    fixture.turn("stopped");
    fixture.ask("running");
    fixture.answer();
    assert_eq!(status(&fixture.world, SWITCH, "Ready"), "True", "Ready means that it exists");
    assert_eq!(fixture.seen(SWITCH, "state"), "stopped", "the provider shows what it saw before");
    fixture.answer();
    assert_eq!(
        (fixture.power(), fixture.seen(SWITCH, "state")),
        ("running".into(), "running".into())
    );
}

#[test]
fn machine_that_is_being_stopped_shows_it_until_it_is() {
    let mut fixture = Fixture::running(Provider::new(Pace::Rounds), json!({}));
    // The switch comes before the machine in each round.
    let resources =
        |id: &str| json!({"a-power": switch(id, "stopped"), MACHINE: machine(json!({}))});
    let resources = resources(&fixture.id());
    desire(&mut fixture.world, resources);
    let mut seen = Vec::new();
    for _ in 0..3 {
        fixture.answer();
        seen.push((fixture.power(), fixture.seen(MACHINE, "publicIp").is_empty()));
    }
    let expected = [("stopping", true), ("stopped", true), ("stopped", true)];
    assert_eq!(seen, expected.map(|(power, is_empty)| (power.to_owned(), is_empty)));
}

#[test]
fn deleted_instance_state_leaves_the_machine_as_it_is() {
    let mut fixture = Fixture::instant();
    fixture.turn("stopped");
    fixture.ask_for_nothing();
    fixture.settle();
    assert!(!fixture.world.resources().contains_key(SWITCH));
    assert_eq!(fixture.power(), "stopped");
    assert_eq!(
        fixture.provider.external_mut(MACHINE).unwrap().machine.as_ref().unwrap().power,
        Power::Stopped
    );
}

#[test]
fn running_instance_state_starts_a_machine_that_powers_itself_off() {
    let mut fixture = Fixture::instant();
    fixture.turn("running");
    fixture.provider.power_off(MACHINE);
    fixture.settle();
    assert_eq!(fixture.power(), "running");
    assert_eq!(fixture.provider.updates(SWITCH), 1);
    fixture.ask_for_nothing();
    fixture.provider.power_off(MACHINE);
    fixture.settle();
    assert_eq!(fixture.power(), "stopped", "without the switch, the machine stays off");
}

#[test]
fn machine_with_shutdown_behavior_terminate_is_created_again() {
    let params = json!({"instanceInitiatedShutdownBehavior": "terminate", "subnetId": "subnet-1"});
    let mut fixture = Fixture::running(Provider::new(Pace::Instant), params);
    let before = fixture.id();
    fixture.provider.power_off(MACHINE);
    fixture.settle();
    assert_ne!(fixture.id(), before);
    assert_eq!(fixture.power(), "running");
}

#[test]
fn instance_state_of_a_terminated_machine_fails_permanently() {
    let mut fixture =
        Fixture::running(Provider::new(Pace::Instant), json!({"subnetId": "subnet-1"}));
    fixture.turn("stopped");
    let id = fixture.id();
    fixture.provider.vanish(MACHINE);
    fixture.settle();
    assert_ne!(fixture.id(), id, "there is another machine");
    for _ in 0..2 {
        fixture.settle();
        assert_eq!(status(&fixture.world, SWITCH, "Ready"), "False");
        let words = message(&fixture.world, SWITCH, "LastAsyncOperation");
        let expected = format!(
            "async create failed: waiting for EC2 Instance ({id}) ready: unexpected state 'terminated'"
        );
        assert!(words.starts_with(&expected), "{words}");
    }
    assert_eq!(fixture.power(), "running", "it does not stop the other machine");
}

#[test]
fn instance_state_cannot_change_its_machine() {
    let mut fixture = Fixture::instant();
    fixture.turn("stopped");
    let resources = json!({MACHINE: machine(json!({})), "other": machine(json!({}))});
    let mut others = world(resources);
    Provider::new(Pace::Instant).answer(&mut others);
    let other = others.resources()["other"].clone();
    let id = other["status"]["atProvider"]["id"].as_str().unwrap().to_owned();
    fixture.world.resources_mut().insert("other".to_owned(), other);
    let switch = fixture.world.resources_mut().get_mut(SWITCH).unwrap();
    switch["spec"]["forProvider"]["instanceId"] = json!(id);
    fixture.settle();
    let words = message(&fixture.world, SWITCH, "Synced");
    assert!(words.contains(r#"cannot change the value of the argument "instance_id""#), "{words}");
}

#[test]
fn machine_that_powers_itself_off_is_seen_at_the_next_poll() {
    let mut fixture = Fixture::running(Provider::new(Pace::Instant).polling(), json!({}));
    fixture.provider.power_off(MACHINE);
    fixture.wait(9);
    fixture.settle();
    assert_eq!(fixture.power(), "running", "its provider has not looked yet");
    fixture.wait(1);
    fixture.settle();
    assert_eq!(fixture.power(), "stopped");
}

#[test]
fn changed_annotation_makes_the_provider_look_at_once() {
    let mut fixture = Fixture::running(Provider::new(Pace::Instant).polling(), json!({}));
    fixture.provider.power_off(MACHINE);
    let object = fixture.world.resources_mut().get_mut(MACHINE).unwrap();
    object["metadata"]["annotations"]["example.org/touched"] = json!("2026-11-26T12:00:00Z");
    fixture.settle();
    assert_eq!(fixture.power(), "stopped");
}

#[test]
fn end_of_a_switch_is_no_look_at_the_machine() {
    let mut fixture = Fixture::running(Provider::new(Pace::Rounds).polling(), json!({}));
    fixture.turn("stopped");
    assert_eq!(fixture.seen(SWITCH, "state"), "stopped");
    assert_eq!(fixture.power(), "running", "its provider looks every ten minutes");
    fixture.wait(10);
    fixture.settle();
    assert_eq!(fixture.power(), "stopped");
}

#[test]
fn changed_type_or_user_data_starts_a_stopped_machine() {
    for (field, value) in [("instanceType", "g5.xlarge"), ("userData", "#cloud-config")] {
        let mut fixture = Fixture::running(Provider::new(Pace::Rounds).polling(), json!({}));
        let address = fixture.seen(MACHINE, "publicIp");
        fixture.turn("stopped");
        fixture.wait(10);
        fixture.settle();
        fixture.params = json!({field: value});
        fixture.ask_for_nothing();
        fixture.answer();
        assert_eq!(fixture.power(), "stopped", "its provider shows what it saw before");
        assert_eq!(status(&fixture.world, MACHINE, "Synced"), "True");
        fixture.answer();
        assert_eq!(fixture.power(), "running");
        assert_eq!(fixture.seen(MACHINE, field), value);
        assert_ne!(fixture.seen(MACHINE, "publicIp"), address);
    }
}

#[test]
fn other_changes_leave_a_machine_stopped() {
    let mut fixture = Fixture::instant();
    fixture.turn("stopped");
    fixture.params = json!({"tags": {"team": "vision"}});
    fixture.ask("stopped");
    fixture.settle();
    assert_eq!(fixture.power(), "stopped");
    assert_eq!(
        fixture.world.resources()[MACHINE]["status"]["atProvider"]["tags"]["team"],
        "vision"
    );
}

#[test]
fn start_without_capacity_fails_until_there_is_some() {
    let mut fixture = Fixture::instant();
    fixture.turn("stopped");
    fixture.ask_for_nothing();
    fixture.provider.exhaust(MACHINE);
    fixture.settle();
    fixture.ask("running");
    fixture.settle();
    assert_eq!(fixture.power(), "stopped");
    assert_eq!(status(&fixture.world, SWITCH, "Ready"), "False");
    let words = message(&fixture.world, SWITCH, "LastAsyncOperation");
    assert!(words.contains("StartInstances") && words.contains("InsufficientInstanceCapacity: We currently do not have sufficient g4dn.xlarge capacity"), "{words}");
    assert_eq!(status(&fixture.world, MACHINE, "Synced"), "True", "the machine has no error");
    fixture.provider.mend(MACHINE);
    fixture.settle();
    assert_eq!(
        (fixture.power(), status(&fixture.world, SWITCH, "Ready")),
        ("running".into(), "True".into())
    );
}

#[test]
fn type_change_without_capacity_leaves_the_machine_stopped_without_an_error() {
    let mut fixture = Fixture::instant();
    fixture.provider.exhaust(MACHINE);
    fixture.params = json!({"instanceType": "g5.xlarge"});
    fixture.ask_for_nothing();
    fixture.settle();
    let synced = status(&fixture.world, MACHINE, "Synced");
    assert_eq!(synced, "True", "the type is changed, so nothing is left to change");
    assert_eq!(
        (fixture.power(), fixture.seen(MACHINE, "instanceType")),
        ("stopped".into(), "g5.xlarge".into())
    );
    fixture.provider.mend(MACHINE);
    fixture.settle();
    assert_eq!(fixture.power(), "stopped", "nothing starts it");
    fixture.turn("running");
    assert_eq!(fixture.power(), "running");
}

#[test]
fn failed_restart_is_told_once() {
    let mut fixture = Fixture::running(Provider::new(Pace::Rounds), json!({}));
    fixture.provider.exhaust(MACHINE);
    fixture.params = json!({"instanceType": "g5.xlarge"});
    fixture.ask_for_nothing();
    fixture.answer();
    let words = message(&fixture.world, MACHINE, "Synced");
    assert!(
        words.starts_with("update failed: async update failed: updating EC2 Instance (i-"),
        "{words}"
    );
    assert!(words.contains("sufficient g5.xlarge capacity"), "{words}");
    assert_eq!(status(&fixture.world, MACHINE, "Ready"), "True");
    fixture.answer();
    assert_eq!(
        (status(&fixture.world, MACHINE, "Synced"), fixture.power()),
        ("True".into(), "stopped".into())
    );
}

#[test]
fn creation_without_capacity_fails() {
    let mut world = world(json!({MACHINE: machine(json!({}))}));
    let mut provider = Provider::new(Pace::Instant);
    provider.exhaust(MACHINE);
    provider.answer(&mut world);
    let words = message(&world, MACHINE, "LastAsyncOperation");
    assert!(
        words.contains("RunInstances") && words.contains("InsufficientInstanceCapacity"),
        "{words}"
    );
}

fn spot(kind: &str, behavior: &str) -> Value {
    json!({"subnetId": "subnet-1", "instanceMarketOptions": {"marketType": "spot", "spotOptions": {
        "spotInstanceType": kind, "instanceInterruptionBehavior": behavior}}})
}

#[test]
fn interrupted_spot_machine_is_started_by_aws_only() {
    for behavior in ["stop", "hibernate"] {
        let mut fixture =
            Fixture::running(Provider::new(Pace::Instant), spot("persistent", behavior));
        assert_eq!(fixture.seen(MACHINE, "instanceLifecycle"), "spot");
        let id = fixture.id();
        fixture.provider.reclaim(MACHINE);
        fixture.settle();
        assert_eq!((fixture.power(), fixture.id()), ("stopped".into(), id.clone()));
        assert_eq!(fixture.seen(MACHINE, "publicIp"), "");
        fixture.ask("running");
        fixture.settle();
        let words = message(&fixture.world, SWITCH, "LastAsyncOperation");
        assert!(words.contains("IncorrectSpotRequestState"), "{words}");
        fixture.ask_for_nothing();
        fixture.provider.resume(MACHINE);
        fixture.settle();
        assert_eq!((fixture.power(), fixture.id()), ("running".into(), id));
    }
}

#[test]
fn spot_machine_that_was_stopped_is_not_resumed_by_aws() {
    let mut fixture = Fixture::running(Provider::new(Pace::Instant), spot("persistent", "stop"));
    fixture.turn("stopped");
    fixture.provider.resume(MACHINE);
    fixture.settle();
    assert_eq!(fixture.power(), "stopped");
    fixture.turn("running");
}

#[test]
fn one_time_spot_machine_is_terminated_by_an_interruption_and_cannot_be_stopped() {
    let mut fixture = Fixture::running(Provider::new(Pace::Instant), spot("one-time", "terminate"));
    fixture.ask("stopped");
    fixture.settle();
    let words = message(&fixture.world, SWITCH, "LastAsyncOperation");
    assert!(words.contains("You can't stop the Spot Instance"), "{words}");
    assert_eq!(fixture.power(), "running");
    fixture.ask_for_nothing();
    let before = fixture.id();
    fixture.provider.reclaim(MACHINE);
    fixture.settle();
    assert_ne!(fixture.id(), before);
}

#[test]
fn machine_that_was_observed_stopped_is_stopped() {
    let mut fixture = Fixture::instant();
    fixture.turn("stopped");
    // Another run of the providers finds the objects as they are.
    fixture.provider = Provider::new(Pace::Instant);
    fixture.ask_for_nothing();
    fixture.settle();
    assert_eq!(fixture.power(), "stopped");
    fixture.turn("running");
}

#[test]
fn node_pool_with_zero_nodes_is_ready_and_shows_the_former_count_until_the_end() {
    let pool = |count: i64| json!({"pool": gcp("container", "NodePool", json!({"location": "us-central1", "cluster": "c", "nodeCount": count}))});
    let mut world = world(pool(2));
    let mut provider = Provider::new(Pace::Rounds);
    let count =
        |world: &World| world.resources()["pool"]["status"]["atProvider"]["nodeCount"].clone();
    provider.answer(&mut world);
    provider.answer(&mut world);
    assert_eq!(count(&world), 2);
    desire(&mut world, pool(0));
    let mut counts = Vec::new();
    for _ in 0..2 {
        provider.answer(&mut world);
        counts.push(count(&world));
        assert_eq!(
            (status(&world, "pool", "Ready"), status(&world, "pool", "Synced")),
            ("True".into(), "True".into())
        );
    }
    assert_eq!(counts, [2, 0], "the provider follows the operation");
    assert!(!provider.is_at_work(&world));
}

fn node_group(least: i64, desired: i64) -> Value {
    let scaling = json!({"minSize": least, "desiredSize": desired, "maxSize": 3});
    json!({"group": {"apiVersion": "eks.aws.upbound.io/v1beta2", "kind": "NodeGroup",
        "spec": {"forProvider": {"region": "eu-west-1", "clusterName": "c", "scalingConfig": scaling}}}})
}

#[test]
fn node_group_with_zero_nodes_is_active() {
    let mut world = world(node_group(1, 2));
    let mut provider = Provider::new(Pace::Instant);
    provider.answer(&mut world);
    desire(&mut world, node_group(0, 0));
    provider.answer(&mut world);
    let seen = &world.resources()["group"]["status"]["atProvider"];
    assert_eq!(
        (&seen["status"], &seen["scalingConfig"]["desiredSize"]),
        (&json!("ACTIVE"), &json!(0))
    );
    assert_eq!(
        (status(&world, "group", "Ready"), status(&world, "group", "Synced")),
        ("True".into(), "True".into())
    );
}

#[test]
fn node_group_refuses_a_minimum_above_the_desired_size() {
    let mut world = world(node_group(1, 2));
    let mut provider = Provider::new(Pace::Instant);
    provider.answer(&mut world);
    desire(&mut world, node_group(1, 0));
    provider.answer(&mut world);
    let words = message(&world, "group", "Synced");
    assert!(words.ends_with("Minimum capacity 1 can't be greater than desired size 0"), "{words}");
    assert_eq!(
        world.resources()["group"]["status"]["atProvider"]["scalingConfig"]["desiredSize"],
        2
    );
}

fn sql(policy: &str, charset: &str) -> Value {
    let mut server = gcp(
        "sql",
        "DatabaseInstance",
        json!({"region": "us-central1", "settings": {"activationPolicy": policy}}),
    );
    server["metadata"] = json!({"annotations": {"crossplane.io/external-name": "server"}});
    json!({
        "server": server, "user": gcp("sql", "User", json!({"instanceSelector": SIBLING()})),
        "database": gcp("sql", "Database", json!({"instanceSelector": SIBLING(), "charset": charset})),
    })
}

#[test]
fn stopped_database_server_is_ready_with_its_database_and_its_user() {
    let mut world = world(sql("ALWAYS", "UTF8"));
    let mut provider = Provider::new(Pace::Rounds);
    let settle = |provider: &mut Provider, world: &mut World| {
        (0..5).for_each(|_| drop(provider.answer(world)));
    };
    let policy = |world: &World| {
        world.resources()["server"]["status"]["atProvider"]["settings"]["activationPolicy"].clone()
    };
    settle(&mut provider, &mut world);
    let address = world.resources()["server"]["status"]["atProvider"]["publicIpAddress"].clone();
    desire(&mut world, sql("NEVER", "UTF8"));
    provider.answer(&mut world);
    assert_eq!(policy(&world), "ALWAYS", "the provider follows the operation");
    settle(&mut provider, &mut world);
    assert_eq!(policy(&world), "NEVER");
    for slot in ["server", "database", "user"] {
        for kind in ["Ready", "Synced"] {
            assert_eq!(status(&world, slot, kind), "True", "{slot} {kind}");
        }
    }
    let seen = &world.resources()["server"]["status"]["atProvider"];
    assert_eq!(seen["publicIpAddress"], address, "the address stays");
    assert_eq!(seen.get("state"), None, "no field has the server's state");

    desire(&mut world, sql("NEVER", "LATIN1"));
    settle(&mut provider, &mut world);
    let words = message(&world, "database", "Synced");
    assert!(words.contains("Invalid request since instance is not running"), "{words}");
    desire(&mut world, sql("ALWAYS", "LATIN1"));
    settle(&mut provider, &mut world);
    assert_eq!(status(&world, "database", "Synced"), "True");
}

#[test]
fn database_of_a_stopped_server_counts_as_created_until_the_server_runs() {
    let mut world = world(sql("NEVER", "UTF8"));
    let mut provider = Provider::new(Pace::Instant);
    provider.answer(&mut world);
    assert_eq!(status(&world, "database", "Ready"), "True");
    assert!(provider.external_mut("database").is_none(), "the database does not exist yet");
    desire(&mut world, sql("ALWAYS", "UTF8"));
    provider.answer(&mut world);
    assert_eq!(status(&world, "database", "Ready"), "True");
    assert!(provider.external_mut("database").is_some());
}

#[test]
fn deployment_with_zero_replicas_is_available() {
    let deployment =
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": 0}});
    let mut world = support::namespaced(json!({"d": deployment}));
    Provider::new(Pace::Instant).answer(&mut world);
    let seen = &world.resources()["d"]["status"];
    assert_eq!(
        (seen.get("replicas"), seen.get("availableReplicas")),
        (None, None),
        "counts of zero are left out"
    );
    assert_eq!(seen["observedGeneration"], 1);
    assert_eq!(status(&world, "d", "Available"), "True");
}

#[test]
fn paused_resource_is_left_as_it_is() {
    let mut fixture = Fixture::instant();
    let object = fixture.world.resources_mut().get_mut(MACHINE).unwrap();
    object["metadata"]["annotations"]["crossplane.io/paused"] = json!("true");
    fixture.provider.power_off(MACHINE);
    fixture.settle();
    assert_eq!(
        (fixture.power(), status(&fixture.world, MACHINE, "Ready")),
        ("running".into(), "True".into())
    );
    assert_eq!(status(&fixture.world, MACHINE, "Synced"), "False");
    let object = fixture.world.resources_mut().get_mut(MACHINE).unwrap();
    object["metadata"]["annotations"]["crossplane.io/paused"] = json!("false");
    fixture.settle();
    assert_eq!(
        (fixture.power(), status(&fixture.world, MACHINE, "Synced")),
        ("stopped".into(), "True".into())
    );
}

#[test]
fn instance_state_finds_its_machine_by_a_selector() {
    let mut resources = json!({MACHINE: machine(json!({}))});
    resources[SWITCH] = aws(
        "InstanceState",
        json!({"region": "us-east-1", "instanceIdSelector": SIBLING(), "state": "stopped"}),
    );
    let mut world = world(resources);
    Provider::new(Pace::Instant).answer(&mut world);
    let params = &world.resources()[SWITCH]["spec"]["forProvider"];
    assert_eq!(params["instanceId"], world.resources()[MACHINE]["status"]["atProvider"]["id"]);
    assert_eq!(world.resources()[MACHINE]["status"]["atProvider"]["instanceState"], "stopped");
}
