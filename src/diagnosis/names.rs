//! Names in a message: parts that users, clouds or clusters chose. They are not prose.
//!
//! A name may contain any words, for example an IAM role `report-quota-exceeded`. [`without_names`]
//! replaces names before codes and prose are read.

use std::sync::LazyLock;

use regex_lite::{Captures, Regex};

/// Addresses and ARNs, and the text of the retries of AWS's SDK around an error.
static ADDRESSES: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    patterns(&[
        r#"(?i)\b[a-z][a-z0-9+.-]*://[^\s"'<>)]+"#,
        r#"\barn:[^\s"',;)]+"#,
        r"\baka\.ms/\S+",
        r"exceeded maximum number of attempts, [0-9]+",
        r"failed to get rate limit token, retry quota exceeded, [0-9]+ available, [0-9]+ requested",
    ])
});

/// Paths of resources: collections and names in turn.
static PATHS: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    patterns(&[
        r#"/?\b(?:projects|subscriptions|zones|regions|locations|clusters|resourceGroups)/[^\s"',;)\]]+"#,
    ])
});

/// The name of a resource in parentheses. Error codes in parentheses have no colon after them.
static IN_PARENTHESES: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    patterns(&[r"\([^()\s]+\)(:)", r"\((?:[a-z0-9][^()\s/]*|[^()\s]*[-:][^()\s]*)\)()"])
});

/// Words with hyphens.
static WITH_HYPHENS: LazyLock<Vec<Regex>> =
    LazyLock::new(|| patterns(&[r"[A-Za-z0-9_.]+(?:-[A-Za-z0-9_.]+)+"]));

/// Words with hyphens that are prose.
const PROSE: [&str; 6] = [
    "insufficient-capacity",
    "pre-install",
    "post-install",
    "pre-upgrade",
    "post-upgrade",
    "read-only",
];

/// The words before a quoted text that is a code or a state.
const CODES: [&str; 7] = ["code", "error", "reason", "state", "status", "type", "target"];

/// The words before a quoted text that a user chose, which may have several words.
const VALUES: [&str; 12] = [
    "value",
    "value:",
    "values",
    "tag",
    "name",
    "name:",
    "named",
    "key",
    "label",
    "annotation",
    "description",
    "title",
];

/// The longest quoted text that is a name or a value.
const MAX_QUOTED_LEN: usize = 300;

/// A message without the names in it.
pub(super) fn without_names(message: &str) -> String {
    let replace = |text: String, parts: &[Regex], by: &dyn Fn(&Captures<'_>) -> String| {
        parts.iter().fold(text, |text, part| part.replace_all(&text, by).into_owned())
    };
    let text = replace(message.to_owned(), &ADDRESSES, &|_| " ".to_owned());
    let text = replace(text, &PATHS, &|found| collections(&found[0]));
    let text = without_quoted(&text);
    let text = replace(text, &IN_PARENTHESES, &|found| format!("(){}", &found[1]));
    replace(text, &WITH_HYPHENS, &|found| {
        let word = &found[0];
        if PROSE.contains(&word.to_ascii_lowercase().as_str()) {
            word.to_owned()
        } else {
            "-".to_owned()
        }
    })
}

/// The collections of a path: `projects/`, and `resource/global/networks/` for a resource in a
/// project.
fn collections(path: &str) -> String {
    let is_collection = |part: &&str| {
        *part == "global" || part.ends_with('s') && part.chars().all(|c| c.is_ascii_alphabetic())
    };
    let keep = |part| Some(part).filter(is_collection).unwrap_or_default();
    let kept = path.split('/').map(keep).collect::<Vec<_>>().join("/");
    match kept.strip_prefix("projects//") {
        Some(rest) => format!("resource/{rest}"),
        None => kept,
    }
}

/// A text without the content of quotes around names and values. Fields of JSON keep their content.
fn without_quoted(text: &str) -> String {
    let mut result = String::new();
    let mut rest = text;
    while let Some(open) = rest.find(['"', '\'', '`']) {
        let quote = &rest[open..=open];
        let (before, inner) = (&rest[..open], &rest[open + 1..]);
        result.push_str(before);
        result.push_str(quote);
        // An apostrophe stands inside of a word.
        let begins =
            result[..result.len() - 1].chars().next_back().is_none_or(|c| !c.is_alphanumeric());
        let content = inner.find(quote).map(|end| &inner[..end]).filter(|_| begins);
        let name = content.filter(|content| is_name(&result[..result.len() - 1], content));
        rest = match (name, content) {
            (Some(name), _) => {
                result.push_str(quote);
                &inner[name.len() + 1..]
            }
            (None, Some(content)) if !content.contains(['"', '\'']) => {
                result.push_str(content);
                result.push_str(quote);
                &inner[content.len() + 1..]
            }
            _ => inner,
        };
    }
    result.push_str(rest);
    result
}

/// Whether the content of quotes is a name or a value, after a text.
fn is_name(before: &str, content: &str) -> bool {
    let before = before.trim_end_matches(['\\', ' ']).to_lowercase();
    let word = before.rsplit([' ', '.', '(', '[']).next().unwrap_or_default();
    let begins = content.starts_with(|c: char| c.is_alphanumeric() || "/[-_".contains(c));
    if content.len() > MAX_QUOTED_LEN || !begins {
        return false;
    }
    if VALUES.contains(&word) {
        return true;
    }
    let is_path = ["projects/", "resource/"].iter().any(|path| content.starts_with(path));
    let is_field = before.ends_with([':', '=', '{', '[', ',']);
    !is_field && !is_path && !CODES.contains(&word) && !content.contains(char::is_whitespace)
}

pub(super) fn patterns(texts: &[&str]) -> Vec<Regex> {
    texts.iter().filter_map(|text| Regex::new(text).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_replaced_and_prose_stays() {
        for (message, expected) in [
            ("see https://example.org/quota now", "see   now"),
            ("role arn:aws:iam::1:role/Denied is", "role   is"),
            (
                "The resource 'projects/a/global/networks/quota-exceeded' was not found",
                "The resource 'resource/global/networks/' was not found",
            ),
            ("Not found: projects/acme-dve., notFound", "Not found: projects/, notFound"),
            ("creating IAM Role (QuotaExceeded): x", "creating IAM Role (): x"),
            ("S3 Bucket (quota.exceeded) Policy", "S3 Bucket () Policy"),
            ("(BadRequest) The VM size", "(BadRequest) The VM size"),
            ("occurred (Throttling) when calling", "occurred (Throttling) when calling"),
            ("instance throttle-tests: x", "instance -: x"),
            ("failed pre-install", "failed pre-install"),
            ("ConfigMap \"unauthorized-page\" is invalid", "ConfigMap \"\" is invalid"),
            ("Invalid value: \"rate limit exceeded\": x", "Invalid value: \"\": x"),
            ("value \"rate limit exceeded\" of tag", "value \"\" of tag"),
            ("Code=\"QuotaExceeded\" Message=\"x\"", "Code=\"QuotaExceeded\" Message=\"x\""),
            ("{\"error\":\"invalid_grant\"}", "{\"error\":\"invalid_grant\"}"),
            (
                "oauth2: \"invalid_grant\" \"Account deleted\"",
                "oauth2: \"invalid_grant\" \"Account deleted\"",
            ),
            (
                "unexpected state 'CREATE_FAILED', wanted",
                "unexpected state 'CREATE_FAILED', wanted",
            ),
            ("you can't do it, because it isn't 'x'", "you can't do it, because it isn't ''"),
            ("an open \"quote", "an open \"quote"),
        ] {
            assert_eq!(without_names(message), expected, "{message}");
        }
    }
}
