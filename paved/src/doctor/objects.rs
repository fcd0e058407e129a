//! Fields of objects that several checks need.

use kube::api::DynamicObject;
use paved_client::cluster::MARK;
use serde_json::Value;

use crate::paint::harmless;

pub(super) fn name(object: &DynamicObject) -> &str {
    object.metadata.name.as_deref().unwrap_or_default()
}

fn condition<'o>(object: &'o DynamicObject, kind: &str) -> &'o Value {
    let conditions = object.data["status"]["conditions"].as_array().into_iter().flatten();
    conditions.into_iter().find(|one| one["type"] == kind).unwrap_or(&Value::Null)
}

/// Whether a condition is `True`.
pub(super) fn holds(object: &DynamicObject, kind: &str) -> bool {
    condition(object, kind)["status"] == "True"
}

/// A condition's message behind a colon.
pub(super) fn message(object: &DynamicObject, kind: &str) -> String {
    match condition(object, kind)["message"].as_str() {
        Some(message) if !message.is_empty() => format!(": {}", harmless(message)),
        _ => String::new(),
    }
}

/// Whether an XRD has the category of our kinds.
pub(super) fn is_ours(definition: &DynamicObject) -> bool {
    let names = ["claimNames", "names"].map(|names| &definition.data["spec"][names]["categories"]);
    names.iter().filter_map(|categories| categories.as_array()).flatten().any(|one| one == MARK)
}

/// Whether a Composition composes the kind of an XRD.
pub(super) fn composes(composition: &DynamicObject, definition: &DynamicObject) -> bool {
    let of = &composition.data["spec"]["compositeTypeRef"];
    let (spec, version) = (&definition.data["spec"], of["apiVersion"].as_str().unwrap_or_default());
    let group = version.split_once('/').map_or("", |(group, _)| group);
    of["kind"] == spec["names"]["kind"] && spec["group"] == group
}
