//! Rejections by clouds, from the facts and from the table of kinds.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::needless_pass_by_value)]

mod support;

use serde_json::{Value, json};
use simulator::provider::model::{Existing, Model, differs};
use simulator::provider::{Pace, Provider};
use support::{aws, message, status, world};

fn model(group: &str, kind: &str) -> Model {
    Model::for_object(&json!({"apiVersion": format!("{group}/v1beta1"), "kind": kind}))
}

fn existing<'a>(
    group: &'a str,
    kind: &'a str,
    name: &'a str,
    parameters: &'a Value,
) -> Existing<'a> {
    Existing { group, kind, name, parameters, is_busy: false }
}

#[test]
fn security_group_with_a_machine_in_it_is_not_deleted() {
    let (group, none) = ("ec2.aws.upbound.io", json!({}));
    let refusal = |groups: Value| {
        let machine = json!({"vpcSecurityGroupIds": groups});
        let all = [existing(group, "Instance", "i-1", &machine)];
        let external = existing(group, "SecurityGroup", "sg-1", &none);
        model(group, "SecurityGroup").forbids_deletion(external, all.into_iter())
    };
    let words = refusal(json!(["sg-1"])).unwrap();
    assert!(words.contains("DependencyViolation: resource sg-1 has a dependent object"), "{words}");
    assert_eq!(refusal(json!(["sg-2"])), None);
}

#[test]
fn cloudfront_function_of_a_distribution_is_not_deleted() {
    let (group, none) = ("cloudfront.aws.upbound.io", json!({}));
    let refusal = |name: &str| {
        let arn = format!("arn:aws:cloudfront::123456789012:function/{name}");
        let behaviour = json!({"functionAssociation": [{"functionArn": arn}]});
        let site = json!({"defaultCacheBehavior": behaviour});
        let all = [existing(group, "Distribution", "E1", &site)];
        let external = existing(group, "Function", "paths", &none);
        model(group, "Function").forbids_deletion(external, all.into_iter())
    };
    let words = refusal("paths").unwrap();
    assert!(words.contains("CloudFront Function (paths)"), "{words}");
    assert!(words.contains("FunctionInUse"), "{words}");
    assert_eq!(refusal("other-paths"), None);
}

#[test]
fn gke_cluster_with_busy_node_pools_or_protection_is_not_deleted() {
    let group = "container.gcp.upbound.io";
    let pool = json!({"cluster": "c"});
    let refusal = |is_protected: bool, is_busy: bool| {
        let parameters = json!({"deletionProtection": is_protected});
        let all = [Existing { is_busy, ..existing(group, "NodePool", "p", &pool) }];
        let external = existing(group, "Cluster", "c", &parameters);
        model(group, "Cluster").forbids_deletion(external, all.into_iter())
    };
    assert_eq!(refusal(false, false), None, "node pools are deleted with the cluster");
    assert!(refusal(false, true).unwrap().contains("incompatible operation"));
    assert!(refusal(true, false).unwrap().contains("deletion_protection"));
}

#[test]
fn bucket_is_deleted_only_with_its_files() {
    for group in ["s3.aws.upbound.io", "storage.gcp.upbound.io"] {
        let refusal = |parameters: Value| {
            let external = existing(group, "Bucket", "site", &parameters);
            model(group, "Bucket").forbids_deletion(external, std::iter::empty())
        };
        assert_eq!(refusal(json!({"forceDestroy": true})), None);
        assert!(refusal(json!({"forceDestroy": false})).unwrap().contains("site"), "{group}");
        assert!(refusal(json!({})).is_some(), "{group}");
    }
}

#[test]
fn immutable_field_refuses_all_changes_by_its_name_in_terraform() {
    let machine = model("ec2.aws.m.upbound.io", "Instance");
    let there = json!({"ami": "ami-1", "instanceType": "a", "ebsBlockDevice": [{"volumeSize": 1}],
                       "rootBlockDevice": {"volumeSize": 100, "encrypted": true}});
    let refusal = |wanted: Value| machine.forbids_change(&there, &wanted);
    let larger = json!({"instanceType": "b", "rootBlockDevice": {"volumeSize": 200}});
    assert_eq!(refusal(larger), None);
    for (wanted, argument) in [
        (json!({"ami": "ami-2"}), r#""ami" from "ami-1" to "ami-2""#),
        (
            json!({"rootBlockDevice": {"encrypted": false}}),
            r#""root_block_device.0.encrypted" from "true" to "false""#,
        ),
        (json!({"ebsBlockDevice": []}), r#""ebs_block_device.#" from "1" to "0""#),
        (
            json!({"ebsBlockDevice": [{"volumeSize": 2}]}),
            r#""ebs_block_device.0.volume_size" from "1" to "2""#,
        ),
    ] {
        let words = refusal(wanted).unwrap();
        assert!(words.ends_with(&format!("the value of the argument {argument}")), "{words}");
    }
    let smaller = refusal(json!({"rootBlockDevice": {"volumeSize": 50}})).unwrap();
    assert!(smaller.contains("New size cannot be smaller"), "{smaller}");
}

#[test]
fn fields_that_clouds_change_in_place_are_not_refused() {
    for (group, kind, field) in [
        ("cloudfront.aws.upbound.io", "Function", "runtime"),
        ("cloudfront.aws.upbound.io", "OriginAccessControl", "name"),
        ("sql.gcp.upbound.io", "Database", "charset"),
        ("sql.gcp.upbound.io", "Database", "collation"),
    ] {
        let change = model(group, kind).forbids_change(&json!({field: "a"}), &json!({field: "b"}));
        assert_eq!(change, None, "{kind} {field}");
    }
}

#[test]
fn machine_type_of_aks_changes_only_by_way_of_another_pool() {
    let cluster = model("containerservice.azure.upbound.io", "KubernetesCluster");
    let pool = |pool: Value| json!({"defaultNodePool": pool});
    let there = pool(json!({"name": "nodes", "vmSize": "a", "nodeCount": 2}));
    let refusal = |wanted| cluster.forbids_change(&there, &pool(wanted));
    assert_eq!(refusal(json!({"name": "nodes", "vmSize": "a", "nodeCount": 3})), None);
    let words = refusal(json!({"name": "nodes", "vmSize": "b"})).unwrap();
    assert!(words.starts_with("`temporary_name_for_rotation` must be specified"), "{words}");
    let rotated = json!({"name": "nodes", "vmSize": "b", "temporaryNameForRotation": "meanwhile"});
    assert_eq!(refusal(rotated), None);
}

#[test]
fn field_that_is_left_out_is_left_to_the_cloud() {
    assert!(!differs(&json!({"a": 1, "late": 2}), &json!({"a": 1})));
    assert!(differs(&json!({"tags": {"a": "1", "b": "2"}}), &json!({"tags": {"a": "1"}})));
}

#[test]
fn machine_created_again_needs_a_subnet() {
    let machine = model("ec2.aws.upbound.io", "Instance");
    let interface = json!({"networkInterfaceId": "eni-1"});
    assert_eq!(machine.forbids_creation(&json!({"ami": "ami-1"})), None);
    let words = machine.forbids_creation(&json!({"primaryNetworkInterface": interface})).unwrap();
    assert!(words.contains("The networkInterface ID 'eni-1' does not exist"), "{words}");
    let with_subnet = json!({"primaryNetworkInterface": interface, "subnetId": "subnet-1"});
    assert_eq!(machine.forbids_creation(&with_subnet), None);
}

#[test]
fn recreated_small_server_has_no_throughput() {
    let server = model("rds.aws.upbound.io", "Instance");
    let sized = |gib: i64| json!({"allocatedStorage": gib, "storageThroughput": 125});
    let words = server.forbids_creation(&sized(20)).unwrap();
    assert!(words.contains("InvalidParameterCombination"), "{words}");
    assert_eq!(server.forbids_creation(&sized(400)), None);
    assert_eq!(server.forbids_creation(&json!({"allocatedStorage": 20})), None);
}

#[test]
fn rejected_change_keeps_a_resource_ready() {
    let mut world = world(json!({"role": aws("Role", json!({"path": "/a/"}))}));
    let mut provider = Provider::new(Pace::Instant);
    provider.answer(&mut world);
    let role = world.resources_mut().get_mut("role").unwrap();
    role["spec"]["forProvider"]["path"] = json!("/b/");
    provider.answer(&mut world);
    let words = message(&world, "role", "Synced");
    assert!(words.starts_with("update failed: async update failed: refuse to update"), "{words}");
    assert_eq!(status(&world, "role", "Ready"), "True");
    let role = &world.resources()["role"];
    assert_eq!(role["status"]["atProvider"]["path"], "/a/", "the path is unchanged");
}

#[test]
fn name_that_a_cloud_assigns_is_known_once_the_resource_is_there() {
    let mut world = world(json!({"machine": aws("Instance", json!({"region": "us-east-1"}))}));
    let mut provider = Provider::new(Pace::Rounds);
    let name = |world: &simulator::core::World| {
        let annotations = &world.resources()["machine"]["metadata"]["annotations"];
        annotations["crossplane.io/external-name"].as_str().map(str::to_owned)
    };
    provider.answer(&mut world);
    assert_eq!((name(&world), status(&world, "machine", "Ready")), (None, "False".to_owned()));
    provider.answer(&mut world);
    provider.answer(&mut world);
    assert!(name(&world).unwrap().starts_with("i-"));
}
