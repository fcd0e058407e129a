//! Whether the observed state already is the desired state. Until then, the health of the desired
//! state is unknown.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{Composer, preserve};
use crate::check::kubernetes::same_quantity;
use crate::fingerprint::fingerprint;
use crate::models::CHOICE_PREFIX;
use crate::observe::{Choice, Health, State};
use crate::value::{Object, at, text};

/// The annotation on a native object with a hash of the desired updatable fields. A removed entry
/// and another client's entry are both missing in the desired state. Only the hash distinguishes
/// them.
const ASKED: &str = "asked";

impl Composer<'_> {
    /// Marks a slot's resource as changing instead of available, if it is changing.
    pub(super) fn unless(&mut self, slot: &str, changing: bool) {
        let health = self.desired.get_mut(slot).map(|desired| &mut desired.health);
        if let Some(health) = health.filter(|health| changing && health.state == State::Available) {
            *health = Health::changing();
        }
    }

    /// Marks the managed resources that this call changes, at the end of the draft.
    pub(super) fn mark_changes(&mut self) {
        for slot in std::mem::take(&mut self.changing) {
            self.unless(&slot, true);
        }
    }
}

impl Health {
    /// This health, or [`Health::changing`] if the desired state was not observed yet.
    pub(crate) fn unless_behind(self, asked: &Object, seen: &Object) -> Self {
        if self.ready && is_behind(asked, seen) { Self::changing() } else { self }
    }
}

/// Whether the observed object differs from the desired object.
fn is_behind(asked: &Object, seen: &Object) -> bool {
    let manifest = ["spec", "forProvider", "manifest"];
    match text(asked, &["kind"]) {
        Some("Object") => at(asked, &manifest) != at(seen, &manifest),
        Some("Deployment") => {
            let pair = at(asked, &["spec"]).zip(at(seen, &["spec"]));
            !pair.is_some_and(|(asked, seen)| {
                Comparison { allow_extra: true, amounts: false }.same(asked, seen)
            })
        }
        _ => false,
    }
}

/// The annotation on a native Deployment, with a hash of the updatable fields in `wanted` and of
/// the choices.
pub(super) fn annotation(
    wanted: &Object,
    updatable: &[&str],
    choices: &[Choice],
) -> Option<(String, String)> {
    if text(wanted, &["kind"]) != Some("Deployment") {
        return None;
    }
    let fields = own(updatable).map(|path| json!([path, preserve::find(wanted, path)]));
    let choices = choices.iter().map(|(name, value, _)| json!([name, value]));
    let asked: Value = fields.chain(choices).collect();
    Some((format!("{CHOICE_PREFIX}{ASKED}"), fingerprint(&asked.to_string())))
}

/// Whether entries at the updatable paths still have to be removed from the observed object. If the
/// annotation is current, they were removed, and remaining entries belong to other clients, for
/// example a webhook. Without an annotation, both values must be equal.
pub(super) fn is_to_lose(
    wanted: &Object,
    seen: &Object,
    updatable: &[&str],
    note: &(String, String),
) -> bool {
    match text(seen, &["metadata", "annotations", &note.0]) {
        Some(noted) => noted != note.1,
        None => own(updatable).any(|path| {
            let both = Comparison { allow_extra: false, amounts: path.ends_with("resources") };
            !both.maybe(preserve::find(wanted, path), preserve::find(seen, path))
        }),
    }
}

/// Whether the observed value at a path contains the desired value.
pub(super) fn stands_in(asked: &Object, seen: &Object, path: &str) -> bool {
    let part = Comparison { allow_extra: true, amounts: false };
    preserve::find(asked, path)
        .is_none_or(|asked| part.maybe(Some(asked), preserve::find(seen, path)))
}

/// The updatable paths that only we write. Other clients add labels and annotations, and ours are
/// never removed.
fn own<'p>(updatable: &'p [&'p str]) -> impl Iterator<Item = &'p str> {
    updatable
        .iter()
        .copied()
        .filter(|path| !path.ends_with(".labels") && !path.ends_with(".annotations"))
}

/// A comparison of two values. An API server leaves out empty values.
#[derive(Clone, Copy)]
struct Comparison {
    /// Whether the observed value may contain more: defaults, and entries of other clients.
    allow_extra: bool,
    /// Whether texts are quantities, which an API server normalizes.
    amounts: bool,
}

impl Comparison {
    fn same(self, asked: &Value, seen: &Value) -> bool {
        match (asked, seen) {
            (Value::Object(asked), Value::Object(seen)) => {
                let keys: BTreeSet<&String> = if self.allow_extra {
                    asked.keys().collect()
                } else {
                    asked.keys().chain(seen.keys()).collect()
                };
                keys.into_iter().all(|key| {
                    let amounts = self.amounts || key == "resources";
                    Self { amounts, ..self }.maybe(asked.get(key), seen.get(key))
                })
            }
            (Value::Array(asked), Value::Array(seen)) => {
                // An API server may reorder plain values.
                let twin = |(index, asked): (usize, &Value)| match preserve::name(asked) {
                    Some(name) => seen.iter().find(|seen| preserve::name(seen) == Some(name)),
                    None if asked.is_object() => seen.get(index),
                    None => seen.iter().find(|seen| self.same(asked, seen)),
                };
                (self.allow_extra || asked.len() == seen.len())
                    && asked
                        .iter()
                        .enumerate()
                        .all(|asked| twin(asked).is_some_and(|seen| self.same(asked.1, seen)))
            }
            (Value::String(asked), Value::String(seen)) => {
                asked == seen || self.amounts && same_quantity(asked, seen)
            }
            _ => asked == seen,
        }
    }

    fn maybe(self, asked: Option<&Value>, seen: Option<&Value>) -> bool {
        match (asked, seen) {
            (Some(asked), Some(seen)) => self.same(asked, seen),
            (Some(alone), None) | (None, Some(alone)) => is_empty(alone),
            (None, None) => true,
        }
    }
}

/// Whether an API server leaves out a value: empty values, and objects with only empty values.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(fields) => fields.values().all(is_empty),
        Value::Bool(_) | Value::Number(_) => false,
    }
}
