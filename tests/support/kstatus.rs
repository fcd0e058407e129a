//! The status that kstatus gives a custom resource, by the generic rules of
//! `sigs.k8s.io/cli-utils/pkg/kstatus`. Flux and Helm 4 wait for it.

use serde_json::Value;

/// The status of an object without rules of its own.
pub fn verdict(object: &Value) -> &'static str {
    if object["metadata"]["deletionTimestamp"].as_str().is_some_and(|time| !time.is_empty()) {
        return "Terminating";
    }
    let generation = object["metadata"]["generation"].as_i64();
    let seen = object["status"]["observedGeneration"].as_i64();
    if generation.zip(seen).is_some_and(|(generation, seen)| generation != seen) {
        return "InProgress";
    }
    let conditions =
        object["status"]["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let standard =
        conditions.iter().filter(|condition| condition["status"] == "True").find_map(|condition| {
            match condition["type"].as_str() {
                Some("Reconciling") => Some("InProgress"),
                Some("Stalled") => Some("Failed"),
                _ => None,
            }
        });
    standard.unwrap_or_else(|| {
        let ready = conditions.iter().find(|condition| condition["type"] == "Ready");
        if ready.is_none_or(|ready| ready["status"] == "True") { "Current" } else { "InProgress" }
    })
}
