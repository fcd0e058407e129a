//! Finds errors in Settings of all kinds of documents.

use function_paved_road::apis;
use function_paved_road::error::{Error, FieldError};
use function_paved_road::manifests;
use function_paved_road::patterns::is_about_pattern;
use function_paved_road::settings::{API_VERSION, KIND};
use k8s_schema::{Schemas, Violation};
use paved_render::redact::redacted;
use paved_render::regions;
use paved_render::subject::pipeline_step::{self, CONFIG, CONFIG_VERSION};
use serde_json::{Map, Value, json};

use super::classify::SettingsLocation;
use super::{Problem, overlap, problem};
use crate::failure::Grade;
use crate::files::Source;
use crate::yaml::Located;

/// Returns the Settings in a file. They apply to the claims and XRs of that file.
pub(super) fn find_in_file(source: &Source) -> Vec<Value> {
    let values = source.documents.iter().map(|document| &document.value);
    values.filter(|value| pipeline_step::is_settings(value)).cloned().collect()
}

/// All errors in the Settings of a document.
pub(super) fn check(
    index: usize,
    source: &Source,
    document: &Located,
    part: SettingsLocation,
) -> Vec<Problem> {
    let (root, body) = body(document, part);
    let mut violations =
        if matches!(part, SettingsLocation::Data) { envelope(&document.value) } else { Vec::new() };
    violations.extend(self::violations(body).into_iter().map(|violation| below(&root, violation)));
    let placed = |violation| problem(index, source, document, Grade::Composition, violation);
    violations.into_iter().map(placed).collect()
}

/// The path of the Settings in a document, and the Settings.
fn body(document: &Located, part: SettingsLocation) -> (String, &Value) {
    match part {
        SettingsLocation::Whole => (String::new(), &document.value),
        SettingsLocation::Data => ("data".to_owned(), &document.value["data"]),
        SettingsLocation::Input(step) => (
            format!("spec.pipeline[{step}].input"),
            &document.value["spec"]["pipeline"][step]["input"],
        ),
    }
}

/// Warnings about unknown regions, and about fields without effect, in the Settings of a document.
pub(super) fn warnings(document: &Located, part: SettingsLocation) -> Vec<String> {
    let (_, body) = body(document, part);
    let mut warnings = regions::in_settings(body);
    if let Value::Object(body) = body {
        let without_effect = apis::settings_without_effect(body.clone());
        warnings.extend(without_effect.into_iter().map(|field| format!("warning: {field}")));
    }
    warnings
}

/// Errors in an EnvironmentConfig around its data.
fn envelope(config: &Value) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut wrong =
        |path: &str, message: String| violations.push(Violation { path: path.to_owned(), message });
    if config["apiVersion"] != CONFIG_VERSION {
        wrong("apiVersion", format!("found {}; allowed: {CONFIG_VERSION}", config["apiVersion"]));
    }
    if !config["metadata"]["name"].is_string() {
        wrong("metadata.name", "is missing; allowed: a string".to_owned());
    }
    for name in config.as_object().into_iter().flat_map(Map::keys) {
        if !["apiVersion", "kind", "metadata", "data"].contains(&name.as_str()) {
            wrong(name, format!("unknown field; put the Settings of {CONFIG} in data"));
        }
    }
    violations
}

/// All errors in Settings, from the schema and from the APIs' additional checks.
pub(crate) fn violations(body: &Value) -> Vec<Violation> {
    let Value::Object(body) = body else {
        return match body {
            Value::Null => Vec::new(),
            _ => vec![Violation { path: String::new(), message: "must be an object".to_owned() }],
        };
    };
    let mut whole = body.clone();
    for (key, value) in [("apiVersion", API_VERSION), ("kind", KIND)] {
        whole.entry(key).or_insert_with(|| json!(value));
    }
    let mut violations = by_schema(&Value::Object(whole.clone()));
    let mut beyond: Vec<Violation> =
        apis::check_settings(whole).iter().flat_map(violations_of).collect();
    // For a pattern, the function has the better message: it describes the allowed texts and
    // suggests a correction. For a number or a boolean, it may describe only the type.
    let is_worse = |known: &Violation| {
        let is_better = |other: &Violation| {
            other.path == known.path && !other.message.ends_with("; allowed: a text, in quotes")
        };
        is_about_pattern(&known.message) && beyond.iter().any(is_better)
    };
    violations.retain(|known| !is_worse(known));
    beyond
        .retain(|violation| !violations.iter().any(|known| overlap(&known.path, &violation.path)));
    violations.extend(beyond);
    violations
}

fn by_schema(settings: &Value) -> Vec<Violation> {
    let definition = manifests::input();
    let schemas = match Schemas::new([&definition]) {
        Ok(schemas) => schemas,
        Err(error) => return vec![Violation { path: String::new(), message: error.to_string() }],
    };
    match schemas.get(API_VERSION, KIND) {
        Some(definition) => {
            let violations = definition.validate(settings, None).into_iter();
            violations.map(|violation| redacted(violation, settings)).collect()
        }
        None => Vec::new(),
    }
}

/// The function's error as violations with paths in the Settings.
fn violations_of(error: &Error) -> Vec<Violation> {
    let of_field = |field: &FieldError| {
        let path = field.path.strip_prefix("settings.").unwrap_or(&field.path);
        Violation { path: path.to_owned(), message: field.message.clone() }
    };
    match error {
        Error::InvalidSettings(fields) => fields.iter().map(of_field).collect(),
        other => vec![Violation { path: String::new(), message: other.to_string() }],
    }
}

fn below(root: &str, violation: Violation) -> Violation {
    let Violation { path, message } = violation;
    let path = match (root, path.as_str()) {
        ("", path) => path.to_owned(),
        (root, "") => root.to_owned(),
        (root, path) if path.starts_with('[') => format!("{root}{path}"),
        (root, path) => format!("{root}.{path}"),
    };
    Violation { path, message }
}
