//! A draft of a claim: given and missing fields.

use function_paved_road::apis::Flavour;
use function_paved_road::settings::LIFECYCLE;
use k8s_schema::Violation;
use paved_render::subject::Stored;
use paved_render::subject::observed::Observed;
use serde_json::{Map, Value, json};

use crate::cli::Init;
use crate::failure::Failure;
use crate::target::Target;
use crate::yaml;

/// A draft of a claim.
pub(super) struct Draft {
    /// The schema of `spec`.
    pub(super) schema: Value,
    /// The given fields, as in the claim.
    pub(super) object: Value,
    flavour: Flavour,
}

/// A required field that is missing.
pub(super) struct Needed {
    pub(super) path: String,
    /// The field's description, and the allowed values.
    pub(super) about: String,
}

impl Needed {
    /// The flag for the field without a terminal.
    pub(super) fn flag(&self) -> String {
        if self.path == NAME { "NAME".to_owned() } else { format!("--set {}=…", self.path) }
    }
}

const NAME: &str = "metadata.name";

impl Draft {
    pub(super) fn new(target: &Target, args: &Init) -> Result<Self, Failure> {
        let mut metadata = Map::new();
        for (key, value) in [("name", &args.name), ("namespace", &args.namespace)] {
            metadata.extend(value.as_ref().map(|value| (key.to_owned(), json!(value))));
        }
        let schema = target.spec();
        let object = json!({
            "apiVersion": target.api_version(),
            "kind": target.kind(),
            "metadata": metadata,
            "spec": required(&schema),
        });
        let draft = Self { schema, object, flavour: target.flavour };
        let wrong = draft.wrong_at("metadata");
        match wrong.into_iter().find(|violation| !is_missing(violation)) {
            Some(violation) => Err(Failure::Usage(violation.to_string())),
            None => Ok(draft),
        }
    }

    /// Gives a field the value of a flag.
    pub(super) fn set(&mut self, path: &str, text: &str) -> Result<(), Failure> {
        let keys = self.resolve(path)?;
        self.put(&keys, text).map_err(|why| Failure::Usage(format!("--set {path}: {why}")))?;
        let whole = format!("spec.{}", keys.join("."));
        match self.wrong_at(&whole).into_iter().find(|violation| !is_missing(violation)) {
            Some(violation) => Err(Failure::Usage(format!("--set {path}: {violation}"))),
            None => Ok(()),
        }
    }

    /// Sets a field to a typed value. A value that is not allowed is removed again.
    pub(super) fn answer(&mut self, path: &str, text: &str) -> Result<(), String> {
        let before = self.object.clone();
        if path == NAME {
            self.object["metadata"]["name"] = json!(text);
        } else {
            let keys: Vec<String> = path.split('.').skip(1).map(str::to_owned).collect();
            self.put(&keys, text)?;
        }
        match self.wrong_at(path).first() {
            None => Ok(()),
            Some(violation) => {
                self.object = before;
                Err(violation.message.clone())
            }
        }
    }

    /// Whether the user has given a field a value.
    pub(super) fn has(&self, path: &str) -> bool {
        self.object
            .pointer(&format!("/{}", path.replace('.', "/")))
            .is_some_and(|value| !value.is_null() && Some(value) != self.default_value(path))
    }

    /// The default of a text field.
    pub(super) fn default(&self, path: &str) -> Option<String> {
        self.default_value(path)?.as_str().map(str::to_owned)
    }

    fn default_value(&self, path: &str) -> Option<&Value> {
        let keys: Vec<&str> = path.split('.').skip(1).collect();
        below(&self.schema, &keys)?.get("default")
    }

    /// The missing required fields, each with the allowed values.
    pub(super) fn missing(&self) -> Vec<Needed> {
        let missing = self.wrong().into_iter().filter(is_missing);
        let mut needed: Vec<Needed> = missing
            .map(|violation| {
                let keys: Vec<&str> = violation.path.split('.').skip(1).collect();
                let described = below(&self.schema, &keys);
                let about = match described.and_then(|schema| schema["description"].as_str()) {
                    Some(text) => format!("{} {}", one_line(text), limits(described)),
                    None if violation.path == NAME => "The environment's name.".to_owned(),
                    None => String::new(),
                };
                Needed { path: violation.path, about: about.trim().to_owned() }
            })
            .collect();
        needed.sort_by_key(|field| field.path != NAME);
        needed
    }

    fn wrong(&self) -> Vec<Violation> {
        match Stored::in_flavour(&self.object, &Observed::default(), Some(self.flavour)) {
            Ok(stored) => stored.violations,
            Err(violation) => vec![violation],
        }
    }

    fn wrong_at(&self, path: &str) -> Vec<Violation> {
        let within = |violation: &Violation| violation.path.starts_with(path);
        self.wrong().into_iter().filter(within).collect()
    }

    /// The keys below `spec` of a path: the whole path, or an end that only one field has.
    fn resolve(&self, path: &str) -> Result<Vec<String>, Failure> {
        let whole = path.strip_prefix("spec.").unwrap_or(path);
        let keys: Vec<&str> = whole.split('.').collect();
        if below(&self.schema, &keys).is_some() {
            return Ok(keys.into_iter().map(str::to_owned).collect());
        }
        let all = fields(&self.schema, "");
        let end = format!(".{whole}");
        let meant: Vec<&String> =
            all.iter().filter(|field| format!(".{field}").ends_with(&end)).collect();
        match meant.as_slice() {
            [one] => Ok(one.split('.').map(str::to_owned).collect()),
            [] => {
                let last = |path: &'_ str| path.rsplit('.').next().unwrap_or_default().to_owned();
                let ends: Vec<String> = all.iter().map(|field| last(field)).collect();
                let nearest = crossplane::nearest(&last(path), ends.iter().map(String::as_str));
                let hint =
                    nearest.map(|name| format!("; did you mean {name}?")).unwrap_or_default();
                Err(Failure::Usage(format!(
                    "--set: unknown field {path:?}{hint}; allowed: {}",
                    all.join(", ")
                )))
            }
            many => {
                let many: Vec<&str> = many.iter().map(|field| field.as_str()).collect();
                Err(Failure::Usage(format!("--set {path}: allowed: {}", many.join(" or "))))
            }
        }
    }

    /// Parses a typed value as YAML. A text field takes the text itself, except in quotes.
    fn put(&mut self, keys: &[String], text: &str) -> Result<(), String> {
        let path: Vec<&str> = keys.iter().map(String::as_str).collect();
        let wants_text =
            below(&self.schema, &path).is_some_and(|schema| schema["type"] == "string");
        let is_quoted = text.starts_with(['"', '\'']);
        let value = if wants_text && !is_quoted {
            json!(text)
        } else {
            yaml::value(text).map_err(|_| format!("found {text:?}; allowed: a value in YAML"))?
        };
        let mut here = &mut self.object["spec"];
        for key in keys {
            if !here.is_object() {
                *here = json!({});
            }
            here = &mut here[key.as_str()];
        }
        *here = value;
        Ok(())
    }
}

fn is_missing(violation: &Violation) -> bool {
    violation.message.starts_with("is missing")
}

/// A description in one line.
pub(super) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The allowed values of a schema, as a sentence.
pub(super) fn limits(schema: Option<&Value>) -> String {
    let Some(schema) = schema else { return String::new() };
    if let Some(names) = schema["enum"].as_array() {
        let names: Vec<&str> = names.iter().filter_map(Value::as_str).collect();
        return format!("One of {}.", names.join(", "));
    }
    match (schema.get("minimum"), schema.get("maximum")) {
        (Some(least), Some(most)) => format!("{least} to {most}."),
        (Some(least), None) => format!("{least} or more."),
        (None, Some(most)) => format!("At most {most}."),
        (None, None) => String::new(),
    }
}

/// The required objects, empty. Their own missing fields are then reported. An object without
/// required fields gets one of its defaults, because an object with only comments would be null.
fn required(schema: &Value) -> Value {
    let names = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let inner = names.filter_map(|name| {
        let field = schema["properties"].get(name).filter(|field| field["type"] == "object")?;
        Some((name.to_owned(), required(field)))
    });
    let mut object: Map<String, Value> = inner.collect();
    let asks_for_none = schema["required"].as_array().is_none_or(Vec::is_empty);
    if asks_for_none {
        object.extend(first_default(schema));
    }
    Value::Object(object)
}

/// A field with a default, or else a group with a default and without required fields. The group is
/// never the lifecycle, which all APIs have.
fn first_default(schema: &Value) -> Option<(String, Value)> {
    let fields = || schema["properties"].as_object().into_iter().flatten();
    let is_plain = |default: &Value| default.is_string() || default.is_number();
    let mut plain = fields().filter(|(_, field)| is_plain(&field["default"]));
    let mut groups = fields().filter(|(name, field)| {
        field["required"].as_array().is_none_or(Vec::is_empty) && *name != LIFECYCLE
    });
    plain.next().map(|(name, field)| (name.clone(), field["default"].clone())).or_else(|| {
        groups.find_map(|(name, group)| {
            let (inner, default) = first_default(group)?;
            Some((name.clone(), json!({inner: default})))
        })
    })
}

/// The schema of a field.
fn below<'s>(schema: &'s Value, keys: &[&str]) -> Option<&'s Value> {
    keys.iter().try_fold(schema, |schema, key| {
        let open = || schema.get("additionalProperties").filter(|open| open.is_object());
        schema.get("properties").and_then(|fields| fields.get(*key)).or_else(open)
    })
}

/// The paths of all fields, from `spec` on.
fn fields(schema: &Value, prefix: &str) -> Vec<String> {
    let mut paths = Vec::new();
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
        paths.extend(fields(field, &path));
        paths.push(path);
    }
    paths
}
