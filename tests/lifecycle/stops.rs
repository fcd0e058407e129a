//! Stops and starts.

use serde_json::{Value, json};

use super::{Environment, condition, stoppable};

impl Environment {
    /// The names of the provider configs for the content of its cluster.
    fn provider_configs(&self) -> Vec<Value> {
        let all = self.world.resources().values();
        let configs = all.filter(|object| object["kind"] == "ProviderConfig");
        configs.map(|config| config["metadata"]["name"].clone()).collect()
    }
}

#[test]
fn stopped_environment_is_ready_and_starts_as_it_was() {
    for case in stoppable() {
        let mut environment = Environment::ready(case, json!({}));
        let name = environment.name();
        let before = environment.world.resources().clone();

        environment.wish("power", json!("Stopped"));
        let response = environment.settle();
        let status = environment.status();
        assert_eq!(
            (&status["phase"], &status["power"]),
            (&json!("Stopped"), &json!("Stopped")),
            "{name}: {status}"
        );
        assert_eq!(status["lifecycle"]["stopReason"], "Requested", "{name}");
        let (told, reason, _) = condition(&response, "Provisioned").unwrap();
        assert_eq!((told, reason), (2, "Stopped"), "{name}");

        environment.wait(1);
        environment.wish("power", json!("Running"));
        environment.settle();
        let status = environment.status();
        assert_eq!(
            (&status["phase"], &status["power"]),
            (&json!("Ready"), &json!("Running")),
            "{name}: {status}"
        );
        for (slot, running) in environment.world.resources() {
            let mut spec = running["spec"].clone();
            if let Some(settings) = spec.pointer_mut("/forProvider/settings") {
                // A start sets the default of this field.
                let policy = settings.as_object_mut().unwrap().remove("activationPolicy");
                assert_eq!(policy, Some(json!("ALWAYS")), "{name}: {slot}");
            }
            assert_eq!(spec, before[slot]["spec"], "{name}: {slot}");
            assert_eq!(
                running["metadata"]["uid"], before[slot]["metadata"]["uid"],
                "{name}: {slot}"
            );
        }
        assert_eq!(environment.world.resources().len(), before.len(), "{name}");
    }
}

#[test]
fn expired_environment_stops_and_a_start_renews_it() {
    for case in stoppable() {
        let mut environment =
            Environment::ready(case, json!({"ttl": "8h", "keepStoppedFor": "14d"}));
        let name = environment.name();
        environment.wait(9);
        environment.settle();
        let status = environment.status().clone();
        assert_eq!(
            (&status["phase"], &status["lifecycle"]["stopReason"]),
            (&json!("Stopped"), &json!("Expired")),
            "{name}: {status}"
        );
        assert!(status["lifecycle"]["deletesAt"].is_string(), "{name}");

        environment.wait(24);
        let now = environment.world.now().to_string();
        environment.world.composite_mut()["metadata"]["annotations"]["paved-road.fn.crossplane.io/started-at"] =
            now.into();
        environment.settle();
        let status = environment.status();
        assert_eq!(
            (&status["phase"], &status["power"]),
            (&json!("Ready"), &json!("Running")),
            "{name}: {status}"
        );
        assert!(status["lifecycle"]["stopReason"].is_null(), "{name}");
    }
}

#[test]
fn change_of_a_stopped_environment_shows_at_its_start() {
    for case in stoppable() {
        let mut environment = Environment::ready(case, json!({"power": "Stopped"}));
        if !environment.is("stock-pool") {
            continue;
        }
        environment.world.composite_mut()["spec"]["replicas"] = json!(5);
        environment.settle();
        assert_eq!(environment.status()["phase"], "Stopped");
        environment.wish("power", json!("Running"));
        environment.settle();
        assert_eq!(environment.status()["available"], 5);
    }
}

/// A deletion then only releases the objects, and the cloud deletes them with their cluster.
#[test]
fn content_of_a_stopped_cluster_is_only_observed() {
    for case in stoppable() {
        let mut environment = Environment::ready(case, json!({}));
        let configs: Vec<Value> = environment.provider_configs();
        environment.wish("power", json!("Stopped"));
        environment.settle();
        for (slot, object) in environment.world.resources() {
            let is_inside = configs.contains(&object["spec"]["providerConfigRef"]["name"]);
            let policies = &object["spec"]["managementPolicies"];
            let is_observed = *policies == json!(["Observe"]);
            assert_eq!(is_observed, is_inside, "{}: {slot}: {policies}", environment.name());
        }
    }
}

#[test]
fn policies_that_a_person_set_survive_a_stop_and_a_start() {
    for case in stoppable() {
        let mut environment = Environment::ready(case, json!({}));
        if !environment.is("virtual-environment") {
            continue;
        }
        let own = json!(["Observe", "Create", "Update"]);
        environment.world.resources_mut().get_mut("app-application").unwrap()["spec"]["managementPolicies"] =
            own.clone();
        for power in ["Stopped", "Running"] {
            environment.wish("power", json!(power));
            environment.settle();
            let app = &environment.world.resources()["app-application"]["spec"];
            assert_eq!(app["managementPolicies"], own, "{}: {power}", environment.name());
        }
    }
}

#[test]
fn add_on_of_a_stopped_environment_is_installed_at_its_start() {
    for case in stoppable() {
        let mut environment = Environment::ready(case, json!({"power": "Stopped"}));
        if !environment.is("virtual-environment") {
            continue;
        }
        let name = environment.name();
        let state = |environment: &Environment| {
            let argocd = &environment.world.resources()["argocd"];
            argocd["status"]["atProvider"]["state"].clone()
        };
        assert_eq!(environment.status()["phase"], "Stopped", "{name}");
        assert_eq!(state(&environment), Value::Null, "{name}");
        environment.wish("power", json!("Running"));
        environment.settle();
        assert_eq!(environment.status()["phase"], "Ready", "{name}");
        assert_eq!(state(&environment), "deployed", "{name}");
        assert!(environment.world.resources().contains_key("app-application"), "{name}");
    }
}
