//! The state of a composed resource: the contents written last, and whether its provider has
//! followed.

use std::fmt::Write as _;

use crossplane::conditions;
use crossplane::names;
use serde_json::Value;
use xtask::package::image::sha256;

/// Whether a provider has applied the current spec of a resource. Resources without a provider do
/// not report this.
pub(super) fn is_in_sync(part: &Value) -> bool {
    let synced = conditions::get(part, "Synced");
    if part["spec"]["forProvider"].is_null() {
        return synced["status"] != "False";
    }
    let seen = &synced["observedGeneration"];
    synced["status"] == "True" && (seen.is_null() || *seen == part["metadata"]["generation"])
}

/// A summary of an object: its generation, or a digest if its kind has no generation, with labels
/// and annotations. Of Crossplane's own annotations, it includes only the external name, because we
/// set that name.
pub(super) fn written(object: &Value) -> String {
    let metadata = &object["metadata"];
    let mut written = match &metadata["generation"] {
        Value::Null => {
            let mut whole = object.clone();
            whole["metadata"] = Value::Null;
            whole["status"] = Value::Null;
            sha256(whole.to_string().as_bytes())
        }
        generation => generation.to_string(),
    };
    let notes =
        [&metadata["labels"], &metadata["annotations"]].into_iter().filter_map(Value::as_object);
    for (key, value) in notes.flatten() {
        if !key.starts_with("crossplane.io/") || key == names::EXTERNAL_NAME {
            _ = write!(written, " {key}={value}");
        }
    }
    written
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn change_of_a_secret_or_an_annotation_is_detected() {
        let secret = |password: &str| json!({"kind": "Secret", "metadata": {"name": "way"}, "data": {"password": password}});
        assert_eq!(written(&secret("a")), written(&secret("a")));
        assert_ne!(written(&secret("a")), written(&secret("b")));
        let bucket = |key: &str| json!({"metadata": {"generation": 1, "annotations": {key: "x"}}});
        assert_ne!(written(&bucket(names::EXTERNAL_NAME)), "1");
        assert_ne!(written(&bucket("paved-road.fn.crossplane.io/size")), "1");
        assert_eq!(written(&bucket("crossplane.io/external-create-pending")), "1");
    }

    #[test]
    fn resource_is_in_sync_after_its_provider_observes_its_generation() {
        let part = |synced: Value| {
            json!({
                "metadata": {"generation": 2},
                "spec": {"forProvider": {}},
                "status": {"conditions": [synced]},
            })
        };
        assert!(is_in_sync(&part(
            json!({"type": "Synced", "status": "True", "observedGeneration": 2})
        )));
        assert!(is_in_sync(&part(json!({"type": "Synced", "status": "True"}))));
        assert!(!is_in_sync(&part(
            json!({"type": "Synced", "status": "True", "observedGeneration": 1})
        )));
        assert!(!is_in_sync(&part(json!({"type": "Ready", "status": "True"}))));
        assert!(is_in_sync(&json!({"kind": "Service"})));
    }
}
