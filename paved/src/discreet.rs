//! What a refusal shows of a value: nothing that may be a secret.

use std::sync::LazyLock;

use function_paved_road::check::{Refused, location};
use k8s_schema::Violation;
use regex_lite::{Captures, Regex};
use serde_json::Value;

use crate::yaml::Written;

/// The same violation of `object`. A URL of a chart or of a Git repository is refused in the function's words, which say why;
/// of any other URL neither what stands before its @ nor its query is shown.
pub(crate) fn discreet(violation: Violation, object: &Value) -> Violation {
    let pointer = format!("/{}", violation.path.replace(['.', '['], "/").replace(']', ""));
    let Some(value) = object.pointer(&pointer).and_then(Value::as_str) else { return violation };
    let message = match location(&violation.message, value) {
        Some(refused) => refused.to_string(),
        None => violation.message.replace(&shown(value), &shown(&struck(value))),
    };
    Violation { message, ..violation }
}

/// A fatal result's field, and what is said of it.
pub(crate) fn fatal_violation(message: &str) -> Violation {
    let is_path = |path: &str| {
        !path.contains(' ') && ["metadata.", "spec.", "settings."].iter().any(|root| path.starts_with(root))
    };
    let (path, message) = message.split_once(": ").filter(|(path, _)| is_path(path)).unwrap_or(("", message));
    Violation { path: path.to_owned(), message: message.to_owned() }
}

/// A violation that quotes a number, or another plain value, as it is written in its file: `4.10` and not 4.1.
pub(crate) fn as_written(violation: Violation, written: &Written) -> Violation {
    const IN_QUOTES: &str = ", in quotes";
    let Some(text) = written.get(&violation.path) else { return violation };
    let Some((_, rest)) = violation.message.strip_prefix("found ").and_then(|found| found.split_once("; "))
    else {
        return violation;
    };
    let message = match rest.split_once(IN_QUOTES) {
        Some((needed, _)) => format!("found {text}; {needed}{IN_QUOTES}: \"{text}\""),
        None => format!("found {text}; {rest}"),
    };
    Violation { message, ..violation }
}

/// An object without the values of Secrets, its own or those of a Secret that it wraps.
pub(crate) fn without_secrets(object: &mut Value) {
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

/// What the function says of a URL whose pattern is in the message.
fn location(message: &str, value: &str) -> Option<Refused> {
    if message.contains(location::GIT_REPOSITORY) {
        location::git_repository(value).err()
    } else if message.contains(location::CHART_REPOSITORY) {
        location::chart_repository(value).err()
    } else {
        None
    }
}

/// A value as the schema's check quotes it.
fn shown(value: &str) -> String {
    const SHOWN: usize = 80;
    let text = Value::from(value).to_string();
    match text.char_indices().nth(SHOWN) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text,
    }
}

/// `https://user:token@host/path?key=value` as `https://…@host/path?…`, and `user:token@host:path` as `…@host:path`.
pub(crate) fn struck(value: &str) -> String {
    let (scheme, rest) = match value.split_once("://") {
        Some((scheme, rest)) => (format!("{scheme}://"), rest),
        None => (String::new(), value),
    };
    let is_url = !scheme.is_empty();
    let (user, rest) = match rest.rsplit_once('@') {
        // An image's digest stands behind an @ as well.
        Some((user, rest)) if is_url || (user.contains(':') && !rest.starts_with("sha256:")) => ("…@", rest),
        _ => ("", rest),
    };
    match rest.find(['?', '#']).filter(|_| is_url) {
        Some(query) => format!("{scheme}{user}{}…", &rest[..=query]),
        None => format!("{scheme}{user}{rest}"),
    }
}

/// A text of others, which may quote any value, with that struck from every URL in it.
pub(crate) fn struck_from(text: &str) -> String {
    static VALUE: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r#""((?:[^"\\]|\\.)*)"|[^\s"]+"#).ok());
    let shown = |found: &Captures<'_>| match found.get(1) {
        Some(quoted) => format!("\"{}\"", struck(quoted.as_str())),
        // What a value should look like holds no secret.
        None if found[0].starts_with("'^") => found[0].to_owned(),
        None => struck(&found[0]),
    };
    VALUE.as_ref().map_or_else(|| struck(text), |value| value.replace_all(text, shown).into_owned())
}

#[cfg(test)]
mod tests {
    use super::{struck, struck_from};

    #[test]
    fn secrets_are_struck_from_what_others_quote() {
        for (text, shown) in [
            (
                r#"Invalid value: "https://user:tok@git.example.org/a.git": should match '^https://[a-z]'"#,
                r#"Invalid value: "https://…@git.example.org/a.git": should match '^https://[a-z]'"#,
            ),
            (
                r#"Invalid value: "https://u:pa,s s\"'[x]@h.org/a": should match '^https?://[^@]+$'"#,
                r#"Invalid value: "https://…@h.org/a": should match '^https?://[^@]+$'"#,
            ),
            ("map[url:https://u:t@h.org/a?sig=a,token=b]", "map[url:https://…@h.org/a?…"),
            ("image ghcr.io/a/b:1.2@sha256:0a", "image ghcr.io/a/b:1.2@sha256:0a"),
            ("found user:tok@h.org:a  and é", "found …@h.org:a  and é"),
            ("", ""),
        ] {
            assert_eq!(struck_from(text), shown);
        }
    }

    #[test]
    fn secrets_are_struck_from_urls_and_nothing_else() {
        for (value, shown) in [
            ("https://user:tok@git.example.org/a.git", "https://…@git.example.org/a.git"),
            ("https://tok/en@git.example.org/a?b=c", "https://…@git.example.org/a?…"),
            ("https://git.example.org/a?token=x@y", "https://…@y"),
            ("https://git.example.org/a.git#x", "https://git.example.org/a.git#…"),
            ("git:pw@h.org:a/b.git", "…@h.org:a/b.git"),
            ("git@h.org:a/b.git", "git@h.org:a/b.git"),
            ("ada@example.org", "ada@example.org"),
            ("who?", "who?"),
            ("", ""),
        ] {
            assert_eq!(struck(value), shown);
        }
    }
}
