//! Hides possible secrets in lines of files.

use std::ops::Range;

use crossplane::secrets::struck;

use super::Problem;
use crate::failure::Grade;
use crate::files::Source;

/// The line of a byte for messages: its number, its byte range in the file, and its text. Every
/// byte of a secret is replaced, so that positions stay.
pub(super) fn line(source: &Source, byte: usize) -> (usize, Range<usize>, String) {
    let (number, bytes) = source.line(byte);
    let text = &source.text[bytes.clone()];
    (number, bytes, redacted(text))
}

/// Whether a document is hidden completely. This applies to a document without a kind, and to a
/// Secret with a syntax error.
pub(super) fn hides(source: &Source, problem: &Problem) -> bool {
    let byte = source.text.floor_char_boundary(problem.spot.bytes.start.min(source.text.len()));
    let start = source.text[..byte].rfind("\n---").unwrap_or(0);
    let end = source.text[byte..].find("\n---").map_or(source.text.len(), |end| byte + end);
    let document = &source.text[start..end];
    let says = |what: &str| {
        let is_it = |line: &str| {
            let line: String = line.chars().filter(|c| c.is_alphanumeric() || *c == ':').collect();
            line.contains(what)
        };
        document.lines().any(is_it)
    };
    !says("kind:") || problem.grade == Grade::Syntax && says("kind:Secret")
}

/// Replaces credentials in URLs and private keys in a line by `*`.
fn redacted(line: &str) -> String {
    if line.contains("PRIVATE KEY") {
        let indent = line.len() - line.trim_start().len();
        return covered(line, indent..line.len());
    }
    let mut shown = line.to_owned();
    let mut start = 0;
    for word in line.split(|c: char| c.is_whitespace() || "\"',[]{}".contains(c)) {
        if struck(word) != word {
            let scheme = word.find("://").map_or(0, |end| end + "://".len());
            shown = covered(&shown, start + scheme..start + word.len());
        }
        // A separator of words is one byte long, or a wider space.
        start += word.len() + line[start + word.len()..].chars().next().map_or(0, char::len_utf8);
    }
    shown
}

fn covered(line: &str, bytes: Range<usize>) -> String {
    format!("{}{}{}", &line[..bytes.start], "*".repeat(bytes.len()), &line[bytes.end..])
}

#[cfg(test)]
mod tests {
    use super::redacted;

    #[test]
    fn secrets_are_covered_and_places_stay() {
        for (line, shown) in [
            ("  repoURL: \"https://u:pw@h.org/a\"", "  repoURL: \"https://************\""),
            ("  image: git:pw@h.org:a/b.git é", "  image: ******************** é"),
            (
                "- -----BEGIN OPENSSH PRIVATE KEY-----\\nb3",
                "*****************************************",
            ),
            ("  owner: ada@acme.io", "  owner: ada@acme.io"),
            ("", ""),
        ] {
            assert_eq!((redacted(line).len(), redacted(line).as_str()), (line.len(), shown));
        }
    }
}
