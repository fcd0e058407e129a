//! The facts about kinds, cut from `provider-behaviour.json` by `cargo xtask behaviour`.
//!
//! They say which fields cannot change, what late initialisation writes, and how clouds word their
//! errors. What they do not have is in the table of kinds, as [`super::rules`].

use std::collections::BTreeMap;
use std::sync::LazyLock;

use crossplane::api_version::group_of;
use serde::Deserialize;
use serde_json::Value;

/// The facts about one kind.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Behaviour {
    /// Whether the provider works in the background.
    pub(super) asynchronous: bool,
    /// Paths below `spec.forProvider` that cannot change, with `[]` for the entries of a list.
    pub(super) immutable: Vec<String>,
    /// Paths that the provider fills in where the spec has none.
    late_initialized: Vec<String>,
    /// What it fills in, as examples: `<region>` and the like stand for the resource's own values,
    /// `...` for an id.
    late_values: Value,
    /// The words of clouds, by case.
    errors: BTreeMap<String, String>,
}

#[derive(Default, Deserialize)]
struct Slice {
    kinds: BTreeMap<String, Behaviour>,
}

/// A slice that cannot be read has no facts, which the tests notice.
static SLICE: LazyLock<Slice> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../../behaviour.json")).unwrap_or_default()
});

/// The facts about an object's kind, in either scope.
pub(super) fn for_object(object: &Value) -> Option<&'static Behaviour> {
    let group: Vec<&str> = group_of(object).split('.').filter(|label| *label != "m").collect();
    let kind = object["kind"].as_str().unwrap_or_default();
    SLICE.kinds.get(&format!("{}/{kind}", group.join(".")))
}

impl Behaviour {
    /// What late initialisation writes into `spec.forProvider`; `fill` puts a resource's own values
    /// in place of what stands for them in a text.
    pub(super) fn late_initialize(&self, fill: &impl Fn(&str) -> String) -> Value {
        filled(&self.late_values, fill)
    }

    /// A text that late initialisation writes, as it is in the facts.
    pub(super) fn late_text(&self, field: &str) -> Option<&str> {
        self.late_values[field].as_str()
    }

    /// The fields of `spec.forProvider` that late initialisation copies from the cloud. A block is
    /// copied whole or not at all.
    pub(super) fn copied(&self) -> impl Iterator<Item = &str> {
        let whole = self.late_initialized.iter().filter(|path| !path.contains('.'));
        whole.map(|path| path.trim_end_matches("[]"))
    }

    /// How the cloud words an error.
    pub(super) fn words(&self, case: &str) -> Option<&str> {
        self.errors.get(case).map(String::as_str)
    }
}

fn filled(example: &Value, fill: &impl Fn(&str) -> String) -> Value {
    match example {
        Value::Object(fields) => {
            fields.iter().map(|(field, value)| (field.clone(), filled(value, fill))).collect()
        }
        Value::Array(items) => items.iter().map(|item| filled(item, fill)).collect(),
        Value::String(text) => fill(text).into(),
        other => other.clone(),
    }
}
