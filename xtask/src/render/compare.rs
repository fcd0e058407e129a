//! Two renderings, field by field.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// A field of a composed resource: the resource's slot and the path in it.
type Leaf = (String, String);

/// What is compared: its name, and its documents.
pub type Side<'a> = (&'a str, &'a [Value]);

/// Core's annotation with a composed resource's slot.
const SLOT: &str = "/metadata/annotations/crossplane.io~1composition-resource-name";

/// The fields that two runs of one program fill differently: passwords and the like.
pub fn generated(once: &[Value], again: &[Value]) -> BTreeSet<Leaf> {
    let (once, again) = (leaves(once), leaves(again));
    once.into_iter().filter(|(leaf, value)| again.get(leaf) != Some(value)).map(|(leaf, _)| leaf).collect()
}

/// What differs between the composed resources of two renderings: a line per field, one for a resource that only one
/// of them has. Generated fields need only exist.
pub fn differences(one: Side<'_>, other: Side<'_>, generated: &BTreeSet<Leaf>) -> Vec<String> {
    let (left, right) = (leaves(one.1), leaves(other.1));
    let slots = |side: &BTreeMap<Leaf, &Value>| -> BTreeSet<String> {
        side.keys().map(|(slot, _)| slot.clone()).collect()
    };
    let (left_slots, right_slots) = (slots(&left), slots(&right));
    let only = |slot: &String| {
        let name = if left_slots.contains(slot) { one.0 } else { other.0 };
        format!("{slot}: only {name} has it")
    };
    let differs = |leaf: &&Leaf| match (left.get(*leaf), right.get(*leaf)) {
        (Some(_), Some(_)) if generated.contains(*leaf) => false,
        (this, that) => this != that,
    };
    let said = |value: Option<&&Value>| value.map_or_else(|| "nothing".to_owned(), ToString::to_string);
    let line = |leaf: &Leaf| {
        let (this, that) = (said(left.get(leaf)), said(right.get(leaf)));
        format!("{} {}: {} says {this}, {} says {that}", leaf.0, leaf.1, one.0, other.0)
    };
    let in_both = |leaf: &&Leaf| left_slots.contains(&leaf.0) && right_slots.contains(&leaf.0);
    let all: BTreeSet<_> = left.keys().chain(right.keys()).filter(in_both).collect();
    let fields = all.into_iter().filter(differs).map(line);
    left_slots.symmetric_difference(&right_slots).map(only).chain(fields).collect()
}

fn leaves(documents: &[Value]) -> BTreeMap<Leaf, &Value> {
    let mut found = BTreeMap::new();
    for document in documents {
        if let Some(slot) = document.pointer(SLOT).and_then(Value::as_str) {
            collect(document, slot, String::new(), &mut found);
        }
    }
    found
}

fn collect<'a>(value: &'a Value, slot: &str, path: String, found: &mut BTreeMap<Leaf, &'a Value>) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (name, field) in fields {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                collect(field, slot, path, found);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for (index, item) in items.iter().enumerate() {
                collect(item, slot, format!("{path}[{index}]"), found);
            }
        }
        leaf => _ = found.insert((slot.to_owned(), path), leaf),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn resource(spec: &Value) -> Value {
        let annotations = json!({ "crossplane.io/composition-resource-name": "instance" });
        json!({ "metadata": { "annotations": annotations }, "spec": spec })
    }

    #[test]
    fn a_difference_names_the_slot_and_the_field() {
        let core = [resource(&json!({ "ami": "a", "tags": { "x": "1" }, "keys": ["k"] }))];
        let ours = [resource(&json!({ "ami": "b", "tags": { "x": "1" }, "size": 3 }))];
        assert_eq!(
            differences(("core", &core), ("paved", &ours), &BTreeSet::new()),
            [
                "instance spec.ami: core says \"a\", paved says \"b\"",
                "instance spec.keys[0]: core says \"k\", paved says nothing",
                "instance spec.size: core says nothing, paved says 3",
            ]
        );
    }

    #[test]
    fn what_two_runs_fill_differently_needs_only_exist() {
        let run = |password: &str| [resource(&json!({ "password": password, "user": "app" }))];
        let generated = generated(&run("one"), &run("two"));
        assert_eq!(
            differences(("core", &run("three")), ("paved", &run("one")), &generated),
            Vec::<String>::new()
        );
        let without = [resource(&json!({ "user": "app" }))];
        assert_eq!(differences(("core", &without), ("paved", &run("one")), &generated).len(), 1);
    }

    #[test]
    fn a_missing_resource_is_one_difference() {
        let core = [resource(&json!({}))];
        assert_eq!(
            differences(("core", &core), ("paved", &[]), &BTreeSet::new()),
            ["instance: only core has it"]
        );
    }
}
