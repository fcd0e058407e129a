//! The values of stopped resources.
//!
//! The values that a stopped resource has while it runs are noted on it. Reads of a stopped resource
//! return these values, so that the rest of the engine does not depend on the stop.

use serde_json::{Map, Value};

use crate::value::{Object, put, text};

/// The annotation on a stopped resource with the values that it has while it runs: a JSON object
/// from paths to values, as in `{"nodeCount": 2}`.
pub(super) const RUNNING: &str = "paved-road.fn.crossplane.io/running";

/// The value of a field while its resource is stopped.
#[derive(Clone, Copy, Debug)]
pub(super) enum Off {
    Zero,
    Never,
}

impl Off {
    pub fn value(self) -> Value {
        match self {
            Self::Zero => 0.into(),
            Self::Never => "NEVER".into(),
        }
    }

    /// The value that starts the resource again, if the API does not set the field. A field that is
    /// only removed keeps the value of the stopped resource.
    pub fn default_on(self) -> Option<Value> {
        match self {
            Self::Zero => None,
            Self::Never => Some("ALWAYS".into()),
        }
    }
}

/// The fields that stop a kind, by their paths below `forProvider`, or below `spec` of a
/// Kubernetes object.
pub(super) fn fields(kind: &str) -> &'static [(&'static str, Off)] {
    match kind {
        "Deployment" => &[("replicas", Off::Zero)],
        "NodePool" => &[("nodeCount", Off::Zero)],
        // AWS rejects a desired size below the least one.
        "NodeGroup" => {
            &[("scalingConfig.desiredSize", Off::Zero), ("scalingConfig.minSize", Off::Zero)]
        }
        "DatabaseInstance" => &[("settings.activationPolicy", Off::Never)],
        _ => &[],
    }
}

/// The path of the fields that stop an object.
fn base(object: &Object) -> &'static [&'static str] {
    match text(object, &["kind"]) {
        Some("Object") => &["spec", "forProvider", "manifest", "spec"],
        Some("Deployment") => &["spec"],
        _ => &["spec", "forProvider"],
    }
}

/// The full path of a field.
pub(super) fn path(object: &Object, field: &'static str) -> Vec<&'static str> {
    base(object).iter().copied().chain(field.split('.')).collect()
}

/// A stopped resource as it is while it runs; `None` for one that is not stopped.
pub(super) fn as_running(object: &Object) -> Option<Object> {
    let noted = text(object, &["metadata", "annotations", RUNNING])?;
    let noted: Map<String, Value> = serde_json::from_str(noted).ok()?;
    let mut running = object.clone();
    for (field, value) in noted {
        let path: Vec<&str> = base(object).iter().copied().chain(field.split('.')).collect();
        put(&mut running, &path, Some(value).filter(|value| !value.is_null()));
    }
    Some(running)
}
