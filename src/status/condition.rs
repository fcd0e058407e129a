//! The conditions of an environment, and the events about them.

use serde_json::Value;

use super::{EXPIRING, OUTDATED, OVER_BUDGET};
use crate::value::{Object, at};

/// The condition that describes the environment's progress to the owner of a claim, in one
/// sentence.
pub const PROVISIONED: &str = "Provisioned";

/// A condition of an environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// Its type, for example `Provisioned`.
    pub kind: &'static str,
    /// Its status.
    pub is_true: bool,
    /// Its reason, in one word.
    pub reason: String,
    /// Its message.
    pub message: String,
}

impl Condition {
    /// A condition with a [`Reason`](crate::reason::Reason), or with the code of a rejection.
    pub fn new(kind: &'static str, is_true: bool, reason: &impl ToString, message: String) -> Self {
        Self { kind, is_true, reason: reason.to_string(), message }
    }
}

/// A sentence for the owner of an environment. Crossplane makes one event of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Whether the event is a warning.
    pub is_warning: bool,
    /// Its reason, in one word.
    pub reason: String,
    /// The sentence.
    pub message: String,
}

impl Event {
    /// A warning.
    pub(super) fn warning(reason: &impl ToString, message: String) -> Self {
        Self { is_warning: true, reason: reason.to_string(), message }
    }
}

/// The stored condition of a type, with any value. Crossplane sets a condition to Unknown if
/// another step fails.
pub(super) fn stored<'s>(status: &'s Object, kind: &str) -> Option<&'s Value> {
    conditions(status.get("conditions")).find(|condition| condition["type"] == kind)
}

/// The stored conditions that a rejection does not decide on. An answer repeats them, because
/// Crossplane sets the conditions that an answer leaves out to Unknown.
pub fn undecided(xr: &Object) -> Vec<Condition> {
    let repeated = |stored: &Value| {
        let kind =
            [EXPIRING, OVER_BUDGET, OUTDATED].into_iter().find(|kind| stored["type"] == *kind)?;
        let is_true = match stored["status"].as_str()? {
            "True" => true,
            "False" => false,
            _ => return None,
        };
        let text = |field: &str| stored[field].as_str().unwrap_or_default();
        Some(Condition::new(kind, is_true, &text("reason"), text("message").to_owned()))
    };
    conditions(at(xr, &["status", "conditions"])).filter_map(repeated).collect()
}

fn conditions(list: Option<&Value>) -> impl Iterator<Item = &Value> {
    list.and_then(Value::as_array).into_iter().flatten()
}
