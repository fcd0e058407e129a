//! Whether what was observed is already what is asked for now: until then nothing is known of the
//! latter.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::check::kubernetes::same_quantity;
use crate::compose::health::{Health, State};
use crate::compose::{CHOICE_PREFIX, Composition, fingerprint, preserve};
use crate::value::{Object, at, text};

/// A choice of the user's: its name, its value, and the paths that follow from it.
type Choice = (&'static str, String, &'static [&'static str]);

/// What is noted on a native object: a hash of what its live fields are to be. An entry that was
/// taken away is missing from what is asked for, and so is one that somebody else put there: only
/// this tells one from the other.
const ASKED: &str = "asked";

impl Composition<'_> {
    /// What a slot holds is not called available while a change is on its way.
    pub(in crate::compose) fn unless(&mut self, slot: &str, changing: bool) {
        let health = self.desired.get_mut(slot).map(|desired| &mut desired.health);
        if let Some(health) = health.filter(|health| changing && health.state == State::Available) {
            *health = Health::changing();
        }
    }

    /// At the end: no managed resource that this call changes is called available.
    pub(in crate::compose) fn tell_changes(&mut self) {
        for slot in std::mem::take(&mut self.changing) {
            self.unless(&slot, true);
        }
    }
}

impl Health {
    /// This health, unless what was observed is not yet what is asked for now.
    pub(in crate::compose) fn unless_behind(self, asked: &Object, seen: &Object) -> Self {
        if self.ready && is_behind(asked, seen) { Self::changing() } else { self }
    }
}

/// Whether an object was observed before it became what is asked for.
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

/// The note on a native Deployment whose live fields are to be as in `wanted`, by these choices.
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

/// Whether something at the live paths is still to be taken away from what was seen. Where the note
/// says that it has been, what is left is somebody else's, such as a webhook's; without a note,
/// both have to be the same.
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

/// Whether what is asked for at a path stands in what was seen there, or beside more.
pub(in crate::compose) fn stands_in(asked: &Object, seen: &Object, path: &str) -> bool {
    let part = Comparison { allow_extra: true, amounts: false };
    preserve::find(asked, path)
        .is_none_or(|asked| part.maybe(Some(asked), preserve::find(seen, path)))
}

/// The live paths that are ours alone: others put labels and annotations of theirs beside ours, of
/// which none ever goes.
fn own<'p>(updatable: &'p [&'p str]) -> impl Iterator<Item = &'p str> {
    updatable
        .iter()
        .copied()
        .filter(|path| !path.ends_with(".labels") && !path.ends_with(".annotations"))
}

/// How two values are compared. An API server leaves out what is empty.
#[derive(Clone, Copy)]
struct Comparison {
    /// Whether what was seen may have more in it: defaults, and what others put there.
    allow_extra: bool,
    /// Whether texts are quantities, which an API server writes in its own way.
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
                // The order of plain values may be the API server's.
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

/// What an API server leaves out: nothing, and objects of nothing.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(fields) => fields.values().all(is_empty),
        Value::Bool(_) | Value::Number(_) => false,
    }
}
