//! JSON objects: read and write at a path of keys, and merge.

use serde_json::{Map, Value};

/// A JSON object with sorted keys.
pub type Object = Map<String, Value>;

/// The text at a path of object keys.
pub fn text<'v>(source: &'v Object, path: &[&str]) -> Option<&'v str> {
    at(source, path)?.as_str()
}

/// The value at a path of object keys.
pub fn at<'v>(source: &'v Object, path: &[&str]) -> Option<&'v Value> {
    let (first, rest) = path.split_first()?;
    rest.iter().try_fold(source.get(*first)?, |value, key| value.as_object()?.get(*key))
}

/// Sets the value at a path of object keys. An object replaces every other value on the path.
/// `None` removes the value.
pub fn put(target: &mut Object, path: &[&str], value: Option<Value>) {
    let Some((first, rest)) = path.split_first() else { return };
    if rest.is_empty() {
        match value {
            Some(value) => target.insert((*first).to_owned(), value),
            None => target.remove(*first),
        };
        return;
    }
    let Some(value) = value else {
        if let Some(Value::Object(child)) = target.get_mut(*first) {
            put(child, rest, None);
        }
        return;
    };
    let child = target.entry(*first).or_insert_with(|| Value::Object(Object::new()));
    if !child.is_object() {
        *child = Value::Object(Object::new());
    }
    if let Value::Object(child) = child {
        put(child, rest, Some(value));
    }
}

/// Merges `over` into `base`. Objects merge deeply, and all other values replace. A null replaces
/// too.
pub fn merge(base: &mut Object, over: Object) {
    for (key, value) in over {
        match (base.get_mut(&key), value) {
            (Some(Value::Object(base)), Value::Object(over)) => merge(base, over),
            (_, value) => {
                base.insert(key, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn value_is_put_and_removed_by_path() {
        let mut target = Object::new();
        put(&mut target, &["a", "b"], Some(json!(1)));
        assert_eq!(at(&target, &["a", "b"]), Some(&json!(1)));
        put(&mut target, &["a", "b"], None);
        put(&mut target, &["x", "y"], None);
        assert_eq!(Value::Object(target), json!({"a": {}}));
    }
}
