//! The differing fields of two objects, by their paths.
//!
//! A key with a dot is in parentheses: `metadata.labels.(app.kubernetes.io/name)`. An entry of a
//! list has its index, as in `spec.rules.0.host`. If all entries of the list have slots, in order,
//! the slot names the entry, as in `status.resources.app.ready`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

/// Values by path. `null` removes the field.
pub type Fields = Map<String, Value>;

/// The fields to set in `before`, so that it becomes `after`. Neither has a `null`.
///
/// A list of another length is one field, except for a list with slots.
pub fn between(before: &Value, after: &Value) -> Fields {
    let mut fields = Fields::new();
    compare(before, after, "", &mut fields);
    fields
}

fn compare(before: &Value, after: &Value, path: &str, fields: &mut Fields) {
    if before == after {
        return;
    }
    let (Some(before), Some(after)) = (children(before, after), children(after, before)) else {
        fields.insert(path.to_owned(), after.clone());
        return;
    };
    let steps: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    for step in steps {
        let path = if path.is_empty() { step.clone() } else { format!("{path}.{step}") };
        match (before.get(step), after.get(step)) {
            (Some(before), Some(after)) => compare(before, after, &path, fields),
            (_, after) => _ = fields.insert(path, after.copied().cloned().unwrap_or_default()),
        }
    }
}

/// The fields or entries of `value` by the next steps of their paths. `None` if they cannot be
/// compared with those of `other` one by one.
fn children<'a>(value: &'a Value, other: &Value) -> Option<BTreeMap<String, &'a Value>> {
    match (value, other) {
        (Value::Object(fields), Value::Object(_)) => {
            Some(fields.iter().map(|(key, value)| (step(key), value)).collect())
        }
        (Value::Array(list), Value::Array(others)) => match (slots(list), slots(others)) {
            (Some(slots), Some(_)) => Some(slots.into_iter().map(step).zip(list).collect()),
            _ if list.len() == others.len() => {
                Some((0..).map(|index: usize| index.to_string()).zip(list).collect())
            }
            _ => None,
        },
        _ => None,
    }
}

fn step(key: &str) -> String {
    let is_plain = !key.is_empty() && !key.contains(['.', '(']);
    if is_plain { key.to_owned() } else { format!("({key})") }
}

/// The slots of a list, if each entry has one and they are in order. No slot is a number.
fn slots(list: &[Value]) -> Option<Vec<&str>> {
    let slots: Vec<&str> = list.iter().map(slot).collect::<Option<_>>()?;
    let is_ordered = slots.is_sorted_by(|one, next| one < next);
    (is_ordered && !slots.is_empty()).then_some(slots)
}

fn slot(entry: &Value) -> Option<&str> {
    let slot = entry.get("slot")?.as_str()?;
    slot.parse::<usize>().is_err().then_some(slot)
}

/// The index of the entry with a slot, or the index at which to insert it.
fn position(list: &[Value], name: &str) -> Result<usize, usize> {
    list.binary_search_by(|entry| slot(entry).cmp(&Some(name)))
}

/// Sets the fields in a value. Panics if the value lacks the parent of a field, or a removed field.
pub fn set_all(value: &mut Value, fields: &Fields) {
    for (path, field) in fields {
        set(value, &steps(path), field);
    }
}

/// The steps of a path without dots and parentheses.
fn steps(path: &str) -> Vec<&str> {
    let mut steps = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        let next = rest.strip_prefix('.').unwrap_or(rest);
        let (step, after) = match next.strip_prefix('(') {
            Some(key) => key.split_once(')').expect("a closing parenthesis"),
            None => next.split_at(next.find('.').unwrap_or(next.len())),
        };
        steps.push(step);
        rest = after;
    }
    steps
}

fn set(value: &mut Value, steps: &[&str], field: &Value) {
    let [step, rest @ ..] = steps else {
        *value = field.clone();
        return;
    };
    let is_removed = rest.is_empty() && field.is_null();
    match (value, step.parse::<usize>()) {
        (Value::Object(fields), _) if is_removed => {
            assert!(fields.remove(*step).is_some(), "no {step} to remove");
        }
        (Value::Object(fields), _) => {
            set(fields.entry(*step).or_insert(Value::Null), rest, field);
        }
        (Value::Array(list), Ok(index)) => set(&mut list[index], rest, field),
        (Value::Array(list), Err(_)) => match position(list, step) {
            Ok(index) if is_removed => _ = list.remove(index),
            Ok(index) => set(&mut list[index], rest, field),
            Err(index) => {
                assert!(rest.is_empty() && !field.is_null(), "no entry {step}");
                list.insert(index, field.clone());
            }
        },
        (value, _) => panic!("{value} has no {step}"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::{between, set_all};

    #[test]
    fn differences_are_named_by_their_paths() {
        let before = json!({
            "labels": { "example.org/name": "a", "team": "red" },
            "policies": ["Observe", "Create"],
            "resources": [{ "slot": "app", "ready": true }, { "slot": "pool", "ready": true }],
            "rules": [{ "host": "a.example.org" }],
        });
        let after = json!({
            "labels": { "example.org/name": "b" },
            "policies": ["Observe"],
            "resources": [{ "slot": "app", "ready": false }, { "slot": "config", "ready": true }],
            "rules": [{ "host": "b.example.org" }],
        });
        let fields = json!({
            "labels.team": null,
            "labels.(example.org/name)": "b",
            "policies": ["Observe"],
            "resources.app.ready": false,
            "resources.config": { "slot": "config", "ready": true },
            "resources.pool": null,
            "rules.0.host": "b.example.org",
        });
        assert_eq!(Value::from(between(&before, &after)), fields);
    }

    fn values() -> impl Strategy<Value = Value> {
        let scalars = prop_oneof![
            any::<bool>().prop_map(Value::from),
            (0..3).prop_map(Value::from),
            "[a-c]{0,2}".prop_map(Value::from),
        ];
        scalars.prop_recursive(4, 40, 4, |values| {
            prop_oneof![
                prop::collection::vec(values.clone(), 0..4).prop_map(Value::from),
                slotted(values.clone()),
                objects(values),
            ]
        })
    }

    fn objects(values: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
        prop::collection::btree_map("[ab01]([./(][ab])?|slot|", values, 0..4)
            .prop_map(|fields| fields.into_iter().collect())
    }

    /// Lists whose entries have slots, in order.
    fn slotted(values: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
        let entry = |(slot, value)| json!({ "slot": slot, "value": value });
        prop::collection::btree_map("[ab0](\\.[ab])?", values, 0..4)
            .prop_map(move |entries| entries.into_iter().map(entry).collect())
    }

    proptest! {
        #[test]
        fn set_differences_give_the_other_value(
            before in objects(values()),
            after in objects(values()),
        ) {
            let mut rebuilt = before.clone();
            set_all(&mut rebuilt, &between(&before, &after));
            prop_assert_eq!(rebuilt, after);
        }
    }
}
