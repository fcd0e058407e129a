//! `cargo xtask behaviour`: the slice of the facts about providers that the simulator uses.
//!
//! `provider-behaviour.json` has every fact with its source. The slice has the facts that a fake
//! provider needs about our kinds. These are immutable fields, late-initialized fields with their
//! values, the effects of changes, and messages of clouds.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Result, ensure};
use function_paved_road::models::{KINDS, Scope};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::facts;

/// The slice, from the root of the repository.
const SLICE: &str = "crates/simulator/behaviour.json";

/// Changes that need no explanation: they take effect at once, or are rejected because the field is
/// immutable.
const ORDINARY: [&str; 3] = ["in_place", "in place", "refused"];

/// Flags of `cargo xtask behaviour`.
#[derive(clap::Args)]
pub struct Args {
    /// Folder with provider-behaviour.json.
    #[arg(long, value_name = "DIR")]
    facts: PathBuf,
    /// Write no file, and fail if `crates/simulator/behaviour.json` is outdated.
    #[arg(long)]
    check: bool,
}

/// Writes or checks the slice.
pub fn run(args: &Args) -> Result<()> {
    let path = args.facts.join("provider-behaviour.json");
    facts::update("behaviour", &path, SLICE, args.check, slice)
}

/// The fields of the facts that the slice uses.
#[derive(Deserialize)]
struct Facts {
    about: About,
    kinds: BTreeMap<String, Kind>,
}

#[derive(Deserialize)]
struct About {
    made: String,
}

#[derive(Deserialize)]
struct Kind {
    asynchronous: bool,
    late_init_example: Value,
    errors: Vec<Error>,
    fields: Vec<Field>,
}

#[derive(Deserialize)]
struct Error {
    case: String,
    text: String,
}

#[derive(Deserialize)]
struct Field {
    path: String,
    set_by_product: bool,
    /// A boolean, or `conditional`.
    force_new: Value,
    late_init: String,
    update: Option<String>,
}

/// The input of the simulator. The fields are in alphabetical order, as in the file.
#[derive(Serialize)]
struct Slice {
    kinds: BTreeMap<String, KindSlice>,
    made: String,
    source: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct KindSlice {
    asynchronous: bool,
    /// Paths that can only change in some ways.
    conditional: Vec<String>,
    errors: BTreeMap<String, String>,
    /// Paths that cannot change. They include paths that no example sets, because Settings may set
    /// them.
    immutable: Vec<String>,
    /// Paths that the provider fills in if the spec does not set them.
    late_initialized: Vec<String>,
    /// The values that it fills in for our resources.
    late_values: Value,
    /// Paths whose changes have conditions or effects, with an explanation.
    updates: BTreeMap<String, String>,
}

/// The text of the slice.
fn slice(facts: &str) -> Result<String> {
    let facts: Facts = serde_json::from_str(facts)?;
    let kinds = facts.kinds.into_iter().filter(|(name, _)| is_ours(name));
    let kinds: BTreeMap<_, _> =
        kinds.map(|(name, kind)| (name, KindSlice::from_kind(kind))).collect();
    ensure!(!kinds.is_empty(), "the facts have none of our kinds");
    let source = "Cut from provider-behaviour.json by `cargo xtask behaviour`: do not edit.";
    let slice = Slice { kinds, made: facts.about.made, source };
    Ok(format!("{}\n", serde_json::to_string_pretty(&slice)?))
}

/// Whether we compose a kind: its name is `<group of the cluster-scoped kind>/<Kind>`.
fn is_ours(name: &str) -> bool {
    KINDS.iter().any(|info| {
        let (group, kind) = (info.kind.group(Scope::LegacyCluster), info.kind.kind);
        name.split_once('/') == Some((group.as_str(), kind))
    })
}

impl KindSlice {
    fn from_kind(kind: Kind) -> Self {
        let paths = |is: fn(&Field) -> bool| {
            let found = kind.fields.iter().filter(|field| is(field));
            let mut paths: Vec<_> = found.map(|field| field.path.clone()).collect();
            paths.sort();
            paths
        };
        let updates = kind.fields.iter().filter_map(|field| {
            let words = field.update.clone()?;
            let told = field.set_by_product || is_copied(field);
            (told && !ORDINARY.contains(&words.as_str())).then(|| (field.path.clone(), words))
        });
        Self {
            asynchronous: kind.asynchronous,
            conditional: paths(|field| field.force_new == "conditional"),
            immutable: paths(|field| field.force_new == true),
            late_initialized: paths(is_copied),
            late_values: unconditional(&kind.late_init_example).unwrap_or_default(),
            updates: updates.collect(),
            errors: kind.errors.into_iter().map(|error| (error.case, error.text)).collect(),
        }
    }
}

fn is_copied(field: &Field) -> bool {
    field.late_init == "copied"
}

/// An example's values, without those that depend on other fields. A note in parentheses names such
/// a dependency. Unknown values (`...`) are left out too.
fn unconditional(example: &Value) -> Option<Value> {
    match example {
        Value::Object(fields) => {
            let field = |(name, value): (&String, &Value)| {
                let name = name.strip_suffix(" (if unset)").unwrap_or(name);
                (!name.contains('(')).then_some((name.to_owned(), unconditional(value)?))
            };
            Some(Value::Object(fields.iter().filter_map(field).collect()))
        }
        Value::Array(items) => Some(items.iter().filter_map(unconditional).collect()),
        Value::String(text) if text.ends_with(')') || text == "..." => None,
        other => Some(other.clone()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use serde_json::json;

    fn facts() -> Value {
        let field = |path: &str, force_new: Value, late_init: &str, update: &str| {
            json!({"path": path, "set_by_product": late_init == "set", "force_new": force_new,
                   "late_init": late_init, "update": update, "source": ["ignored"]})
        };
        let role = json!({
            "asynchronous": true,
            "late_init_example": {"path (if unset)": "/", "rare (T types only)": 1, "id": "..."},
            "errors": [{"case": "quota", "text": "LimitExceeded"}],
            "fields": [
                field("z", json!(true), "none", "refused"),
                field("path", json!(true), "copied", "refused"),
                field("policy", json!("conditional"), "set", "in place, slowly"),
                field("tags", json!(false), "set", "in_place"),
                field("unset", json!(false), "none", "by hand"),
            ],
        });
        json!({"about": {"made": "2026-11-25"},
               "kinds": {"iam.aws.upbound.io/Role": role, "iam.aws.upbound.io/Foreign": role}})
    }

    #[test]
    fn slice_has_our_kinds_and_the_fields_of_the_simulator() {
        let text = slice(&facts().to_string()).unwrap();
        assert!(text.ends_with("}\n"));
        let slice: Value = serde_json::from_str(&text).unwrap();
        let expected = json!({"iam.aws.upbound.io/Role": {
            "asynchronous": true, "conditional": ["policy"], "errors": {"quota": "LimitExceeded"},
            "immutable": ["path", "z"], "lateInitialized": ["path"], "lateValues": {"path": "/"},
            "updates": {"policy": "in place, slowly"},
        }});
        assert_eq!(slice["kinds"], expected);
        assert_eq!(slice["made"], "2026-11-25");
    }

    #[test]
    fn facts_without_our_kinds_are_an_error() {
        let mut facts = facts();
        facts["kinds"] = json!({});
        assert!(slice(&facts.to_string()).is_err());
    }
}
