//! Foreign messages, prepared for the status. The same failure gives the same text, without secrets
//! and short.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use regex_lite::Regex;

use crate::check::MAX_MESSAGE_LEN;
use crate::observe::{Observation, Resource};
use crate::value::text;

/// Shorter values are not treated as secrets. A port or a flag would be redacted in every message.
const SHORTEST_SECRET: usize = 4;

/// Texts that differ between failures of the same cause: request ids, times, retry counts.
static FLEETING: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    [
        r"(?i),?\s*(?:x-amzn-)?(?:request|correlation|trace|operation)[ _-]?id[:=]?\s*[0-9A-Za-z][0-9A-Za-z_-]{7,}",
        r"(?i)\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b",
        r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:Z|[+-]\d{2}:?\d{2})?",
        r"(?i)\s*\(?(?:after|attempt|retry|retries|retried)\s*(?:#|no\.?\s*)?\d+(?:\s*(?:of|/)\s*\d+)?(?:\s*(?:attempts?|times|retries|tries))?\)?",
        r"(?i)\b(?:retry(?:ing)?|backoff|back-off) (?:in|after) \d+(?:\.\d+)?(?:ms|s|m)?",
    ]
    .iter()
    .filter_map(|pattern| Regex::new(pattern).ok())
    .collect()
});

/// The secrets of a request, to redact them in messages.
#[derive(Debug, Default)]
pub struct Secrets {
    /// Longest first, so that no fragment of a secret remains.
    values: BTreeSet<(std::cmp::Reverse<usize>, String)>,
}

impl Secrets {
    /// The secrets that Crossplane sent: connection details, credentials of the step, and the data
    /// of Secrets.
    pub(super) fn new(observation: &Observation<'_>) -> Self {
        let mut secrets = Self::default();
        let resources = observation.resources.values();
        let details = resources.clone().flat_map(|resource| resource.connection.values());
        let details = details.chain(observation.xr.connection.values());
        details.chain(&observation.credentials).for_each(|value| secrets.add(value));
        let is_secret = |resource: &&Resource| text(&resource.object, &["kind"]) == Some("Secret");
        for resource in resources.filter(is_secret) {
            resource.secret_data().values().for_each(|value| secrets.add(value));
        }
        secrets
    }

    /// Registers a value, and each longer word of a value with several words, for example a
    /// kubeconfig or a URL with a password.
    pub fn add(&mut self, value: &[u8]) {
        if value.len() >= SHORTEST_SECRET {
            // The encodings of Kubernetes and of URLs.
            self.insert(STANDARD.encode(value).trim_end_matches('='));
            self.insert(&URL_SAFE_NO_PAD.encode(value));
        }
        let Ok(text) = std::str::from_utf8(value) else { return };
        self.insert(text.trim());
        for word in text.split(|c: char| c.is_whitespace() || "\"',:@/=?&;".contains(c)) {
            if word.len() >= 3 * SHORTEST_SECRET && word.len() < text.trim().len() {
                self.insert(word);
            }
        }
    }

    fn insert(&mut self, value: &str) {
        if value.len() >= SHORTEST_SECRET {
            self.values.insert((std::cmp::Reverse(value.len()), value.to_owned()));
        }
    }

    /// The message without secrets, request ids, times and retry counts, on one line and at most
    /// [`MAX_MESSAGE_LEN`] bytes long.
    pub fn scrub(&self, message: &str) -> String {
        let mut text = message.to_owned();
        for (_, secret) in &self.values {
            if text.contains(secret.as_str()) {
                text = text.replace(secret.as_str(), "[redacted]");
            }
        }
        for pattern in FLEETING.iter() {
            if pattern.is_match(&text) {
                text = pattern.replace_all(&text, "").into_owned();
            }
        }
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        cut(&text)
    }
}

/// At most [`MAX_MESSAGE_LEN`] bytes of a text.
pub(crate) fn cut(text: &str) -> String {
    if text.len() <= MAX_MESSAGE_LEN {
        return text.to_owned();
    }
    let mut end = MAX_MESSAGE_LEN - '…'.len_utf8();
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}…", &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_failure_gives_the_same_text() {
        let secrets = Secrets::default();
        let once = "creating EC2 Instance: api error VcpuLimitExceeded: quota, RequestID: 5bc0a9e1-1111-2222-3333-444455556666";
        let again = "creating EC2 Instance: api error VcpuLimitExceeded: quota, RequestID: 00000000-aaaa-bbbb-cccc-ddddeeeeffff";
        assert_eq!(
            secrets.scrub(once),
            "creating EC2 Instance: api error VcpuLimitExceeded: quota"
        );
        assert_eq!(secrets.scrub(once), secrets.scrub(again));
        assert_eq!(
            secrets.scrub("failed after 3 attempts at 2026-11-21T01:02:03Z"),
            secrets.scrub("failed after 25 attempts at 2026-11-21T09:08:07.123Z")
        );
    }

    #[test]
    fn secrets_are_struck_whole_and_in_part() {
        let mut secrets = Secrets::default();
        secrets.add(b"hunter2hunter2");
        secrets.add(b"postgres://app:s3cr3t-passw0rd@db/app");
        assert_eq!(secrets.scrub("login hunter2hunter2 refused"), "login [redacted] refused");
        assert_eq!(secrets.scrub("password s3cr3t-passw0rd"), "password [redacted]");
    }

    #[test]
    fn long_messages_are_cut_between_characters() {
        let text = Secrets::default().scrub(&"ü".repeat(2000));
        assert!(text.len() <= MAX_MESSAGE_LEN && text.ends_with('…'));
    }
}
