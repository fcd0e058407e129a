//! The claim as text: the required fields first, the given values, and all other fields as
//! comments.

use std::fmt::Write as _;

use function_paved_road::apis::Flavour;
use serde_json::{Map, Value, json};

use super::draft::{Draft, limits, one_line};
use crate::documents::yaml;
use crate::failure::Failure;
use crate::target::Target;

/// The maximum width of a comment, from its `#` on.
const WIDTH: usize = 76;

/// The whole document.
pub(super) fn document(target: &Target, draft: &Draft) -> Result<String, Failure> {
    let object = &draft.object;
    let mut text = String::new();
    comment(&mut text, target.api.info().summary);
    comment(&mut text, "Lines that start with # are optional, and show the default or an example.");
    for key in ["apiVersion", "kind", "metadata"] {
        text.push_str(&yaml(&json!({key: object[key]}))?);
    }
    text.push_str("spec:\n");
    text.push_str(&indented(&block(&draft.schema, &object["spec"])?));
    let keys = target.api.info().connection_keys;
    if target.flavour == Flavour::Claims && !keys.is_empty() {
        text.push('\n');
        text.push_str(&indented(&connection(&object["metadata"]["name"], &keys.join(", "))));
    }
    Ok(text)
}

/// The field for the Secret with a claim's connection details, which `paved connect` needs.
fn connection(name: &Value, keys: &str) -> String {
    let mut text = String::new();
    comment(
        &mut text,
        &format!("A Secret in the claim's namespace for the connection details: {keys}."),
    );
    let name = name.as_str().unwrap_or_default();
    _ = write!(text, "writeConnectionSecretToRef:\n  name: {name}-connection\n");
    text
}

/// The fields of an object: required fields, given fields, other fields. Fields without a given
/// value are comments.
fn block(schema: &Value, given: &Value) -> Result<String, Failure> {
    let mut text = String::new();
    let fields = schema["properties"].as_object().cloned().unwrap_or_default();
    let required = |name: &String| {
        schema["required"]
            .as_array()
            .is_some_and(|names| names.iter().any(|one| one.as_str() == Some(name)))
    };
    let mut names: Vec<&String> = fields.keys().collect();
    names.sort_by_key(|name| (!required(name), given.get(name).is_none()));
    for (index, name) in names.into_iter().enumerate() {
        if index > 0 {
            text.push('\n');
        }
        let field = &fields[name];
        let about = field["description"].as_str().map(one_line).unwrap_or_default();
        let is_required = if required(name) { " Required." } else { "" };
        comment(&mut text, format!("{about}{is_required} {}", limits(Some(field))).trim());
        let (value, is_given) = match given.get(name) {
            Some(value) => (value.clone(), true),
            None => (default_or_example(field), false),
        };
        let lines = lines(name, field, &value)?;
        text.push_str(&if is_given { lines } else { commented(&lines) });
    }
    for (name, value) in
        given.as_object().into_iter().flatten().filter(|(name, _)| !fields.contains_key(*name))
    {
        text.push_str(&yaml(&json!({name: value}))?);
    }
    Ok(text)
}

/// A field with its value. An object shows its own fields.
fn lines(name: &str, schema: &Value, value: &Value) -> Result<String, Failure> {
    let has_fields = schema["properties"].as_object().is_some_and(|fields| !fields.is_empty());
    if has_fields && value.is_object() {
        let inner = block(schema, value)?;
        return Ok(format!("{name}:\n{}", indented(&inner)));
    }
    yaml(&json!({name: value}))
}

/// A field's default, or else an example value. An object contains the values of its fields.
fn default_or_example(schema: &Value) -> Value {
    if schema["properties"].is_object() {
        let default = schema["default"].as_object();
        let fields = schema["properties"].as_object().into_iter().flatten();
        let shown = fields.map(|(name, field)| {
            let own = default.and_then(|default| default.get(name)).cloned();
            (name.clone(), own.unwrap_or_else(|| default_or_example(field)))
        });
        return Value::Object(shown.collect());
    }
    if let Some(default) = schema.get("default") {
        return default.clone();
    }
    match (schema["enum"].get(0), schema["type"].as_str()) {
        (Some(first), _) => first.clone(),
        (None, Some("integer" | "number")) => schema.get("minimum").cloned().unwrap_or(json!(0)),
        (None, Some("boolean")) => json!(false),
        (None, Some("array")) => json!([]),
        (None, Some("object")) => Value::Object(Map::new()),
        _ => json!(example(schema).unwrap_or_default()),
    }
}

/// The example in a description, as one word.
fn example(schema: &Value) -> Option<String> {
    // A description has the line breaks of its doc comment.
    let description = one_line(schema["description"].as_str()?);
    let begins = |words| description.split_once(words).map(|(_, example)| example);
    let example = begins("such as ").or_else(|| begins("for example "))?;
    let word = example.split(' ').next()?;
    Some(word.trim_end_matches(['.', ',', ':', ';']).to_owned())
}

/// A comment in lines of at most [`WIDTH`] columns. Longer words are not split.
fn comment(text: &mut String, words: &str) {
    let mut line = String::new();
    for word in words.split_whitespace() {
        if !line.is_empty() && 2 + line.chars().count() + 1 + word.chars().count() > WIDTH {
            _ = writeln!(text, "# {line}");
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    if !line.is_empty() {
        _ = writeln!(text, "# {line}");
    }
}

fn indented(text: &str) -> String {
    beginning(text, |line| if line.is_empty() { "" } else { "  " })
}

/// Comments out the lines of a field. No space follows the `#`, to distinguish fields from
/// descriptions.
fn commented(text: &str) -> String {
    beginning(text, |_| "#")
}

/// Adds a prefix to each line.
fn beginning(text: &str, with: impl Fn(&str) -> &'static str) -> String {
    text.lines().flat_map(|line| [with(line), line, "\n"]).collect()
}
