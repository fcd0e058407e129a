//! Removes secrets from texts of other programs.

use std::sync::LazyLock;

use regex_lite::{Captures, Regex};

/// Removes secrets from a URL or a Git address. `https://user:token@host/path?key=value` becomes
/// `https://…@host/path?…`. `user:token@host:path` becomes `…@host:path`.
pub fn struck(value: &str) -> String {
    let (scheme, rest) = match value.split_once("://") {
        Some((scheme, rest)) => (format!("{scheme}://"), rest),
        None => (String::new(), value),
    };
    let is_url = !scheme.is_empty();
    let (user, rest) = match rest.rsplit_once('@') {
        // An image's digest also follows an @.
        Some((user, rest)) if is_url || (user.contains(':') && !rest.starts_with("sha256:")) => {
            ("…@", rest)
        }
        _ => ("", rest),
    };
    match rest.find(['?', '#']).filter(|_| is_url) {
        Some(query) => format!("{scheme}{user}{}…", &rest[..=query]),
        None => format!("{scheme}{user}{rest}"),
    }
}

/// Removes secrets from every URL in a text of another program. Such a text may quote any value.
pub fn struck_from(text: &str) -> String {
    static VALUE: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r#""((?:[^"\\]|\\.)*)"|[^\s"]+"#).ok());
    let shown = |found: &Captures<'_>| match found.get(1) {
        Some(quoted) => format!("\"{}\"", struck(quoted.as_str())),
        // A quoted pattern has no secrets.
        None if found[0].starts_with("'^") => found[0].to_owned(),
        None => struck(&found[0]),
    };
    VALUE.as_ref().map_or_else(|| struck(text), |value| value.replace_all(text, shown).into_owned())
}

#[cfg(test)]
mod tests {
    use super::{struck, struck_from};

    #[test]
    fn secrets_are_removed_from_quoted_text() {
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
    fn secrets_are_removed_only_from_urls() {
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
