//! The facts about kinds, extracted from `provider-behaviour.json` by `cargo xtask behaviour`.
//!
//! They list immutable fields, late-initialized values, and the clouds' error messages. The table
//! of kinds has the remaining facts, as [`super::rules`].

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
    /// Paths that the provider sets if they are missing in the spec.
    late_initialized: Vec<String>,
    /// Examples of the values that it sets. `<region>` and similar placeholders are replaced with
    /// the resource's own values, `...` with an ID.
    late_values: Value,
    /// The error messages of clouds, by case.
    errors: BTreeMap<String, String>,
}

#[derive(Default, Deserialize)]
struct Slice {
    kinds: BTreeMap<String, Behaviour>,
}

/// An unreadable slice has no facts. The tests detect that.
static SLICE: LazyLock<Slice> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../../behaviour.json")).unwrap_or_default()
});

/// The facts about an object's kind, in both scopes.
pub(super) fn for_object(object: &Value) -> Option<&'static Behaviour> {
    let group: Vec<&str> = group_of(object).split('.').filter(|label| *label != "m").collect();
    let kind = object["kind"].as_str().unwrap_or_default();
    SLICE.kinds.get(&format!("{}/{kind}", group.join(".")))
}

impl Behaviour {
    /// The values that late initialization writes to `spec.forProvider`. `fill` replaces the
    /// placeholders in a text with a resource's own values.
    pub(super) fn late_initialize(&self, fill: &impl Fn(&str) -> String) -> Value {
        filled(&self.late_values, fill)
    }

    /// A text that late initialization writes, with its placeholders.
    pub(super) fn late_text(&self, field: &str) -> Option<&str> {
        self.late_values[field].as_str()
    }

    /// The fields of `spec.forProvider` that late initialization copies from the cloud. A block is
    /// copied completely or not at all.
    pub(super) fn copied(&self) -> impl Iterator<Item = &str> {
        let whole = self.late_initialized.iter().filter(|path| !path.contains('.'));
        whole.map(|path| path.trim_end_matches("[]"))
    }

    /// The cloud's error message in a case.
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
