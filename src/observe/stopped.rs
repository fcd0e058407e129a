//! The values of stopped resources.
//!
//! The values that a stopped resource has while it runs are noted on it. Reads of a stopped
//! resource return these values, so that the rest of the engine does not depend on the stop.

use serde_json::{Map, Value, json};

use crate::value::{Object, put, text};

/// The annotation on a stopped resource with the values that it has while it runs: a JSON object
/// from paths to values, as in `{"nodeCount": 2}`.
pub(crate) const RUNNING: &str = "paved-road.fn.crossplane.io/running";

/// The value of a field while its resource is stopped.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Off {
    Zero,
    Never,
    Observed,
}

impl Off {
    pub fn value(self) -> Value {
        match self {
            Self::Zero => 0.into(),
            Self::Never => "NEVER".into(),
            Self::Observed => json!(["Observe"]),
        }
    }

    /// The value that starts the resource again, if the API does not set the field. A field that is
    /// only removed keeps the value of the stopped resource.
    pub fn default_on(self) -> Option<Value> {
        match self {
            Self::Zero | Self::Observed => None,
            Self::Never => Some("ALWAYS".into()),
        }
    }
}

/// The field of `spec` with the actions that a provider may take.
pub(crate) const POLICIES: &str = "managementPolicies";

/// The field that keeps a provider from changing an object inside a stopped cluster. If the
/// environment is deleted meanwhile, the provider only releases the object, without a connection to
/// the cluster. A paused object would never be released.
/// Source: crossplane-runtime, `pkg/reconciler/managed/reconciler.go`.
pub(crate) const INSIDE: &[(&str, Off)] = &[(POLICIES, Off::Observed)];

/// The fields that stop a kind, by their paths below `forProvider`, or below `spec` of a
/// Kubernetes object.
pub(crate) fn fields(kind: &str) -> &'static [(&'static str, Off)] {
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

/// The full path of a field that stops an object.
pub(crate) fn path<'f>(object: &Object, field: &'f str) -> Vec<&'f str> {
    let base: &[&str] = match text(object, &["kind"]) {
        _ if field == POLICIES => &["spec"],
        Some("Object") => &["spec", "forProvider", "manifest", "spec"],
        Some("Deployment") => &["spec"],
        _ => &["spec", "forProvider"],
    };
    base.iter().copied().chain(field.split('.')).collect()
}

/// A stopped resource as it is while it runs; `None` for one that is not stopped.
pub(crate) fn as_running(object: &Object) -> Option<Object> {
    let noted = text(object, &["metadata", "annotations", RUNNING])?;
    let noted: Map<String, Value> = serde_json::from_str(noted).ok()?;
    let mut running = object.clone();
    for (field, value) in noted {
        let path = path(object, &field);
        put(&mut running, &path, Some(value).filter(|value| !value.is_null()));
    }
    Some(running)
}
