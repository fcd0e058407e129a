//! Machines that are stopped and started.

use serde_json::{Value, json};

use super::bench::{Bench, Composite, condition, external_name};

const INSTANCE: &str = "ec2.aws.upbound.io/v1beta2";
const STATE: &str = "ec2.aws.upbound.io/v1beta1";

/// A machine that runs.
async fn running(composite: &Composite<'_>) -> Value {
    let params = json!({"region": "us-east-1", "ami": "ami-1", "instanceType": "t3.micro"});
    let machine = composite.resource(INSTANCE, "Instance", "instance", params);
    let machine = composite.make(machine).await;
    composite.bench.ready(&machine).await
}

/// A resource that starts or stops a machine.
async fn switch(composite: &Composite<'_>, machine: &Value, state: &str) -> Value {
    let params =
        json!({"region": "us-east-1", "instanceId": external_name(machine), "state": state});
    composite.make(composite.resource(STATE, "InstanceState", "power", params)).await
}

fn address(machine: &Value) -> String {
    machine["status"]["atProvider"]["publicIp"].as_str().unwrap_or_default().to_owned()
}

pub async fn machine_is_stopped_and_started(bench: &Bench) {
    let composite = bench.composite("power").await;
    let machine = running(&composite).await;
    let before = address(&machine);
    assert!(!before.is_empty());
    let power = switch(&composite, &machine, "stopped").await;
    assert_eq!(external_name(&bench.ready(&power).await), external_name(&machine));
    bench.shows(&power, "state", "stopped").await;
    let stopped = bench.shows(&machine, "instanceState", "stopped").await;
    assert_eq!(
        (address(&stopped).as_str(), condition(&stopped, "Ready")["status"].as_str()),
        ("", Some("True"))
    );

    bench.patch(&power, json!({"spec": {"forProvider": {"state": "running"}}})).await;
    bench.shows(&power, "state", "running").await;
    let started = bench.shows(&machine, "instanceState", "running").await;
    assert!(!address(&started).is_empty() && address(&started) != before, "{started:#}");

    bench.delete(&power).await;
    bench.gone(&power).await;
    bench.power_off("power").await;
    bench.shows(&machine, "instanceState", "stopped").await;
    bench.patch(&machine, json!({"spec": {"forProvider": {"instanceType": "t3.small"}}})).await;
    let restarted = bench.shows(&machine, "instanceState", "running").await;
    assert_eq!(restarted["status"]["atProvider"]["instanceType"], "t3.small");
}

pub async fn start_without_capacity_recovers(bench: &Bench) {
    let words = "operation error EC2: StartInstances, api error InsufficientInstanceCapacity: no";
    let rule = format!("{{labels: {{crossplane.io/composite: exhausted}}, start: \"{words}\"}}");
    bench.rule("exhausted", Some(&rule)).await;
    let composite = bench.composite("exhausted").await;
    let machine = running(&composite).await;
    bench.power_off("exhausted").await;
    bench.shows(&machine, "instanceState", "stopped").await;
    let power = switch(&composite, &machine, "running").await;
    bench.told(&power, "LastAsyncOperation", "False", "InsufficientInstanceCapacity").await;
    bench.rule("exhausted", None).await;
    bench.ready(&power).await;
    bench.shows(&machine, "instanceState", "running").await;
}

pub async fn instance_state_of_a_deleted_machine_fails(bench: &Bench) {
    let composite = bench.composite("terminated").await;
    let machine = running(&composite).await;
    let power = switch(&composite, &machine, "stopped").await;
    bench.ready(&power).await;
    bench.delete(&machine).await;
    bench.gone(&machine).await;
    bench.told(&power, "LastAsyncOperation", "False", "unexpected state 'terminated'").await;
    bench.told(&power, "Ready", "False", "Creating").await;
    bench.delete(&power).await;
    bench.gone(&power).await;
}
