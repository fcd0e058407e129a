//! The comment for a pull request, in Markdown.
//!
//! Its first line is a marker that depends on the environment only. A pipeline finds its comment by
//! the marker, and edits it.

use std::fmt::Write as _;

use crossplane::text::harmless_name;
use jiff::Timestamp;
use paved_client::environment::{Environment, is_refused, power_word, until};
use serde_json::Value;

/// The longest list of resources. A forge rejects long comments.
const MOST_PARTS: usize = 20;

/// The marker of an environment's comment.
pub(super) fn marker(namespace: &str, name: &str) -> String {
    // Two hyphens would end the comment of HTML.
    let text = format!("{namespace}/{name}").replace("--", "-\u{200b}-");
    format!("<!-- paved-road {} -->", harmless_name(&text))
}

/// The comment about an environment that does not exist.
pub(super) fn absent(namespace: &str, name: &str) -> String {
    let title = code(&format!("{namespace}/{name}"));
    format!("{}\n### Environment {title}: deleted\n", marker(namespace, name))
}

/// The comment about an environment.
pub(super) fn comment(seen: &Environment, now: Timestamp) -> String {
    let Environment { kind, namespace, name, .. } = seen;
    let sign = match seen.mark() {
        paved_client::environment::Mark::Good => "✅",
        paved_client::environment::Mark::Busy => "⏳",
        paved_client::environment::Mark::Bad => "❌",
    };
    let mut text = marker(namespace, name);
    let title = code(&format!("{namespace}/{name}"));
    _ = write!(text, "\n### {sign} Environment {title}: {}", plain(seen.word()));
    if !seen.progress.is_empty() {
        _ = write!(text, " {}", plain(&seen.progress));
    }
    text.push('\n');
    if let Some(diagnosis) = seen.diagnosis().filter(|diagnosis| diagnosis.counts(now)) {
        let slot = diagnosis.slot.map(|slot| format!("{}: ", code(&slot))).unwrap_or_default();
        let (headline, remediation) =
            (plain(&diagnosis.cause.headline()), plain(diagnosis.cause.remediation()));
        _ = write!(text, "\n**{slot}{headline}**\n\n{remediation}\n");
    }
    text.push_str("\n| | |\n|---|---|\n");
    for (field, value) in fields(seen, kind, now) {
        _ = writeln!(text, "| {} | {value} |", plain(&field));
    }
    let late: Vec<_> = seen.parts.iter().filter(|part| !part.ready || is_refused(part)).collect();
    if !late.is_empty() {
        text.push_str("\n| resource | kind | state |\n|---|---|---|\n");
    }
    for part in late.iter().take(MOST_PARTS) {
        let state = part.reason.as_deref().unwrap_or("Pending");
        let headline = part.cause.as_ref().map(|cause| format!(": {}", cause.headline()));
        let state = plain(&format!("{state}{}", headline.unwrap_or_default()));
        _ = writeln!(text, "| {} | {} | {state} |", code(&part.slot), plain(&part.kind));
    }
    if late.len() > MOST_PARTS {
        _ = writeln!(text, "| {} more | | |", late.len() - MOST_PARTS);
    }
    text
}

/// The fields that a reviewer needs: the address, the price, the end and the owner.
fn fields(seen: &Environment, kind: &str, now: Timestamp) -> Vec<(String, String)> {
    let mut all = vec![("kind".to_owned(), plain(kind))];
    if seen.is_ready() {
        all.extend(seen.endpoint().map(|endpoint| ("address".to_owned(), address(&endpoint))));
        let texts = seen.fields.iter().filter_map(|(field, value)| match value {
            Value::String(text) if Some(text) != seen.endpoint().as_ref() => {
                Some((field.clone(), address(text)))
            }
            _ => None,
        });
        all.extend(texts);
    }
    all.extend(seen.power.map(|power| ("power".to_owned(), plain(power_word(power)))));
    all.extend(seen.price.as_ref().map(|price| ("price".to_owned(), plain(&price.to_string()))));
    let end = seen.lifecycle.as_ref().and_then(|lifecycle| lifecycle.expires_at);
    all.extend(end.map(|at| {
        let left = until(at, now).map(|left| format!(", in {left}")).unwrap_or_default();
        ("expires".to_owned(), plain(&format!("{at}{left}")))
    }));
    all.extend(seen.owner.as_ref().map(|owner| ("owner".to_owned(), code(owner))));
    all
}

/// A link if the text is an address of a website, otherwise code.
fn address(text: &str) -> String {
    let is_link = text.starts_with("https://")
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "-._~:/?#=&%+".contains(c));
    if is_link { format!("<{text}>") } else { code(text) }
}

/// A text of others as code, which mentions no one and contains no markup.
fn code(text: &str) -> String {
    let text = harmless_name(text).replace('|', "\\|");
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    let pad = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{fence}{pad}{text}{pad}{fence}")
}

/// A text of others without markup, mentions and links.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    for c in harmless_name(text).chars() {
        match c {
            '@' | '#' => plain.extend([c, '\u{200b}']),
            c if c.is_ascii_punctuation() && !".,:;()/-%'+".contains(c) => plain.extend(['\\', c]),
            c => plain.push(c),
        }
    }
    plain.replace("://", ":\u{200b}//")
}

#[cfg(test)]
mod tests {
    use paved_client::samples::{environment, half_made, ready, refused_leaf};
    use serde_json::json;

    use super::*;

    fn at() -> Timestamp {
        Timestamp::from_second(1_767_261_600).unwrap_or_default()
    }

    #[test]
    fn comment_has_a_marker_the_state_and_the_cause() {
        let mut failed = half_made(&refused_leaf());
        failed["status"]["phase"] = json!("Failed");
        insta::assert_snapshot!(comment(&environment(&failed), at()));
        insta::assert_snapshot!(comment(&environment(&ready()), at()));
        insta::assert_snapshot!(absent("team-vision", "ada"));
    }

    #[test]
    fn marker_does_not_depend_on_the_state() {
        let first = |text: &str| text.lines().next().map(str::to_owned);
        let ready = environment(&ready());
        let marker = first(&comment(&ready, at()));
        assert_eq!(marker, first(&absent("team-vision", "ada")));
        let waiting = environment(&half_made(&refused_leaf()));
        assert_eq!(marker, first(&comment(&waiting, at())));
        assert!(!super::marker("a", "b--><script>").contains("--><"));
    }

    #[test]
    fn text_of_others_is_no_markup() {
        let mut object = ready();
        object["metadata"]["annotations"] =
            json!({"paved-road.fn.crossplane.io/owner": "@everyone `x` | <b>\n# h"});
        object["status"]["phase"] = json!("Ready @here [a](https://evil.example.org) #1 <img>");
        let text = comment(&environment(&object), at());
        assert!(!text.contains("@here"), "{text}");
        assert!(text.contains(r"\[a\](") && text.contains(r"\<img\>"), "{text}");
        assert!(!text.contains("\n# h") && !text.contains("https://evil"), "{text}");
        assert!(text.lines().filter(|line| line.starts_with("| owner")).count() == 1, "{text}");
    }
}
