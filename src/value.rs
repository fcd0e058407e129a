//! Protobuf Structs as JSON values, and back, without copying strings.
//!
//! A Struct's numbers are doubles: whole ones come back as integers, so that integer fields can be read; NaN and the
//! infinities, which JSON does not know, become null. prost bounds the depth of what arrives (about 33 Structs).

use function_sdk_rust::proto::v1::Resource;
use pbjson_types::{ListValue, Struct, Value as Pb, value::Kind};
use serde_json::{Map, Number, Value};

/// 2⁵³: up to here every whole double is exactly one integer.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// A JSON object with sorted keys.
pub type Object = Map<String, Value>;

/// A Struct as a JSON object.
pub fn object(source: Struct) -> Object {
    source.fields.into_iter().map(|(key, value)| (key, json(value))).collect()
}

/// A JSON object as a Struct.
pub fn structure(source: Object) -> Struct {
    Struct { fields: source.into_iter().map(|(key, value)| (key, protobuf(value))).collect() }
}

/// A resource's object; empty where the request carries none. Without `metadata.managedFields`, the API server's bookkeeping,
/// which nobody here reads and which can be larger than everything else.
pub fn take_object(resource: &mut Resource) -> Object {
    let Some(mut whole) = resource.resource.take() else { return Object::new() };
    if let Some(Kind::StructValue(metadata)) =
        whole.fields.get_mut("metadata").and_then(|value| value.kind.as_mut())
    {
        metadata.fields.remove("managedFields");
    }
    object(whole)
}

/// The text at a path of object keys.
pub fn text<'v>(source: &'v Object, path: &[&str]) -> Option<&'v str> {
    at(source, path)?.as_str()
}

/// The value at a path of object keys.
pub fn at<'v>(source: &'v Object, path: &[&str]) -> Option<&'v Value> {
    let (last, parents) = path.split_last()?;
    let mut here = source;
    for key in parents {
        here = here.get(*key)?.as_object()?;
    }
    here.get(*last)
}

/// Puts a value at a path of object keys, making the objects on the way; `None` removes what is there.
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

fn json(source: Pb) -> Value {
    match source.kind {
        None | Some(Kind::NullValue(_)) => Value::Null,
        Some(Kind::BoolValue(value)) => Value::Bool(value),
        Some(Kind::NumberValue(value)) => number(value),
        Some(Kind::StringValue(value)) => Value::String(value),
        Some(Kind::StructValue(value)) => Value::Object(object(value)),
        Some(Kind::ListValue(list)) => Value::Array(list.values.into_iter().map(json).collect()),
    }
}

fn number(value: f64) -> Value {
    if value.fract() == 0.0 && value.abs() <= EXACT {
        #[expect(clippy::cast_possible_truncation, reason = "whole, and within 2^53")]
        return Value::Number((value as i64).into());
    }
    Number::from_f64(value).map_or(Value::Null, Value::Number)
}

fn protobuf(source: Value) -> Pb {
    let kind = match source {
        Value::Null => Kind::NullValue(0),
        Value::Bool(value) => Kind::BoolValue(value),
        Value::Number(value) => Kind::NumberValue(value.as_f64().unwrap_or(f64::NAN)),
        Value::String(value) => Kind::StringValue(value),
        Value::Array(values) => {
            Kind::ListValue(ListValue { values: values.into_iter().map(protobuf).collect() })
        }
        Value::Object(value) => Kind::StructValue(structure(value)),
    };
    Pb { kind: Some(kind) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn whole_numbers_come_back_as_integers() {
        let source = json!({"replicas": 3, "ratio": 0.5, "list": [1, "a", null, true]});
        let Value::Object(source) = source else { unreachable!() };
        assert_eq!(object(structure(source.clone())), source);
    }

    #[test]
    fn what_json_does_not_know_becomes_null() {
        assert_eq!(number(f64::NAN), Value::Null);
        assert_eq!(number(f64::INFINITY), Value::Null);
        assert_eq!(number(1e300), json!(1e300));
    }

    #[test]
    fn a_value_is_put_and_removed_by_path() {
        let mut target = Object::new();
        put(&mut target, &["a", "b"], Some(json!(1)));
        assert_eq!(at(&target, &["a", "b"]), Some(&json!(1)));
        put(&mut target, &["a", "b"], None);
        put(&mut target, &["x", "y"], None);
        assert_eq!(Value::Object(target), json!({"a": {}}));
    }
}
