//! Compares two renderings field by field.

use std::collections::{BTreeMap, BTreeSet};

use crossplane::names::SLOT;
use jiff::Timestamp;
use serde_json::Value;

/// A field: the title of its document, which is the slot for a composed resource, and the path in
/// it.
type Leaf = (String, String);

/// One side of a comparison: its name, and its documents.
pub type Side<'a> = (&'a str, &'a [Value]);

/// The values of Secrets that differ between two runs of one program, for example passwords.
pub fn generated(once: &[Value], again: &[Value]) -> BTreeSet<Leaf> {
    let (once, again) = (leaves(once), leaves(again));
    let of_secret = |(_, path): &Leaf| path.starts_with("data.") || path.starts_with("stringData.");
    let differing = once.into_iter().filter(|(leaf, value)| again.get(leaf) != Some(value));
    differing.map(|(leaf, _)| leaf).filter(of_secret).collect()
}

/// The differences between two renderings: a line for each field, or for a document that only one
/// of them has. Generated fields only have to exist. Times may differ.
pub fn differences(one: Side<'_>, other: Side<'_>, generated: &BTreeSet<Leaf>) -> Vec<String> {
    let (left, right) = (leaves(one.1), leaves(other.1));
    let (left_titles, right_titles) = (titles(&left), titles(&right));
    let only = |title: &&String| {
        let name = if left_titles.contains(*title) { one.0 } else { other.0 };
        format!("{title}: only in {name}")
    };
    let in_both = |leaf: &&Leaf| left_titles.contains(&leaf.0) && right_titles.contains(&leaf.0);
    let differs = |leaf: &&Leaf| match (left.get(*leaf), right.get(*leaf)) {
        (Some(this), Some(that)) => !(same(this, that) || generated.contains(*leaf)),
        _ => true,
    };
    let shown =
        |value: Option<&&Value>| value.map_or_else(|| "missing".to_owned(), ToString::to_string);
    let line = |leaf: &Leaf| {
        let (this, that) = (shown(left.get(leaf)), shown(right.get(leaf)));
        format!("{} {}: {this} in {}, {that} in {}", leaf.0, leaf.1, one.0, other.0)
    };
    let fields: BTreeSet<_> = left.keys().chain(right.keys()).filter(in_both).collect();
    let fields = fields.into_iter().filter(differs).map(line);
    left_titles.symmetric_difference(&right_titles).map(only).chain(fields).collect()
}

fn same(this: &Value, that: &Value) -> bool {
    let date = |value: &Value| value.as_str()?.parse::<Timestamp>().ok();
    this == that || (date(this).is_some() && date(that).is_some())
}

fn titles<'a>(leaves: &'a BTreeMap<Leaf, &Value>) -> BTreeSet<&'a String> {
    leaves.keys().map(|(title, _)| title).collect()
}

fn leaves(documents: &[Value]) -> BTreeMap<Leaf, &Value> {
    let mut found = BTreeMap::new();
    for document in documents {
        collect(document, &title(document), String::new(), &mut found);
    }
    found
}

/// The title of a document: its slot or its kind. A result's title is its message, because
/// Crossplane returns results in any order.
fn title(document: &Value) -> String {
    let slot = document["metadata"]["annotations"][SLOT].as_str();
    match (slot, document["kind"].as_str(), document["message"].as_str()) {
        (Some(slot), ..) => slot.to_owned(),
        (None, Some("Result"), Some(message)) => format!("result {message:?}"),
        (None, kind, _) => kind.unwrap_or("document").to_owned(),
    }
}

fn collect<'a>(value: &'a Value, title: &str, path: String, found: &mut BTreeMap<Leaf, &'a Value>) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (name, field) in fields {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                collect(field, title, path, found);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for (index, item) in items.iter().enumerate() {
                collect(item, title, format!("{path}[{index}]"), found);
            }
        }
        leaf => _ = found.insert((title.to_owned(), path), leaf),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn resource(spec: &Value) -> Value {
        let annotations = json!({ SLOT: "instance" });
        json!({ "metadata": { "annotations": annotations }, "spec": spec })
    }

    #[test]
    fn a_difference_names_the_slot_and_the_field() {
        let core = [resource(&json!({ "ami": "a", "tags": { "x": "1" }, "keys": ["k"] }))];
        let ours = [resource(&json!({ "ami": "b", "tags": { "x": "1" }, "size": 3 }))];
        assert_eq!(
            differences(("core", &core), ("paved", &ours), &BTreeSet::new()),
            [
                "instance spec.ami: \"a\" in core, \"b\" in paved",
                "instance spec.keys[0]: \"k\" in core, missing in paved",
                "instance spec.size: missing in core, 3 in paved",
            ]
        );
    }

    #[test]
    fn random_value_of_a_secret_only_needs_to_exist() {
        let run = |password: &str| {
            let slot = json!({ SLOT: "connection" });
            [
                json!({ "metadata": { "annotations": slot }, "data": { "password": password }, "spec": password }),
            ]
        };
        let generated = generated(&run("one"), &run("two"));
        let fields =
            |other: &[Value]| differences(("core", &run("one")), ("paved", other), &generated);
        assert_eq!(fields(&run("three")), ["connection spec: \"one\" in core, \"three\" in paved"]);
        let mut without = run("one");
        without[0]["data"] = json!({});
        assert!(fields(&without)[0].starts_with("connection data"), "{:?}", fields(&without));
    }

    #[test]
    fn times_do_not_matter() {
        let status = |since: &str| [json!({ "kind": "XR", "status": { "since": since } })];
        let differ = |since: &str| {
            differences(
                ("core", &status("2024-01-01T00:00:00Z")),
                ("paved", &status(since)),
                &BTreeSet::new(),
            )
        };
        assert_eq!(differ("2026-11-21T09:00:00Z"), Vec::<String>::new());
        assert_eq!(differ("yesterday").len(), 1);
    }

    #[test]
    fn missing_resource_is_a_single_difference() {
        let core = [resource(&json!({}))];
        assert_eq!(
            differences(("core", &core), ("paved", &[]), &BTreeSet::new()),
            ["instance: only in core"]
        );
    }
}
