//! Running virtual environments after a change of the claim or of Settings.

use serde_json::{Value, json};

use crate::slots;
use crate::support::{
    self,
    virtual_environment::{TYPES, beginnings, running},
    world::{Mood, World, desired, status},
};

#[test]
fn settings_change_only_networks_of_running_environments() {
    for cluster_type in TYPES {
        for mut world in running(cluster_type) {
            let before = desired(&world.answer());
            let section = world.input["environment"].as_object_mut().unwrap();
            section.insert(
                "charts".into(),
                json!({"vcluster": "0.40.0", "argocd": "11.0.0", "knative": "v2.0.0"}),
            );
            section.insert(
                "machineTypes".into(),
                json!({"gke": {"medium": "n2-standard-8"}, "eks": {"medium": "c7i.large"}, "aks": {"medium": "Standard_E4s_v5"}}),
            );
            section.insert("gke".into(), json!({"location": "us-central1", "projectId": "other"}));
            assert_eq!(desired(&world.answer()), before, "{cluster_type}");
            world.input["environment"] = json!({});
            assert_eq!(desired(&world.answer()), before, "{cluster_type}: without Settings");
        }
    }
}

#[test]
fn networks_of_settings_reach_a_managed_cluster_that_runs() {
    let paths = [
        ("gke", "/spec/forProvider/masterAuthorizedNetworksConfig/cidrBlocks/0/cidrBlock"),
        ("eks", "/spec/forProvider/vpcConfig/publicAccessCidrs/0"),
        ("aks", "/spec/forProvider/apiServerAccessProfile/authorizedIpRanges/0"),
    ];
    for (cluster_type, path) in paths {
        for mut world in running(cluster_type) {
            let network = |world: &World| {
                let cluster = Value::Object(desired(&world.answer())["cluster"].clone());
                cluster.pointer(path).cloned().unwrap_or_default()
            };
            assert_eq!(network(&world), "198.51.100.0/24");
            world.input["environment"]["allowedCidrs"] = json!(["203.0.113.0/24"]);
            assert_eq!(network(&world), "203.0.113.0/24");
            world.reconcile(|_| Mood::Ready);
            world.input["environment"]["allowedCidrs"] = json!([]);
            assert_eq!(network(&world), "203.0.113.0/24");
        }
    }
}

#[test]
fn type_chosen_by_settings_is_preserved() {
    for cluster_type in TYPES {
        for mut world in beginnings(cluster_type) {
            world.xr["spec"]["parameters"].as_object_mut().unwrap().remove("type");
            world.input["environment"]["typeBySize"] =
                json!({"small": cluster_type, "medium": cluster_type});
            let mut world = world.settle(|_| Mood::Ready);
            let before = slots(&world);
            world.input["environment"]["typeBySize"] = json!({"small": "aks", "medium": "gke"});
            assert_eq!(slots(&world), before);
            assert_eq!(status(&world.answer())["type"], cluster_type);
        }
    }
}

#[test]
fn new_size_changes_only_values_that_depend_on_the_size() {
    for mut world in running("vcluster") {
        let before = Value::Object(desired(&world.answer())["vcluster"].clone());
        world.xr["spec"]["parameters"]["size"] = json!("large");
        let now = Value::Object(desired(&world.answer())["vcluster"].clone());
        let changed = support::rewritten(&before, &now);
        let allowed =
            ["resources", "resourceQuota", "limitRange", "paved-road.fn.crossplane.io/size"];
        assert!(changed.len() > 5, "{changed:?}");
        for path in changed {
            assert!(allowed.iter().any(|part| path.contains(part)), "{path}");
        }
    }
    for mut world in running("gke") {
        world.xr["spec"]["parameters"]["size"] = json!("large");
        let pool = &desired(&world.answer())["node-pool"];
        assert_eq!(pool["spec"]["forProvider"]["nodeConfig"]["machineType"], "e2-standard-8");
    }
}
