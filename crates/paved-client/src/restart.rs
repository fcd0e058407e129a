//! The changes of an environment that interrupt it.

use function_paved_road::apis;
use serde_json::Value;

/// A field with an effect on a running environment: its change interrupts the environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Restart {
    /// The field, as in `spec.parameters.instanceType`.
    pub field: &'static str,
    /// The effect, in sentences for users.
    pub effect: &'static str,
}

/// The fields of each API, by its name.
const FIELDS: [(&str, Restart); 4] = [
    (
        "gpu-workspace",
        Restart {
            field: "spec.parameters.instanceType",
            effect: "The machine stops and starts. Running work is lost.",
        },
    ),
    (
        "unified-environment",
        Restart {
            field: "spec.database.size",
            effect: "The backend restarts, and so does a database server of its own.",
        },
    ),
    (
        "stock-pool",
        Restart { field: "spec.image", effect: "The replicas are replaced. Running work is lost." },
    ),
    (
        "stock-pool",
        Restart { field: "spec.gpu", effect: "The replicas are replaced. Running work is lost." },
    ),
];

/// The desired power state of every API.
const POWER: &str = "spec.lifecycle.power";

/// The restarts of a change between two objects. A stopped environment is not interrupted.
pub fn restarts(kind: &str, before: &Value, after: &Value) -> Vec<Restart> {
    if before["status"]["power"] == "Stopped" {
        return Vec::new();
    }
    let api = apis::for_environment_kind(kind).map(|api| api.info().name);
    let value = |object: &Value, field: &str| {
        field.split('.').fold(object.clone(), |value, name| value[name].clone())
    };
    let changes = |field: &str| value(before, field) != value(after, field);
    let mut all: Vec<Restart> = FIELDS
        .into_iter()
        .filter(|(of, restart)| api == Some(*of) && changes(restart.field))
        .map(|(_, restart)| restart)
        .collect();
    if changes(POWER) && value(after, POWER) == "Stopped" {
        all.push(Restart { field: POWER, effect: "The environment stops. Running work is lost." });
    }
    all
}

#[cfg(test)]
mod tests {
    use function_paved_road::apis::Flavour;
    use function_paved_road::manifests::xrd;
    use serde_json::json;

    use super::*;

    #[test]
    fn change_of_the_machine_type_restarts_a_running_workspace() {
        let workspace = |machine: &str, power: &str| {
            json!({"spec": {"parameters": {"instanceType": machine, "diskGB": 100}},
                "status": {"power": power}})
        };
        let found = |power: &str, machine: &str| {
            let before = workspace("g4dn.xlarge", power);
            restarts("GpuDevWorkspaceClaim", &before, &workspace(machine, power)).len()
        };
        assert_eq!(found("Running", "g5.xlarge"), 1);
        assert_eq!(found("Running", "g4dn.xlarge"), 0, "no change");
        assert_eq!(found("Stopped", "g5.xlarge"), 0, "nothing runs");
        let mut disk = workspace("g4dn.xlarge", "Running");
        disk["spec"]["parameters"]["diskGB"] = json!(200);
        let before = workspace("g4dn.xlarge", "Running");
        assert!(restarts("GpuDevWorkspaceClaim", &before, &disk).is_empty());
        assert!(restarts("Widget", &before, &workspace("g5.xlarge", "Running")).is_empty());
    }

    #[test]
    fn stop_in_the_claim_is_a_restart_of_every_api() {
        let power = |power: &str| json!({"spec": {"lifecycle": {"power": power}}});
        for kind in ["GpuDevWorkspaceClaim", "EnvironmentClaim", "StockPool"] {
            assert_eq!(restarts(kind, &json!({"spec": {}}), &power("Stopped")).len(), 1, "{kind}");
            assert!(restarts(kind, &power("Stopped"), &power("Running")).is_empty(), "{kind}");
        }
    }

    #[test]
    fn every_field_exists_in_its_api() {
        for (name, restart) in FIELDS {
            let api = apis::APIS.iter().find(|api| api.info().name == name);
            let api = api.unwrap_or_else(|| panic!("{name}"));
            let xrd = xrd(*api, Flavour::Claims, Flavour::Claims.default_group());
            let schema = xrd["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone();
            let found = restart
                .field
                .split('.')
                .fold(schema, |schema, field| schema["properties"][field].clone());
            assert!(found.is_object(), "{name}: {}", restart.field);
        }
    }
}
