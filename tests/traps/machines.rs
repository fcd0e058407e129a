//! Machines. EC2 assigns their ids.

use jiff::SignedDuration;
use serde_json::json;

use super::environment::{Environment, beginnings, running};

const API: &str = "gpu-workspace";
const SLOT: &str = "instance";

#[test]
fn trap_07_terminated_machine_is_recreated_without_its_former_interface() {
    for mut environment in running(API, None) {
        let before = environment.external_name(SLOT).to_owned();
        let spec = &environment.resource(SLOT)["spec"]["forProvider"];
        assert!(spec["primaryNetworkInterface"]["networkInterfaceId"].is_string(), "{spec:#}");
        environment.provider.vanish(SLOT);
        environment.settle();
        assert_eq!(environment.status()["phase"], "Ready", "{:#}", environment.line(SLOT));
        assert_ne!(environment.external_name(SLOT), before);
    }
}

/// Fails unless the status shows the rejected change and the machine stays ready.
fn assert_refused(environment: &Environment, argument: &str) {
    environment.says(SLOT, &format!("cannot change the value of the argument \"{argument}\""));
    assert_eq!(environment.line(SLOT)["reason"], "Failed");
    assert_eq!(environment.line(SLOT)["ready"], true, "the machine runs");
    assert_eq!(environment.condition(SLOT, "Synced"), "False");
}

#[test]
fn trap_08_manually_detached_disk_is_reported() {
    for mut environment in running(API, None) {
        let disk = json!([{"deviceName": "/dev/sdf", "volumeSize": 100}]);
        environment.in_the_cloud(SLOT, "ebsBlockDevice", disk.clone());
        environment.settle();
        assert_eq!(environment.resource(SLOT)["spec"]["forProvider"]["ebsBlockDevice"], disk);
        assert_eq!(environment.status()["phase"], "Ready", "an attached disk does no harm");

        environment.in_the_cloud(SLOT, "ebsBlockDevice", json!([]));
        environment.settle();
        environment.call();
        assert_refused(&environment, "ebs_block_device.#");
    }
}

#[test]
fn trap_09_changed_immutable_field_blocks_changes_until_reset() {
    for mut environment in running(API, None) {
        let tenancy = |environment: &mut Environment, value: &str| {
            let machine = environment.world.resources_mut().get_mut(SLOT).unwrap();
            machine["spec"]["forProvider"]["tenancy"] = json!(value);
        };
        tenancy(&mut environment, "dedicated");
        environment.change(&["parameters", "diskGB"], json!(400));
        environment.settle();
        environment.call();
        assert_refused(&environment, "tenancy");
        let size = |environment: &Environment| {
            environment.resource(SLOT)["status"]["atProvider"]["rootBlockDevice"]["volumeSize"]
                .clone()
        };
        assert_ne!(size(&environment), 400);

        tenancy(&mut environment, "default");
        environment.settle();
        environment.call();
        assert_eq!(environment.status()["phase"], "Ready");
        assert_eq!(size(&environment), 400);
    }
}

#[test]
fn trap_09_immutable_composed_fields_ignore_changed_settings() {
    for environment in running(API, None) {
        let before = environment.asked(SLOT)["spec"]["forProvider"]["ami"].clone();
        let mut input = environment.input();
        input["gpuWorkspace"]["amis"] = json!({"us-east-1": {"default": "ami-0fedcba9876543210"}});
        assert_eq!(environment.asked_with(&input, SLOT)["spec"]["forProvider"]["ami"], before);
    }
}

#[test]
fn trap_10_forgotten_machine_has_the_tags_of_the_workspace() {
    for mut environment in beginnings(API, None).into_iter().map(Environment::slowly) {
        environment.begin(SLOT);
        environment.provider.restart(&environment.world);
        environment.call();
        assert_eq!(environment.line(SLOT)["reason"], "Creating", "it is created again");
        environment.settle();
        let [leaked] = environment.provider.leaked() else { panic!("one machine leaks") };
        let running = environment.external_name(SLOT);
        assert!(leaked.starts_with("i-") && leaked != running, "{leaked} {running}");
        assert_eq!(environment.line(SLOT)["externalName"], *running);
        let tags = &environment.resource(SLOT)["spec"]["forProvider"]["tags"];
        let composite = &environment.world.composite()["metadata"]["name"];
        assert_eq!(tags["Name"], *composite, "both machines have the tag");
    }
}

#[test]
fn trap_10_machine_of_a_stopped_provider_is_adopted_by_its_id() {
    for mut environment in beginnings(API, None).into_iter().map(Environment::slowly) {
        environment.begin(SLOT);
        environment.provider.interrupt(&mut environment.world, SLOT);
        environment.settle();
        environment.call();
        let [machine] = environment.provider.leaked() else { panic!("one machine leaks") };
        let machine = machine.clone();
        assert_eq!(environment.line(SLOT)["reason"], "Failed");
        assert_eq!(environment.cause(SLOT), "CreationUnknown");
        environment.says(SLOT, "remove the crossplane.io/external-create-pending annotation");
        assert_eq!(environment.status()["phase"], "Failed");

        let object = environment.world.resources_mut().get_mut(SLOT).unwrap();
        let annotations = object["metadata"]["annotations"].as_object_mut().unwrap();
        annotations.insert("crossplane.io/external-name".to_owned(), json!(machine));
        annotations.remove("crossplane.io/external-create-pending").unwrap();
        environment.settle();
        environment.call();
        assert_eq!(environment.status()["phase"], "Ready");
        assert_eq!(environment.external_name(SLOT), machine);
        assert_eq!(environment.provider.leaked(), [""; 0], "no second machine");
    }
}

#[test]
fn trap_20_vanished_machine_is_reported_after_the_next_poll() {
    for environment in beginnings(API, None) {
        let mut environment = environment.polled();
        environment.settle();
        assert_eq!(environment.status()["phase"], "Ready");
        environment.provider.vanish(SLOT);
        environment.provider.fail(SLOT, "InsufficientInstanceCapacity");
        environment.wait(SignedDuration::from_mins(9));
        environment.settle();
        environment.call();
        assert_eq!(environment.line(SLOT)["ready"], true, "its provider has not looked yet");
        environment.wait(SignedDuration::from_mins(1));
        environment.settle();
        environment.call();
        assert_eq!(environment.line(SLOT)["ready"], false);
        environment.says(SLOT, "InsufficientInstanceCapacity");
    }
}

#[test]
fn trap_20_vanished_machine_is_reported_after_a_change() {
    for environment in beginnings(API, None) {
        let mut environment = environment.polled();
        environment.settle();
        environment.provider.vanish(SLOT);
        environment.provider.fail(SLOT, "InsufficientInstanceCapacity");
        environment.change(&["parameters", "diskGB"], json!(400));
        environment.settle();
        environment.call();
        assert_eq!(environment.line(SLOT)["ready"], false);
    }
}
