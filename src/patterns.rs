//! The patterns of our schemas in words. Schemas have regular expressions, and messages have words.

use serde_json::Value;

use crate::catalog::{aws, cloudsql, gcp, prices};
use crate::check::kubernetes::{IMAGE, LABEL, LABEL_VALUE, QUANTITY};
use crate::check::location::{CHART_REPOSITORY, GIT_REPOSITORY};
use crate::lifecycle::Span;

/// The key of a pattern's words in a schema for people.
pub const WORDS: &str = "x-pattern-in-words";

/// The words for a pattern that is not ours.
const OTHER: &str = "the format in the description of the field";

/// Every pattern of the schemas of claims and Settings, with the values that it allows.
const PATTERNS: [(&str, &str); 41] = [
    (r"^[0-9]+(\.[0-9]+){2,3}$", "a release with three or four numbers, for example \"4.8.0\""),
    (r"^[A-Za-z0-9][A-Za-z0-9._+@-]*$", "an email address or a login, for example ada@example.org"),
    (r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$", "the name of a chart, for example podinfo"),
    (r"^[A-Za-z0-9._@~+-][A-Za-z0-9._@~+/ -]*$", "a folder in the repository, for example deploy"),
    (r"^[A-Za-z0-9~^v*][A-Za-z0-9._/@+*~^-]*$", "a branch, a tag or a commit, for example main"),
    (
        r"^v?[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$",
        "a full version, for example 1.2.3",
    ),
    (
        r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$",
        "lowercase letters, digits and hyphens, starting and ending with a letter or digit",
    ),
    (
        LABEL,
        "1 to 63 lowercase letters, digits and hyphens, starting and ending with a letter or digit",
    ),
    (LABEL_VALUE, "1 to 63 letters, digits and . _ -, starting and ending with a letter or digit"),
    (IMAGE, "an image with a lowercase repository, for example registry.example.org/team/app:1.2"),
    (QUANTITY, "an amount with a unit, for example 512Mi or 16Gi"),
    (
        CHART_REPOSITORY,
        "a URL, for example https://charts.example.org or oci://registry.example.org/charts",
    ),
    (
        GIT_REPOSITORY,
        "a URL, for example https://git.example.org/team/app.git or \
         git@git.example.org:team/app.git",
    ),
    (Span::PATTERN, Span::ALLOWED),
    (prices::PATTERN, prices::ALLOWED),
    (aws::REGION, "an AWS region, for example us-east-1"),
    (r"^[a-z]{2}(-[a-z]+)+-[0-9]$", "an AWS region, for example us-east-1"),
    (aws::ROLE, "the ARN of a role, for example arn:aws:iam::123456789012:role/nodes"),
    (
        r"^arn:aws:iam::[0-9]{12}:role/[A-Za-z0-9_+=,.@/-]+$",
        "the ARN of a role, for example arn:aws:iam::123456789012:role/publisher",
    ),
    (
        aws::POLICY,
        "the ARN of an IAM policy, for example arn:aws:iam::123456789012:policy/developers",
    ),
    (gcp::REGION, "a Google Cloud region, for example us-central1"),
    (gcp::PLACE, "a Google Cloud region or zone, for example us-central1"),
    (gcp::MACHINE, "a machine type of Google Cloud, for example e2-medium"),
    (cloudsql::TIER, "a machine type of Cloud SQL, for example db-custom-2-7680"),
    (r"^ami-[0-9a-f]{8,17}$", "the ID of a machine image, for example ami-0123456789abcdef0"),
    (r"^vpc-[0-9a-f]{8,17}$", "the ID of a VPC, for example vpc-0123456789abcdef0"),
    (r"^subnet-[0-9a-f]{8,17}$", "the ID of a subnet, for example subnet-0123456789abcdef0"),
    (r"^sg-[0-9a-f]{8,17}$", "the ID of a security group, for example sg-0123456789abcdef0"),
    (r"^POSTGRES_[0-9]+(_[0-9]+)?$", "a version of PostgreSQL, for example POSTGRES_17"),
    (
        r"^projects/[a-z0-9.:-]+/global/networks/[a-z0-9-]+$",
        "the path of a network, for example projects/acme-dev/global/networks/main",
    ),
    (
        r"^(projects/[a-z0-9.:-]+/regions/[a-z0-9-]+/subnetworks/)?[a-z]([a-z0-9-]*[a-z0-9])?$",
        "the name or the path of a subnet, for example \
         projects/acme-dev/regions/us-central1/subnetworks/main",
    ),
    (
        r"^[a-z]([a-z0-9-]*[a-z0-9])?$",
        "lowercase letters, digits and hyphens, starting with a letter",
    ),
    (r"^[a-z][a-z0-9.:-]*$", "lowercase letters, digits and . : -, starting with a letter"),
    (r"^[a-z][a-z0-9.:/-]*$", "the name or the path of a network, for example main"),
    (r"^[A-Za-z][A-Za-z0-9._-]*$", "a machine type, for example m6i.xlarge"),
    (r"^[A-Za-z0-9_().-]*[A-Za-z0-9_()-]$", "the name of a resource group, for example acme-dev"),
    (
        "^/subscriptions/[0-9a-fA-F-]{36}/resourceGroups/[A-Za-z0-9_().-]+/providers/\
         Microsoft.ManagedIdentity/userAssignedIdentities/[A-Za-z0-9_-]+$",
        "the ID of a user-assigned identity: \
         /subscriptions/…/resourceGroups/…/providers/Microsoft.ManagedIdentity/\
         userAssignedIdentities/…",
    ),
    (r"^[a-z0-9][a-z0-9 ._-]*$", "the name of a subnet group in lowercase, for example main"),
    (
        r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?([.][a-z0-9]([a-z0-9-]*[a-z0-9])?)*$",
        "a lowercase name or domain, for example apps.example.org",
    ),
    (
        r"^[A-Za-z0-9]([A-Za-z0-9._/-]*[A-Za-z0-9])?$",
        "a name of 1 to 63 letters, digits and . _ / -, for example g4dn.xlarge",
    ),
    (
        r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$",
        "lowercase letters, digits, hyphens and dots, starting and ending with a letter or digit",
    ),
];

/// The values that a pattern allows, in words.
pub fn in_words(pattern: &str) -> &'static str {
    PATTERNS.iter().find(|(known, _)| *known == pattern).map_or(OTHER, |(_, words)| words)
}

/// Whether a message is [`plain`] because it was about a pattern.
pub fn is_about_pattern(message: &str) -> bool {
    let mut words = PATTERNS.iter().map(|(_, words)| *words).chain([OTHER]);
    words.any(|words| message.contains(&format!("; allowed: {words}")))
}

/// Adds the words of every pattern to a schema for people.
pub fn describe(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            if let Some(words) = fields.get("pattern").and_then(Value::as_str).map(in_words) {
                fields.insert(WORDS.to_owned(), words.into());
            }
            fields.values_mut().for_each(describe);
        }
        Value::Array(items) => items.iter_mut().for_each(describe),
        _ => {}
    }
}

/// A message of our schema checks or of an API server without regular expressions.
pub fn plain(message: &str) -> String {
    let mut text = message.to_owned();
    for name in ["text", "string"] {
        text = replaced(&text, &format!("a {name} that matches "), |rest| {
            let end = rest.find("; YAML reads").unwrap_or(rest.len());
            Some((in_words(&rest[..end]).to_owned(), end))
        });
    }
    // An API server: `Invalid value: "x": spec.region in body should match '^[a-z]+$'`.
    text = replaced(&text, "should match '", |rest| {
        let known = PATTERNS.iter().filter(|(pattern, _)| {
            rest.strip_prefix(pattern).is_some_and(|rest| rest.starts_with('\''))
        });
        let longest = known.max_by_key(|(pattern, _)| pattern.len());
        let (words, length) = match longest {
            Some((pattern, words)) => (*words, pattern.len()),
            None => (OTHER, rest.find("$'").map(|end| end + 1).or_else(|| rest.rfind('\''))?),
        };
        Some((format!("should be {words}"), length + 1))
    });
    replaced(&text, ", regex used for validation is '", |rest| {
        let end = rest.find("')").or_else(|| rest.rfind('\''))?;
        Some((String::new(), end + 1))
    })
}

/// Replaces each occurrence of `begin`. `with` returns the replacement, and the length of the text
/// after `begin` that it replaces too.
fn replaced(text: &str, begin: &str, with: impl Fn(&str) -> Option<(String, usize)>) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once(begin) {
        let Some((words, length)) = with(after) else { break };
        out.push_str(before);
        out.push_str(&words);
        rest = after.get(length..).unwrap_or_default();
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use regex_lite::Regex;

    use super::*;
    use crate::apis::{APIS, Flavour};
    use crate::manifests;

    fn patterns(schema: &Value, found: &mut BTreeSet<String>) {
        match schema {
            Value::Object(fields) => {
                found.extend(fields.get("pattern").and_then(Value::as_str).map(str::to_owned));
                fields.values().for_each(|value| patterns(value, found));
            }
            Value::Array(items) => items.iter().for_each(|value| patterns(value, found)),
            _ => {}
        }
    }

    fn all() -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        for api in APIS {
            for flavour in Flavour::ALL {
                patterns(&manifests::xrd(*api, flavour, flavour.default_group()), &mut found);
            }
        }
        patterns(&manifests::input(), &mut found);
        found
    }

    #[test]
    fn every_pattern_of_every_schema_has_words() {
        let all = all();
        assert!(all.len() > 30, "{}", all.len());
        for pattern in &all {
            assert_ne!(in_words(pattern), OTHER, "{pattern}");
        }
        // The last entry is of the Secret that Crossplane adds to claims.
        for (pattern, _) in &PATTERNS[..PATTERNS.len() - 1] {
            assert!(all.contains(*pattern), "no schema has {pattern}");
        }
    }

    #[test]
    fn words_have_no_regular_expression() {
        for (_, words) in PATTERNS {
            assert!(!words.contains(['^', '$', '*', '[', '\\']), "{words}");
        }
    }

    #[test]
    fn examples_in_words_match_their_patterns() {
        for (pattern, words) in PATTERNS {
            let Some((_, example)) = words.split_once("for example ") else { continue };
            let example = example.split([' ', ',']).next().unwrap_or_default().trim_matches('"');
            let matches = Regex::new(pattern).is_ok_and(|regex| regex.is_match(example));
            assert!(matches, "{example} does not match {pattern}");
        }
    }

    #[test]
    fn messages_of_every_pattern_become_words() {
        for pattern in all() {
            let words = in_words(&pattern);
            let ours = plain(&format!("found \"x\"; allowed: a text that matches {pattern}"));
            assert_eq!(ours, format!("found \"x\"; allowed: {words}"));
            assert!(is_about_pattern(&ours));
            let hint = "; YAML reads on, off, yes and no as booleans";
            let number = format!("found 4.8; allowed: a string that matches {pattern}{hint}");
            assert_eq!(plain(&number), format!("found 4.8; allowed: {words}{hint}"));
            let server = plain(&format!(
                "Invalid value: \"x\": spec.a in body should match '{pattern}', and more"
            ));
            let expected =
                format!("Invalid value: \"x\": spec.a in body should be {words}, and more");
            assert_eq!(server, expected);
        }
    }

    #[test]
    fn message_of_another_pattern_hides_it() {
        let message = plain("a: found 1; allowed: a text that matches ^(a|b)+$");
        assert_eq!(message, format!("a: found 1; allowed: {OTHER}"));
        let message = plain("spec.a in body should match '^(a|b)+$'");
        assert_eq!(message, format!("spec.a in body should be {OTHER}"));
        let name = "a lowercase RFC 1123 subdomain must start and end with an alphanumeric \
                    character (e.g. 'example.com', regex used for validation is \
                    '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
        assert!(plain(name).ends_with("character (e.g. 'example.com')"), "{}", plain(name));
        assert_eq!(plain("should match '"), "should match '");
    }
}
