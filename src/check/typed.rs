//! Typed values, read from what a user wrote: what is wrong is told in the user's terms, not in
//! those of a program.

use serde::de::value::{MapDeserializer, SeqDeserializer};
use serde::de::{Error as _, IntoDeserializer, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, forward_to_deserialize_any};
use serde_json::Value;

use super::{SHOWN, quoted, shown, suggestion};
use crate::error::FieldError;
use crate::value::Object;

/// Reads a value; an error names the field by its path below `root`, what was found there and what
/// is allowed.
pub fn typed<'v, T: Deserialize<'v>>(
    source: impl Into<Source<'v>>,
    root: &str,
) -> Result<T, FieldError> {
    serde_path_to_error::deserialize(source.into()).map_err(|error| {
        let path = error.path().to_string();
        let path = match (root, path.as_str()) {
            (root, ".") => root.to_owned(),
            ("", path) => path.to_owned(),
            (root, path) => format!("{root}.{path}"),
        };
        explained(&shown(&path), &error.into_inner().to_string())
    })
}

/// serde's own words, said plainly.
fn explained(path: &str, words: &str) -> FieldError {
    let field = |message: String| FieldError { path: path.to_owned(), message };
    if let Some(name) =
        words.strip_prefix("missing field `").and_then(|rest| rest.strip_suffix('`'))
    {
        return FieldError {
            path: format!("{path}.{name}"),
            message: "missing; a value is required".to_owned(),
        };
    }
    if let Some((name, known)) = unknown(words, "unknown field `") {
        return field(format!("unknown field; allowed: {}", suggestion(name, &known)));
    }
    if let Some((name, known)) = unknown(words, "unknown variant `") {
        if ["true", "false"].contains(&name) {
            let allowed = suggestion(name, &known);
            return field(format!(
                "found {name}; allowed: {allowed}; YAML reads on, off, yes and no as booleans"
            ));
        }
        return field(format!("found {}; allowed: {}", quoted(name), suggestion(name, &known)));
    }
    let wrong =
        words.strip_prefix("invalid type: ").or_else(|| words.strip_prefix("invalid value: "));
    match wrong.and_then(|rest| rest.rsplit_once(", expected ")) {
        Some((found, expected)) => {
            let looks_like =
                ["integer", "floating", "boolean"].iter().any(|kind| found.starts_with(kind));
            let quotes = if looks_like && kind(expected) == "a text" { ", in quotes" } else { "" };
            field(format!("found {}; allowed: {}{quotes}", plain(found), kind(expected)))
        }
        None => field(shown(words)),
    }
}

/// The name that is not known, and those that are.
fn unknown<'w>(words: &'w str, prefix: &str) -> Option<(&'w str, Vec<&'w str>)> {
    let (name, rest) = words.strip_prefix(prefix)?.rsplit_once("`, expected ")?;
    Some((name, rest.split('`').skip(1).step_by(2).collect()))
}

/// What was found. serde quotes texts with escapes, so no end of one is invisible.
fn plain(found: &str) -> String {
    let (kind, value) = found.split_once(' ').unwrap_or((found, ""));
    let value = value.trim_matches('`');
    match kind {
        "null" | "unit" => "nothing".to_owned(),
        "map" => "an object".to_owned(),
        "sequence" => "a list".to_owned(),
        "integer" | "boolean" => value.to_owned(),
        "floating" => value.trim_start_matches("point `").to_owned(),
        // A long text in the wrong place may be anything, a private key too.
        "string" => match value.char_indices().nth(SHOWN) {
            None if !value.contains("PRIVATE KEY") => value.to_owned(),
            _ => "a long text".to_owned(),
        },
        _ => shown(found),
    }
}

/// What is allowed, from a Rust type's name.
fn kind(expected: &str) -> &str {
    match expected {
        "a string" => "a text",
        "a sequence" => "a list",
        "a map" => "an object",
        "a boolean" => "true or false",
        integer if ["i64", "u64", "i32", "u32"].contains(&integer) => "a whole number",
        object if object.starts_with("struct ") => "an object",
        names if names.starts_with("string or ") => "a text",
        other => other,
    }
}

/// JSON to read from. serde_json's own reader takes a list for a struct, its items for the fields
/// in order, and an empty one for a struct of defaults; this one wants an object.
#[derive(Clone, Copy)]
pub enum Source<'v> {
    /// An object's fields.
    Object(&'v Object),
    /// Anything else.
    Other(&'v Value),
}

impl<'v> From<&'v Object> for Source<'v> {
    fn from(object: &'v Object) -> Self {
        Self::Object(object)
    }
}

impl<'v> From<&'v Value> for Source<'v> {
    fn from(value: &'v Value) -> Self {
        value.as_object().map_or(Self::Other(value), Self::Object)
    }
}

impl<'v> IntoDeserializer<'v, serde_json::Error> for Source<'v> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> Deserializer<'de> for Source<'de> {
    type Error = serde_json::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        match self {
            Self::Object(object) => {
                let fields = object.iter().map(|(name, value)| (name.as_str(), Self::from(value)));
                visitor.visit_map(MapDeserializer::new(fields))
            }
            Self::Other(Value::Array(items)) => {
                visitor.visit_seq(SeqDeserializer::new(items.iter().map(Self::from)))
            }
            Self::Other(value) => value.deserialize_any(visitor),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        match self {
            Self::Other(Value::Array(_)) => {
                Err(Self::Error::invalid_type(Unexpected::Seq, &visitor))
            }
            source => source.deserialize_any(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        match self {
            Self::Other(Value::Null) => visitor.visit_none(),
            source => visitor.visit_some(source),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        match self {
            Self::Object(object) => object.deserialize_enum(name, variants, visitor),
            Self::Other(Value::Bool(found)) => {
                Err(Self::Error::unknown_variant(&found.to_string(), variants))
            }
            Self::Other(value) => value.deserialize_enum(name, variants, visitor),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map identifier ignored_any
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    #[derive(Debug, Default, Deserialize)]
    #[serde(default)]
    struct Disk {
        size: Option<u32>,
        labels: Vec<String>,
    }

    #[derive(Debug, Deserialize)]
    struct Machine {
        disk: Disk,
    }

    #[test]
    fn a_list_is_no_object() {
        for list in [json!([]), json!([10])] {
            let error = typed::<Machine>(&json!({"disk": list}), "spec").unwrap_err();
            assert_eq!(
                (error.path.as_str(), error.message.as_str()),
                ("spec.disk", "found a list; allowed: an object")
            );
        }
        let machine: Machine =
            typed(&json!({"disk": {"size": 10, "labels": ["a"]}}), "spec").unwrap();
        assert_eq!((machine.disk.size, machine.disk.labels.len()), (Some(10), 1));
    }
}
