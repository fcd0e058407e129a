//! An environment that has to stop does not wait until its spec and its Settings are valid.

use function_paved_road::lifecycle::NOTE;
use serde_json::{Value, json};

use super::{Environment, condition, differences};
use crate::support::simulated;
use crate::support::world;

/// The fields that a stop changes.
const OF_A_STOP: [&str; 8] = [
    "spec.replicas",
    "spec.forProvider.manifest.spec.replicas",
    "spec.forProvider.nodeCount",
    "spec.forProvider.scalingConfig.desiredSize",
    "spec.forProvider.scalingConfig.minSize",
    "spec.forProvider.settings.activationPolicy",
    "metadata.annotations.paved-road.fn.crossplane.io/running",
    "metadata.annotations.crossplane.io/paused",
];

/// Ways in which a spec or Settings become wrong.
fn spoil(environment: &mut Environment, how: &str) {
    let section = environment.case.api().info().settings;
    match how {
        "spec" => environment.world.composite_mut()["spec"]["nonsense"] = json!(1),
        "spec.lifecycle" => environment.wish("power", json!(7)),
        "settings" => environment.input["nonsense"] = json!(1),
        "section" => environment.input[section]["nonsense"] = json!(1),
        _ => environment.input[section]["lifecycle"] = json!({"ttl": 8}),
    }
}

#[test]
fn expired_environment_with_wrong_fields_stops_and_nothing_else_changes() {
    for how in ["spec", "spec.lifecycle", "settings", "section", "settings.lifecycle"] {
        for case in simulated::all() {
            let name = format!("{}: {how}", case.name());
            let cannot = case.api().info().name == "virtual-environment"
                && !matches!(case.variant().as_deref(), Some("gke" | "eks"));
            let mut environment = Environment::ready(case, json!({"ttl": "8h"}));
            environment.wait(9);
            spoil(&mut environment, how);
            let response = environment.call();
            assert_eq!(world::is_fatal(&response), cannot, "{name}: {:?}", response.results);
            if cannot {
                continue;
            }
            let (status, reason, _) = condition(&response, "Provisioned").unwrap();
            assert_eq!(status, 1, "{name}");
            assert!(["InvalidSpec", "InvalidSettings"].contains(&reason), "{name}: {reason}");
            let desired = world::desired(&response);
            for (slot, seen) in environment.world.resources() {
                let asked =
                    desired.get(slot).unwrap_or_else(|| panic!("{name}: {slot} is missing"));
                let mut changed = Vec::new();
                differences("", &Value::Object(asked.clone()), seen, &mut changed);
                changed.retain(|path| !OF_A_STOP.contains(&path.as_str()) && !path.ends_with(NOTE));
                assert!(changed.is_empty(), "{name}: {slot}: {changed:?}");
            }
            let own = world::status(&response);
            for (field, value) in environment.status().as_object().unwrap() {
                let is_ours = ![
                    "conditions",
                    "phase",
                    "progress",
                    "power",
                    "lifecycle",
                    "resources",
                    "specHash",
                    "lastSyncTime",
                ]
                .contains(&field.as_str());
                assert!(!is_ours || own[field] == *value, "{name}: {field}");
            }
        }
    }
}

#[test]
fn running_environment_with_wrong_fields_is_rejected() {
    for case in simulated::examples() {
        let mut environment = Environment::ready(case, json!({"ttl": "8h"}));
        spoil(&mut environment, "spec");
        assert!(world::is_fatal(&environment.call()), "{}", environment.name());
    }
}

#[test]
fn rejection_keeps_the_warning_of_the_end() {
    for case in simulated::examples() {
        let mut environment = Environment::ready(case, json!({"ttl": "8h"}));
        environment.wait(7);
        let response = environment.call();
        environment.world.apply(&response).unwrap();
        spoil(&mut environment, "spec");
        let rejected = environment.call();
        assert_eq!(condition(&rejected, "Expiring"), condition(&response, "Expiring"));
    }
}
