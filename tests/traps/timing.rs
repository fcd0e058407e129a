//! When values become known, slow operations, and silent providers.

use jiff::SignedDuration;
use serde_json::{Value, json};
use simulator::provider::model::{Model, Operation};

use super::environment::{Environment, beginnings};
use super::support::virtual_environment::INSIDE;

#[test]
fn trap_12_bucket_policy_waits_for_the_distribution_to_be_deployed() {
    for environment in beginnings("unified-environment", None) {
        let mut environment = environment.slowly();
        let mut waited = 0;
        while environment.condition_or_nothing("frontend-site", "Ready") != "True" {
            environment.round();
            let Some(site) = environment.world.resources().get("frontend-site") else { continue };
            if site["status"]["atProvider"].get("arn").is_none() {
                assert_eq!(environment.external_name("frontend-site"), "", "no id yet");
                let asked = environment.asked("frontend-bucket-policy");
                let policy = asked.get("spec").map(Value::to_string).unwrap_or_default();
                assert!(!policy.contains("distribution/"), "{policy}");
                waited += 1;
            }
        }
        assert!(waited > 1, "a distribution takes its time");
        environment.settle();
        environment.call();
        assert_eq!(environment.status()["phase"], "Ready");
    }
}

#[test]
fn trap_13_empty_connection_secret_is_not_a_kubeconfig() {
    for environment in beginnings("virtual-environment", Some("gke")) {
        let mut environment = environment.slowly();
        let mut empty = 0;
        while environment.condition_or_nothing("cluster", "Ready") != "True" {
            environment.round();
            let cluster = environment.resource("cluster");
            let details = environment.world.connection_details(cluster);
            let is_there = environment.world.secrets().any(|secret| {
                secret["metadata"]["name"] == cluster["spec"]["writeConnectionSecretToRef"]["name"]
            });
            if is_there && details.is_empty() {
                empty += 1;
                for slot in INSIDE {
                    assert_eq!(environment.asked(slot).len(), 0, "{slot} waits for the kubeconfig");
                }
            }
        }
        assert!(empty > 1, "the Secret is empty while the cluster is created");
    }
}

#[test]
fn trap_14_creation_of_over_an_hour_is_reported_until_the_next_reconcile() {
    const SITE: &str = "frontend-site";
    for environment in beginnings("unified-environment", None) {
        let mut environment = environment.slowly();
        environment.provider.stall(SITE);
        environment.settle();
        environment.wait(SignedDuration::from_mins(43));
        environment.settle();
        environment.call();
        assert_eq!(environment.line(SITE)["reason"], "Creating");
        environment.wait(SignedDuration::from_mins(16));
        environment.settle();
        environment.call();
        environment.says(SITE, "not ready within 45 minutes: is being created");
        environment.wait(SignedDuration::from_mins(1));
        environment.round();
        environment.call();
        assert_eq!(environment.line(SITE)["reason"], "Failed");
        environment.says(SITE, "async create failed: context deadline exceeded");
        assert_eq!(environment.provider.leaked(), [""; 0], "its provider knows the distribution");
        environment.settle();
        environment.call();
        assert_eq!(environment.status()["phase"], "Ready");
    }
}

#[test]
fn trap_14_deletion_that_waits_for_a_creation_is_a_deletion() {
    for environment in beginnings("gpu-workspace", None) {
        let mut environment = environment.slowly();
        environment.round();
        let now = environment.world.now().to_string();
        let machine = environment.world.resources_mut().get_mut("instance").unwrap();
        machine["metadata"]["deletionTimestamp"] = json!(now);
        let why = "create operation that started at 2026-11-25 12:00:00 is still running";
        Model::for_object(machine).refuse(machine, &now, Operation::Delete, why, false);
        environment.call();
        assert_eq!(environment.condition("instance", "Synced"), "False");
        assert_eq!(environment.line("instance")["reason"], "Deleting");
        assert_ne!(environment.status()["phase"], "Failed");
    }
}

fn without_configs(api: &str) -> Vec<Environment> {
    let mut environments = beginnings(api, None);
    for environment in &mut environments {
        environment.provider.remove_config("default");
        environment.settle();
        let later = environment.world.now() + SignedDuration::from_mins(5);
        environment.world.set_now(later);
        environment.call();
    }
    environments
}

#[test]
fn trap_17_silent_cloud_provider_is_reported() {
    for environment in without_configs("gpu-workspace") {
        assert_eq!(environment.resource("role").get("status"), None, "its provider writes nothing");
        environment.says("role", "Check that the ");
        environment.says("role", " default (aws.");
    }
}

#[test]
fn trap_17_error_of_a_hand_written_provider_is_reported() {
    for environment in without_configs("unified-environment") {
        environment.says("postgres-db", "connect failed: cannot get referenced ProviderConfig");
        assert_eq!(environment.line("postgres-db")["ready"], false);
    }
}
