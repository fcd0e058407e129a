//! The fields of a model, from its JSON schema.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

/// The fields of a model, recursively.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// Any value.
    Any,
    /// A scalar, with its JSON type.
    Scalar(String),
    /// A struct.
    Fields(BTreeMap<String, Shape>),
    /// A list of values with one shape.
    List(Box<Shape>),
    /// A map from strings to values with one shape.
    Map(Box<Shape>),
}

impl Shape {
    /// The shape of a JSON schema (2020-12, as schemars writes it, without `$ref`).
    pub fn from_schema(schema: &Value) -> Self {
        let Some(object) = schema.as_object() else { return Self::Any };
        if let Some(shape) = alternative(object) {
            return shape;
        }
        match type_of(object).as_deref() {
            Some("object") => fields(object),
            Some("array") => {
                Self::List(Box::new(object.get("items").map_or(Self::Any, Self::from_schema)))
            }
            Some(scalar) => Self::Scalar(scalar.to_owned()),
            None => Self::Any,
        }
    }

    /// The same with these additional fields.
    pub fn with(&self, names: &BTreeSet<String>) -> Self {
        let Self::Fields(fields) = self else { return self.clone() };
        let mut fields = fields.clone();
        for name in names {
            fields.entry(name.clone()).or_insert(Self::Any);
        }
        Self::Fields(fields)
    }

    /// Only those of the fields that are in `names`.
    pub fn only(&self, names: &BTreeSet<String>) -> Self {
        let Self::Fields(fields) = self else { return self.clone() };
        let kept = fields.iter().filter(|(name, _)| names.contains(*name));
        Self::Fields(kept.map(|(name, shape)| (name.clone(), shape.clone())).collect())
    }
}

/// The shape of an `Option` or of an enum with documented variants: the first alternative except
/// null.
fn alternative(object: &Map<String, Value>) -> Option<Shape> {
    let alternatives = ["anyOf", "oneOf"].iter().find_map(|key| object.get(*key)?.as_array())?;
    alternatives.iter().find(|one| one["type"] != "null").map(Shape::from_schema)
}

fn fields(object: &Map<String, Value>) -> Shape {
    if let Some(properties) = object.get("properties").and_then(Value::as_object) {
        return Shape::Fields(
            properties
                .iter()
                .map(|(name, field)| (name.clone(), Shape::from_schema(field)))
                .collect(),
        );
    }
    match object.get("additionalProperties") {
        None | Some(Value::Bool(false)) => Shape::Fields(BTreeMap::new()),
        Some(values) => Shape::Map(Box::new(Shape::from_schema(values))),
    }
}

/// The JSON type. For `["string", "null"]`, the first one.
fn type_of(object: &Map<String, Value>) -> Option<String> {
    match object.get("type")? {
        Value::String(one) => Some(one.clone()),
        Value::Array(some) => {
            some.iter().filter_map(Value::as_str).find(|t| *t != "null").map(str::to_owned)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_shape_follows_options_lists_and_maps() {
        let disk =
            json!({ "type": "object", "properties": { "size": { "type": ["integer", "null"] } } });
        let schema = json!({
            "type": "object",
            "properties": {
                "disk": { "anyOf": [disk, { "type": "null" }] },
                "names": { "type": ["array", "null"], "items": { "type": "string" } },
                "tags": { "type": "object", "additionalProperties": { "type": "string" } },
                "manifest": true,
                "nothing": { "type": "object" },
            },
        });
        let string = || Box::new(Shape::Scalar("string".into()));
        let size = ("size".to_owned(), Shape::Scalar("integer".into()));
        let expected = [
            ("disk".to_owned(), Shape::Fields([size].into())),
            ("names".to_owned(), Shape::List(string())),
            ("tags".to_owned(), Shape::Map(string())),
            ("manifest".to_owned(), Shape::Any),
            ("nothing".to_owned(), Shape::Fields(BTreeMap::new())),
        ];
        assert_eq!(Shape::from_schema(&schema), Shape::Fields(expected.into()));
    }
}
