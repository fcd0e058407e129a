//! Removes possible secrets from the message of a violation.

use crossplane::secrets::struck;
use function_paved_road::check::{Refused, kubernetes, location};
use function_paved_road::patterns::plain;
use k8s_schema::Violation;
use serde_json::Value;

use crate::Written;

/// The same violation of `object` without secrets and regular expressions. For a pattern with a
/// check of the function, the message is the function's own, which gives the reason. Any other URL
/// is shown without the user before its @ and without its query.
pub fn redacted(violation: Violation, object: &Value) -> Violation {
    let pointer = format!("/{}", violation.path.replace(['.', '['], "/").replace(']', ""));
    let Some(value) = object.pointer(&pointer).and_then(Value::as_str) else {
        return Violation { message: plain(&violation.message), ..violation };
    };
    let message = match refusal(&violation.message, value) {
        Some(refused) => refused.to_string(),
        None => plain(&violation.message).replace(&shown(value), &shown(&struck(value))),
    };
    Violation { message, ..violation }
}

/// The field and the message of a fatal result.
pub fn fatal_violation(message: &str) -> Violation {
    let is_path = |path: &str| {
        !path.contains(' ')
            && ["metadata.", "spec.", "settings."].iter().any(|root| path.starts_with(root))
    };
    let (path, message) =
        message.split_once(": ").filter(|(path, _)| is_path(path)).unwrap_or(("", message));
    Violation { path: path.to_owned(), message: message.to_owned() }
}

/// The same violation with a number or another plain value quoted as written in its file: `4.10`,
/// not 4.1.
pub fn as_written(violation: Violation, written: &Written) -> Violation {
    const IN_QUOTES: &str = ", in quotes";
    let Some(text) = written.get(&violation.path) else { return violation };
    let Some((_, rest)) =
        violation.message.strip_prefix("found ").and_then(|found| found.split_once("; "))
    else {
        return violation;
    };
    let message = match rest.split_once(IN_QUOTES) {
        Some((needed, _)) => format!("found {text}; {needed}{IN_QUOTES}: \"{text}\""),
        None => format!("found {text}; {rest}"),
    };
    Violation { message, ..violation }
}

/// Replaces the values in a Secret, or in a Secret that the object wraps.
pub fn without_secrets(object: &mut Value) {
    if let Some(wrapped) = object.pointer_mut("/spec/forProvider/manifest") {
        without_secrets(wrapped);
    }
    if object["kind"] != "Secret" {
        return;
    }
    for part in ["data", "stringData"] {
        let values = object.get_mut(part).and_then(Value::as_object_mut);
        values.into_iter().flatten().for_each(|(_, value)| *value = Value::from("…"));
    }
}

/// The function's message about a value, if the violation is of a known pattern. Only the checks of
/// URLs hide secrets in a value.
fn refusal(message: &str, value: &str) -> Option<Refused> {
    type Check = fn(&str) -> Option<Refused>;
    const URLS: [(&str, Check); 2] = [
        (location::GIT_REPOSITORY, |value| location::git_repository(value).err()),
        (location::CHART_REPOSITORY, |value| location::chart_repository(value).err()),
    ];
    const OTHERS: [(&str, Check); 4] = [
        (kubernetes::QUANTITY, |value| kubernetes::memory(value).err()),
        (kubernetes::IMAGE, |value| kubernetes::image(value).err()),
        (kubernetes::LABEL, |value| kubernetes::label(value).err()),
        (kubernetes::LABEL_VALUE, |value| kubernetes::label_value(value).err()),
    ];
    let others = OTHERS.into_iter().filter(|_| struck(value) == value);
    let mut checks = URLS.into_iter().chain(others);
    let (_, check) = checks.find(|(pattern, _)| message.contains(pattern))?;
    check(value)
}

/// A value as quoted by the schema's check.
fn shown(value: &str) -> String {
    const SHOWN: usize = 80;
    let text = Value::from(value).to_string();
    match text.char_indices().nth(SHOWN) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text,
    }
}
