//! GPU workspaces: network access, the machine's permissions, and values that a running workspace
//! preserves.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use function_proto::v1::RunFunctionResponse;
use serde_json::{Value, json};
use support::world::{Mood, World, desired, is_fatal, status};

const KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIMcE1jS2BvFskas8trZu8+v8qhFP45gtKswerSFXYPEP ada@laptop";

/// The example of each API, before any resource exists.
fn new() -> Vec<World> {
    let examples = support::examples();
    let ours = examples
        .iter()
        .filter(|example| example.api.info().name == "gpu-workspace" && example.state == "nothing");
    ours.map(World::new).collect()
}

fn answer(world: &World) -> RunFunctionResponse {
    let response = world.answer();
    assert!(!is_fatal(&response), "{:?}", response.results);
    response
}

fn asked(world: &World, slot: &str) -> Value {
    desired(&answer(world)).remove(slot).map(Value::Object).unwrap_or_default()
}

fn parameters(world: &mut World) -> &mut Value {
    &mut world.xr["spec"]["parameters"]
}

/// A running workspace with these allowed networks and this observed machine.
fn reached(world: &World, networks: &Value, seen: &Value) -> World {
    let mut world = world.clone();
    parameters(&mut world)["sshPublicKeys"] = json!([KEY]);
    parameters(&mut world)["allowedCidrs"] = networks.clone();
    let mut world = world.settle(|_| Mood::Ready);
    world.composed.get_mut("instance").unwrap().object["status"]["atProvider"] = seen.clone();
    world
}

#[test]
fn ssh_uses_an_address_of_an_allowed_ip_version() {
    let (v4, v6) = (json!(["203.0.113.0/24"]), json!(["2001:db8:1::/48"]));
    let both = json!({"id": "i-1", "publicIp": "198.51.100.7", "privateIp": "10.0.0.7", "ipv6Addresses": ["2001:db8::7"]});
    let only_v4 = json!({"id": "i-1", "publicIp": "198.51.100.7", "privateIp": "10.0.0.7"});
    let ssm = "aws ssm start-session --target i-1 --region us-east-1";
    let cases = [
        (&v4, &both, "ssh developer@198.51.100.7", "198.51.100.7"),
        (&v6, &both, "ssh developer@2001:db8::7", "2001:db8::7"),
        (&v6, &only_v4, ssm, "198.51.100.7"),
        (&json!([]), &both, ssm, "198.51.100.7"),
    ];
    for world in new() {
        for (networks, seen, connection, host) in cases {
            let response = answer(&reached(&world, networks, seen));
            let told = status(&response);
            assert_eq!(told["connection"], connection, "{networks} {seen}");
            assert_eq!(told["ipv6Address"], seen["ipv6Addresses"][0]);
            let details = response.desired.unwrap().composite.unwrap().connection_details;
            if let Some(found) = details.get("host") {
                assert_eq!(String::from_utf8_lossy(found), host);
            }
        }
    }
}

#[test]
fn status_of_an_earlier_revision_has_no_ipv6_address() {
    for mut world in new() {
        world.input["schemaRevision"] = json!(1);
        let seen = json!({"id": "i-1", "ipv6Addresses": ["2001:db8::7"]});
        let told = status(&answer(&reached(&world, &json!(["2001:db8:1::/48"]), &seen)));
        assert_eq!(told["ipv6Address"], Value::Null);
    }
}

#[test]
fn new_workspace_sends_ipv6_and_may_use_session_manager_only() {
    for world in new() {
        let egress = asked(&world, "egress-v6")["spec"]["forProvider"].clone();
        assert_eq!((&egress["cidrIpv6"], &egress["ipProtocol"]), (&json!("::/0"), &json!("-1")));
        assert_eq!(asked(&world, "role-ssm"), Value::Null);
        let policy = asked(&world, "role-policy")["spec"]["forProvider"]["policy"].clone();
        let policy: Value = serde_json::from_str(policy.as_str().unwrap()).unwrap();
        let actions: Vec<_> = policy["Statement"][0]["Action"].as_array().unwrap().clone();
        let of = |service: &str| {
            actions.iter().filter(|one| one.as_str().unwrap().starts_with(service)).count()
        };
        assert_eq!((of("ssmmessages:"), of("ec2messages:"), of("ssm:")), (4, 6, 1), "{actions:?}");
        assert!(!policy.to_string().contains("GetParameter"));
    }
}

#[test]
fn workspace_of_an_earlier_release_keeps_its_role_and_gets_no_new_rule() {
    for mut world in new() {
        world.input["schemaRevision"] = json!(1);
        let mut world = world.settle(|_| Mood::Ready);
        world.input["schemaRevision"] = json!(2);
        let world = world.settle(|_| Mood::Ready);
        assert!(world.composed.contains_key("role-ssm"));
        for slot in ["role-policy", "egress-v6"] {
            assert!(!world.composed.contains_key(slot), "{slot}");
        }
    }
}

#[test]
fn recreated_machine_uses_its_previous_subnet() {
    for world in new() {
        assert_eq!(asked(&world, "instance")["spec"]["forProvider"]["subnetId"], Value::Null);
        let mut world = world.settle(|_| Mood::Ready);
        let machine = &mut world.composed.get_mut("instance").unwrap().object;
        machine["spec"]["forProvider"].as_object_mut().unwrap().remove("subnetId");
        machine["status"]["atProvider"]["subnetId"] = json!("subnet-0a1b2c3d");
        assert_eq!(asked(&world, "instance")["spec"]["forProvider"]["subnetId"], "subnet-0a1b2c3d");
        assert_eq!(status(&answer(&world))["phase"], "Ready", "the cloud does not change");
        // Once it is in the spec, it stays.
        let machine = &mut world.composed.get_mut("instance").unwrap().object;
        machine["spec"]["forProvider"]["subnetId"] = json!("subnet-0a1b2c3d");
        machine["status"]["atProvider"]["subnetId"] = json!("subnet-0f0f0f0f");
        assert_eq!(asked(&world, "instance")["spec"]["forProvider"]["subnetId"], "subnet-0a1b2c3d");
    }
}

#[test]
fn network_outside_the_limit_is_rejected_unless_allowed_before() {
    let limited = |world: &World| {
        let mut world = world.clone();
        world.input["gpuWorkspace"]["allowedCidrsWithin"] = json!(["203.0.113.0/24"]);
        world
    };
    let open = |world: &World, network: &str| {
        let mut world = world.clone();
        parameters(&mut world)["allowedCidrs"] = json!([network]);
        world
    };
    for world in new() {
        for network in ["0.0.0.0/0", "::/0", "203.0.112.0/23"] {
            let refused = limited(&open(&world, network)).answer();
            let message = &refused.results[0].message;
            let expected = format!(
                "spec.parameters.allowedCidrs[0]: found {network}; allowed: networks within \
                 203.0.113.0/24 (setting \
         gpuWorkspace.allowedCidrsWithin)"
            );
            assert_eq!(*message, expected);
        }
        answer(&limited(&open(&world, "203.0.113.7/32")));
        let runs = open(&world, "0.0.0.0/0").settle(|_| Mood::Ready);
        let kept = desired(&answer(&limited(&runs)));
        assert!(kept.contains_key("ssh-0.0.0.0/0"), "running workspaces do not change");

        let mut contradiction = limited(&world);
        contradiction.input["gpuWorkspace"]["allowedCidrs"] = json!(["198.51.100.0/24"]);
        let message = &contradiction.answer().results[0].message;
        assert!(
            message.starts_with("settings.gpuWorkspace.allowedCidrs[0]: found 198.51.100.0/24"),
            "{message}"
        );
    }
}

#[test]
fn costly_machine_needs_settings_unless_already_running() {
    for mut world in new() {
        parameters(&mut world)["instanceType"] = json!("p5.48xlarge");
        let message = world.answer().results[0].message.clone();
        assert!(
            message.starts_with(
                "spec.parameters.instanceType: found \"p5.48xlarge\"; allowed: g4dn, g5, g6, g6e ("
            ),
            "{message}"
        );
        world.input["gpuWorkspace"]["instanceTypes"] = json!(["p5.48xlarge"]);
        let mut world = world.settle(|_| Mood::Ready);
        world.input["gpuWorkspace"].as_object_mut().unwrap().remove("instanceTypes");
        answer(&world);
    }
}
