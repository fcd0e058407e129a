//! provider-helm's Release.

use serde_json::{Value, json};

use super::clusters::{await_config, await_namespace, cluster, is_observe_only};
use super::kind_behaviour::{DEFAULT, KindBehaviour};
use super::object::copy_details;
use super::{State, set_condition};
use crate::core::{ConnectionDetails, World, connection_secret};
use crossplane::json::{at, remove, set, text};

/// Charts without a `v` in their own version. Their repository's index may have one. provider-helm
/// compares the requested version with the chart's own one, as text.
const WITHOUT_V: [&str; 3] = ["argo-cd", "knative-operator", "vcluster"];

/// Deployed after two rounds, once its cluster is reachable.
pub(super) const RELEASE: KindBehaviour = KindBehaviour {
    rounds: 2,
    waits: await_cluster,
    at_provider: |f| json!({"state": "deployed", "revision": 1, "version": own_version(f.object)}),
    effects: install,
    set_status,
    ..DEFAULT
};

/// The chart's own version in a release.
fn own_version(release: &Value) -> &str {
    let chart = &release["spec"]["forProvider"]["chart"];
    let asked = text(chart, &["version"]).unwrap_or_default();
    let without_v = text(chart, &["name"]).is_some_and(|name| WITHOUT_V.contains(&name));
    if without_v { asked.trim_start_matches('v') } else { asked }
}

/// A release is never ready if its version is spelled differently from the chart's own. It is then
/// upgraded at each observation.
fn set_status(release: &mut Value, state: &State, world: &World, behaviour: &KindBehaviour) {
    if let State::Failed(why) = state {
        return set_failure_status(release, why, world);
    }
    (DEFAULT.set_status)(release, state, world, behaviour);
    if *state == State::Ready {
        remove(release, &["status", "failed"]);
    }
    let asked = text(release, &["spec", "forProvider", "chart", "version"]).unwrap_or_default();
    if *state == State::Ready && asked != own_version(release) {
        let now = world.now().to_string();
        set_condition(release, &now, "Ready", "False", "Unavailable", "");
    }
}

/// Texts of a chart that cannot be pulled, in lower case.
const PULL: [&str; 9] = [
    "failed to pull chart",
    "chart repository",
    "not found in ",
    "no chart ",
    "manifest unknown",
    "failed to authorize",
    "no such host",
    "dial tcp",
    "i/o timeout",
];

/// Whether a chart cannot be pulled. Helm then has no release, so provider-helm only repeats the
/// error. It counts failures of an existing release alone. Source: provider-helm,
/// `pkg/controller/.../release.go`: `Create` returns the error, `Update` counts.
fn is_pull(why: &str) -> bool {
    let why = why.to_lowercase();
    PULL.iter().any(|text| why.contains(text))
}

/// A failed release is rolled back and installed again, up to its limit. Then the provider stops
/// without an error, until the spec changes.
fn set_failure_status(release: &mut Value, why: &str, world: &World) {
    let now = world.now().to_string();
    let is_made = at(release, &["status", "atProvider", "state"]).is_some();
    if is_pull(why) {
        let action = if is_made {
            "update failed: failed to upgrade"
        } else {
            "create failed: failed to install"
        };
        let pull = if why.contains("failed to pull chart") { "" } else { "failed to pull chart: " };
        let message = format!("{action} release: {pull}{why}");
        set_condition(release, &now, "Synced", "False", "ReconcileError", &message);
        if !is_made {
            set_condition(release, &now, "Ready", "False", "Creating", "");
        }
        return;
    }
    let limit = at(release, &["spec", "rollbackLimit"]).and_then(Value::as_u64);
    let failed = at(release, &["status", "failed"]).and_then(Value::as_u64).unwrap_or(0) + 1;
    let gives_up = limit.is_some_and(|limit| failed >= limit);
    set(release, &["status", "failed"], json!(failed.min(limit.unwrap_or(1))));
    set(release, &["status", "atProvider", "state"], json!("failed"));
    set(release, &["status", "atProvider", "releaseDescription"], json!(why));
    if gives_up {
        set_condition(release, &now, "Synced", "True", "ReconcileSuccess", "");
    } else {
        let message = format!("create failed: failed to install release: {why}");
        set_condition(release, &now, "Synced", "False", "ReconcileError", &message);
    }
    set_condition(release, &now, "Ready", "False", "Unavailable", "");
}

/// A release that does not create its namespace needs an existing one.
fn await_cluster(release: &Value, world: &World) -> Result<(), String> {
    await_config(release, world)?;
    if is_observe_only(release) && at(release, &["status", "atProvider", "state"]).is_none() {
        return Err("observe failed: external resource does not exist".to_owned());
    }
    let params = &release["spec"]["forProvider"];
    match text(params, &["namespace"]) {
        Some(namespace) if params["skipCreateNamespace"] == Value::Bool(true) => {
            let there = await_namespace(namespace, cluster(release, world), world);
            there.map_err(|why| format!("create failed: failed to install release: {why}"))
        }
        _ => Ok(()),
    }
}

/// Creates the used objects of a chart's installation: a virtual cluster's kubeconfig,
/// `vc-<release>` in the release's namespace.
fn install(
    release: &mut Value,
    before: &World,
    world: &mut World,
    details: &mut ConnectionDetails,
) {
    let own = text(release, &["metadata", "namespace"]);
    let namespace = text(release, &["spec", "forProvider", "namespace"])
        .or(own)
        .unwrap_or("default")
        .to_owned();
    let external = text(release, &["metadata", "annotations", "crossplane.io/external-name"]);
    let name = external.or_else(|| text(release, &["metadata", "name"])).unwrap_or_default();
    if text(release, &["spec", "forProvider", "chart", "name"]) == Some("vcluster") {
        let server = at(release, &["spec", "forProvider", "values", "exportKubeConfig", "server"]);
        let default = format!("https://{name}.{namespace}.svc");
        let kubeconfig = super::kubeconfig(server.and_then(Value::as_str).unwrap_or(&default));
        let made = super::kind_behaviour::details([
            ("config", &kubeconfig),
            ("certificate-authority", "ca"),
            ("client-certificate", "certificate"),
            ("client-key", "key"),
            ("token", "token"),
        ]);
        world.put_secret(connection_secret(&namespace, &format!("vc-{name}"), &made));
    }
    copy_details(release, before, details);
}
