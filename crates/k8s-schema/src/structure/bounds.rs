//! Bounds of numbers, texts and sizes.

use std::cell::RefCell;
use std::collections::HashMap;

use regex::Regex;
use serde_json::{Number, Value};

use super::Violation;
use crate::formats;
use crossplane::json::quote;

/// The key of a description of a pattern. Kubernetes' schemas do not have this key.
pub(super) const WORDS: &str = "x-pattern-in-words";

pub(super) fn number(path: &str, number: &Number, schema: &Value) -> Vec<Violation> {
    let Some(found) = number.as_f64() else { return Vec::new() };
    let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
    let exclusive = |key: &str| schema.get(key).and_then(Value::as_bool).unwrap_or(false);
    let low = bound("minimum")
        .is_some_and(|min| found < min || (found <= min && exclusive("exclusiveMinimum")));
    let high = bound("maximum")
        .is_some_and(|max| found > max || (found >= max && exclusive("exclusiveMaximum")));
    let mut refused = Vec::new();
    if low || high {
        refused.push(format!("allowed: {}", range(schema, "minimum", "maximum")));
    }
    if let Some(step) =
        bound("multipleOf").filter(|step| *step != 0.0 && (found / step).fract() != 0.0)
    {
        refused.push(format!("allowed: a multiple of {step}"));
    }
    let format = schema.get("format").and_then(Value::as_str).unwrap_or_default();
    refused.extend(
        formats::refused_number(format, found).map(|allowed| format!("allowed: {allowed}")),
    );
    found_but(path, &number.to_string(), refused)
}

pub(super) fn text(path: &str, text: &str, schema: &Value) -> Vec<Violation> {
    let mut refused = Vec::new();
    if outside(text.chars().count(), schema, "minLength", "maxLength") {
        refused.push(format!("allowed: {} characters", range(schema, "minLength", "maxLength")));
    }
    if let Some(pattern) =
        schema.get("pattern").and_then(Value::as_str).filter(|pattern| !matches(pattern, text))
    {
        let words = schema.get(WORDS).and_then(Value::as_str);
        refused.push(words.map_or_else(
            || format!("allowed: a text that matches {pattern}"),
            |words| format!("allowed: {words}"),
        ));
    }
    let format = schema.get("format").and_then(Value::as_str).unwrap_or_default();
    refused
        .extend(formats::refused_text(format, text).map(|allowed| format!("allowed: {allowed}")));
    found_but(path, &quote(&Value::from(text)), refused)
}

pub(super) fn size(
    path: &str,
    size: usize,
    schema: &Value,
    [min, max]: [&str; 2],
    what: &str,
) -> Vec<Violation> {
    let refused = outside(size, schema, min, max)
        .then(|| format!("allowed: {} {what}", range(schema, min, max)));
    found_but(path, &format!("{size} {what}"), refused.into_iter().collect())
}

fn outside(size: usize, schema: &Value, min: &str, max: &str) -> bool {
    let size = size as u64;
    let bound = |key| schema.get(key).and_then(Value::as_u64);
    bound(min).is_some_and(|min| size < min) || bound(max).is_some_and(|max| size > max)
}

fn found_but(path: &str, found: &str, refused: Vec<String>) -> Vec<Violation> {
    let violation =
        |why| Violation { path: path.to_owned(), message: format!("found {found}; {why}") };
    refused.into_iter().map(violation).collect()
}

fn range(schema: &Value, min: &str, max: &str) -> String {
    match (schema.get(min), schema.get(max)) {
        (Some(min), Some(max)) => format!("{min} to {max}"),
        (Some(min), None) => format!("{min} or more"),
        (None, Some(max)) => format!("at most {max}"),
        (None, None) => "any".to_owned(),
    }
}

/// Whether a pattern matches anywhere in a text. An invalid regular expression matches every text.
fn matches(pattern: &str, text: &str) -> bool {
    thread_local!(static PATTERNS: RefCell<HashMap<String, Option<Regex>>> = RefCell::default());
    PATTERNS.with_borrow_mut(|patterns| {
        let regex = patterns.entry(pattern.to_owned()).or_insert_with(|| Regex::new(pattern).ok());
        regex.as_ref().is_none_or(|regex| regex.is_match(text))
    })
}
