//! An environment that has to stop does not wait until its spec and its Settings are valid.

use function_proto::v1::RunFunctionResponse;
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};

use super::{Environment, condition, config, differences};
use crate::support::simulated::{self, Case};
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
    "spec.managementPolicies",
];

/// Ways to make a spec or Settings invalid.
const WAYS: [&str; 7] = [
    "spec",
    "spec and ttl",
    "spec.lifecycle",
    "settings",
    "settings and ttl",
    "section",
    "settings.lifecycle",
];

/// Makes a spec or Settings wrong.
fn spoil(environment: &mut Environment, how: &str) {
    let section = environment.case.api().info().settings;
    // A change of the ttl has no effect before the rest is valid.
    let (how, has_ttl) = how.strip_suffix(" and ttl").map_or((how, false), |how| (how, true));
    if has_ttl {
        environment.wish("ttl", json!("12h"));
    }
    match how {
        "spec" => environment.world.composite_mut()["spec"]["nonsense"] = json!(1),
        "spec.lifecycle" => environment.wish("power", json!(7)),
        "settings" => environment.input["nonsense"] = json!(1),
        "section" => environment.input[section]["nonsense"] = json!(1),
        _ => environment.input[section]["lifecycle"] = json!({"ttl": 8}),
    }
}

/// The paths of desired fields that differ from the observed ones, without those of the stop.
fn changed(environment: &Environment, response: &RunFunctionResponse) -> Vec<String> {
    let desired = world::desired(response);
    let mut all = Vec::new();
    let is_switch = |slot: &&String| slot.starts_with("power-");
    for (slot, seen) in environment.world.resources().iter().filter(|(slot, _)| !is_switch(slot)) {
        let Some(asked) = desired.get(slot) else {
            all.push(format!("{slot} is missing"));
            continue;
        };
        let mut changed = Vec::new();
        differences("", &Value::Object(asked.clone()), seen, &mut changed);
        changed.retain(|path| is_ours(path) && !OF_A_STOP.contains(&path.as_str()));
        all.extend(changed.into_iter().map(|path| format!("{slot}: {path}")));
    }
    let known = |slot: &&String| environment.world.resources().contains_key(*slot);
    let new = desired.keys().filter(|slot| !known(slot) && !is_switch(slot));
    all.extend(new.map(|slot| format!("{slot} is new")));
    all
}

/// Whether a path of an object is one that the function asks for.
fn is_ours(path: &str) -> bool {
    const BY_CROSSPLANE: [&str; 5] = [
        "metadata.annotations.crossplane.io/composition-resource-name",
        "metadata.labels.crossplane.io/",
        "metadata.annotations.crossplane.io/external-create",
        "metadata.annotations.paved-road.fn.crossplane.io/lifecycle",
        "metadata.annotations.paved-road.fn.crossplane.io/look",
    ];
    let metadata = ["name", "namespace", "labels", "annotations"];
    let is_spec = path.split('.').next().is_some_and(|first| first != "status");
    is_spec
        && path.strip_prefix("metadata.").is_none_or(|rest| {
            metadata.iter().any(|field| rest.starts_with(field))
                && !BY_CROSSPLANE.iter().any(|prefix| path.starts_with(prefix))
        })
}

proptest! {
    #![proptest_config(config())]

    /// At every stage of an environment.
    #[test]
    fn answer_that_stands_still_changes_nothing_but_the_stop(
        case in any::<Index>(), calls in 1_usize..8, how in 0_usize..WAYS.len(), was_stopped: bool,
    ) {
        let mut cases = simulated::all().into_iter().filter(Case::can_stop).collect::<Vec<_>>();
        let case = cases.swap_remove(case.index(cases.len()));
        let mut environment = Environment::after(case, json!({"ttl": "8h"}), calls);
        if was_stopped {
            environment.wish("power", json!("Stopped"));
            environment.round();
        }
        environment.wait(9);
        spoil(&mut environment, WAYS[how]);
        let response = environment.call();
        prop_assert!(!world::is_fatal(&response), "{:?}", response.results);
        let changed = changed(&environment, &response);
        prop_assert!(changed.is_empty(), "{}: {changed:?}", environment.name());
    }
}

#[test]
fn expired_environment_with_wrong_fields_stops_and_nothing_else_changes() {
    for how in WAYS {
        for case in simulated::all() {
            let name = format!("{}: {how}", case.name());
            let cannot = !case.can_stop();
            let mut environment = Environment::ready(case, json!({"ttl": "8h"}));
            environment.wait(9);
            spoil(&mut environment, how);
            let response = environment.call();
            assert_eq!(world::is_fatal(&response), cannot, "{name}: {:?}", response.results);
            if cannot {
                continue;
            }
            let (status, reason, _) = condition(&response, "Provisioned").unwrap();
            assert_eq!(status, 3, "{name}: False");
            assert!(["InvalidSpec", "InvalidSettings"].contains(&reason), "{name}: {reason}");
            let changed = changed(&environment, &response);
            assert!(changed.is_empty(), "{name}: {changed:?}");
            let own = world::status(&response);
            for (field, value) in environment.status().as_object().unwrap() {
                let is_ours = ![
                    "claimConditionTypes",
                    "conditions",
                    "connectionDetails",
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

#[test]
fn policies_that_a_person_set_survive_a_stop_with_wrong_fields() {
    for case in simulated::all().into_iter().filter(Case::can_stop) {
        if case.api().info().name != "virtual-environment" {
            continue;
        }
        let mut environment = Environment::ready(case, json!({"ttl": "8h"}));
        let own = json!(["Observe", "Create", "Update"]);
        environment.world.resources_mut().get_mut("app-application").unwrap()["spec"]["managementPolicies"] =
            own.clone();
        environment.wait(9);
        spoil(&mut environment, "spec");
        environment.settle();
        assert_eq!(environment.status()["power"], "Stopped", "{}", environment.name());
        let app = &environment.world.resources()["app-application"]["spec"];
        assert_eq!(app["managementPolicies"], own, "{}", environment.name());
    }
}
