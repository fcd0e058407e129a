//! Database servers of AWS.

use serde_json::{Value, json};

use super::super::kind_behaviour::{Context, Id, KindBehaviour, details};
use super::super::rules::Rules;
use super::{KIND, RULES, arn};
use crate::core::{ConnectionDetails, World, connection_secret};
use crossplane::json::text;

/// The error when shrinking a disk.
const SMALLER: &str = "modifying RDS DB Instance: operation error RDS: ModifyDBInstance, https \
     response error StatusCode: 400, api error InvalidParameterCombination: Invalid storage size \
     for engine name postgres and storage type gp3";

/// The error when deleting without a decision about a final snapshot.
const NO_SNAPSHOT: &str = "final_snapshot_identifier is required when skip_final_snapshot is false";

/// `endpoint` is host and port, `address` is only the host. The server's name is its identifier.
/// AWS replaces the external name with its own ID.
pub(super) const INSTANCE: KindBehaviour = KindBehaviour {
    rounds: 4,
    id: Id::Replaced("db-"),
    late_initialize: |f| json!({"identifier": identifier(f)}),
    at_provider: |f| {
        let host = host(f);
        json!({
            "arn": arn(f, "rds", "db"), "address": host, "endpoint": format!("{host}:5432"),
            "port": 5432, "status": "available",
            "engineVersionActual": f.param("engineVersion").unwrap_or("16.4"),
        })
    },
    connection: |f| {
        let host = host(f);
        details([
            ("endpoint", &format!("{host}:5432")),
            ("address", &host),
            ("host", &host),
            ("port", "5432"),
            ("username", f.param("username").unwrap_or("postgres")),
            ("password", &f.password()),
        ])
    },
    effects: keep_password,
    rules: Rules {
        grows: &[("allocatedStorage", SMALLER)],
        windowed: &["instanceClass", "engineVersion", "parameterGroupName"],
        protected: Some(protection),
        refused: Some(throughput),
        state: Some("status"),
        ..RULES
    },
    ..KIND
};

/// Stores a generated password in the Secret of the resource's own reference.
fn keep_password(
    instance: &mut Value,
    before: &World,
    world: &mut World,
    _: &mut ConnectionDetails,
) {
    let params = &instance["spec"]["forProvider"];
    let reference = &params["passwordSecretRef"];
    let (Some(name), Some(key)) = (text(reference, &["name"]), text(reference, &["key"])) else {
        return;
    };
    let own = text(instance, &["metadata", "namespace"]);
    let Some(namespace) = own.or_else(|| text(reference, &["namespace"])) else { return };
    if params["autoGeneratePassword"] == Value::Bool(true) {
        let mut data = world.secret_data(namespace, name);
        data.insert(key.to_owned(), Context::new(instance, before).password().into_bytes());
        world.put_secret(connection_secret(namespace, name, &data));
    }
}

fn protection(parameters: &Value) -> Option<&'static str> {
    if parameters["deletionProtection"] == true {
        return Some("protected");
    }
    let is_kept =
        parameters["skipFinalSnapshot"] != true && parameters["finalSnapshotIdentifier"].is_null();
    is_kept.then_some(NO_SNAPSHOT)
}

/// Small disks allow neither IOPS nor throughput, but a server that is created again requests them.
fn throughput(parameters: &Value) -> Option<(&'static str, String)> {
    let is_small = parameters["allocatedStorage"].as_f64().is_some_and(|gib| gib < 400.0);
    let asks = ["iops", "storageThroughput"].iter().any(|field| !parameters[field].is_null());
    let name = text(parameters, &["identifier"]).unwrap_or_default();
    (is_small && asks).then(|| ("re-creation below 400 GiB", name.to_owned()))
}

/// AWS generates the name of a server without an identifier in its spec.
fn identifier(f: &Context<'_>) -> String {
    f.param("identifier").map_or_else(|| format!("terraform-{}", f.hex(26)), str::to_owned)
}

fn host(f: &Context<'_>) -> String {
    let region = f.region("us-east-1");
    format!("{}.c{}.{region}.rds.amazonaws.com", identifier(f), f.hex(11))
}
