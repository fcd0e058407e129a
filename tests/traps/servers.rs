//! Database servers, and the resources inside them.

use jiff::SignedDuration;
use serde_json::json;
use simulator::provider::model::{Model, parameters};

use super::environment::{Environment, running};
use super::support::{rewritten, simulated};

const API: &str = "unified-environment";
const SERVER: &str = "postgres-instance";
const ROLE: &str = "postgres-role";

#[test]
fn trap_05_server_has_the_requested_name() {
    for environment in running(API, Some("rds")) {
        let server = environment.resource(SERVER);
        let name = server["spec"]["forProvider"]["identifier"].as_str().unwrap();
        assert!(environment.external_name(SERVER).starts_with("db-"), "AWS's id replaces the name");
        let address = server["status"]["atProvider"]["address"].as_str().unwrap();
        assert!(address.starts_with(&format!("{name}.")), "{address}");
        let snapshot = &server["spec"]["forProvider"]["finalSnapshotIdentifier"];
        assert_eq!(*snapshot, format!("{name}-final"));
        assert_eq!(environment.asked(SERVER)["spec"]["forProvider"]["identifier"], name);
    }
}

fn class(environment: &Environment) -> String {
    let seen = &environment.resource(SERVER)["status"]["atProvider"]["instanceClass"];
    seen.as_str().unwrap().to_owned()
}

#[test]
fn trap_06_size_changes_without_a_maintenance_window() {
    for mut environment in running(API, Some("rds")) {
        let (before, sent) = (class(&environment), environment.provider.updates(SERVER));
        environment.change(&["database", "size"], json!("small"));
        environment.settle();
        assert_ne!(class(&environment), before);
        assert_eq!(environment.provider.updates(SERVER), sent + 1);

        // Without the flag, the change would wait, and would be sent at every poll.
        let server = environment.resource(SERVER);
        let mut wanted = parameters(server);
        assert_eq!(Model::for_object(server).effective(&wanted), wanted);
        wanted["applyImmediately"] = json!(false);
        assert!(Model::for_object(server).effective(&wanted).get("instanceClass").is_none());
    }
}

#[test]
fn trap_07_failed_recreation_of_a_server_is_reported() {
    for mut environment in running(API, Some("rds")) {
        environment.provider.vanish(SERVER);
        environment.settle();
        environment.call();
        assert_eq!(environment.line(SERVER)["reason"], "Failed");
        environment.says(SERVER, "You can't specify IOPS or storage throughput");

        let server = environment.world.resources_mut().get_mut(SERVER).unwrap();
        let fields = server["spec"]["forProvider"].as_object_mut().unwrap();
        fields.retain(|field, _| !["iops", "storageThroughput"].contains(&field.as_str()));
        environment.settle();
        environment.call();
        assert_eq!(environment.line(SERVER)["ready"], true, "created again without these");
    }
}

#[test]
fn trap_11_reserved_server_name_is_reported_for_a_week() {
    const SERVER: &str = "cloudsql-instance";
    for mut environment in running("application-environment", None) {
        environment.provider.vanish(SERVER);
        environment.settle();
        environment.wait(SignedDuration::from_hours(7 * 24 - 1));
        environment.settle();
        environment.call();
        assert_eq!(environment.line(SERVER)["ready"], false);
        environment.says(SERVER, "until one week from the deletion date");
        assert_eq!(environment.cause(SERVER), "NameTaken");
        assert_eq!(environment.line(SERVER)["cause"]["params"]["conflict"], "deleted");
        environment.wait(SignedDuration::from_hours(1));
        environment.settle();
        environment.call();
        assert_eq!(environment.status()["phase"], "Ready");
    }
}

#[test]
fn trap_18_grant_without_its_database_is_reported() {
    const GRANTS: [&str; 2] = ["postgres-grant", "postgres-schema-grant"];
    for mut environment in running(API, None) {
        environment.provider.vanish("postgres-db");
        environment.provider.fail("postgres-db", "pq: permission denied to create database");
        environment.settle();
        environment.call();
        for slot in GRANTS {
            // The database and its role have the same name, which counts as a secret.
            environment.says(slot, "connect failed: cannot get server version: pq: database \"");
            environment.says(slot, "\" does not exist");
            assert_eq!(environment.line(slot)["reason"], "Waiting");
            // A deletion of the grant would also connect to the database.
            let spec = &environment.asked(slot)["spec"];
            let policies = spec["managementPolicies"].to_string();
            let is_kept = policies.contains("Create") && !policies.contains("Delete");
            assert!(spec["deletionPolicy"] == "Orphan" || is_kept, "{slot}: {spec:#}");
        }
        assert_ne!(environment.status()["phase"], "Ready");
        environment.provider.mend("postgres-db");
        environment.settle();
        environment.call();
        assert_eq!(environment.status()["phase"], "Ready");
    }
}

#[test]
fn trap_18_user_stuck_without_its_server_is_reported() {
    for mut environment in running("application-environment", None) {
        environment.provider.vanish("cloudsql-instance");
        environment.provider.fail("cloudsql-instance", "quota exceeded");
        environment.settle();
        environment.call();
        environment.says("database-user", "The Cloud SQL instance does not exist");
        assert_ne!(environment.status()["phase"], "Ready");
        environment.provider.mend("cloudsql-instance");
        environment.wait(SignedDuration::from_hours(7 * 24));
        environment.settle();
        environment.call();
        assert_eq!(environment.status()["phase"], "Ready");
    }
}

#[test]
fn trap_19_late_initialised_privileges_are_preserved() {
    for environment in running(API, None) {
        let privileges = &environment.resource(ROLE)["spec"]["forProvider"]["privileges"];
        assert_eq!(privileges["superUser"], false, "{privileges:#}");
        let (before, now) = (environment.resource(ROLE), environment.asked(ROLE));
        let asked = &now["spec"]["forProvider"];
        assert_eq!(rewritten(asked, &before["spec"]["forProvider"]), Vec::<String>::new());
    }
}

#[test]
fn trap_19_repeated_role_updates_change_no_other_state() {
    for mut environment in running(API, None) {
        let before = simulated::timeless(&environment.world);
        let mut updates = environment.provider.updates(ROLE);
        for _ in 0..3 {
            environment.round();
            let sent = environment.provider.updates(ROLE);
            assert!(sent > updates, "an update at every poll");
            updates = sent;
        }
        assert_eq!(simulated::timeless(&environment.world), before, "a quiet environment");
        assert_eq!(environment.status()["phase"], "Ready");
    }
}

#[test]
fn trap_19_role_with_a_lost_secret_is_reported() {
    for mut environment in running(API, None) {
        let reference = &environment.resource(ROLE)["spec"]["writeConnectionSecretToRef"];
        let own = &environment.resource(ROLE)["metadata"]["namespace"];
        let namespace = own.as_str().or(reference["namespace"].as_str()).unwrap().to_owned();
        let name = reference["name"].as_str().unwrap().to_owned();
        let kept = environment.world.secret(&namespace, &name).unwrap().clone();
        let mut lost = kept.clone();
        lost["data"] = json!({});
        environment.world.put_secret(lost);
        environment.settle();
        environment.call();
        assert_eq!(environment.condition(ROLE, "Ready"), "True", "its provider says so");
        assert_eq!(environment.line(ROLE)["ready"], false);
        environment.says(ROLE, "restore the Secret from a copy");

        environment.world.put_secret(kept);
        environment.settle();
        environment.call();
        assert_eq!(environment.status()["phase"], "Ready");
    }
}
