//! JSON values: read and write at a path, merge, and quote in a message.

use serde_json::{Map, Value};

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
    let Some((last, parents)) = path.split_last() else { return };
    let mut here = value;
    for key in parents {
        here = object(here).entry(*key).or_insert_with(|| Value::Object(Map::new()));
    }
    object(here).insert((*last).to_owned(), new);
}

/// Removes what stands below `path`.
pub fn remove(value: &mut Value, path: &[&str]) -> Option<Value> {
    let (last, parents) = path.split_last()?;
    let parent = parents.iter().try_fold(value, |value, key| value.get_mut(key))?;
    parent.as_object_mut()?.remove(*last)
}

/// The value as an object, made one if it is none.
fn object(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    match value {
        Value::Object(map) => map,
        _ => unreachable!("made an object above"),
    }
}

/// Lays `top` over `base`: maps merge deeply, everything else is replaced.
pub fn overlay(base: &mut Value, top: &Value) {
    match (base, top) {
        (Value::Object(base), Value::Object(top)) => {
            for (key, value) in top {
                overlay(base.entry(key.as_str()).or_insert(Value::Null), value);
            }
        }
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
