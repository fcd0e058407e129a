//! Typed values, read from what a user wrote: what is wrong is told in the user's terms, not in those of a program.

use serde::{Deserialize, Deserializer};

use super::{SHOWN, quoted, shown, suggestion};
use crate::error::FieldError;

/// Reads a value; an error names the field by its path below `root`, what was found there and what is allowed.
pub fn typed<'v, T, D>(source: D, root: &str) -> Result<T, FieldError>
where
    T: Deserialize<'v>,
    D: Deserializer<'v, Error = serde_json::Error>,
{
    serde_path_to_error::deserialize(source).map_err(|error| {
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
    if let Some(name) = words.strip_prefix("missing field `").and_then(|rest| rest.strip_suffix('`')) {
        return FieldError {
            path: format!("{path}.{name}"),
            message: "missing; a value is required".to_owned(),
        };
    }
    if let Some((name, known)) = unknown(words, "unknown field `") {
        return field(format!("there is no such field; allowed: {}", suggestion(name, &known)));
    }
    if let Some((name, known)) = unknown(words, "unknown variant `") {
        return field(format!("found {}; allowed: {}", quoted(name), suggestion(name, &known)));
    }
    let wrong = words.strip_prefix("invalid type: ").or_else(|| words.strip_prefix("invalid value: "));
    match wrong.and_then(|rest| rest.rsplit_once(", expected ")) {
        Some((found, expected)) => {
            let looks_like = ["integer", "floating", "boolean"].iter().any(|kind| found.starts_with(kind));
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
