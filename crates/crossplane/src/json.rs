//! JSON values: read and write at a path, merge, and quote in a message.

use serde_json::{Map, Value};

use crate::object;

/// The value below `path`, whose segments are object keys.
pub fn at<'a>(value: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter().try_fold(value, |value, key| value.get(key))
}

/// The text below `path`; empty text counts as none, as it does for Kubernetes' metadata.
pub fn text<'a>(value: &'a Value, path: &[&str]) -> Option<&'a str> {
    at(value, path)?.as_str().filter(|text| !text.is_empty())
}

/// Writes `new` below `path`; whatever stands in the way and is no object is replaced by one.
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

/// Removes what stands below `path`.
pub fn remove(value: &mut Value, path: &[&str]) -> Option<Value> {
    let (last, parents) = path.split_last()?;
    let parent = parents.iter().try_fold(value, |value, key| value.get_mut(key))?;
    parent.as_object_mut()?.remove(*last)
}

/// Lays `top` over `base`: objects merge deeply, everything else replaces. A null replaces too.
pub fn overlay(base: &mut Value, top: &Value) {
    match (base, top) {
        (Value::Object(base), Value::Object(top)) => object::merge(base, top.clone()),
        (base, top) => *base = top.clone(),
    }
}

/// A value as a message quotes it: JSON, cut after 80 characters.
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
