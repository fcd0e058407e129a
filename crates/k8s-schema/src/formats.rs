//! The formats of strings and numbers that an API server checks, each with a description of its
//! values.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use base64::Engine;

/// A description of a format's values, if `text` does not have the format. Like an API server, this
/// does not check an unknown format.
pub(super) fn refused_text(format: &str, text: &str) -> Option<&'static str> {
    let (holds, allowed) = match format {
        "date-time" => {
            (text.parse::<jiff::Timestamp>().is_ok(), "a time like 2024-01-31T12:00:00Z")
        }
        "date" => (text.parse::<jiff::civil::Date>().is_ok(), "a date like 2024-01-31"),
        "duration" => (is_duration(text), "a duration like 30s or 1h30m"),
        "ipv4" => (text.parse::<Ipv4Addr>().is_ok(), "an IPv4 address like 10.0.0.1"),
        "ipv6" => (text.parse::<Ipv6Addr>().is_ok(), "an IPv6 address like 2001:db8::1"),
        "cidr" => (is_cidr(text), "an address range like 10.0.0.0/8"),
        "byte" => (base64::engine::general_purpose::STANDARD.decode(text).is_ok(), "base64"),
        "uuid" => (uuid::Uuid::try_parse(text).is_ok(), "a UUID"),
        "email" => (is_email(text), "an e-mail address"),
        "uri" => (
            text.split_once(':')
                .is_some_and(|(scheme, rest)| is_scheme(scheme) && !rest.is_empty()),
            "a URI",
        ),
        "hostname" => (is_hostname(text), "a host name"),
        _ => return None,
    };
    (!holds).then_some(allowed)
}

/// The range of an integer format, if `number` is outside it.
pub(super) fn refused_number(format: &str, number: f64) -> Option<&'static str> {
    let fits_32 = (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&number);
    (format == "int32" && !fits_32).then_some("a 32-bit integer")
}

fn is_cidr(text: &str) -> bool {
    let Some((address, length)) = text.split_once('/') else { return false };
    let bits = match address.parse::<IpAddr>() {
        Ok(IpAddr::V4(_)) => 32,
        Ok(IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    length.parse::<u8>().is_ok_and(|length| length <= bits)
}

fn is_email(text: &str) -> bool {
    text.split_once('@').is_some_and(|(user, host)| !user.is_empty() && is_hostname(host))
}

fn is_hostname(text: &str) -> bool {
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    text.len() <= 253 && text.split('.').all(is_label)
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
}

/// Go's form: numbers with units, without spaces.
fn is_duration(text: &str) -> bool {
    let mut rest = text.trim_start_matches(['+', '-']);
    if rest == "0" {
        return true;
    }
    while !rest.is_empty() {
        let unit = rest.trim_start_matches(|digit: char| digit.is_ascii_digit() || digit == '.');
        let known = ["ns", "us", "µs", "ms", "s", "m", "h"]
            .into_iter()
            .filter(|name| unit.starts_with(name));
        let Some(longest) = known.max_by_key(|name| name.len()) else { return false };
        if unit.len() == rest.len() {
            return false;
        }
        rest = &unit[longest.len()..];
    }
    !text.is_empty()
}
