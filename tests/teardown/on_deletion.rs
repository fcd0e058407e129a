//! The status predicts the effects of a deletion correctly.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::support::simulated::{self, Case};
use crate::support::world;

fn told(case: &Case) -> Value {
    world::status(&case.call(&case.settled()))["onDeletion"].clone()
}

fn slots(list: &Value) -> BTreeSet<&str> {
    list.as_array().unwrap().iter().map(|one| one["slot"].as_str().unwrap()).collect()
}

fn case(api: &str, variant: Option<&str>) -> Vec<Case> {
    let of = |case: &Case| case.api().info().name == api && case.variant().as_deref() == variant;
    simulated::all().into_iter().filter(of).collect()
}

/// The prediction for an example with a changed spec.
fn changed(case: &Case, change: impl Fn(&mut Value)) -> Value {
    let mut world = case.settled();
    change(&mut world.composite_mut()["spec"]);
    world::status(&case.call(&world))["onDeletion"].clone()
}

#[test]
fn every_resource_is_deleted_or_kept() {
    for case in simulated::all() {
        let response = case.call(&case.settled());
        let told = world::status(&response)["onDeletion"].clone();
        let is_plumbing = |object: &Value| {
            ["Usage", "ProviderConfig"].iter().any(|kind| object["kind"] == *kind)
                || object["spec"]["managementPolicies"] == json!(["Observe"])
        };
        let desired = world::desired(&response);
        let expected: BTreeSet<&str> = desired
            .iter()
            .filter(|(_, object)| !is_plumbing(&Value::Object((*object).clone())))
            .map(|(slot, _)| slot.as_str())
            .collect();
        let (deletes, keeps) = (slots(&told["deletes"]), slots(&told["keeps"]));
        let all: BTreeSet<&str> = deletes.union(&keeps).copied().collect();
        assert_eq!(all, expected, "{}", case.name());
        for (list, all) in [("deletes", &deletes), ("keeps", &keeps)] {
            let list = told[list].as_array().unwrap();
            assert_eq!(list.len(), all.len(), "{}: each resource is listed once", case.name());
            assert!(list.is_sorted_by_key(|one| one["slot"].as_str().unwrap()), "{}", case.name());
        }
    }
}

#[test]
fn examples_keep_exactly_the_expected_resources() {
    for case in simulated::all() {
        let told = told(&case);
        let keeps: Vec<String> = told["keeps"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| {
                format!("{} {}", one["slot"].as_str().unwrap(), one["kind"].as_str().unwrap())
            })
            .collect();
        let expected: &[&str] = match (case.api().info().name, case.variant().as_deref()) {
            ("application-environment", None) => &["bucket SoftDeletedObjects"],
            ("unified-environment", None) => &[
                "frontend-bucket Bucket",
                "frontend-bucket-encryption BucketServerSideEncryptionConfiguration",
                "frontend-bucket-ownership BucketOwnershipControls",
                "frontend-bucket-public-access BucketPublicAccessBlock",
            ],
            ("unified-environment", Some("rds")) => &["postgres-instance Snapshot"],
            ("virtual-environment", Some("eks")) => &["cluster LogGroup"],
            _ => &[],
        };
        assert_eq!(keeps, expected, "{}", case.name());
    }
}

#[test]
fn orphan_keeps_cluster_database_and_bucket() {
    for case in case("application-environment", None) {
        let told = changed(&case, |spec| spec["parameters"]["deletionPolicy"] = json!("Orphan"));
        let kept = [
            "bucket",
            "cloudsql-instance",
            "database",
            "database-user",
            "gke-cluster",
            "node-pool",
        ];
        assert!(slots(&told["keeps"]).is_superset(&BTreeSet::from(kept)), "{told}");
        assert!(!told["deletes"].to_string().contains("\"hasData\":true"), "{told}");
    }
}

#[test]
fn files_that_are_not_retained_are_deleted() {
    for case in case("unified-environment", None) {
        let told = changed(&case, |spec| spec["frontend"]["retainFiles"] = json!(false));
        assert_eq!(told["keeps"], json!([]));
        let bucket =
            told["deletes"].as_array().unwrap().iter().find(|one| one["slot"] == "frontend-bucket");
        assert_eq!(bucket.unwrap()["hasData"], true);
    }
}

#[test]
fn stop_changes_no_prediction() {
    for case in simulated::all().into_iter().filter(Case::can_stop) {
        let world = case.stopped();
        let stopped = world::status(&case.call(&world))["onDeletion"].clone();
        assert_eq!(stopped, told(&case), "{}", case.name());
    }
}
