//! The parts of a message: its error codes, its HTTP status, its prose and its hosts.
//!
//! Clouds put an error code at a fixed place of a message, for example `api error CODE:` or
//! `Code="CODE"`. Codes are stable, and prose is not. Names of users' objects, addresses and ARNs
//! are neither, so the prose is read without them.

use std::sync::LazyLock;

use regex_lite::Regex;

use super::names::{patterns, without_names};

/// A message, taken apart.
pub(super) struct Reading<'m> {
    /// The message.
    pub message: &'m str,
    /// The message in lower case, with single spaces.
    pub lower: String,
    /// The message in lower case, without names, addresses, ARNs and paths.
    pub prose: String,
    /// The error codes in lower case: the words at the place of a code, and the other words in
    /// CamelCase or in CAPITALS_WITH_UNDERSCORES.
    codes: Vec<String>,
    /// The HTTP status of a rejection.
    pub status: Option<u16>,
}

/// The places of a code, with the code as their group.
static PLACES: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    patterns(&[
        // AWS SDK v2: `api error VcpuLimitExceeded: ...`.
        r"api error ([A-Za-z][A-Za-z0-9._]*)",
        // AWS command line: `An error occurred (AccessDenied) when calling`.
        r"\(([A-Z][A-Za-z0-9._]*)\)(?: when calling| [A-Z])",
        // Azure: `Code="..."`, `"code": "..."`, `ERROR CODE: ...`, `ErrorCode: ...`.
        r#"(?i)\bcode\\?"?\s*[:=]\s*\\?"?([A-Za-z][A-Za-z0-9._]*)"#,
        r"(?i)\berror ?code:?\s+([A-Za-z][A-Za-z0-9._]*)",
        // Google Cloud: `"reason": "..."`, `Reason: ...`, and the word after the last comma.
        r#"(?i)\breason\\?"?\s*[:=]\s*\\?"?([A-Za-z][A-Za-z0-9._]*)"#,
        r"googleapi: (?s:.*), ([a-z][A-Za-z]*)(?:\s*\[\])?[\s}\])]*$",
        // AWS SDK v1 and many others: `CODE: sentence`.
        r"\b([A-Z][A-Za-z0-9.]*):",
        // PostgreSQL: `(SQLSTATE 42501)`.
        r"\bSQLSTATE[:=]? ?([0-9A-Z]{5})\b",
        // OAuth: `"error":"invalid_grant"`, `oauth2: "invalid_grant"`.
        r#""((?:invalid|unauthorized|unsupported)_[a-z_]+)""#,
    ])
});

/// Words that are codes wherever they are.
static CODE: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    patterns(&[
        r"^[A-Za-z][A-Za-z0-9]*[a-z0-9][A-Z][A-Za-z0-9]*(?:\.[A-Z][A-Za-z]*)*$",
        r"^[A-Z][A-Za-z]*\.[A-Z][A-Za-z]*$",
        r"^[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+$",
        r"^[A-Z][A-Za-z]*_[A-Z][A-Za-z]+$",
        r"^AADSTS[0-9]+$",
    ])
});

/// The places of an HTTP status, with the status as their group.
static STATUS: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    patterns(&[
        r"(?i)\bstatus ?code[:=]?\s*'?([1-5][0-9]{2})\b",
        r"\bError ([45][0-9]{2})\b",
        r"(?i)\bResponseError: code=([1-5][0-9]{2})\b",
        r#"(?i)"code"\s*:\s*([1-5][0-9]{2})\b"#,
        r"(?i)\bRESPONSE ([1-5][0-9]{2})\b",
        r"(?i)\bstatus[:=]\s*([1-5][0-9]{2})\b",
        r"(?i)\b([45][0-9]{2}) (?:Bad Request|Unauthorized|Forbidden|Not Found|Conflict|Too Many Requests)\b",
    ])
});

/// The places of a host, with the host as their group. The first place that fits wins.
static HOSTS: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    patterns(&[
        // A proxy is reached instead of the host of the address.
        r"proxyconnect tcp: dial tcp:? (?:lookup )?([0-9A-Za-z._-]+)",
        r"lookup ([0-9A-Za-z._-]+)",
        r#"(?i)(?:Get|Post|Put|Patch|Head|Delete) \\?"(?:https?|oci)://([^/:"\s\\\[]+)"#,
        r"dial (?:tcp|udp)[46]? \[?([0-9A-Za-z._-]+|[0-9a-fA-F:]+)\]?:[0-9]+",
        r"dial (?:tcp|udp)[46]? (?:lookup )?([0-9A-Za-z._-]+)",
        r"(?:tcp|udp) [0-9.:]+->([0-9.]+):[0-9]+",
        r#"(?:https?|oci)://([^/:"\s\\\[]+)"#,
        r#"(?i)connection to server at "([^"]+)""#,
        r#"(?i)could not translate host name "([^"]+)""#,
        r"(?i)could not resolve host: ([0-9A-Za-z._-]+)",
        r"\bssh: connect to host ([0-9A-Za-z._-]+)",
    ])
});

impl<'m> Reading<'m> {
    /// Takes a message apart.
    pub fn new(message: &'m str) -> Self {
        let bare = without_names(message);
        let spaced = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let status = STATUS.iter().find_map(|place| place.captures(message)?.get(1));
        Self {
            message,
            lower: spaced(&message.to_lowercase()),
            prose: spaced(&bare.to_lowercase()),
            codes: codes(&bare),
            status: status.and_then(|status| status.as_str().parse().ok()),
        }
    }

    /// Whether one of the codes is one of these: in lower case, with `*` at the ends for any text.
    pub fn has_code(&self, wanted: &[&str]) -> bool {
        self.codes.iter().any(|code| wanted.iter().any(|wanted| fits(wanted, code)))
    }

    /// Whether the prose has one of these texts: in lower case, with ` & ` between texts that must
    /// all occur.
    pub fn says(&self, texts: &[&str]) -> bool {
        let all = |texts: &str| texts.split(" & ").all(|text| self.prose.contains(text));
        texts.iter().any(|texts| all(texts))
    }

    /// The host that could not be reached.
    pub fn host(&self) -> Option<&'m str> {
        let found = HOSTS.iter().find_map(|place| place.captures(self.message)?.get(1));
        let host = found?.as_str().trim_end_matches('.');
        (!host.is_empty()).then_some(host)
    }
}

fn codes(text: &str) -> Vec<String> {
    let mut codes = Vec::new();
    for place in PLACES.iter() {
        let found = place.captures_iter(text).filter_map(|found| Some(found.get(1)?.as_str()));
        codes.extend(found.map(str::to_lowercase));
    }
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || "._/-".contains(c)));
    let words = words.map(|word| word.trim_matches('.'));
    let words = words.filter(|word| CODE.iter().any(|code| code.is_match(word)));
    codes.extend(words.map(str::to_lowercase));
    codes
}

/// Whether a code fits a pattern. `*` stands for any text.
fn fits(pattern: &str, code: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = code.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        let Some((_, after)) = rest.split_once(part) else { return false };
        rest = after;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_read_at_their_places() {
        for (message, code) in [
            ("operation error EC2: RunInstances, api error Blocked: x", "blocked"),
            ("(BadRequest) The VM size", "badrequest"),
            ("An error occurred (Throttling) when calling the X operation", "throttling"),
            (r#"Status=409 Code="Conflict" Message="x""#, "conflict"),
            (r#"{"error":{"code":"QuotaExceeded","message":"x"}}"#, "quotaexceeded"),
            ("ERROR CODE: Forbidden", "forbidden"),
            ("googleapi: Error 403: Required permission, forbidden", "forbidden"),
            ("[{0 Error creating: googleapi: Error 404: gone, notFound  []}]", "notfound"),
            ("creating EC2 Instance: Unsupported: Your requested type", "unsupported"),
            ("a ZONE_RESOURCE_POOL_EXHAUSTED error", "zone_resource_pool_exhausted"),
            ("AADSTS700016: Application", "aadsts700016"),
            (r#"oauth2: "invalid_grant" "x""#, "invalid_grant"),
            ("InvalidGroup.NotFound", "invalidgroup.notfound"),
        ] {
            let reading = Reading::new(message);
            assert!(reading.has_code(&[code]), "{message}: {:?}", reading.codes);
        }
    }

    #[test]
    fn star_stands_for_any_text() {
        for (pattern, code, expected) in [
            ("slowdown", "slowdown", true),
            ("slowdown", "slowdowns", false),
            ("toomany*", "toomanybuckets", true),
            ("*.duplicate", "invalidgroup.duplicate", true),
            ("*limitexceeded*", "vcpulimitexceeded", true),
            ("insufficient*capacity", "insufficientcapacity", true),
            ("insufficient*capacity", "insufficientcapacities", false),
        ] {
            assert_eq!(fits(pattern, code), expected, "{pattern} {code}");
        }
    }

    #[test]
    fn names_and_addresses_have_no_codes_and_no_prose() {
        for message in [
            "see https://example.org/AccessDenied/quota",
            "role arn:aws:iam::1:role/AccessDenied is fine",
            "bucket quota/AccessDenied",
            "visit https://aka.ms/quota",
            "visit aka.ms/quota",
        ] {
            let reading = Reading::new(message);
            assert!(!reading.has_code(&["accessdenied"]), "{message}");
        }
        assert!(!Reading::new("see https://example.org/quota").says(&["quota"]));
    }

    #[test]
    fn host_is_the_one_that_does_not_answer() {
        for (message, host) in [
            (
                r#"Post "https://sts.a.com/": dial tcp: lookup sts.a.com on 10.96.0.10:53: no such host"#,
                "sts.a.com",
            ),
            (r#"Get "https://10.0.0.4:443/api": dial tcp 10.0.0.4:443: i/o timeout"#, "10.0.0.4"),
            (
                r#"Post "https://sts.a.com/": proxyconnect tcp: dial tcp 192.0.2.1:3128: connect: refused"#,
                "192.0.2.1",
            ),
            (r#"Get "https://a.b.svc:443/x": net/http: TLS handshake timeout"#, "a.b.svc"),
            ("dial tcp [2001:db8::1]:5432: connect: no route to host", "2001:db8::1"),
            ("read tcp 10.1.1.1:4000->192.0.2.7:443: read: connection reset by peer", "192.0.2.7"),
        ] {
            assert_eq!(Reading::new(message).host(), Some(host), "{message}");
        }
        for none in [
            "connection refused",
            r#"Get "https://[redacted]:443/": dial tcp: lookup [redacted] on"#,
        ] {
            assert_eq!(Reading::new(none).host(), None, "{none}");
        }
    }

    #[test]
    fn status_is_read_at_its_places() {
        for (message, status) in [
            ("https response error StatusCode: 403, x", Some(403)),
            ("googleapi: Error 404: x", Some(404)),
            ("RESPONSE 400: 400 Bad Request", Some(400)),
            ("unexpected status from GET request: 403 Forbidden", Some(403)),
            ("https response error StatusCode: 0, x", None),
            ("404 machines", None),
        ] {
            assert_eq!(Reading::new(message).status, status, "{message}");
        }
    }
}
