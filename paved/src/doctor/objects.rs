//! Fields of objects for several checks.

use crossplane::{api_version, conditions};
use kube::api::DynamicObject;
use paved_client::cluster::CATEGORY;

use crate::style::harmless;

pub(super) fn name(object: &DynamicObject) -> &str {
    object.metadata.name.as_deref().unwrap_or_default()
}

/// The namespace, if there is one, and the name.
pub(super) fn full_name(object: &DynamicObject) -> String {
    let namespace = object.metadata.namespace.iter().map(|namespace| format!("{namespace}/"));
    harmless(&(namespace.collect::<String>() + name(object)))
}

/// The environment of a composed resource: the claim, otherwise the composite, otherwise the resource
/// itself.
pub(super) fn environment(resource: &DynamicObject) -> String {
    let label = |key: &str| resource.metadata.labels.as_ref()?.get(key).map(String::as_str);
    let claim = label("crossplane.io/claim-namespace").zip(label("crossplane.io/claim-name"));
    let namespace = resource.metadata.namespace.as_deref();
    let composite = namespace.zip(label("crossplane.io/composite"));
    match claim.or(composite) {
        Some((namespace, name)) => harmless(&format!("{namespace}/{name}")),
        None => full_name(resource),
    }
}

/// The number of names in a line.
const NAMED: usize = 5;

/// The first names, and the number of the others.
pub(super) fn first(names: &[String]) -> String {
    let listed = names.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(NAMED) {
        0 => listed,
        rest => format!("{listed} and {rest} more"),
    }
}

/// Whether a condition is `True`.
pub(super) fn holds(object: &DynamicObject, kind: &str) -> bool {
    conditions::is_true(&object.data, kind)
}

/// A condition's message behind a colon.
pub(super) fn message(object: &DynamicObject, kind: &str) -> String {
    match conditions::get(&object.data, kind)["message"].as_str() {
        Some(message) if !message.is_empty() => format!(": {}", harmless(message)),
        _ => String::new(),
    }
}

/// Whether an XRD has the category of our kinds.
pub(super) fn is_ours(definition: &DynamicObject) -> bool {
    let names = ["claimNames", "names"].map(|names| &definition.data["spec"][names]["categories"]);
    names.iter().filter_map(|categories| categories.as_array()).flatten().any(|one| one == CATEGORY)
}

/// Whether a Composition composes the kind of an XRD.
pub(super) fn composes(composition: &DynamicObject, definition: &DynamicObject) -> bool {
    let of = &composition.data["spec"]["compositeTypeRef"];
    let spec = &definition.data["spec"];
    of["kind"] == spec["names"]["kind"] && spec["group"] == api_version::group_of(of)
}
