//! The composition of an environment that must be stopped although its spec or its Settings are
//! wrong: all existing resources are preserved.

use serde_json::Value;

use crate::compose::{Composer, Desired};
use crate::observe::Resource;
use crate::value::Object;

/// Prefixes of the labels and annotations that Crossplane, Kubernetes and kubectl write.
const FOREIGN: [&str; 3] =
    ["crossplane.io/", "deployment.kubernetes.io/", "kubectl.kubernetes.io/"];

/// Preserves all observed resources of ours, and adds no other resource.
pub(super) fn preserve(composer: &mut Composer<'_>) {
    let observation = composer.observation;
    composer.waiting.clear();
    composer.connection.clone_from(&observation.xr.connection);
    let ours = observation.resources.iter().filter(|(_, resource)| resource.is_ours());
    composer.desired = ours.map(|(slot, resource)| (slot.clone(), preserved(resource))).collect();
}

/// The desired resource that preserves the observed one.
fn preserved(resource: &Resource) -> Desired {
    let mut object = resource.object.clone();
    object.remove("status");
    if let Some(Value::Object(metadata)) = object.remove("metadata") {
        object.insert("metadata".into(), own_metadata(metadata).into());
    }
    let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default();
    let counted = !["Usage", "ProviderConfig"].contains(&kind);
    Desired { health: resource.health(), object, counted }
}

/// The metadata that a composition function may ask for: names, and the labels and annotations that
/// Crossplane does not write itself.
fn own_metadata(mut metadata: Object) -> Object {
    metadata.retain(|field, _| {
        ["name", "namespace", "labels", "annotations"].contains(&field.as_str())
    });
    for field in ["labels", "annotations"] {
        if let Some(Value::Object(entries)) = metadata.get_mut(field) {
            entries.retain(|key, _| is_own(key));
        }
    }
    metadata
}

/// Whether a label or an annotation is one that a function asks for.
fn is_own(key: &str) -> bool {
    key == crossplane::names::EXTERNAL_NAME
        || !FOREIGN.iter().any(|foreign| key.starts_with(foreign))
}
