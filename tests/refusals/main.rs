//! Rejections and their messages. The table is the documentation.
//!
//! A rejection is a FATAL result for each wrong field: its path, the found value and the allowed
//! values. The condition `Provisioned=False` has the same words, on the composite and on the claim.
//! No existing resource is deleted.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod limits;
mod settings;
mod stock_pool;
#[path = "../support/mod.rs"]
mod support;
mod unified_environment;
mod virtual_environment;

use function_paved_road::apis::{self, Flavour};
use function_paved_road::error::Malformed;
use function_paved_road::function::{self, Outside};
use function_proto::v1::{
    Resource, RunFunctionRequest, RunFunctionResponse, Severity, State, Status, Target,
};
use serde_json::{Value, json};
use support::world::{Mood, World, desired, is_fatal};

const IMAGE: &str = "ami-0123456789abcdef0";
const RSA_1024: &str = include_str!("rsa1024.pub");

/// An invalid world and its message. `{kinds}` and `{sections}` are those of all APIs.
struct Case {
    world: World,
    reason: &'static str,
    message: &'static str,
}

fn main_examples(kind: &str) -> Vec<World> {
    let worlds = support::examples().into_iter().filter(|example| example.state == "nothing");
    worlds
        .map(|example| World::new(&example))
        .filter(|world| world.api().info().name == kind)
        .collect()
}

fn workspace() -> World {
    main_examples("gpu-workspace")
        .into_iter()
        .find(|world| world.flavour == Flavour::Claims)
        .unwrap()
}

fn environment() -> World {
    main_examples("application-environment")
        .into_iter()
        .find(|world| world.flavour == Flavour::Claims)
        .unwrap()
}

fn spec(mut world: World, field: &str, value: Value) -> World {
    world.xr["spec"]["parameters"][field] = value;
    world
}

fn settings(mut world: World, section: &str, field: &str, value: Value) -> World {
    world.input[section][field] = value;
    world
}

/// The reason and message of a rejection: of its only result, which equal those of the conditions.
fn refused(response: &RunFunctionResponse) -> (String, String) {
    let [result] = &response.results[..] else { panic!("one result: {:?}", response.results) };
    assert_eq!(result.severity(), Severity::Fatal, "{result:?}");
    let [condition, stalled] = &response.conditions[..] else {
        panic!("two conditions: {:?}", response.conditions)
    };
    assert_eq!(condition.r#type, "Provisioned");
    assert_eq!((stalled.r#type.as_str(), stalled.status()), ("Stalled", Status::ConditionTrue));
    assert_eq!((&stalled.reason, &stalled.message), (&condition.reason, &condition.message));
    assert_eq!(condition.status(), Status::ConditionFalse);
    assert_eq!(condition.target(), Target::CompositeAndClaim);
    assert_eq!(condition.message.as_ref(), Some(&result.message));
    assert_eq!(result.reason.as_ref(), Some(&condition.reason));
    (condition.reason.clone(), result.message.clone())
}

fn check(cases: Vec<Case>) {
    let mut wrong = Vec::new();
    for Case { world, reason, message } in cases {
        let mut request = world.request();
        let earlier = State {
            composite: None,
            resources: [("earlier".to_owned(), Resource { ready: 1, ..Resource::default() })]
                .into(),
        };
        request.desired = Some(earlier.clone());
        let response = support::answer(request);
        assert_eq!(
            response.desired,
            Some(earlier),
            "resources of earlier steps are kept, and none of ours is added"
        );
        let found = refused(&response);
        let message = message
            .replace("{kinds}", &apis::kinds().join(", "))
            .replace("{sections}", &apis::sections().join(", "));
        if found != (reason.to_owned(), message.clone()) {
            wrong.push(format!("expected {reason}: {message}\n   found {}: {}", found.0, found.1));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

const SPEC: &str = "InvalidSpec";
const SETTINGS: &str = "InvalidSettings";

/// Invalid values by JSON pointer below the spec, and the reported paths. Each path has its own
/// result, and the condition has all of them.
#[test]
fn all_invalid_fields_are_reported_at_once() {
    let cases: [(&str, Value, &[&str]); 5] = [
        (
            "gpu-workspace",
            json!({
                "/parameters/instanceType": "p9",
                "/parameters/allowedCidrs": ["x", "203.0.113.0/24", "y"],
                "/parameters/diskGB": 1,
                "/parameters/sshPublicKeys": ["nonsense", ""],
                "/parameters/opencvVersion": "4",
            }),
            &[
                "spec.parameters.instanceType",
                "spec.parameters.allowedCidrs[0]",
                "spec.parameters.allowedCidrs[2]",
                "spec.parameters.diskGB",
                "spec.parameters.sshPublicKeys[0]",
                "spec.parameters.sshPublicKeys[1]",
                "spec.parameters.opencvVersion",
            ],
        ),
        (
            "application-environment",
            json!({"/parameters/nodeCount": 0, "/parameters/storageGB": 1, "/parameters/region": "here"}),
            &["spec.parameters.nodeCount", "spec.parameters.storageGB", "spec.parameters.region"],
        ),
        (
            "unified-environment",
            json!({
                "/backend/port": 0,
                "/backend/env": {"A-B": "x", "GOOD": "x", "PGHOST": "x"},
                "/frontend/appName": "A",
            }),
            &[
                "spec.backend.port",
                "spec.backend.env.A-B",
                "spec.backend.env.PGHOST",
                "spec.frontend.appName",
            ],
        ),
        (
            "stock-pool",
            json!({"/specName": "a b", "/image": "A", "/gpu": 17}),
            &["spec.specName", "spec.image", "spec.gpu"],
        ),
        (
            "virtual-environment",
            json!({
                "/parameters/app/chart/version": "1",
                "/parameters/app/namespace": "A",
                "/parameters/gitops/path": "..",
            }),
            &[
                "spec.parameters.app.chart.version",
                "spec.parameters.app.namespace",
                "spec.parameters.gitops.path",
            ],
        ),
    ];
    for (kind, wrong, paths) in cases {
        for mut world in main_examples(kind) {
            for (pointer, value) in wrong.as_object().unwrap() {
                let (parent, field) = pointer.rsplit_once('/').unwrap();
                world.xr["spec"].pointer_mut(parent).unwrap()[field] = value.clone();
            }
            let response = world.answer();
            let messages: Vec<&str> =
                response.results.iter().map(|result| result.message.as_str()).collect();
            let told: Vec<&str> =
                messages.iter().filter_map(|message| message.split(": ").next()).collect();
            assert_eq!(told, paths, "{kind}");
            assert!(
                response.results.iter().all(|result| result.severity() == Severity::Fatal),
                "{messages:?}"
            );
            let sentence = response.conditions[0].message.as_deref().unwrap();
            let whole = messages.join("; also ");
            assert!(whole.starts_with(sentence.trim_end_matches('…')), "{sentence}");
            assert!(sentence.len() > messages[0].len() && sentence.len() <= 1024, "{sentence}");
        }
    }
}

#[test]
fn machine_types() {
    let wrong = |value: &str| spec(workspace(), "instanceType", json!(value));
    let offered =
        settings(workspace(), "gpuWorkspace", "instanceTypes", json!(["g5.xlarge", "g5.2xlarge"]));
    check(vec![
        Case {
            world: wrong("g4dn.xlrage"),
            reason: SPEC,
            message: r#"spec.parameters.instanceType: found "g4dn.xlrage"; allowed: g4dn, g5, g6, g6e (xlarge, 2xlarge, 4xlarge, 8xlarge, 16xlarge) (nearest: g4dn.xlarge)"#,
        },
        Case {
            world: wrong("t3.micro"),
            reason: SPEC,
            message: r#"spec.parameters.instanceType: found "t3.micro"; allowed: g4dn, g5, g6, g6e (xlarge, 2xlarge, 4xlarge, 8xlarge, 16xlarge)"#,
        },
        Case {
            world: wrong(""),
            reason: SPEC,
            message: r#"spec.parameters.instanceType: found ""; allowed: g4dn, g5, g6, g6e (xlarge, 2xlarge, 4xlarge, 8xlarge, 16xlarge)"#,
        },
        Case {
            world: offered,
            reason: SPEC,
            message: r#"spec.parameters.instanceType: found "g4dn.xlarge"; allowed: g5.xlarge, g5.2xlarge (nearest: g5.xlarge)"#,
        },
    ]);
}

#[test]
fn networks() {
    let wrong = |list: Value| spec(workspace(), "allowedCidrs", list);
    let by_settings = |list: Value| {
        let mut world = settings(workspace(), "gpuWorkspace", "allowedCidrs", list);
        world.xr["spec"]["parameters"].as_object_mut().unwrap().remove("allowedCidrs");
        world
    };
    check(vec![
        Case {
            world: wrong(json!(["203.0.113.0/24", "300.1.2.3/24"])),
            reason: SPEC,
            message: r#"spec.parameters.allowedCidrs[1]: found "300.1.2.3/24"; allowed: a network, for example 203.0.113.0/24, 203.0.113.7/32 for one host, or 2001:db8::/48 for IPv6"#,
        },
        Case {
            world: wrong(json!(["203.0.113.0/33"])),
            reason: SPEC,
            message: r#"spec.parameters.allowedCidrs[0]: found "203.0.113.0/33"; allowed: a network, for example 203.0.113.0/24, 203.0.113.7/32 for one host, or 2001:db8::/48 for IPv6"#,
        },
        Case {
            world: wrong(json!(["203.0.113.7/24"])),
            reason: SPEC,
            message: r#"spec.parameters.allowedCidrs[0]: found "203.0.113.7/24", an address inside a network; allowed: 203.0.113.0/24 for the network, 203.0.113.7/32 for this host"#,
        },
        Case {
            world: wrong(json!(["203.0.113.7"])),
            reason: SPEC,
            message: r#"spec.parameters.allowedCidrs[0]: found "203.0.113.7", an address without a prefix; allowed: 203.0.113.7/32 for this host"#,
        },
        Case {
            world: wrong(json!(["203.0.113.0/24", "203.0.113.0/24"])),
            reason: SPEC,
            message: "spec.parameters.allowedCidrs[1]: found 203.0.113.0/24 twice; each network may be given once",
        },
        Case {
            world: wrong(json!(["2001:DB8::/32", "2001:db8:0::/32"])),
            reason: SPEC,
            message: "spec.parameters.allowedCidrs[1]: found 2001:db8::/32 twice; each network may be given once",
        },
        Case {
            world: wrong(json!(["::ffff:10.0.0.0/104"])),
            reason: SPEC,
            message: r#"spec.parameters.allowedCidrs[0]: found "::ffff:10.0.0.0/104", IPv4 written as IPv6; allowed: the network in IPv4 notation"#,
        },
        Case {
            world: wrong(json!("203.0.113.0/24")),
            reason: SPEC,
            message: r#"spec.parameters.allowedCidrs: found "203.0.113.0/24"; allowed: a list"#,
        },
        Case {
            world: wrong(json!(vec![""; 101])),
            reason: SPEC,
            message: "spec.parameters.allowedCidrs: found 101 entries; allowed: at most 100",
        },
        Case {
            world: by_settings(json!(["office"])),
            reason: SETTINGS,
            message: r#"settings.gpuWorkspace.allowedCidrs[0]: found "office"; allowed: a network, for example 203.0.113.0/24, 203.0.113.7/32 for one host, or 2001:db8::/48 for IPv6"#,
        },
    ]);
}

#[test]
fn networks_of_settings_are_checked_whether_a_claim_needs_them_or_not() {
    let twice = json!(["203.0.113.0/24", "203.0.113.0/24"]);
    let world = settings(workspace(), "gpuWorkspace", "allowedCidrs", twice);
    check(vec![Case {
        world: spec(world, "allowedCidrs", json!(["198.51.100.0/24"])),
        reason: SETTINGS,
        message: "settings.gpuWorkspace.allowedCidrs[1]: found 203.0.113.0/24 twice; each network may be given once",
    }]);
}

/// The API server rejects these changes too, if there is one. The function does not ignore them.
#[test]
fn immutable_fields_are_rejected_with_their_current_value() {
    let running = |kind| main_examples(kind).into_iter().map(|world| world.settle(|_| Mood::Ready));
    let cases = [
        (
            "gpu-workspace",
            "/spec/parameters/region",
            json!("eu-west-1"),
            r#"spec.parameters.region: found "eu-west-1"; allowed: us-east-1, the current value. For another value, create a new workspace"#,
        ),
        (
            "gpu-workspace",
            "/spec/parameters/opencvVersion",
            json!("4.9.0"),
            r#"spec.parameters.opencvVersion: found "4.9.0"; allowed: 4.8.0, the current value. For another value, install it with pip, or create a new workspace"#,
        ),
        (
            "gpu-workspace",
            "/spec/parameters/sshPublicKeys",
            json!([]),
            "spec.parameters.sshPublicKeys: found 0 keys that differ from the keys of the \
             machine; allowed: the keys at creation. For other keys, edit ~/.ssh/authorized_keys \
             or create a new workspace",
        ),
        (
            "application-environment",
            "/spec/parameters/region",
            json!("europe-west1"),
            r#"spec.parameters.region: found "europe-west1"; allowed: us-central1, the current value. For another value, create a new environment"#,
        ),
        (
            "unified-environment",
            "/spec/frontend/appName",
            json!("other"),
            r#"spec.frontend.appName: found "other"; allowed: checkout, the current value. For another value, create a new environment"#,
        ),
    ];
    for (kind, pointer, value, message) in cases {
        let changed = running(kind).map(|mut world| {
            assert!(!is_fatal(&world.answer()));
            let (parent, field) = pointer.rsplit_once('/').unwrap();
            world.xr.pointer_mut(parent).unwrap()[field] = value.clone();
            Case { world, reason: SPEC, message }
        });
        check(changed.collect());
    }
}

/// A bucket with another name, or a machine from a release without these records, is accepted.
#[test]
fn environment_without_records_is_accepted() {
    for mut world in main_examples("unified-environment") {
        world = world.settle(|_| Mood::Ready);
        let bucket = &mut world.composed.get_mut("frontend-bucket").unwrap().object;
        bucket["metadata"]["annotations"]["crossplane.io/external-name"] =
            json!("acme-mfe-older-name");
        assert!(!is_fatal(&world.answer()));
    }
    for mut world in main_examples("gpu-workspace") {
        world = world.settle(|_| Mood::Ready);
        let notes =
            &mut world.composed.get_mut("instance").unwrap().object["metadata"]["annotations"];
        notes.as_object_mut().unwrap().retain(|note, _| !note.starts_with("paved-road"));
        assert!(!is_fatal(&world.answer()));
    }
}

#[test]
fn keys() {
    let wrong = |key: &str| spec(workspace(), "sshPublicKeys", json!([key]));
    let good =
        workspace().xr["spec"]["parameters"]["sshPublicKeys"][0].as_str().unwrap().to_owned();
    let many = spec(workspace(), "sshPublicKeys", json!(vec![good.clone(); 21]));
    check(vec![
        Case {
            world: wrong("ssh-rsa AAAA..."),
            reason: SPEC,
            message: r#"spec.parameters.sshPublicKeys[0]: found "ssh-rsa AAAA...", which is not a complete key; allowed: one line as in ~/.ssh/id_ed25519.pub: a key type (ssh-ed25519, ecdsa-sha2-nistp256/384/521, ssh-rsa of 2048 bits or more, sk-…), the key and an optional comment"#,
        },
        Case {
            world: wrong(&good.replace(" ada", "\nada")),
            reason: SPEC,
            message: r#"spec.parameters.sshPublicKeys[0]: found "ssh-ed25519" with a line break or another invisible character; allowed: one line as in ~/.ssh/id_ed25519.pub: a key type (ssh-ed25519, ecdsa-sha2-nistp256/384/521, ssh-rsa of 2048 bits or more, sk-…), the key and an optional comment; one key per list item"#,
        },
        Case {
            world: wrong(RSA_1024.trim()),
            reason: SPEC,
            message: "spec.parameters.sshPublicKeys[0]: found an RSA key of 1024 bits; allowed: \
                      one line as in ~/.ssh/id_ed25519.pub: a key type (ssh-ed25519, \
                      ecdsa-sha2-nistp256/384/521, ssh-rsa of 2048 bits or more, sk-…), the key \
                      and an optional comment",
        },
        Case {
            world: wrong("-----BEGIN OPENSSH PRIVATE KEY-----"),
            reason: SPEC,
            message: "spec.parameters.sshPublicKeys[0]: found a possible private key (not \
                      shown); allowed: the public key from the .pub file. Replace this private \
                      key, because it was sent to a server: one line as in ~/.ssh/id_ed25519.pub: \
                      a key type (ssh-ed25519, ecdsa-sha2-nistp256/384/521, ssh-rsa of 2048 bits \
                      or more, sk-…), the key and an optional comment",
        },
        Case {
            world: wrong("ssh-dss AAAAB3NzaC1kc3M="),
            reason: SPEC,
            message: "spec.parameters.sshPublicKeys[0]: found a DSA key (ssh-dss), which is no \
                      longer secure; allowed: one line as in ~/.ssh/id_ed25519.pub: a key type \
                      (ssh-ed25519, ecdsa-sha2-nistp256/384/521, ssh-rsa of 2048 bits or more, \
                      sk-…), the key and an optional comment",
        },
        Case {
            world: wrong(&format!("from=\"10.0.0.1\" {good}")),
            reason: SPEC,
            message: "spec.parameters.sshPublicKeys[0]: found a key with options before \
                      its type; allowed: one line as in ~/.ssh/id_ed25519.pub: a key type \
                      (ssh-ed25519, ecdsa-sha2-nistp256/384/521, ssh-rsa of 2048 bits or more, \
                      sk-…), the key and an optional comment",
        },
        Case {
            world: wrong("hunter2"),
            reason: SPEC,
            message: r#"spec.parameters.sshPublicKeys[0]: found "hunter2", which does not start with a known key type; allowed: one line as in ~/.ssh/id_ed25519.pub: a key type (ssh-ed25519, ecdsa-sha2-nistp256/384/521, ssh-rsa of 2048 bits or more, sk-…), the key and an optional comment"#,
        },
        Case {
            world: wrong("MIIEvQIBADANBgkq"),
            reason: SPEC,
            message: "spec.parameters.sshPublicKeys[0]: found a text with 16 characters (not \
                      shown), which does not start with a known key type; allowed: one line as in \
                      ~/.ssh/id_ed25519.pub: a key type (ssh-ed25519, \
                      ecdsa-sha2-nistp256/384/521, ssh-rsa of 2048 bits or more, sk-…), the key \
                      and an optional comment",
        },
        Case {
            world: wrong(""),
            reason: SPEC,
            message: "spec.parameters.sshPublicKeys[0]: found an empty text, which does not start \
                      with a known key type; allowed: one line as in ~/.ssh/id_ed25519.pub: a key \
                      type (ssh-ed25519, ecdsa-sha2-nistp256/384/521, ssh-rsa of 2048 bits or \
                      more, sk-…), the key and an optional comment",
        },
        Case {
            world: many,
            reason: SPEC,
            message: "spec.parameters.sshPublicKeys: found 21 entries; allowed: at most 20",
        },
    ]);
}

#[test]
fn releases_of_opencv() {
    let wrong = |value: Value| spec(workspace(), "opencvVersion", value);
    check(vec![
        Case {
            world: wrong(json!("latest")),
            reason: SPEC,
            message: r#"spec.parameters.opencvVersion: found "latest"; allowed: 4.4.0, 4.5.1, 4.5.3, 4.5.4, 4.5.5, 4.6.0, 4.7.0, 4.8.0, 4.8.1, 4.9.0, 4.10.0, 4.11.0, 4.12.0, 4.13.0, 4.14.0, 5.0.0"#,
        },
        Case {
            world: wrong(json!("4.8.2")),
            reason: SPEC,
            message: r#"spec.parameters.opencvVersion: found "4.8.2"; allowed: 4.4.0, 4.5.1, 4.5.3, 4.5.4, 4.5.5, 4.6.0, 4.7.0, 4.8.0, 4.8.1, 4.9.0, 4.10.0, 4.11.0, 4.12.0, 4.13.0, 4.14.0, 5.0.0 (nearest: 4.8.0)"#,
        },
        Case {
            world: wrong(json!("4.8")),
            reason: SPEC,
            message: r#"spec.parameters.opencvVersion: found "4.8"; allowed: 4.4.0, 4.5.1, 4.5.3, 4.5.4, 4.5.5, 4.6.0, 4.7.0, 4.8.0, 4.8.1, 4.9.0, 4.10.0, 4.11.0, 4.12.0, 4.13.0, 4.14.0, 5.0.0 (nearest: 4.8.0)"#,
        },
        Case {
            world: wrong(json!(4.8)),
            reason: SPEC,
            message: "spec.parameters.opencvVersion: found 4.8; allowed: a text, in quotes",
        },
    ]);
}

#[test]
fn regions_and_images() {
    let region = |region: &str| spec(workspace(), "region", json!(region));
    let none = settings(workspace(), "gpuWorkspace", "amis", json!({}));
    check(vec![
        Case {
            world: region("eu-west-1"),
            reason: SPEC,
            message: "spec.parameters.region: found \"eu-west-1\"; allowed: us-east-1",
        },
        Case {
            world: settings(
                region("us-esat-1"),
                "gpuWorkspace",
                "amis",
                json!({"eu-west-1": {"default": IMAGE}, "us-east-1": {"default": IMAGE}}),
            ),
            reason: SPEC,
            message: "spec.parameters.region: found \"us-esat-1\"; allowed: us-east-1, eu-west-1 \
                      (nearest: us-east-1)",
        },
        Case {
            world: none,
            reason: SETTINGS,
            message: "settings.gpuWorkspace.amis.us-east-1: missing; allowed: the machine image of \
                      us-east-1. Without an image, no machine can start in the region",
        },
        Case {
            world: settings(
                spec(workspace(), "instanceType", json!("p3.2xlarge")),
                "gpuWorkspace",
                "instanceTypes",
                json!(["p3.2xlarge"]),
            ),
            reason: SETTINGS,
            message: "settings.gpuWorkspace.amis.us-east-1.byFamily.p3: missing. Machine types of \
                      family p3 cannot use the default image; set an image for the family",
        },
        Case {
            world: region("Frankfurt"),
            reason: SPEC,
            message: r#"spec.parameters.region: found "Frankfurt"; allowed: us-east-1"#,
        },
        Case {
            world: region("us"),
            reason: SPEC,
            message: r#"spec.parameters.region: found "us"; allowed: us-east-1"#,
        },
        Case {
            world: spec(environment(), "region", json!("europe-west")),
            reason: SPEC,
            message: r#"spec.parameters.region: found "europe-west"; allowed: a Google Cloud region, for example us-central1"#,
        },
        Case {
            world: spec(environment(), "region", json!("")),
            reason: SPEC,
            message: r#"spec.parameters.region: found ""; allowed: a Google Cloud region, for example us-central1"#,
        },
    ]);
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn other_fields_of_a_claim() {
    let missing = |field: &str| {
        let mut world = workspace();
        world.xr["spec"]["parameters"].as_object_mut().unwrap().remove(field);
        world
    };
    let without_parameters = |mut world: World| {
        world.xr["spec"].as_object_mut().unwrap().remove("parameters");
        world
    };
    let without_spec = |mut world: World| {
        world.xr.as_object_mut().unwrap().remove("spec");
        world
    };
    let mut not_an_object = workspace();
    not_an_object.xr["spec"]["parameters"] = json!("small");
    check(vec![
        Case {
            world: spec(workspace(), "diskGb", json!(100)),
            reason: SPEC,
            message: "spec.parameters.diskGb: unknown field; allowed: owner, instanceType, \
                      region, opencvVersion, sshPublicKeys, allowedCidrs, diskGB (nearest: diskGB)",
        },
        Case {
            world: without_parameters(workspace()),
            reason: SPEC,
            message: "spec.parameters: missing; a value is required",
        },
        Case {
            world: without_parameters(environment()),
            reason: SPEC,
            message: "spec.parameters: missing; a value is required",
        },
        Case {
            world: without_spec(environment()),
            reason: SPEC,
            message: "spec: found nothing; allowed: an object",
        },
        Case {
            world: not_an_object,
            reason: SPEC,
            message: r#"spec.parameters: found "small"; allowed: an object"#,
        },
        Case {
            world: missing("owner"),
            reason: SPEC,
            message: "spec.parameters.owner: missing; a value is required",
        },
        Case {
            world: spec(workspace(), "owner", json!("ada lovelace")),
            reason: SPEC,
            message: r#"spec.parameters.owner: found "ada lovelace"; allowed: an email address or a login with letters, digits and . _ + @ -, starting with a letter or digit"#,
        },
        Case {
            world: spec(workspace(), "owner", json!(null)),
            reason: SPEC,
            message: "spec.parameters.owner: found nothing; allowed: a text",
        },
        Case {
            world: spec(workspace(), "owner", json!("-ada")),
            reason: SPEC,
            message: r#"spec.parameters.owner: found "-ada"; allowed: an email address or a login with letters, digits and . _ + @ -, starting with a letter or digit"#,
        },
        Case {
            world: spec(workspace(), "diskGB", json!(10)),
            reason: SPEC,
            message: "spec.parameters.diskGB: found 10; allowed: 75 to 65536 GiB",
        },
        Case {
            world: spec(workspace(), "diskGB", json!("100")),
            reason: SPEC,
            message: r#"spec.parameters.diskGB: found "100"; allowed: a whole number"#,
        },
        Case {
            world: spec(workspace(), "diskGB", json!(99.5)),
            reason: SPEC,
            message: "spec.parameters.diskGB: found 99.5; allowed: a whole number",
        },
        Case {
            world: spec(workspace(), "diskGB", json!(support::world::NOT_A_NUMBER)),
            reason: SPEC,
            message: "spec.parameters.diskGB: found nothing; allowed: a whole number",
        },
        Case {
            world: spec(environment(), "nodeSize", json!("huge")),
            reason: SPEC,
            message: r#"spec.parameters.nodeSize: found "huge"; allowed: small, medium, large"#,
        },
        Case {
            world: spec(environment(), "nodeCount", json!(0)),
            reason: SPEC,
            message: "spec.parameters.nodeCount: found 0; allowed: 1 to 100 nodes per zone",
        },
        Case {
            world: spec(environment(), "nodeCount", json!(true)),
            reason: SPEC,
            message: "spec.parameters.nodeCount: found true; allowed: a whole number",
        },
        Case {
            world: spec(environment(), "storageGB", json!(70000)),
            reason: SPEC,
            message: "spec.parameters.storageGB: found 70000; allowed: 10 to 65536 GB",
        },
        Case {
            world: spec(environment(), "deletionPolicy", json!("Retain")),
            reason: SPEC,
            message: r#"spec.parameters.deletionPolicy: found "Retain"; allowed: Delete, Orphan"#,
        },
    ]);
}

#[test]
fn running_disk_does_not_shrink_and_image_stays() {
    let running = |world: World| world.settle(|_| Mood::Ready);
    let mut with_p3 = workspace();
    with_p3.input["gpuWorkspace"]["amis"]["us-east-1"]["byFamily"] = json!({"p3": "ami-0b0b0b0b"});
    with_p3.input["gpuWorkspace"]["instanceTypes"] = json!(["g4dn.xlarge", "p3.2xlarge"]);
    let to_p3 = spec(running(with_p3.clone()), "instanceType", json!("p3.2xlarge"));
    let from_p3 = spec(
        running(spec(with_p3, "instanceType", json!("p3.2xlarge"))),
        "instanceType",
        json!("g4dn.xlarge"),
    );
    let withdrawn =
        settings(running(workspace()), "gpuWorkspace", "instanceTypes", json!(["g5.xlarge"]));
    assert!(!is_fatal(&withdrawn.answer()), "a running type stays allowed after it is withdrawn");
    check(vec![
        Case {
            world: spec(running(workspace()), "diskGB", json!(80)),
            reason: SPEC,
            message: "spec.parameters.diskGB: found 80; allowed: 100 GiB or more, because the \
                      value can only grow",
        },
        Case {
            world: spec(running(environment()), "storageGB", json!(10)),
            reason: SPEC,
            message: "spec.parameters.storageGB: found 10; allowed: 20 GB or more, because the \
                      value can only grow",
        },
        Case {
            world: to_p3,
            reason: SPEC,
            message: r#"spec.parameters.instanceType: found "p3.2xlarge", which needs the machine image p3; the machine runs default; allowed: a machine type with the same image. For another image, create a new workspace"#,
        },
        Case {
            world: from_p3,
            reason: SPEC,
            message: r#"spec.parameters.instanceType: found "g4dn.xlarge", which needs the machine image default; the machine runs p3; allowed: a machine type with the same image. For another image, create a new workspace"#,
        },
        Case {
            world: spec(withdrawn, "instanceType", json!("g4dn.2xlarge")),
            reason: SPEC,
            message: r#"spec.parameters.instanceType: found "g4dn.2xlarge"; allowed: g5.xlarge"#,
        },
    ]);
}

#[test]
fn unknown_or_invalid_settings_are_rejected() {
    let top = |field: &str, value: Value| {
        let mut world = workspace();
        world.input[field] = value;
        world
    };
    let gpu = |field: &str, value: Value| settings(workspace(), "gpuWorkspace", field, value);
    let app =
        |field: &str, value: Value| settings(environment(), "applicationEnvironment", field, value);
    check(vec![
        Case {
            world: top("gpuWorkspaces", json!({})),
            reason: SETTINGS,
            message: "settings.gpuWorkspaces: unknown field; allowed: schemaRevision, \
                      minimumSchemaRevision, settingsFrom, tags, tagsFromLabels, providerConfigs, pricing, controller, budget, \
                      {sections} (nearest: gpuWorkspace)",
        },
        Case {
            world: gpu("ami", json!("ami-1")),
            reason: SETTINGS,
            message: "settings.gpuWorkspace.ami: unknown field; allowed: amis, networks, \
                      allowedCidrs, allowedCidrsWithin, instanceTypes, permissionsBoundary \
                      (nearest: amis)",
        },
        Case {
            world: gpu("amis", json!({"us-east-1": {"default": "ami-1", "byFamilies": {}}})),
            reason: SETTINGS,
            message: "settings.gpuWorkspace.amis.us-east-1.byFamilies: unknown field; allowed: \
                      default, byFamily (nearest: byFamily)",
        },
        Case {
            world: gpu("amis", json!({"us-east-1": "ami-1"})),
            reason: SETTINGS,
            message: r#"settings.gpuWorkspace.amis.us-east-1: found "ami-1"; allowed: an object"#,
        },
        Case {
            world: gpu("amis", json!({"us-east-1": {}})),
            reason: SETTINGS,
            message: "settings.gpuWorkspace.amis.us-east-1.default: missing; a value is required",
        },
        Case {
            world: gpu("allowedCidrsWithin", json!(["office"])),
            reason: SETTINGS,
            message: r#"settings.gpuWorkspace.allowedCidrsWithin[0]: found "office"; allowed: a network, for example 203.0.113.0/24, 203.0.113.7/32 for one host, or 2001:db8::/48 for IPv6"#,
        },
        Case {
            world: gpu("instanceTypes", json!("g5.xlarge")),
            reason: SETTINGS,
            message: r#"settings.gpuWorkspace.instanceTypes: found "g5.xlarge"; allowed: a list"#,
        },
        Case {
            world: top("tags", json!({"Team": 1})),
            reason: SETTINGS,
            message: "settings.tags.Team: found 1; allowed: a text, in quotes",
        },
        Case {
            world: top("schemaRevision", json!("one")),
            reason: SETTINGS,
            message: r#"settings.schemaRevision: found "one"; allowed: a whole number"#,
        },
        Case {
            world: top("settingsFrom", json!("paved-road")),
            reason: SETTINGS,
            message: r#"settings.settingsFrom: found "paved-road"; allowed: an object"#,
        },
        Case {
            world: top("providerConfigs", json!({"amazon": {"name": "a"}})),
            reason: SETTINGS,
            message: "settings.providerConfigs.amazon: unknown field; allowed: aws, gcp, azure, \
                      kubernetes, helm, sql",
        },
        Case {
            world: top("providerConfigs", json!({"aws": {"name": "a", "kind": "Config"}})),
            reason: SETTINGS,
            message: r#"settings.providerConfigs.aws.kind: found "Config"; allowed: ClusterProviderConfig, ProviderConfig"#,
        },
        Case {
            world: app("databaseVersion", json!("15")),
            reason: SETTINGS,
            message: r#"settings.applicationEnvironment.databaseVersion: found "15"; allowed: POSTGRES_ and a version, for example POSTGRES_16"#,
        },
        Case {
            world: app("network", json!("default")),
            reason: SETTINGS,
            message: r#"settings.applicationEnvironment.network: found "default"; allowed: projects/PROJECT/global/networks/NAME"#,
        },
        Case {
            world: app("machineTypes", json!({"tiny": "e2-micro"})),
            reason: SETTINGS,
            message: "settings.applicationEnvironment.machineTypes.tiny: unknown field; allowed: \
                      small, medium, large",
        },
    ]);
}

#[test]
fn composites_that_are_not_ours() {
    let kind = |kind: &str| {
        let mut world = workspace();
        world.xr["kind"] = json!(kind);
        world
    };
    let mut cluster = main_examples("gpu-workspace").pop().unwrap();
    cluster.xr["metadata"].as_object_mut().unwrap().remove("namespace");
    cluster.xr["spec"]["crossplane"] = json!({"compositionRef": {"name": "a"}});
    let mut nameless = workspace();
    nameless.xr["metadata"].as_object_mut().unwrap().remove("name");
    check(vec![
        Case {
            world: kind("Bucket"),
            reason: "UnsupportedKind",
            message: "Bucket is not a kind of Paved Road; allowed: {kinds}",
        },
        Case {
            world: kind("GpuDevWorkspaceClaim"),
            reason: "UnsupportedKind",
            message: "GpuDevWorkspaceClaim is not a kind of Paved Road; allowed: {kinds}",
        },
        Case {
            world: cluster,
            reason: SPEC,
            message: "metadata.namespace: missing, because the XRD has scope Cluster; allowed: an \
                      XRD with scope Namespaced, or with claims (XRD v1)",
        },
        Case {
            world: nameless,
            reason: SPEC,
            message: "metadata.name: missing; a composite must have a name",
        },
    ]);
}

#[test]
fn malformed_request_returns_a_grpc_error() {
    let xr = |object: Value| RunFunctionRequest {
        observed: Some(State {
            composite: Some(Resource {
                resource: Some(support::world::structure(&object)),
                ..Resource::default()
            }),
            ..State::default()
        }),
        ..RunFunctionRequest::default()
    };
    for (request, message) in [
        (RunFunctionRequest::default(), "the request has no observed composite resource"),
        (xr(json!({"metadata": {"name": "a"}})), "the observed composite resource has no kind"),
        (xr(json!({"kind": 5})), "the observed composite resource has no kind"),
    ] {
        let mut random = |_: &mut [u8]| {};
        let mut outside = Outside { now: jiff::Timestamp::UNIX_EPOCH, random: &mut random };
        assert_eq!(function::run(request, &mut outside), Err(Malformed(message)));
    }
}

#[test]
fn rejection_returns_no_desired_resources() {
    for world in [workspace(), environment()] {
        let world = world.settle(|_| Mood::Ready);
        let refused = spec(world, "region", json!(""));
        assert!(is_fatal(&refused.answer()));
        assert!(
            desired(&refused.answer()).is_empty(),
            "Crossplane changes no resource after a FATAL"
        );
    }
}
