//! Field ownership: server-side apply, and `metadata.managedFields`. Lists are atomic, which is the
//! default in custom resources.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::json::{list, remove, seconds};

/// Fields by their paths.
type Set = BTreeSet<Vec<String>>;

/// The field manager of a write, and its operation: `Apply` or `Update`.
pub struct Writer<'a> {
    /// The field manager's name.
    pub manager: &'a str,
    operation: &'static str,
}

/// A field that another manager has set to another value.
#[derive(Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The other manager.
    pub manager: String,
    /// The field: `.spec.replicas`.
    pub field: String,
}

impl<'a> Writer<'a> {
    /// The writer of an apply.
    pub fn applying(manager: &'a str) -> Self {
        Self { manager, operation: "Apply" }
    }

    /// The writer of any other write.
    pub fn updating(manager: &'a str) -> Self {
        Self { manager, operation: "Update" }
    }

    fn is(&self, entry: &Entry) -> bool {
        entry.manager == self.manager && entry.operation == self.operation
    }
}

struct Entry {
    manager: String,
    operation: String,
    time: Value,
    fields: Set,
}

/// The path of the managers.
const MANAGED: &str = "/metadata/managedFields";

/// Records the fields that an update has changed in the new object. An update may also change the
/// managers themselves.
pub fn note(before: Option<&Value>, after: &mut Value, writer: &Writer<'_>, now: Timestamp) {
    let none = json!({});
    let has_managers =
        before.is_some() && after.pointer("/metadata/managedFields").is_some_and(Value::is_array);
    let is_created = before.is_none();
    let before = before.unwrap_or(&none);
    let (old, new) = (leaves(before), leaves(after));
    let is_field = |path: &[String]| !(is_created && is_empty_struct(after, path));
    let changed: Set = new
        .iter()
        .filter(|path| at(before, path) != at(after, path) && is_field(path))
        .cloned()
        .collect();
    let mut entries = read(if has_managers { after } else { before });
    // An empty list is the mark of an object that was created without any field. Its updates are not
    // recorded. An object that a test has stored has no list.
    if entries.is_empty() && before.pointer(MANAGED).is_some_and(Value::is_array) {
        after["metadata"]["managedFields"] = json!([]);
        return;
    }
    for entry in &mut entries {
        entry.fields.retain(|path| new.contains(path) && !changed.contains(path));
    }
    if !changed.is_empty() || old.iter().any(|path| !new.contains(path)) {
        let own = own(&mut entries, writer);
        own.fields.extend(changed);
        own.time = json!(seconds(now).to_string());
    }
    write(after, entries);
    if is_created && after.pointer(MANAGED).is_none() {
        after["metadata"]["managedFields"] = json!([]);
    }
}

/// Whether a path of a kind of Kubernetes leads to an object without fields. In Kubernetes it is an
/// empty struct, and no field.
fn is_empty_struct(object: &Value, path: &[String]) -> bool {
    let version = object["apiVersion"].as_str().unwrap_or_default();
    let group = version.split_once('/').map_or("", |(group, _)| group);
    let is_built_in = !group.contains('.') || group.ends_with(".k8s.io");
    is_built_in && at(object, path).and_then(Value::as_object).is_some_and(Map::is_empty)
}

/// Merges an applied object into the live one. A field that the writer applied earlier and now
/// omits is removed, unless another manager owns it too.
pub fn apply(
    live: &Value,
    intent: &Value,
    writer: &Writer<'_>,
    force: bool,
    now: Timestamp,
) -> Result<Value, Vec<Conflict>> {
    let wanted = leaves(intent);
    let mut entries = read(live);
    // An empty map does not claim any field below it.
    let differs = |path: &[String]| {
        let (own, found) = (at(intent, path), at(live, path));
        let is_empty = own.is_some_and(|own| own.as_object().is_some_and(Map::is_empty));
        own != found && !(is_empty && found.is_some_and(Value::is_object))
    };
    let touches = |path: &Vec<String>| {
        wanted.iter().any(|own| (own.starts_with(path) || path.starts_with(own)) && differs(own))
    };
    let mut conflicts = Vec::new();
    for entry in entries.iter_mut().filter(|entry| !writer.is(entry)) {
        let theirs: Vec<_> = entry.fields.iter().filter(|path| touches(path)).cloned().collect();
        let told = |path: &Vec<String>| Conflict {
            manager: entry.manager.clone(),
            field: format!(".{}", path.join(".")),
        };
        conflicts.extend(theirs.iter().map(told));
        entry.fields.retain(|path| !theirs.contains(path));
    }
    if !(force || conflicts.is_empty()) {
        return Err(conflicts);
    }
    let mut after = live.clone();
    let before = std::mem::take(&mut own(&mut entries, writer).fields);
    for path in before.iter().filter(|path| !wanted.contains(*path)) {
        if !entries.iter().any(|entry| entry.fields.contains(path)) {
            take_away(&mut after, path);
        }
    }
    for path in &wanted {
        put(&mut after, path, at(intent, path).cloned().unwrap_or_default());
    }
    let same = before == wanted && after == *live;
    let own = own(&mut entries, writer);
    own.fields = wanted;
    if !same {
        own.time = json!(seconds(now).to_string());
    }
    write(&mut after, entries);
    Ok(after)
}

fn own<'e>(entries: &'e mut Vec<Entry>, writer: &Writer<'_>) -> &'e mut Entry {
    let index = entries.iter().position(|entry| writer.is(entry)).unwrap_or_else(|| {
        let (manager, operation) = (writer.manager.to_owned(), writer.operation.to_owned());
        entries.push(Entry { manager, operation, time: Value::Null, fields: Set::new() });
        entries.len() - 1
    });
    &mut entries[index]
}

/// The fields of an object that a manager can own: values that are not maps, and empty maps.
fn leaves(object: &Value) -> Set {
    let mut all = Set::new();
    for (key, value) in object.as_object().into_iter().flatten() {
        match key.as_str() {
            "apiVersion" | "kind" | "status" => {}
            "metadata" => {
                for part in ["labels", "annotations"] {
                    if value[part].is_object() {
                        collect(&value[part], &mut vec![key.clone(), part.to_owned()], &mut all);
                    }
                }
            }
            _ => collect(value, &mut vec![key.clone()], &mut all),
        }
    }
    all
}

fn collect(value: &Value, path: &mut Vec<String>, all: &mut Set) {
    match value.as_object().filter(|fields| !fields.is_empty()) {
        None => drop(all.insert(path.clone())),
        Some(fields) => {
            for (key, value) in fields {
                path.push(key.clone());
                collect(value, path, all);
                path.pop();
            }
        }
    }
}

fn at<'v>(value: &'v Value, path: &[String]) -> Option<&'v Value> {
    path.iter().try_fold(value, |value, key| value.get(key))
}

fn put(value: &mut Value, path: &[String], new: Value) {
    let Some((key, rest)) = path.split_first() else {
        // An empty map keeps all fields of the existing map.
        if !(new.as_object().is_some_and(Map::is_empty) && value.is_object()) {
            *value = new;
        }
        return;
    };
    if !value.is_object() {
        *value = json!({});
    }
    put(&mut value[key], rest, new);
}

/// Removes a field, and then the maps around it that became empty.
fn take_away(value: &mut Value, path: &[String]) {
    let Some((key, rest)) = path.split_first() else { return };
    if !rest.is_empty()
        && let Some(inner) = value.get_mut(key)
    {
        take_away(inner, rest);
        if inner.as_object().is_none_or(|fields| !fields.is_empty()) {
            return;
        }
    }
    remove(value, key);
}

fn read(object: &Value) -> Vec<Entry> {
    let entry = |entry: &Value| {
        let mut fields = Set::new();
        decode(&entry["fieldsV1"], &mut Vec::new(), &mut fields);
        let text = |key: &str| entry[key].as_str().unwrap_or_default().to_owned();
        Entry {
            manager: text("manager"),
            operation: text("operation"),
            time: entry["time"].clone(),
            fields,
        }
    };
    list(object, "/metadata/managedFields").iter().map(entry).collect()
}

fn write(object: &mut Value, mut entries: Vec<Entry>) {
    entries.retain(|entry| !entry.fields.is_empty());
    if entries.is_empty() {
        return remove(&mut object["metadata"], "managedFields");
    }
    let version = object["apiVersion"].clone();
    let entries = entries.into_iter().map(|entry| {
        let mut fields = json!({});
        for path in &entry.fields {
            let path: Vec<String> = path.iter().map(|key| format!("f:{key}")).collect();
            put(&mut fields, &path, json!({}));
        }
        json!({"manager": entry.manager, "operation": entry.operation, "apiVersion": version, "time": entry.time,
            "fieldsType": "FieldsV1", "fieldsV1": fields})
    });
    object["metadata"]["managedFields"] = entries.collect();
}

fn decode(fields: &Value, path: &mut Vec<String>, all: &mut Set) {
    match fields.as_object().filter(|fields| !fields.is_empty()) {
        None if path.is_empty() => {}
        None => drop(all.insert(path.clone())),
        Some(fields) => {
            for (key, inner) in fields {
                path.push(key.trim_start_matches("f:").to_owned());
                decode(inner, path, all);
                path.pop();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed test panics")]
    use super::*;

    fn laid(
        live: &Value,
        intent: &Value,
        manager: &str,
        force: bool,
    ) -> Result<Value, Vec<Conflict>> {
        apply(live, intent, &Writer::applying(manager), force, Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn omitted_field_is_removed_unless_another_manager_owns_it() {
        let both = json!({"apiVersion": "v1", "spec": {"a": 1, "b": {"c": 2}}});
        let one = laid(&json!({}), &both, "ada", false).unwrap();
        let two = laid(&one, &json!({"spec": {"a": 1}}), "bob", false).unwrap();
        let gone = laid(&two, &json!({"spec": {}}), "ada", false).unwrap();
        assert_eq!(gone["spec"], json!({"a": 1}));
    }

    #[test]
    fn foreign_field_conflicts_until_applied_by_force() {
        let mut live = json!({"apiVersion": "v1", "spec": {"a": 1, "l": [1]}});
        note(None, &mut live, &Writer::updating("kubectl"), Timestamp::UNIX_EPOCH);
        let intent = json!({"spec": {"a": 2, "l": [1]}});
        let field = ".spec.a".to_owned();
        assert_eq!(
            laid(&live, &intent, "ada", false),
            Err(vec![Conflict { manager: "kubectl".into(), field }])
        );
        let taken = laid(&live, &intent, "ada", true).unwrap();
        assert_eq!(taken["spec"], intent["spec"]);
        assert!(laid(&taken, &intent, "ada", false).is_ok());
        assert!(laid(&taken, &json!({"spec": {"a": 3}}), "kubectl", false).is_err());
    }

    #[test]
    fn second_apply_changes_no_field() {
        let intent = json!({"apiVersion": "v1", "metadata": {"labels": {"x": "y"}}, "spec": {"a": {}, "b": [1]}});
        let once = laid(&json!({}), &intent, "ada", false).unwrap();
        assert_eq!(
            apply(&once, &intent, &Writer::applying("ada"), false, Timestamp::MAX).unwrap(),
            once
        );
    }
}
