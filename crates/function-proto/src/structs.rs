//! Protobuf Structs as JSON objects, and back. A Struct stores each number as a double.

use prost_types::{ListValue, Struct, Value as Pb, value::Kind};
use serde_json::{Map, Number, Value};

/// 2⁵³: up to this number, each whole double is exactly one integer.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// A Struct as a JSON object. Whole numbers become integers, so that integer fields can be read.
/// NaN and the infinities become null, because JSON has no such numbers.
pub fn object(source: Struct) -> Map<String, Value> {
    source.fields.into_iter().map(|(key, value)| (key, json(value))).collect()
}

/// A JSON object as a Struct.
pub fn structure(source: Map<String, Value>) -> Struct {
    Struct { fields: source.into_iter().map(|(key, value)| (key, protobuf(value))).collect() }
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
    fn whole_numbers_are_returned_as_integers() {
        let source = json!({"replicas": 3, "ratio": 0.5, "list": [1, "a", null, true]});
        let Value::Object(source) = source else { unreachable!() };
        assert_eq!(object(structure(source.clone())), source);
    }

    #[test]
    fn non_finite_number_becomes_null() {
        assert_eq!(number(f64::NAN), Value::Null);
        assert_eq!(number(f64::INFINITY), Value::Null);
        assert_eq!(number(1e300), json!(1e300));
    }
}
