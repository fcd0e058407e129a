//! Managed clusters stay ready after changes by their cloud.

use serde_json::{Value, json};

use crate::line;
use crate::support::virtual_environment::{beginnings, running};
use crate::support::world::{Mood, World, desired, status};

fn cluster(world: &World) -> Value {
    Value::Object(desired(&world.answer())["cluster"].clone())
}

#[test]
fn version_that_the_cloud_chose_stays_out_of_the_spec() {
    for (cluster_type, field) in [("eks", "version"), ("aks", "kubernetesVersion")] {
        let policies = json!(["Observe", "Create", "Update", "Delete"]);
        for world in beginnings(cluster_type) {
            let new = cluster(&world);
            assert_eq!(new["spec"]["managementPolicies"], policies, "{cluster_type}");
            assert_eq!(new["spec"]["forProvider"].get(field), None);
        }
        for mut world in running(cluster_type) {
            let spec = &mut world.composed.get_mut("cluster").unwrap().object["spec"];
            spec["managementPolicies"] = json!(["*"]);
            assert_eq!(cluster(&world)["spec"]["managementPolicies"], policies, "running");
            let spec = &mut world.composed.get_mut("cluster").unwrap().object["spec"];
            spec["managementPolicies"] = json!(["Observe"]);
            assert_eq!(
                cluster(&world)["spec"].get("managementPolicies"),
                None,
                "set to observe by hand"
            );
        }
    }
}

#[test]
fn eks_upgrades_new_clusters_and_keeps_running_clusters_unchanged() {
    for world in beginnings("eks") {
        let policy =
            |world: &World| cluster(world)["spec"]["forProvider"].get("upgradePolicy").cloned();
        assert_eq!(policy(&world), Some(json!({"supportType": "STANDARD"})));
        let mut world = world.settle(|_| Mood::Ready);
        let observed =
            &mut world.composed.get_mut("cluster").unwrap().object["spec"]["forProvider"];
        observed.as_object_mut().unwrap().remove("upgradePolicy");
        assert_eq!(policy(&world), None);
    }
}

#[test]
fn node_group_that_failed_is_not_ready_although_its_provider_says_so() {
    for mut world in running("eks") {
        let observed = &mut world.composed.get_mut("node-pool").unwrap().object;
        observed["status"]["atProvider"]["status"] = json!("CREATE_FAILED");
        assert_eq!(status(&world.answer())["phase"], "Failed");
        let line = line(&world, "node-pool");
        assert_eq!((&line["ready"], &line["reason"]), (&json!(false), &json!("Failed")));
        assert!(line["message"].as_str().unwrap().contains("CREATE_FAILED"), "{line}");
    }
}

#[test]
fn provider_that_is_silent_for_a_minute_is_named_with_its_config() {
    for mut world in beginnings("eks") {
        let config = match world.xr["metadata"].get("namespace") {
            Some(_) => "ClusterProviderConfig default (aws.m.upbound.io)",
            None => "ProviderConfig default (aws.upbound.io)",
        };
        world.reconcile(|_| Mood::Silent);
        let first = line(&world, "cluster");
        assert_eq!(first["message"], "is being created");
        world.now = "2026-11-21T09:00:59Z";
        assert_eq!(line(&world, "cluster"), first);
        world.now = "2026-11-21T09:01:00Z";
        let told = line(&world, "cluster");
        let message = told["message"].as_str().unwrap();
        assert!(message.contains(config), "{message}");
        assert_eq!((&told["since"], &told["reason"]), (&first["since"], &first["reason"]));
        let answer = world.answer();
        let told = answer.conditions.iter().find(|one| one.r#type == "Provisioned").unwrap();
        assert!(told.message().contains(config), "{}", told.message());
        let again = answer.meta.unwrap().ttl.unwrap();
        assert!(again.seconds <= 60, "Crossplane calls again: {again:?}");
        world.reconcile(|_| Mood::Creating);
        assert_eq!(line(&world, "cluster")["message"], "is being created");
    }
}

#[test]
fn machine_image_follows_the_machine_type_of_settings() {
    for (machine, image) in [
        ("m7g.large", "AL2023_ARM_64_STANDARD"),
        ("g5.xlarge", "AL2023_x86_64_NVIDIA"),
        ("m6i.large", "AL2023_x86_64_STANDARD"),
    ] {
        for mut world in beginnings("eks") {
            world.input["environment"]["machineTypes"] =
                json!({"eks": {"small": machine, "medium": machine, "large": machine}});
            let pool = &desired(&world.answer())["node-pool"]["spec"]["forProvider"];
            assert_eq!(
                (&pool["instanceTypes"], &pool["amiType"]),
                (&json!([machine]), &json!(image))
            );
        }
    }
}

#[test]
fn charts_are_requested_with_their_own_spelling_of_the_version() {
    for mut world in beginnings("vcluster") {
        world.input["environment"]["charts"] =
            json!({"vcluster": "v0.36.1", "argocd": "v10.1.1", "knative": "v1.22.3"});
        let world = world.settle(|_| Mood::Ready);
        let all = desired(&world.answer());
        let chart = |slot: &str| all[slot]["spec"]["forProvider"]["chart"]["version"].clone();
        assert_eq!(
            [chart("vcluster"), chart("argocd"), chart("knative")],
            ["0.36.1", "10.1.1", "1.22.3"]
        );
    }
}

#[test]
fn releases_give_up_before_their_provider_does() {
    for world in running("vcluster") {
        let all = desired(&world.answer());
        for slot in ["vcluster", "argocd", "knative"] {
            assert_eq!(all[slot]["spec"]["forProvider"]["waitTimeout"], "8m0s", "{slot}");
        }
    }
}

#[test]
fn volumes_of_eks_have_a_driver_with_rights_and_a_default_class() {
    for world in running("eks") {
        let all = desired(&world.answer());
        let driver = &all["addon-ebs-csi"]["spec"]["forProvider"];
        assert_eq!(driver["addonName"], "aws-ebs-csi-driver");
        let role = &world.composed["ebs-csi-role"].object;
        let arn = &role["status"]["atProvider"]["arn"];
        let identity = json!([{"roleArn": arn, "serviceAccount": "ebs-csi-controller-sa"}]);
        assert_eq!(driver["podIdentityAssociation"], identity);
        let trust = role["spec"]["forProvider"]["assumeRolePolicy"].as_str().unwrap();
        assert!(
            trust.contains("pods.eks.amazonaws.com") && trust.contains("sts:TagSession"),
            "{trust}"
        );
        assert_eq!(
            all["ebs-csi-policy"]["spec"]["forProvider"]["policyArn"],
            "arn:aws:iam::aws:policy/service-role/AmazonEBSCSIDriverPolicy"
        );
        assert_eq!(
            all["addon-pod-identity"]["spec"]["forProvider"]["addonName"],
            "eks-pod-identity-agent"
        );
        let class = &all["storage-class"]["spec"]["forProvider"]["manifest"];
        assert_eq!(class["provisioner"], "ebs.csi.aws.com");
        assert_eq!(
            class["metadata"]["annotations"]["storageclass.kubernetes.io/is-default-class"],
            "true"
        );
        for usage in [
            "usage-ebs-csi-role-by-helm-config",
            "usage-ebs-csi-role-by-kubernetes-config",
            "usage-node-pool-by-kubernetes-config",
        ] {
            assert!(all.contains_key(usage), "{usage}");
        }
    }
}

#[test]
fn driver_of_volumes_uses_the_role_of_settings() {
    let arn = "arn:aws:iam::123456789012:role/ebs";
    for mut world in beginnings("eks") {
        world.input["environment"]["eks"]["ebsCsiRoleArn"] = json!(arn);
        let mut world = world.settle(|_| Mood::Ready);
        let all = desired(&world.answer());
        assert!(!all.contains_key("ebs-csi-role") && !all.contains_key("ebs-csi-policy"));
        let identity = &all["addon-ebs-csi"]["spec"]["forProvider"]["podIdentityAssociation"];
        assert_eq!(identity[0]["roleArn"], arn);
        world.input["environment"]["eks"].as_object_mut().unwrap().remove("ebsCsiRoleArn");
        assert_eq!(desired(&world.answer()), all, "a running driver keeps its role");
    }
}

#[test]
fn environment_of_an_earlier_revision_gets_no_driver_of_volumes() {
    for mut world in beginnings("eks") {
        world.input["schemaRevision"] = json!(1);
        let mut world = world.settle(|_| Mood::Ready);
        let before = desired(&world.answer());
        assert!(
            !before.keys().any(|slot| slot.contains("ebs") || slot == "storage-class"),
            "{:?}",
            before.keys()
        );
        world.input["schemaRevision"] = json!(2);
        assert_eq!(desired(&world.answer()), before);
    }
}
