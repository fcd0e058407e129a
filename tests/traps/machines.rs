//! Machines, whose ids EC2 assigns.

use serde_json::json;

use super::environment::{Environment, beginnings, running};

const API: &str = "gpu-workspace";
const SLOT: &str = "instance";

#[test]
fn trap_07_terminated_machine_comes_back_without_its_former_interface() {
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

/// Whether the refusal of a change shows in the status, and the machine runs on.
fn assert_refused(environment: &Environment, argument: &str) {
    environment.says(SLOT, &format!("cannot change the value of the argument \"{argument}\""));
    assert_eq!(environment.line(SLOT)["reason"], "Failed");
    assert_eq!(environment.line(SLOT)["ready"], true, "the machine runs");
    assert_eq!(environment.condition(SLOT, "Synced"), "False");
}

#[test]
fn trap_08_disk_that_was_detached_by_hand_is_told() {
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
fn trap_09_immutable_field_changed_by_hand_refuses_all_changes_until_it_is_restored() {
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
fn trap_09_composed_fields_that_cannot_change_stay_when_settings_do() {
    for environment in running(API, None) {
        let before = environment.asked(SLOT)["spec"]["forProvider"]["ami"].clone();
        let mut input = environment.input();
        input["gpuWorkspace"]["amis"] = json!({"us-east-1": {"default": "ami-0fedcba9876543210"}});
        assert_eq!(environment.asked_with(&input, SLOT)["spec"]["forProvider"]["ami"], before);
    }
}

#[test]
fn trap_10_machine_that_a_restarted_provider_forgot_can_be_found() {
    for mut environment in beginnings(API, None).into_iter().map(Environment::slowly) {
        while environment.condition_or_nothing(SLOT, "Ready") != "False" {
            environment.round();
        }
        environment.provider.restart(&environment.world);
        environment.call();
        assert_eq!(environment.line(SLOT)["reason"], "Creating", "it is created again");
        environment.settle();
        let [leaked] = environment.provider.leaked() else { panic!("one machine leaks") };
        let running = environment.external_name(SLOT);
        assert!(leaked.starts_with("i-") && leaked != running, "{leaked} {running}");
        assert_eq!(
            environment.line(SLOT)["externalName"],
            *running,
            "the status has the other one"
        );
        let tags = &environment.resource(SLOT)["spec"]["forProvider"]["tags"];
        assert!(tags.as_object().is_some_and(|tags| !tags.is_empty()), "both have tags");
    }
}

#[test]
fn trap_10_machine_whose_creation_is_unknown_is_told() {
    const WORDS: &str = "cannot determine creation result - remove the \
                         crossplane.io/external-create-pending annotation if it is safe to proceed";
    for mut environment in beginnings(API, None).into_iter().map(Environment::slowly) {
        environment.round();
        environment.tell(SLOT, "Synced", WORDS);
        environment.call();
        assert_eq!(environment.line(SLOT)["reason"], "Failed");
        environment.says(SLOT, WORDS);
    }
}

#[test]
fn trap_20_machine_that_vanished_is_told_after_the_next_look() {
    for mut environment in running(API, None) {
        environment.provider.vanish(SLOT);
        environment.provider.fail(SLOT, "InsufficientInstanceCapacity");
        environment.call();
        assert_eq!(environment.line(SLOT)["ready"], true, "its provider has not looked yet");
        environment.settle();
        environment.call();
        assert_eq!(environment.line(SLOT)["ready"], false);
        environment.says(SLOT, "InsufficientInstanceCapacity");
    }
}
