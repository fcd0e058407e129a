//! Application environments: the resources of new ones, and the values that running ones preserve.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::collections::BTreeMap;

use function_paved_road::apis::Flavour;
use serde_json::{Value, json};
use support::world::{Mood, World, desired, is_fatal, status};

/// The example of each API, before any resource exists.
fn new() -> Vec<World> {
    worlds("nothing")
}

/// The running example of each API, created by a release before schema revision 2.
fn running() -> Vec<World> {
    support::examples()
        .iter()
        .filter(|example| {
            example.api.info().name == "application-environment" && example.state == "ready"
        })
        .map(|example| {
            let mut world = World::new(example);
            for object in example.observed() {
                let slot =
                    &object["metadata"]["annotations"]["crossplane.io/composition-resource-name"];
                if let Some(slot) = slot.as_str() {
                    let composed = support::world::Composed {
                        object: object.clone(),
                        details: BTreeMap::default(),
                    };
                    world.composed.insert(slot.to_owned(), composed);
                }
            }
            world
        })
        .collect()
}

fn worlds(state: &str) -> Vec<World> {
    let examples = support::examples();
    let ours = examples.iter().filter(|example| {
        example.api.info().name == "application-environment" && example.state == state
    });
    ours.map(World::new).collect()
}

fn asked(world: &World, slot: &str) -> Value {
    let response = world.answer();
    assert!(!is_fatal(&response), "{:?}", response.results);
    desired(&response).remove(slot).map(Value::Object).unwrap_or_default()
}

fn settings(world: &mut World) -> &mut Value {
    &mut world.input["applicationEnvironment"]
}

#[test]
fn new_server_gets_a_supported_postgresql_and_running_server_keeps_its_own() {
    for mut world in new() {
        settings(&mut world).as_object_mut().unwrap().remove("databaseVersion");
        let server = asked(&world, "cloudsql-instance");
        assert_eq!(server["spec"]["forProvider"]["databaseVersion"], "POSTGRES_17");
        assert_eq!(server["spec"]["forProvider"]["settings"]["edition"], "ENTERPRISE");
    }
    for world in running() {
        let server = asked(&world, "cloudsql-instance");
        assert_eq!(server["spec"]["forProvider"]["databaseVersion"], "POSTGRES_14");
    }
}

#[test]
fn server_that_was_upgraded_by_hand_keeps_the_new_version() {
    for mut world in running() {
        let server = &mut world.composed.get_mut("cloudsql-instance").unwrap().object;
        server["spec"]["forProvider"]["databaseVersion"] = json!("POSTGRES_16");
        let server = asked(&world, "cloudsql-instance");
        assert_eq!(server["spec"]["forProvider"]["databaseVersion"], "POSTGRES_16");
    }
}

#[test]
fn first_pool_of_a_new_cluster_needs_no_ssd() {
    for world in new() {
        let cluster = asked(&world, "gke-cluster");
        let first = json!({"nodeConfig": {"diskType": "pd-standard", "diskSizeGb": 20}});
        assert_eq!(cluster["spec"]["initProvider"], first);
        assert_eq!(
            cluster["spec"]["forProvider"]["nodeConfig"],
            Value::Null,
            "GKE returns the config of another pool"
        );
        assert_eq!(
            asked(&world, "node-pool")["spec"]["forProvider"]["nodeConfig"]["diskSizeGb"],
            50
        );
    }
    for world in running() {
        assert_eq!(asked(&world, "gke-cluster")["spec"]["initProvider"], Value::Null);
        let pool = asked(&world, "node-pool");
        assert_eq!(pool["spec"]["forProvider"]["nodeConfig"]["diskSizeGb"], Value::Null);
    }
}

#[test]
fn new_cluster_uses_the_subnet_of_its_region() {
    let path = |region: &str| format!("projects/acme-dev/regions/{region}/subnetworks/gke");
    for mut world in new() {
        let network = json!("projects/acme-dev/global/networks/prod-custom");
        settings(&mut world)["network"] = network;
        settings(&mut world)["subnetwork"] = json!(path("us-central1"));
        settings(&mut world)["clusterSecondaryRangeName"] = json!("pods");
        settings(&mut world)["servicesSecondaryRangeName"] = json!("services");
        let cluster = asked(&world, "gke-cluster")["spec"]["forProvider"].clone();
        assert_eq!(cluster["subnetwork"], path("us-central1"));
        let ranges =
            json!({"clusterSecondaryRangeName": "pods", "servicesSecondaryRangeName": "services"});
        assert_eq!(cluster["ipAllocationPolicy"], ranges);

        world.xr["spec"]["parameters"]["region"] = json!("europe-west1");
        let refused = world.answer();
        let message = &refused.results[0].message;
        assert!(message.starts_with("settings.applicationEnvironment.subnetwork: "), "{message}");
        settings(&mut world)["subnetworks"] = json!({"europe-west1": path("europe-west1")});
        let cluster = asked(&world, "gke-cluster")["spec"]["forProvider"].clone();
        assert_eq!(cluster["subnetwork"], path("europe-west1"));
    }
}

#[test]
fn pods_of_a_new_cluster_may_use_its_database_and_its_bucket() {
    for world in new() {
        let first = world.answer();
        assert_eq!(
            desired(&first).get("database-access"),
            None,
            "the project number is not known yet"
        );
        let lines = status(&first)["resources"].clone();
        let waits = |slot: &str| lines.as_array().unwrap().iter().any(|line| line["slot"] == slot);
        assert!(waits("database-access") && waits("bucket-access"), "{lines}");

        let world = world.settle(|_| Mood::Ready);
        let client = asked(&world, "database-access")["spec"]["forProvider"].clone();
        let user = asked(&world, "bucket-access")["spec"]["forProvider"].clone();
        assert_eq!(client["role"], "roles/cloudsql.client");
        assert_eq!(user["role"], "roles/storage.objectUser");
        let name = |slot| {
            let object = asked(&world, slot);
            object["metadata"]["annotations"]["crossplane.io/external-name"]
                .as_str()
                .unwrap()
                .to_owned()
        };
        let member = format!(
            "principalSet://iam.googleapis.com/projects/123456789012/locations/global/workloadIdentityPools/acme-dev.svc.id.goog\
             /kubernetes.cluster/https://container.googleapis.com/v1/projects/acme-dev/locations/us-central1/clusters/{}",
            name("gke-cluster")
        );
        assert_eq!((&client["member"], &user["member"]), (&json!(member), &json!(member)));
        let this_server = format!(
            "resource.name == 'projects/acme-dev/instances/{}' && resource.service == 'sqladmin.googleapis.com'",
            name("cloudsql-instance")
        );
        assert_eq!(client["condition"]["expression"], this_server);
    }
}

#[test]
fn access_rights_of_orphans_are_orphaned_too() {
    for mut world in new() {
        world.xr["spec"]["parameters"]["deletionPolicy"] = json!("Orphan");
        let world = world.settle(|_| Mood::Ready);
        for slot in ["database-access", "bucket-access"] {
            let spec = asked(&world, slot)["spec"].clone();
            match world.flavour {
                Flavour::Claims => assert_eq!(spec["deletionPolicy"], "Orphan", "{slot}"),
                Flavour::Namespaced => assert!(spec["managementPolicies"].is_array(), "{slot}"),
            }
        }
    }
}

#[test]
fn rights_need_a_project_and_an_environment_of_schema_revision_2() {
    let has_rights = |world: World| {
        let world = world.settle(|_| Mood::Ready);
        ["database-access", "bucket-access"].map(|slot| !asked(&world, slot).is_null())
    };
    for world in new() {
        assert_eq!(has_rights(world.clone()), [true, true]);
        let mut earlier = world.clone();
        earlier.input["schemaRevision"] = json!(1);
        assert_eq!(has_rights(earlier), [false, false]);
        let mut nameless = world.clone();
        settings(&mut nameless).as_object_mut().unwrap().remove("projectId");
        assert_eq!(has_rights(nameless), [false, false]);
    }
    for world in running() {
        assert_eq!(has_rights(world), [false, false], "running environments do not change");
    }
}
