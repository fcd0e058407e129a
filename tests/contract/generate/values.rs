//! Values that a JSON schema allows, near an example or without one.

use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde_json::{Value, json};

use super::{allows, almost, keys};

/// Valid values near an example. Enumerations, numbers and booleans vary within the schema. Lists
/// and maps are shortened, and optional fields left out. Other values are those of the example.
/// `None` if there is no example and the schema alone is not enough.
pub fn varied(schema: &Value, example: Option<&Value>) -> Option<BoxedStrategy<Value>> {
    if let Some(choices) = schema["enum"].as_array() {
        return Some(select(choices.clone()).boxed());
    }
    match (schema["type"].as_str().unwrap_or_default(), example) {
        ("object", _) if schema["properties"].is_object() => varied_object(schema, example),
        ("integer", None) if schema["minimum"].is_null() => None,
        ("integer", _) => Some(integer(schema, 1 << 40)),
        ("boolean", _) => Some(any::<bool>().prop_map(Value::from).boxed()),
        ("object", Some(Value::Object(fields))) => {
            let fields: Vec<_> = fields.clone().into_iter().collect();
            Some(
                subsequence(fields.clone(), 0..=fields.len())
                    .prop_map(|some| Value::Object(some.into_iter().collect()))
                    .boxed(),
            )
        }
        ("array", Some(Value::Array(items))) => {
            let items = items.clone();
            let least = usize::try_from(schema["minItems"].as_u64().unwrap_or(0)).unwrap();
            Some(
                (least.min(items.len())..=items.len())
                    .prop_map(move |count| json!(items[..count]))
                    .boxed(),
            )
        }
        (_, example) => Some(Just(example?.clone()).boxed()),
    }
}

/// Fields of the schema vary. Other fields belong to Crossplane, and stay.
fn varied_object(schema: &Value, example: Option<&Value>) -> Option<BoxedStrategy<Value>> {
    let properties = schema["properties"].as_object()?;
    let mut fields = Vec::new();
    for (key, schema_of_field) in properties {
        let required = schema["required"].as_array().is_some_and(|all| all.contains(&json!(key)));
        let given = example.and_then(|example| example.get(key)).filter(|given| !given.is_null());
        let field = match (varied(schema_of_field, given), required) {
            (None, true) => return None,
            (None, false) => continue,
            (Some(field), true) => field.prop_map(Some).boxed(),
            (Some(field), false) => prop_oneof![field.prop_map(Some), Just(None)].boxed(),
        };
        let key = key.clone();
        fields.push(field.prop_map(move |value| value.map(|value| (key.clone(), value))));
    }
    let theirs = example.and_then(Value::as_object).into_iter().flatten();
    let theirs: Vec<(String, Value)> = theirs
        .filter(|(key, _)| !properties.contains_key(*key))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    let whole = move |fields: Vec<Option<(String, Value)>>| {
        Value::Object(fields.into_iter().flatten().chain(theirs.clone()).collect())
    };
    Some(fields.prop_map(whole).boxed())
}

/// An integer within its bounds. Without an upper bound in the schema, at most `most`.
fn integer(schema: &Value, most: i64) -> BoxedStrategy<Value> {
    let bound = |key: &str, other| schema[key].as_i64().unwrap_or(other);
    let most = if schema["format"] == "int32" { most.min(i64::from(i32::MAX)) } else { most };
    let least = bound("minimum", 0);
    (least..=bound("maximum", most).max(least)).prop_map(Value::from).boxed()
}

/// Values that a schema allows.
pub fn valid(schema: &Value) -> BoxedStrategy<Value> {
    if let Some(choices) = schema["enum"].as_array() {
        return select(choices.clone()).boxed();
    }
    match schema["type"].as_str().unwrap_or_default() {
        "object" if schema["properties"].is_object() => {
            let fields: Vec<_> = schema["properties"]
                .as_object()
                .into_iter()
                .flatten()
                .map(|(key, field)| {
                    let required =
                        schema["required"].as_array().is_some_and(|all| all.contains(&json!(key)));
                    let value = valid(field);
                    let value = if required {
                        value.prop_map(Some).boxed()
                    } else {
                        option::of(value).boxed()
                    };
                    let key = key.clone();
                    value.prop_map(move |value| value.map(|value| (key.clone(), value)))
                })
                .collect();
            fields.prop_map(|fields| Value::Object(fields.into_iter().flatten().collect())).boxed()
        }
        "object" if schema["additionalProperties"].is_object() => {
            btree_map(keys(), valid(&schema["additionalProperties"]), 0..3)
                .prop_map(|map| json!(map))
                .boxed()
        }
        "object" => Just(json!({})).boxed(),
        "array" => {
            let least = usize::try_from(schema["minItems"].as_u64().unwrap_or(0)).unwrap();
            vec(valid(&schema["items"]), least..least + 3).prop_map(Value::from).boxed()
        }
        "integer" => integer(schema, 100),
        "boolean" => any::<bool>().prop_map(Value::from).boxed(),
        _ => text(schema),
    }
}

/// A text that the schema allows. If the pattern is too complex for the generator, texts are
/// filtered.
fn text(schema: &Value) -> BoxedStrategy<Value> {
    let allowed = {
        let schema = schema.clone();
        move |text: &Value| allows(&schema, text)
    };
    let bare = schema["pattern"]
        .as_str()
        .map(|pattern| pattern.trim_start_matches('^').trim_end_matches('$'));
    let matching = bare.and_then(|pattern| proptest::string::string_regex(pattern).ok());
    let texts = match matching {
        Some(matching) => matching.boxed(),
        None => prop_oneof!["[a-z][a-z0-9-]{0,12}", almost()].boxed(),
    };
    texts.prop_map(Value::from).prop_filter("not allowed by the schema", allowed).boxed()
}
