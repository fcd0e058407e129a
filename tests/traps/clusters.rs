//! Managed clusters, and the releases in them.

use serde_json::{Value, json};
use simulator::provider::model::Model;

use super::environment::{Environment, beginnings, running};

const API: &str = "virtual-environment";

/// Checks a cluster that its cloud upgraded automatically. `words` are from the error that its
/// provider would get if it requested the former version.
fn upgraded_cluster_stays_ready(variant: &str, field: &str, words: &str) {
    for mut environment in running(API, Some(variant)) {
        let before = environment.resource("cluster")["status"]["atProvider"][field].clone();
        assert!(before.is_string(), "{variant}: the cloud chose a version");
        environment.in_the_cloud("cluster", field, json!("1.99"));
        environment.settle();

        let cluster = environment.resource("cluster");
        assert_eq!(cluster["spec"]["forProvider"].get(field), None, "{variant}");
        assert_eq!(cluster["status"]["atProvider"][field], "1.99");
        assert_eq!(environment.condition("cluster", "Synced"), "True");
        assert_eq!(environment.line("cluster")["ready"], true);
        assert_eq!(environment.status()["phase"], "Ready");
        let (raised, copied) = (json!({field: "1.99"}), json!({field: before}));
        let refusal = Model::for_object(cluster).forbids_change(&raised, &copied).unwrap();
        assert!(refusal.contains(words), "{refusal}");
    }
}

#[test]
fn trap_01_upgraded_eks_cluster_stays_ready() {
    upgraded_cluster_stays_ready("eks", "version", "Unsupported Kubernetes minor version update");
}

#[test]
fn trap_02_upgraded_aks_cluster_stays_ready() {
    upgraded_cluster_stays_ready("aks", "kubernetesVersion", "OperationNotAllowed");
}

#[test]
fn trap_03_node_group_that_failed_is_not_ready() {
    for mut environment in running(API, Some("eks")) {
        let group = environment.provider.external_mut("node-pool").unwrap();
        group.state = Some("CREATE_FAILED".to_owned());
        environment.settle();
        environment.call();
        assert_eq!(environment.condition("node-pool", "Ready"), "True", "its provider says so");
        assert_eq!(environment.line("node-pool")["ready"], false);
        environment.says("node-pool", "CREATE_FAILED");
        assert_eq!(environment.status()["phase"], "Failed");
    }
}

#[test]
fn trap_10_forgotten_default_pool_is_in_the_reported_cluster() {
    for mut environment in beginnings(API, Some("gke")).into_iter().map(Environment::slowly) {
        environment.begin("cluster");
        environment.provider.restart(&environment.world);
        environment.settle();
        environment.call();
        assert_eq!(environment.status()["phase"], "Ready", "no status shows the pool");
        let cluster = environment.line("cluster")["externalName"].as_str().unwrap();
        assert_eq!(environment.provider.leaked(), [format!("{cluster}/default-pool")]);
        let asked = &environment.asked("cluster")["spec"]["forProvider"];
        assert_eq!(asked["removeDefaultNodePool"], true);
    }
    for environment in running(API, Some("gke")) {
        assert_eq!(environment.provider.leaked(), [""; 0], "without a restart, it is removed");
    }
}

fn releases(resources: &std::collections::BTreeMap<String, Value>) -> Vec<&String> {
    let releases = resources.iter().filter(|(_, object)| object["kind"] == "Release");
    releases.map(|(slot, _)| slot).collect()
}

#[test]
fn trap_04_default_charts_spell_their_versions_as_asked() {
    for environment in running(API, None) {
        let slots = releases(environment.world.resources());
        assert!(slots.iter().any(|slot| *slot == "knative"), "{slots:?}");
        for slot in slots {
            let release = environment.resource(slot);
            let asked = &release["spec"]["forProvider"]["chart"]["version"];
            assert_eq!(release["status"]["atProvider"]["version"], *asked, "{slot}");
        }
    }
}

#[test]
fn trap_04_differently_spelled_chart_version_is_reported() {
    for mut environment in running(API, None) {
        let release = environment.world.resources_mut().get_mut("knative").unwrap();
        let version = release["spec"]["forProvider"]["chart"]["version"].as_str().unwrap();
        let (own, spelled) = (version.to_owned(), format!("v{version}"));
        release["spec"]["forProvider"]["chart"]["version"] = json!(spelled);
        environment.provider.answer(&mut environment.world);
        environment.call();
        environment.says("knative", &format!("the chart calls its version {own}"));
    }
}

#[test]
fn trap_16_release_that_helm_gave_up_has_failed() {
    for mut environment in beginnings(API, None) {
        environment.provider.fail("knative", "context deadline exceeded");
        environment.settle();
        environment.call();
        assert_eq!(environment.condition("knative", "Synced"), "True", "no error");
        assert_eq!(environment.line("knative")["reason"], "Failed");
        environment.says("knative", "Helm failed 3 times");
        environment.says("knative", "context deadline exceeded");

        // The provider itself gives up after ten minutes, so Helm must give up before.
        let release = environment.resource("knative");
        assert_eq!(release["spec"]["forProvider"]["waitTimeout"], "8m0s");
        environment.provider.mend("knative");
        environment.settle();
        environment.call();
        assert_eq!(environment.line("knative")["ready"], true);
    }
}
