//! Structural validation: types, bounds, enums, patterns, required and unknown fields.
//!
//! The walker is our own, because its messages must name the field's path, the found value and the
//! allowed values.

mod bounds;
mod metadata;

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::Violation;
use super::defaults::field;
use crossplane::json::quote;

/// The maximum number of collected violations. Without it, a client could cause any number of them.
const MAX_VIOLATIONS: usize = 200;

/// Why a text may arrive as a boolean.
const BOOLEANS: &str = "YAML reads on, off, yes and no as booleans";

/// The maximum length of a violation's path, in characters.
const MAX_PATH_LEN: usize = 400;

/// The first [`MAX_VIOLATIONS`] violations of the structure of `schema` in `object`.
pub(super) fn validate(object: &Value, schema: &Value) -> Vec<Violation> {
    let mut walk = Walk { violations: Vec::new(), closed: true };
    walk.value("", object, schema, Place::Root);
    metadata::validate(&mut walk, object, schema);
    walk.violations
}

struct Walk {
    violations: Vec<Violation>,
    /// Whether fields that the schema does not define are rejected. Inside `allOf`, `anyOf`,
    /// `oneOf` and `not`, they are allowed.
    closed: bool,
}

/// Whether apiVersion, kind and metadata belong to an object without a schema for them.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Root,
    Inside,
}

impl Walk {
    fn refuse(&mut self, path: &str, message: impl Into<String>) {
        if !self.is_full() {
            let path = path.chars().take(MAX_PATH_LEN).collect();
            self.violations.push(Violation { path, message: message.into() });
        }
    }

    fn extend(&mut self, violations: impl IntoIterator<Item = Violation>) {
        for violation in violations {
            self.refuse(&violation.path, violation.message);
        }
    }

    fn is_full(&self) -> bool {
        self.violations.len() >= MAX_VIOLATIONS
    }

    fn value(&mut self, path: &str, value: &Value, schema: &Value, place: Place) {
        if value.is_null() && flag(schema, "nullable") {
            return;
        }
        if let Some(message) = wrong_type(value, schema) {
            return self.refuse(path, message);
        }
        match value {
            Value::Object(map) => self.object(path, map, schema, place),
            Value::Array(items) => self.list(path, items, schema),
            Value::String(text) => self.extend(bounds::text(path, text, schema)),
            Value::Number(number) => self.extend(bounds::number(path, number, schema)),
            Value::Bool(_) | Value::Null => {}
        }
        self.enumeration(path, value, schema);
        self.combinations(path, value, schema);
    }

    fn object(&mut self, path: &str, map: &Map<String, Value>, schema: &Value, place: Place) {
        for name in required(schema).filter(|name| !map.contains_key(*name)) {
            let needed = field(schema, name)
                .map(|schema| format!("; {}", expected(schema)))
                .unwrap_or_default();
            self.refuse(&child(path, name), format!("is missing{needed}"));
        }
        let implied = place == Place::Root || flag(schema, "x-kubernetes-embedded-resource");
        for (name, value) in map {
            if self.is_full() {
                return;
            }
            let path = child(path, name);
            match field(schema, name) {
                _ if implied && name == "metadata" => {}
                Some(schema) => self.value(&path, value, schema, Place::Inside),
                None if implied && ["apiVersion", "kind"].contains(&name.as_str()) => {}
                None if self.closed && !is_open(schema) => {
                    self.refuse(&path, unknown(name, schema));
                }
                None => {}
            }
        }
        self.extend(bounds::size(
            path,
            map.len(),
            schema,
            ["minProperties", "maxProperties"],
            "fields",
        ));
    }

    fn list(&mut self, path: &str, items: &[Value], schema: &Value) {
        if let Some(schema) = schema.get("items") {
            for (index, item) in items.iter().enumerate() {
                if self.is_full() {
                    return;
                }
                self.value(&format!("{path}[{index}]"), item, schema, Place::Inside);
            }
        }
        self.extend(bounds::size(path, items.len(), schema, ["minItems", "maxItems"], "items"));
        self.duplicates(path, items, schema);
    }

    /// Rejects duplicate keys in a list of type map or set.
    fn duplicates(&mut self, path: &str, items: &[Value], schema: &Value) {
        let keys: Vec<&str> = strings(schema, "x-kubernetes-list-map-keys").collect();
        let is_map = schema.get("x-kubernetes-list-type").is_some_and(|kind| kind == "map");
        let is_set = schema.get("x-kubernetes-list-type").is_some_and(|kind| kind == "set");
        if !(is_map || is_set || flag(schema, "uniqueItems")) {
            return;
        }
        let mut seen = BTreeSet::new();
        for (index, item) in items.iter().enumerate() {
            if self.is_full() {
                return;
            }
            let key = if is_map {
                keys.iter().map(|key| quote(&item[*key])).collect()
            } else {
                vec![item.to_string()]
            };
            if seen.contains(&key) {
                let what = if is_map {
                    format!("{} {}", keys.join(", "), key.join(", "))
                } else {
                    quote(item)
                };
                self.refuse(
                    &format!("{path}[{index}]"),
                    format!("found {what} twice; each may be given once"),
                );
            }
            seen.insert(key);
        }
    }

    fn enumeration(&mut self, path: &str, value: &Value, schema: &Value) {
        let Some(allowed) = schema.get("enum").and_then(Value::as_array) else { return };
        if allowed.contains(value) {
            return;
        }
        let names = allowed.iter().filter_map(Value::as_str);
        let hint = value.as_str().and_then(|found| crossplane::nearest(found, names));
        let hint = hint.map(|name| format!("; did you mean {name}?")).unwrap_or_default();
        self.refuse(path, format!("found {}; {}{hint}", quote(value), list_of(allowed)));
    }

    fn combinations(&mut self, path: &str, value: &Value, schema: &Value) {
        let branches = |key| schema.get(key).and_then(Value::as_array).into_iter().flatten();
        for branch in branches("allOf") {
            let closed = std::mem::replace(&mut self.closed, false);
            self.value(path, value, branch, Place::Inside);
            self.closed = closed;
        }
        let holding = |key| branches(key).filter(|branch| holds(value, branch)).count();
        if schema.get("anyOf").is_some() && holding("anyOf") == 0 {
            self.refuse(path, format!("allowed: {}", forms("at least one of", branches("anyOf"))));
        }
        if schema.get("oneOf").is_some() && holding("oneOf") != 1 {
            let found = holding("oneOf");
            self.refuse(
                path,
                format!(
                    "found {found} of them; allowed: {}",
                    forms("exactly one of", branches("oneOf"))
                ),
            );
        }
        if schema.get("not").is_some_and(|schema| holds(value, schema)) {
            self.refuse(path, format!("found {}; this value is not allowed here", quote(value)));
        }
    }
}

fn holds(value: &Value, schema: &Value) -> bool {
    let mut walk = Walk { violations: Vec::new(), closed: false };
    walk.value("", value, schema, Place::Inside);
    walk.violations.is_empty()
}

/// The fields required by each branch of a combination. If a branch requires no fields, the text
/// only mentions the schema's forms.
fn forms<'a>(how_many: &str, branches: impl Iterator<Item = &'a Value>) -> String {
    let names: Vec<String> =
        branches.map(|branch| required(branch).collect::<Vec<_>>().join(" and ")).collect();
    if names.iter().any(String::is_empty) {
        return format!("{how_many} the schema's forms");
    }
    format!("{how_many} {}", names.join(", "))
}

fn wrong_type(value: &Value, schema: &Value) -> Option<String> {
    if flag(schema, "x-kubernetes-int-or-string") {
        let fits = value.is_string() || is_integer(value);
        return (!fits).then(|| format!("found {}; allowed: an integer or a string", quote(value)));
    }
    let name = schema.get("type").and_then(Value::as_str)?;
    let fits = match name {
        "string" => value.is_string(),
        "integer" => is_integer(value),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => true,
    };
    if fits {
        return None;
    }
    let hint = match (name, value) {
        ("string", Value::Number(_) | Value::Bool(_)) => text_instead(value, schema),
        ("integer" | "number", Value::String(text)) if text.parse::<f64>().is_ok() => {
            format!(", without quotes: {text}")
        }
        ("boolean", Value::String(text)) if ["true", "false"].contains(&text.as_str()) => {
            format!(", without quotes: {text}")
        }
        _ => String::new(),
    };
    Some(format!("found {}; {}{hint}", quote(value), expected(schema)))
}

/// The allowed texts in the place of a number or a boolean: the value in quotes, if this is one.
fn text_instead(value: &Value, schema: &Value) -> String {
    let text = value.to_string();
    let hint = if value.is_boolean() { format!("; {BOOLEANS}") } else { String::new() };
    let names = schema.get("enum").and_then(Value::as_array);
    if names.is_some_and(|names| !names.contains(&Value::from(text.as_str()))) {
        return hint;
    }
    match schema.get("pattern").and_then(Value::as_str) {
        Some(pattern) if !bounds::text("", &text, schema).is_empty() => {
            format!(" that matches {pattern}{hint}")
        }
        // A quantity. The bare number would be an amount of bytes.
        Some(pattern) if pattern.contains("[KMGTPE]i") => {
            format!(" with a unit, for example {}", quantity_instead(value))
        }
        _ => format!(", in quotes: \"{value}\""),
    }
}

/// Examples of quantities of memory in the place of a number. A large number is probably an amount
/// of bytes, and not of gibibytes.
fn quantity_instead(number: &Value) -> String {
    match number.as_f64() {
        Some(amount) if amount <= 64.0 => format!("\"{number}Gi\""),
        Some(amount) if amount <= 65_536.0 => format!("\"{number}Mi\""),
        _ => "\"512Mi\" or \"16Gi\"".to_owned(),
    }
}

fn is_integer(value: &Value) -> bool {
    value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0)
}

/// A description of the values that a schema allows.
fn expected(schema: &Value) -> String {
    if let Some(allowed) = schema.get("enum").and_then(Value::as_array) {
        return list_of(allowed);
    }
    let what = match schema.get("type").and_then(Value::as_str) {
        Some("string") => "a string",
        Some("integer") => "an integer",
        Some("number") => "a number",
        Some("boolean") => "true or false",
        Some("array") => "a list",
        Some("object") => "an object",
        _ => "a value",
    };
    format!("allowed: {what}")
}

fn list_of(allowed: &[Value]) -> String {
    let names: Vec<String> = allowed.iter().map(Value::to_string).collect();
    format!("allowed: {}", names.join(", "))
}

fn unknown(name: &str, schema: &Value) -> String {
    let known: Vec<&str> = schema
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .map(|(name, _)| name.as_str())
        .collect();
    match crossplane::nearest(name, known.iter().copied()) {
        Some(nearest) => format!("unknown field; did you mean {nearest}?"),
        None if known.is_empty() => "unknown field; no field is allowed here".to_owned(),
        None => format!("unknown field; allowed: {}", known.join(", ")),
    }
}

/// Whether an object may have fields that its schema does not define.
fn is_open(schema: &Value) -> bool {
    flag(schema, "x-kubernetes-preserve-unknown-fields")
        || schema.get("additionalProperties").is_some_and(|value| value == &Value::Bool(true))
}

/// The path of a field in messages: `spec.replicas`, or `metadata.labels[a.b]` if the name contains
/// other characters than letters, digits, `_` and `-`.
pub fn child(path: &str, name: &str) -> String {
    let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
    match (path.is_empty(), plain) {
        (true, true) => name.to_owned(),
        (false, true) => format!("{path}.{name}"),
        (_, false) => format!("{path}[{name}]"),
    }
}

fn required(schema: &Value) -> impl Iterator<Item = &str> {
    strings(schema, "required")
}

fn strings<'a>(schema: &'a Value, key: &str) -> impl Iterator<Item = &'a str> + use<'a> {
    schema.get(key).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

fn flag(schema: &Value, key: &str) -> bool {
    schema.get(key).and_then(Value::as_bool).unwrap_or(false)
}
