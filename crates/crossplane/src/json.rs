//! JSON values: read and write at a path, merge, and quote in a message.

use serde_json::{Map, Value};

use crate::object;

/// The value at `path`. Its segments are object keys.
pub fn at<'a>(value: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter().try_fold(value, |value, key| value.get(key))
}

/// The text at `path`. An empty text counts as absent, as in Kubernetes' metadata.
pub fn text<'a>(value: &'a Value, path: &[&str]) -> Option<&'a str> {
    at(value, path)?.as_str().filter(|text| !text.is_empty())
}

/// Sets the value at `path`. An object replaces every other value on the path.
pub fn set(value: &mut Value, path: &[&str], new: Value) {
    if path.is_empty() {
        return;
    }
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    if let Value::Object(fields) = value {
        object::put(fields, path, Some(new));
    }
}

/// Removes and returns the value at `path`.
pub fn remove(value: &mut Value, path: &[&str]) -> Option<Value> {
    let (last, parents) = path.split_last()?;
    let parent = parents.iter().try_fold(value, |value, key| value.get_mut(key))?;
    parent.as_object_mut()?.remove(*last)
}

/// Merges `top` into `base`. Objects merge deeply, and all other values replace. A null replaces
/// too.
pub fn overlay(base: &mut Value, top: &Value) {
    match (base, top) {
        (Value::Object(base), Value::Object(top)) => object::merge(base, top.clone()),
        (base, top) => *base = top.clone(),
    }
}

/// Applies a JSON merge patch (RFC 7386). Objects merge deeply, a null removes a field, and all
/// other values replace.
pub fn merge_patch(target: &mut Value, patch: Value) {
    let Value::Object(patch) = patch else {
        *target = patch;
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(fields) = target else { return };
    for (key, value) in patch {
        if value.is_null() {
            fields.remove(&key);
        } else {
            merge_patch(fields.entry(key).or_insert(Value::Null), value);
        }
    }
}

/// A value as quoted in a message: JSON, cut after 80 characters.
pub fn quote(value: &Value) -> String {
    let text = match value {
        Value::Object(map) if map.is_empty() => "an empty object".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        Value::Array(list) if list.is_empty() => "an empty list".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        other => other.to_string(),
    };
    match text.char_indices().nth(80) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn null_in_a_merge_patch_removes_and_in_an_overlay_replaces() {
        let (base, top) =
            (json!({"a": {"b": 1, "c": 2}, "d": [1]}), json!({"a": {"b": null}, "d": {"e": null}}));
        let mut patched = base.clone();
        merge_patch(&mut patched, top.clone());
        assert_eq!(patched, json!({"a": {"c": 2}, "d": {}}));
        let mut laid = base;
        overlay(&mut laid, &top);
        assert_eq!(laid, json!({"a": {"b": null, "c": 2}, "d": {"e": null}}));
    }

    #[test]
    fn set_replaces_values_on_its_path() {
        let mut value = json!({"a": [1]});
        set(&mut value, &["a", "b"], json!(2));
        assert_eq!(value, json!({"a": {"b": 2}}));
        assert_eq!(remove(&mut value, &["a", "b"]), Some(json!(2)));
        assert_eq!(at(&value, &["a", "b"]), None);
    }
}
