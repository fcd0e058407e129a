//! Accepted values, rejected values and the texts of the errors.

#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;

// Created for these tests with ssh-keygen. Their private keys were deleted.
const ED25519: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAII7KM58AClFcbN7U0e72APmJ/P3Dht8svq9h9D41j7Hs";
const ECDSA_256: &str = "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBJK6zUJVTojMbBQ/Z/\
    UvTp/hsYJGgKVg4jlSeWeFGxsNMGXTj9s2j4F+bTHjue5f3SWOQ/eU4IsODANV34x2LNA=";
const ECDSA_384: &str = "ecdsa-sha2-nistp384 AAAAE2VjZHNhLXNoYTItbmlzdHAzODQAAAAIbmlzdHAzODQAAABhBGSTEMt8+xhawvL+t/\
    GZyim8cXgb1QEWvkdVDAZUD17A4or514FgdkV9dFmNAMc1bv2a8L8VJt+5C3xDhtRR95RegCMIaAOueSesBf59CW3S\
    nqr8g8b/GJyj++LJj2iQQA==";
const ECDSA_521: &str = "ecdsa-sha2-nistp521 AAAAE2VjZHNhLXNoYTItbmlzdHA1MjEAAAAIbmlzdHA1MjEAAACFBAC64s+EEF7qsmcsTH\
    dRZACYNSHJJuSasz7+MkNu/C9OFNjjIMByJSoMxctLeubSZ1cttShL4OzgIAnbsOD4qbgxYABrydfbm+jF888p6xVR\
    TeKT8NIZpaIKblw58gQsBnWrUvGe9Uxq9netOk54pjsvDWeKJdnIZAxh9ohBUf3y++j2oQ==";
const RSA_2048: &str = "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABAQC973KAzlPl7Qfk/iKGXiP8mbWVqcRsIaAztO//hRiN/xaJjvkd8Y\
    oHlMAZCJJTusDLMFm+Y6xnAcBttgSXbNAoGqQsnZJvIzg2LPp4tL7Ge15fdWlmC9UWjCN2FlGixRuWb/ZEsyrJfA31\
    SLhpBfUe1PPxQ5RSWVKxSWlzSoxfAu3rGoY18NYENVndE0TXkwYQqLFxZJwBhfHFOVyfuJoLDLmYyr/I774znfoBgg\
    kQt1VrVfKJ+291FxsIQtNikJ6lDi1LUp0jsmYEXlwpvym8mcfgKQUupcbm6NkFGLOC1HkQ2dR+3uagoePxY9ndQhI+\
    G/bb/GAZjR5LLaNmI8ut";
const RSA_1024: &str = "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAgQDiGyhFqDgFk5RqqeIaYLEACb5SDcQYoWZVpWPOydIjBGxx22lqSq\
    dKoFYluwVqo+prattvyTSJDFadp11u+YZZAu7G2NGzbQ1eVTH2yWzPgO/dSbGaKP4O2oAX6l7qvPNxkdCupEeWIBL4\
    fFxsx5mnGbJmbkEt2qG/xlnZ5g8/bw==";
const SK_ED25519: &str = "sk-ssh-ed25519@openssh.com AAAAGnNrLXNzaC1lZDI1NTE5QG9wZW5zc2guY29tAAAAII7KM58AClFcbN7U0e7\
    2APmJ/P3Dht8svq9h9D41j7HsAAAABHNzaDo=";
const SK_ECDSA: &str = "sk-ecdsa-sha2-nistp256@openssh.com AAAAInNrLWVjZHNhLXNoYTItbmlzdHAyNTZAb3BlbnNzaC5jb20AAAA\
    IbmlzdHAyNTYAAABBBJK6zUJVTojMbBQ/Z/UvTp/hsYJGgKVg4jlSeWeFGxsNMGXTj9s2j4F+bTHjue5f3SWOQ/eU4\
    IsODANV34x2LNAAAAAEc3NoOg==";
const DSA: &str = "ssh-dss AAAAB3NzaC1kc3MAAACBAL+D7GgKab/UDfE/w0VOl4h8uNf8SZ70A51G+1j//Q7AOAJ1mg6vRxLfJ0FeIO\
    7lUUkvqWVzAZAz8w2o2gFBusRyVYzwG3w1dkFE3WXRwPsgC3XtAHBFdljjBYDNhYO8TrWlICXdJcoXAFjCSOGRb7Kb\
    W4s7V9H2dU/N9j6m3wD3AAAAFQCf1K5pk5lyB6eq1wtZdua81JHjwwAAAIBpFjOsPXl1gRh61WEbp5Ky3nWX9J+tDe\
    41ZMaNQMyEgBvsAf136aI0XIi+uz4xlIkQawGV8LLNMf91HoKg3XTc0cg37u7YRqD6/QqBVxDnZ6b9MQZjiUEuBEer\
    B/78AHGtAw94bynlJnuoWHVjS4mIfumJqh0pfhCApWGdaqmXdAAAAIEAiX7/OmbxLceSeXHIuhG1vqquIbTW1x6txi\
    w9dR8iE8eKAQtMbg9w6GfabHwSWHUGeo+ORT6UG1PuoI25gKa9iPUSiyUHWx8pySgp9wTt45DDMcMdGTzEaBvHM+go\
    l2Dd+7khEnT5ivBzaf6FfElIdcLIFkOCWpJGDSWFk4PB8rs=";

#[test]
fn networks_are_returned_in_canonical_form() {
    for (written, canonical) in [
        ("203.0.113.0/24", "203.0.113.0/24"),
        ("203.0.113.7/32", "203.0.113.7/32"),
        ("0.0.0.0/0", "0.0.0.0/0"),
        ("2001:DB8:0:0::/32", "2001:db8::/32"),
        ("::/0", "::/0"),
    ] {
        assert_eq!(cidr(written).unwrap().to_string(), canonical);
    }
}

#[test]
fn rejected_network_is_reported_with_its_correction() {
    for (written, message) in [
        (
            "10.0.0.1/8",
            r#"found "10.0.0.1/8", an address inside a network; allowed: 10.0.0.0/8 for the network, 10.0.0.1/32 for this host"#,
        ),
        (
            "10.0.0.1",
            r#"found "10.0.0.1", an address without a prefix; allowed: 10.0.0.1/32 for this host"#,
        ),
        (
            "2001:db8::1",
            r#"found "2001:db8::1", an address without a prefix; allowed: 2001:db8::1/128 for this host"#,
        ),
        (
            "2001:db8::1/64",
            r#"found "2001:db8::1/64", an address inside a network; allowed: 2001:db8::/64 for the network, 2001:db8::1/128 for this host"#,
        ),
        (
            "::ffff:10.0.0.0/104",
            r#"found "::ffff:10.0.0.0/104", IPv4 written as IPv6; allowed: the network in IPv4 notation"#,
        ),
    ] {
        assert_eq!(cidr(written).unwrap_err().to_string(), message);
    }
}

#[test]
fn invalid_network_is_rejected() {
    for written in [
        "",
        "10.0.0.0/33",
        "10.0.0/8",
        "300.0.0.0/8",
        "10.0.0.0/-1",
        "10.0.0.0/+8",
        "10.0.0.0/8 ",
        "anywhere",
        "::/129",
        "010.0.0.0/8",
    ] {
        let refused = cidr(written).unwrap_err();
        assert_eq!(refused.found, format!("{written:?}"));
        assert!(refused.allowed.contains("203.0.113.0/24"), "{refused}");
    }
}

#[test]
fn every_modern_type_of_key_is_accepted_with_or_without_a_comment() {
    for key in [ED25519, ECDSA_256, ECDSA_384, ECDSA_521, RSA_2048, SK_ED25519, SK_ECDSA] {
        ssh_public_key(key).unwrap();
        let line = format!("{key} Ada Lovelace <ada@example.org> Zoë");
        assert_eq!(ssh_public_key(&line).unwrap().comment(), "Ada Lovelace <ada@example.org> Zoë");
    }
}

#[test]
fn key_with_any_blanks_is_accepted_as_openssh_does() {
    let (kind, key) = ED25519.split_once(' ').unwrap();
    let commented = format!("{ED25519} ada at work");
    for (line, normal) in [
        (format!("{kind}  {key}"), ED25519),
        (format!("{kind}\t{key}"), ED25519),
        (format!(" \t{kind} \t {key} \t"), ED25519),
        (format!("{ED25519}\n"), ED25519),
        (format!("{ED25519}\r\n"), ED25519),
        (format!("{kind}  {key}  ada at work  "), &commented),
        (format!("{kind} {key}\tada\tat work\n"), &commented),
        (ED25519.to_owned(), ED25519),
        (commented.clone(), &commented),
    ] {
        let read = ssh_public_key(&line).unwrap_or_else(|error| panic!("{line:?}: {error}"));
        let normal = ssh_public_key(normal).map(|key| key.to_openssh().unwrap()).unwrap();
        assert_eq!((ssh_key_line(&line), read.to_openssh().unwrap()), (normal.clone(), normal));
    }
}

#[test]
fn weak_keys_are_refused() {
    assert_eq!(ssh_public_key(RSA_1024).unwrap_err().found, "an RSA key of 1024 bits");
    assert_eq!(
        ssh_public_key(DSA).unwrap_err().found,
        "a DSA key (ssh-dss), which is no longer \
         secure"
    );
}

#[test]
fn line_with_more_than_one_plain_key_is_rejected() {
    let two = format!("{ED25519}\n{RSA_2048}");
    let broken = ED25519.replace("ZDI1", "ZDI1\r\n");
    let bidi = format!("{ED25519} a\u{202e}b");
    let comment = format!("{ED25519} ada\nroot");
    for line in [&two, &broken, &comment, &bidi] {
        let found = ssh_public_key(line).unwrap_err().found;
        assert!(found.contains("a line break or another invisible character"), "{found}");
    }
    for options in ["no-pty", "command=\"rm\"", "no-pty,no-agent-forwarding ", "\tno-pty"] {
        let found = ssh_public_key(&format!("{options} {ED25519}")).unwrap_err().found;
        assert_eq!(found, "a key with options before its type");
    }
}

#[test]
fn incomplete_key_is_rejected() {
    let pasted = ssh_public_key("ssh-rsa AAAA...").unwrap_err();
    assert_eq!(pasted.found, r#""ssh-rsa AAAA...", which is not a complete key"#);
    assert!(pasted.allowed.contains("id_ed25519.pub"), "{pasted}");

    let other_type = ED25519.replacen("ssh-ed25519", "ssh-rsa", 1);
    let cut = &ED25519[..ED25519.len() - 8];
    let longer = format!("{ED25519}AAAA");
    for line in
        ["ssh-ed25519", "ssh-ed25519 ", "ssh-rsa AAAA", other_type.as_str(), cut, longer.as_str()]
    {
        assert!(
            ssh_public_key(line).unwrap_err().found.ends_with("which is not a complete key"),
            "{line}"
        );
    }
    let wordy = format!("{ED25519} {}", "é".repeat(LONGEST_SSH_KEY));
    let refused = ssh_public_key(&wordy).unwrap_err();
    assert!(
        refused.to_string().starts_with("found 8273 characters; allowed: at most 8192; "),
        "{refused}"
    );
    for line in ["", " ", "ada", "ssh-ed25519-cert-v01@openssh.com AAAA"] {
        assert!(ssh_public_key(line).unwrap_err().found.ends_with(
            "which does not start with a known \
                key type"
        ));
    }
}

#[test]
fn a_private_key_is_never_shown() {
    let body = "b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQ";
    for pasted in [
        format!("-----BEGIN OPENSSH PRIVATE KEY-----\n{body}\n-----END OPENSSH PRIVATE KEY-----"),
        body.to_owned(),
        format!("ssh-ed25519 {body}"),
        format!("PuTTY-User-Key-File-3: ssh-ed25519 {body}"),
    ] {
        let refused = ssh_public_key(&pasted).unwrap_err();
        assert!(refused.allowed.contains("Replace this private key"), "{refused}");
        assert!(!refused.to_string().contains("b3Blbn"), "{refused}");
    }
    // A line of the key's body, as a separate item of a list.
    let line = "QyNTUxOQAAACCOyjOfAApRXGze1NHu9gD5ifz9w4bfLL6vYfQ";
    let refused = ssh_public_key(line).unwrap_err();
    assert!(!refused.to_string().contains("QyNTUxOQ"), "{refused}");
}

#[test]
fn public_key_in_another_format_is_answered_with_its_conversion() {
    let body = "MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAsakmpvMe6cF4letgiraT";
    for (header, found, command) in [
        (
            "-----BEGIN PUBLIC KEY-----",
            "a public key in PEM format",
            "`ssh-keygen -i -m PKCS8 -f FILE`",
        ),
        (
            "-----BEGIN RSA PUBLIC KEY-----",
            "a public key in PEM (PKCS#1) format",
            "`ssh-keygen -i -m PEM -f FILE`",
        ),
        (
            "---- BEGIN SSH2 PUBLIC KEY ----",
            "a public key in RFC 4716 format",
            "`ssh-keygen -i -f FILE`",
        ),
    ] {
        let refused = ssh_public_key(&format!("{header}\n{body}\n")).unwrap_err();
        assert_eq!(refused.found, found);
        assert!(refused.allowed.contains(command), "{refused}");
        assert!(!refused.to_string().contains("private"), "{refused}");
    }
    let certificate = format!("-----BEGIN CERTIFICATE-----\n{body}\n-----END CERTIFICATE-----");
    let refused = ssh_public_key(&certificate).unwrap_err().to_string();
    assert!(
        refused.starts_with("found a PEM text that is not a public key (not shown)"),
        "{refused}"
    );
    assert!(!refused.contains("private") && !refused.contains(body), "{refused}");
}

#[test]
fn numbers_have_their_bounds() {
    assert_eq!(range(75, 75..=16384, "GiB"), Ok(75));
    assert_eq!(
        range(74, 75..=16384, "GiB").unwrap_err().to_string(),
        "found 74; allowed: 75 to 16384 GiB"
    );
    assert_eq!(range(-1, 0..=16, "").unwrap_err().to_string(), "found -1; allowed: 0 to 16");
}

#[test]
fn texts_have_their_length_and_shape() {
    let small = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_lowercase());
    let name = |value| shape(value, 5, small, "1 to 5 small letters").map(str::to_owned);
    assert_eq!(name("ada"), Ok("ada".to_owned()));
    for value in ["", "Ada", "adaada", "a\u{200b}a"] {
        assert_eq!(name(value).unwrap_err().allowed, "1 to 5 small letters");
    }
}

#[test]
fn a_name_that_is_almost_right_is_suggested() {
    let sizes = ["small", "medium", "large"];
    assert_eq!(one_of("large", &sizes), Ok("large"));
    let message = one_of("medum", &sizes).unwrap_err().to_string();
    assert_eq!(message, r#"found "medum"; allowed: small, medium, large (nearest: medium)"#);
    assert_eq!(one_of("xyz", &sizes).unwrap_err().allowed, "small, medium, large");
}

#[test]
fn value_is_quoted_on_one_line_with_visible_characters() {
    assert_eq!(quoted("a\"b\n\u{202e}c\u{200b}\0"), r#""a\"b\n\u{202e}c\u{200b}\0""#);
    assert_eq!(quoted(&"é".repeat(80)), format!("\"{}\"", "é".repeat(80)));
    assert_eq!(quoted(&"é".repeat(300)), format!("\"{}\"… (300 characters)", "é".repeat(80)));
}

/// Any text, and texts that are similar to valid values.
fn anything() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        proptest::collection::vec(any::<char>(), 0..400).prop_map(String::from_iter),
        "[0-9a-f:./]{0,40}",
        r"(ssh-(rsa|ed25519)|sk-ssh-ed25519@openssh\.com|ecdsa-sha2-nistp521) AAAA[A-Za-z0-9+/]{0,200}={0,2}( .*)?",
        (0..ED25519.len(), any::<char>()).prop_map(|(at, c)| format!(
            "{}{c}{}",
            &ED25519[..at],
            &ED25519[at..]
        )),
    ]
}

proptest! {
    #[test]
    fn no_text_makes_a_check_panic_or_a_message_misread(value in anything()) {
        let refusals = [
            cidr(&value).err(),
            ssh_public_key(&value).err(),
            one_of(&value, &["small", "large"]).err(),
            shape(&value, 63, |text| text.chars().all(char::is_alphanumeric), "a name").err(),
            crate::catalog::gpu::machine(&value).err(),
            crate::catalog::opencv::requirement(&value).err(),
        ];
        for refused in refusals.into_iter().flatten() {
            let message = refused.to_string();
            prop_assert!(!message.chars().any(is_invisible), "{message:?}");
            prop_assert!(message.chars().count() < 1600, "{message}");
        }
    }

    #[test]
    fn accepted_value_is_canonical(value in anything()) {
        if let Ok(network) = cidr(&value) {
            prop_assert_eq!(network.trunc(), network);
            prop_assert_eq!(cidr(&network.to_string()), Ok(network));
        }
        if ssh_public_key(&value).is_ok() {
            let line = ssh_key_line(&value);
            prop_assert!(!line.chars().any(is_invisible), "{line:?}");
            prop_assert_eq!(ssh_key_line(&line), line);
        }
    }
}

#[test]
fn an_image_is_a_reference_with_a_repository_in_lower_case() {
    let digest = format!("ghcr.io/a/b:1@sha256:{}", "0123456789abcdef".repeat(4));
    for good in [
        "nginx",
        "nginx:1.27",
        "registry.k8s.io/pause:3.10",
        "localhost:5000/a/b-c__d.e:v1_2",
        digest.as_str(),
    ] {
        assert_eq!(kubernetes::image(good), Ok(good));
    }
    let long = format!("a/{}", "b".repeat(600));
    for bad in [
        "",
        " ",
        "a b",
        "Nginx",
        "acme/App",
        "http://x/y",
        ":tag",
        "x:",
        "x@sha256:12",
        "-a",
        "a/",
        "/a",
        "a//b",
        &long,
    ] {
        assert!(kubernetes::image(bad).is_err(), "{bad}");
    }
}

#[test]
fn memory_is_a_quantity_of_at_least_four_mebibytes() {
    for (good, bytes) in [
        ("129e6", 129_000_000),
        ("129E+6", 129_000_000),
        ("128974848000m", 128_974_848),
        ("4194304", 4 << 20),
        ("4194303.5", 4 << 20),
        ("4Mi", 4 << 20),
        ("4096Ki", 4 << 20),
        ("16G", 16_000_000_000),
        (".5Gi", 512 << 20),
        ("+5Gi", 5 << 30),
        ("1.Gi", 1 << 30),
        ("512Mi", 512 << 20),
        ("16Gi", 16 << 30),
        ("7Ei", 7 << 60),
        ("9223372036854775807", i64::MAX as u64),
    ] {
        assert_eq!(kubernetes::memory(good), Ok(bytes), "{good}");
    }
    for (bad, found, example) in [
        ("16", r#""16", 16 bytes"#, "16Gi"),
        ("1", r#""1", 1 byte"#, "1Gi"),
        ("512", r#""512", 512 bytes"#, "512Mi"),
        ("0.5", r#""0.5", 1 byte"#, "0.5Gi"),
        ("512m", r#""512m", 1 byte"#, "512Mi"),
        ("64Ki", r#""64Ki", 65536 bytes"#, "512Mi or 16Gi"),
        ("1e3", r#""1e3", 1000 bytes"#, "512Mi or 16Gi"),
        ("4194303", r#""4194303", 4194303 bytes"#, "512Mi or 16Gi"),
        ("16g", r#""16g""#, "16Gi"),
        ("16GB", r#""16GB""#, "16Gi"),
        ("16gi", r#""16gi""#, "16Gi"),
        ("16 gigs", r#""16 gigs""#, "16Gi"),
        ("16 Gi", r#""16 Gi""#, "16Gi"),
        ("512MB", r#""512MB""#, "512Mi"),
        ("1.5tib", r#""1.5tib""#, "1.5Ti"),
        ("1mb", r#""1mb""#, "512Mi or 16Gi"),
    ] {
        let error = kubernetes::memory(bad).unwrap_err();
        let words = "an amount of memory from 4Mi to less than 8Ei, for example";
        assert_eq!(error.to_string(), format!("found {found}; allowed: {words} {example}"));
    }
    for bad in [
        "",
        "-1Gi",
        "0",
        "0Gi",
        "0.000",
        "8Ei",
        "9223372036854775808",
        "1e99",
        "1e",
        "Gi",
        ".",
        "+",
        "١Gi",
    ] {
        let error = kubernetes::memory(bad).unwrap_err();
        let allowed = "an amount of memory from 4Mi to less than 8Ei, for example 512Mi or 16Gi";
        assert_eq!(error.allowed, allowed, "{bad}");
    }
}

#[test]
fn cpu_is_a_quantity_of_at_least_a_thousandth() {
    for good in ["250m", "2", "0.5", ".5", "+1", "1e-1", "1k", "0.001"] {
        assert_eq!(kubernetes::cpu(good), Ok(good));
    }
    for bad in ["", "0", "0m", "500u", "-1", "1 core", "1,5", "1e"] {
        assert!(kubernetes::cpu(bad).is_err(), "{bad}");
    }
}

#[test]
fn repository_url_with_a_secret_is_rejected_without_the_secret() {
    for good in [
        "https://git.example.org/team/app.git",
        "ssh://git@git.example.org:22/a",
        "git@git.example.org:a/b.git",
        "http://10.0.0.1:3000/a",
    ] {
        assert_eq!(location::git_repository(good), Ok(good));
    }
    for secret in [
        "https://bob:hunter2@git.example.org/a",
        "https://ghp_hunter2@git.example.org/a",
        "ssh://bob:hunter2@h/a",
        "https://h/a?token=hunter2",
        "bob:hunter2@h:a",
    ] {
        for error in [
            location::git_repository(secret).unwrap_err(),
            location::chart_repository(secret).unwrap_err(),
        ] {
            assert!(
                !error.to_string().contains("hunter2") && error.allowed.contains("secrets"),
                "{error}"
            );
        }
    }
    for bad in [
        "",
        "git.example.org/a",
        "ftp://h/a",
        "https://",
        "https:///a",
        "javascript:alert(1)",
        "https://h/a b",
        "file:///etc",
    ] {
        assert!(location::git_repository(bad).is_err(), "{bad}");
    }
    for good in
        ["https://charts.example.org", "http://127.0.0.1:8080/", "oci://ghcr.io/acme/charts"]
    {
        assert_eq!(location::chart_repository(good), Ok(good));
    }
    assert!(location::chart_repository("charts.example.org").is_err());
}

#[test]
fn repository_that_is_not_public_is_rejected_with_its_url() {
    for (value, why) in [
        ("http://charts.example.org", "without encryption"),
        ("http://169.254.169.254/latest", "not public"),
        ("https://169.254.169.254/latest", "not public"),
        ("https://kubernetes.default.svc", "private network"),
        ("http://10.0.0.1:8080/x", "not public"),
        ("oci://localhost:5000/x", "without a dot"),
        ("oci://2130706433/x", "unusual notation"),
        ("https://charts.example.org/team/../other", ". or .."),
        ("ssh://git@10.0.0.1/team/app", "not public"),
        ("ssh://git@gitea.git.svc:2222/team/app", "private network"),
        ("git@localhost:team/app.git", "without a dot"),
        ("git@192.168.0.7:team/app.git", "not public"),
        ("git@git.example.org:team/../app.git", ". or .."),
        ("http://git.example.org/team/app", "without encryption"),
    ] {
        let refused = location::public(value).unwrap_err().to_string();
        assert!(refused.contains(value) && refused.contains(why), "{value}: {refused}");
    }
    for value in [
        "https://charts.example.org",
        "https://charts.example.org:8443/a/b/",
        "oci://ghcr.io/acme/charts",
        "https://git.example.org/team/app.git",
        "ssh://git@git.example.org:2222/team/app.git",
        "git@git.example.org:team/app.git",
    ] {
        assert_eq!(location::public(value), Ok(()), "{value}");
    }
}

#[test]
fn prefix_of_a_repository_ends_with_a_part_of_its_path() {
    let within = |value: &str, prefix: &str| location::is_within(value, &[prefix.to_owned()]);
    for prefix in ["https://charts.acme.io/team", "https://charts.acme.io/team/"] {
        for value in [
            "https://charts.acme.io/team",
            "https://charts.acme.io/team/",
            "https://charts.acme.io/team/a",
            "https://CHARTS.acme.io:443/team/a/b",
        ] {
            assert!(within(value, prefix), "{value} {prefix}");
        }
        for value in [
            "https://charts.acme.io/team-evil",
            "https://charts.acme.io/teams/a",
            "https://charts.acme.io/Team",
            "https://charts.acme.io",
            "https://charts.acme.io.evil.com/team",
            "https://evil.com/charts.acme.io/team",
            "https://evilcharts.acme.io/team",
            "https://charts.acme.io:8443/team",
            "oci://charts.acme.io/team",
        ] {
            assert!(!within(value, prefix), "{value} {prefix}");
        }
    }
    assert!(within("oci://ghcr.io/acme/charts", "oci://ghcr.io"));
    assert!(within("oci://ghcr.io/acme/charts", "oci://ghcr.io/"));
    assert!(!within("oci://ghcr.io.evil.com/acme", "oci://ghcr.io"));
    assert!(!within("oci://ghcr.io:99999/acme", "oci://ghcr.io"));
    let two = ["https://a.example.org".to_owned(), "oci://b.example.org/x".to_owned()];
    assert!(location::is_within("oci://b.example.org/x/y", &two));
    assert!(location::is_within("https://anywhere.example.org", &[]));
}

#[test]
fn names_in_kubernetes_have_their_shapes() {
    assert!(
        kubernetes::label("a-1").is_ok()
            && kubernetes::label("-a").is_err()
            && kubernetes::label(&"a".repeat(64)).is_err()
    );
    assert!(
        kubernetes::label_value("g1.1").is_ok()
            && kubernetes::label_value("g1.").is_err()
            && kubernetes::label_value("").is_err()
    );
    assert!(
        kubernetes::variable("LOG_LEVEL").is_ok()
            && kubernetes::variable("1A").is_err()
            && kubernetes::variable("a-b").is_err()
    );
}

#[test]
fn quantities_are_compared_by_amount() {
    for (one, other) in [
        ("1.3Gi", "1395864371200m"),
        ("1", "1000m"),
        ("1k", "1e3"),
        ("1E3", "1000"),
        ("1E", "1e18"),
        ("0.5", "500000u"),
        ("1n", "0.000000001"),
        (".5", "500m"),
        ("1.", "1"),
        ("0", "0Gi"),
        ("-1", "-1000m"),
        ("+1", "1"),
        ("8Ei", "9223372036854775808"),
    ] {
        assert!(kubernetes::same_quantity(one, other), "{one} and {other}");
    }
    for (one, other) in [
        ("1Gi", "1G"),
        ("1", "1001m"),
        ("1395864371200m", "1395864371201m"),
        ("x", "x"),
        ("", ""),
        ("1", "-1"),
        ("1e999999999", "1"),
        ("1.2.3", "1.2.3"),
        ("-", "-"),
    ] {
        assert!(!kubernetes::same_quantity(one, other), "{one} and {other}");
    }
}

#[test]
fn public_networks_are_not_subnets_of_others() {
    for public in ["0.0.0.0/0", "198.51.100.0/24", "11.0.0.0/8", "172.32.0.0/16", "8.8.8.8/32"] {
        assert!(is_public(public), "{public}");
    }
    for other in [
        "0.0.0.0/32",
        "10.0.0.0/8",
        "10.1.2.3/32",
        "172.16.0.0/12",
        "192.168.1.0/24",
        "100.64.0.0/10",
        "127.0.0.1/32",
        "169.254.169.254/32",
        "224.0.0.0/4",
        "240.0.0.0/8",
        "2001:db8::/48",
    ] {
        assert!(!is_public(other), "{other}");
    }
}
