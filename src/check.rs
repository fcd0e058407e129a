//! Checks of user input. An error has the found and the allowed value. The caller adds the field's
//! path.
//!
//! A local preview has no API server, so the function repeats the checks of the schemas. It adds
//! checks that schemas cannot express.

use std::collections::{BTreeSet, HashSet};
use std::net::{IpAddr, Ipv4Addr};
use std::ops::RangeInclusive;
use std::sync::LazyLock;

use ipnet::{IpNet, Ipv4Net};
use regex_lite::Regex;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

mod fields;
mod host;
pub mod kubernetes;
pub mod location;
pub mod numbers;
mod ssh;
#[cfg(test)]
mod tests;
mod typed;

pub use fields::Fields;
pub use ssh::{LONGEST_SSH_KEY, ssh_key_line, ssh_public_key};
pub use typed::typed;

/// The longest message that we put into status or results, in bytes.
pub const MAX_MESSAGE_LEN: usize = 1024;

/// Maximum number of a value's characters that a message shows.
const SHOWN: usize = 80;

/// A rejected value. Both texts are safe to show: cut to a line, without invisible characters.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("found {found}; allowed: {allowed}")]
pub struct Refused {
    /// The value that was found, quoted.
    pub found: String,
    /// The values that are allowed instead.
    pub allowed: String,
}

impl Refused {
    /// Rejects `value`. The message shows it.
    pub fn new(value: &str, allowed: impl Into<String>) -> Self {
        Self { found: quoted(value), allowed: allowed.into() }
    }

    /// Like [`new`](Self::new), with a reason.
    fn because(value: &str, why: &str, allowed: impl Into<String>) -> Self {
        Self { found: format!("{}, {why}", quoted(value)), allowed: allowed.into() }
    }
}

/// A network in CIDR notation, IPv4 or IPv6. The result prints in canonical form: `2001:DB8:0::/48`
/// as `2001:db8::/48`.
pub fn cidr(value: &str) -> Result<IpNet, Refused> {
    const EXAMPLES: &str = "a network, for example 203.0.113.0/24, 203.0.113.7/32 for one host, \
                            or 2001:db8::/48 for \
         IPv6";
    if let Ok(address) = value.parse::<IpAddr>() {
        let network = IpNet::from(address);
        return Err(Refused::because(
            value,
            "an address without a prefix",
            format!("{network} for this host"),
        ));
    }
    let network = network(value).ok_or_else(|| Refused::new(value, EXAMPLES))?;
    if network.trunc() != network {
        let allowed = format!(
            "{} for the network, {} for this host",
            network.trunc(),
            IpNet::from(network.addr())
        );
        return Err(Refused::because(value, "an address inside a network", allowed));
    }
    if let IpNet::V6(v6) = network
        && v6.addr().to_ipv4_mapped().is_some()
    {
        return Err(Refused::because(
            value,
            "IPv4 written as IPv6",
            "the network in IPv4 notation",
        ));
    }
    Ok(network)
}

/// Whether an IPv4 network can be reached over the internet. Networks within a private, shared,
/// local, multicast or reserved network cannot.
pub fn is_public(cidr: &str) -> bool {
    const OTHERS: [(Ipv4Addr, u8); 9] = [
        (Ipv4Addr::UNSPECIFIED, 8),
        (Ipv4Addr::new(10, 0, 0, 0), 8),
        (Ipv4Addr::new(100, 64, 0, 0), 10),
        (Ipv4Addr::new(127, 0, 0, 0), 8),
        (Ipv4Addr::new(169, 254, 0, 0), 16),
        (Ipv4Addr::new(172, 16, 0, 0), 12),
        (Ipv4Addr::new(192, 168, 0, 0), 16),
        (Ipv4Addr::new(224, 0, 0, 0), 4),
        (Ipv4Addr::new(240, 0, 0, 0), 4),
    ];
    let Ok(IpNet::V4(network)) = cidr.parse() else { return false };
    let within = |(address, prefix): &(Ipv4Addr, u8)| {
        Ipv4Net::new(*address, *prefix).is_ok_and(|other| other.contains(&network))
    };
    !OTHERS.iter().any(within)
}

/// A network. The standard library parses the address, because it rejects octal-looking parts, for
/// example `010`.
fn network(value: &str) -> Option<IpNet> {
    let (address, prefix) = value.split_once('/')?;
    let digits =
        (1..=3).contains(&prefix.len()) && prefix.bytes().all(|byte| byte.is_ascii_digit());
    let prefix = prefix.parse().ok().filter(|_| digits)?;
    IpNet::new(address.parse().ok()?, prefix).ok()
}

/// A number within `allowed`. `unit` is its unit, for example `GiB`.
pub fn range(value: i64, allowed: RangeInclusive<i64>, unit: &str) -> Result<i64, Refused> {
    if allowed.contains(&value) {
        return Ok(value);
    }
    let allowed = format!("{} to {} {unit}", allowed.start(), allowed.end()).trim_end().to_owned();
    Err(Refused { found: value.to_string(), allowed })
}

/// A size that can only grow. `running` is its current value, if it is known.
pub fn grows(value: i64, running: Option<&serde_json::Value>, unit: &str) -> Result<(), Refused> {
    match running.and_then(serde_json::Value::as_i64) {
        Some(now) if value < now => Err(Refused {
            found: value.to_string(),
            allowed: format!("{now} {unit} or more, because the value can only grow"),
        }),
        _ => Ok(()),
    }
}

/// A value that cannot change. `running` is its current value, if it is known. `instead` is the way
/// to another value, for example `create a new workspace`.
pub fn unchanged(value: &str, running: Option<&str>, instead: &str) -> Result<(), Refused> {
    match running {
        Some(now) if now != value => Err(Refused::new(
            value,
            format!("{}, the current value. For another value, {instead}", shown(now)),
        )),
        _ => Ok(()),
    }
}

/// At most 100 different networks in CIDR notation. The results print in canonical form. `path` is
/// the path of the list.
pub fn cidrs(path: &str, list: &[String], fields: &mut Fields) -> Vec<IpNet> {
    if fields.check(path, count(list, 100)).is_none() {
        return Vec::new();
    }
    let mut seen = HashSet::new();
    let mut entry = |text: &str| {
        let cidr = cidr(text).map_err(|refused| refused.to_string())?;
        if seen.insert(cidr) {
            return Ok(cidr);
        }
        Err(format!("found {cidr} twice; each network may be given once"))
    };
    let entries = list.iter().enumerate();
    entries
        .filter_map(|(index, text)| fields.check(format!("{path}[{index}]"), entry(text)))
        .collect()
}

/// A list of at most `most` entries.
pub fn count<T>(list: &[T], most: usize) -> Result<(), Refused> {
    if list.len() <= most {
        return Ok(());
    }
    Err(Refused { found: format!("{} entries", list.len()), allowed: format!("at most {most}") })
}

/// The longest offer that a message lists by full names.
const SHORT: usize = 8;

/// The values of an offer and the nearest one, for the message about `found`. Families with the
/// same sizes share their list: `g4dn, g5 (xlarge, 2xlarge)`.
pub fn offer(found: &str, values: &[&str]) -> String {
    if values.len() <= SHORT {
        return suggestion(found, values);
    }
    let nearest = crossplane::similar(found, values.iter().copied(), 1);
    let hint = nearest.first().map_or_else(String::new, |name| format!(" (nearest: {name})"));
    format!("{}{hint}", by_family(values))
}

/// The values, with one list of sizes for all families that have the same sizes.
fn by_family(values: &[&str]) -> String {
    let family =
        |value: &str| value.split_once('.').map_or(value.len(), |(family, _)| family.len());
    let mut groups: Vec<(Vec<&str>, Vec<&str>)> = Vec::new();
    let mut seen = BTreeSet::new();
    for value in values {
        let name = &value[..family(value)];
        if !seen.insert(name) {
            continue;
        }
        let of = values.iter().filter(|value| &value[..family(value)] == name);
        let sizes: Vec<&str> = of.filter_map(|value| Some(value.split_once('.')?.1)).collect();
        match groups.iter_mut().find(|(_, known)| *known == sizes) {
            Some((families, _)) => families.push(name),
            None => groups.push((vec![name], sizes)),
        }
    }
    let shown = groups.iter().map(|(families, sizes)| match sizes.as_slice() {
        [] => families.join(", "),
        sizes => format!("{} ({})", families.join(", "), sizes.join(", ")),
    });
    shown.collect::<Vec<_>>().join("; ")
}

/// Reads a list with at least one entry. An empty list of allowed values could mean all or none.
pub fn filled<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    reader: D,
) -> Result<Vec<T>, D::Error> {
    let list = Vec::deserialize(reader)?;
    if list.is_empty() {
        let message = "found an empty list; allowed: at least one entry, or no such field";
        return Err(D::Error::custom(message));
    }
    Ok(list)
}

/// A text of at most `longest` characters that `fits` accepts. `allowed` describes both conditions.
pub fn shape<'a>(
    value: &'a str,
    longest: usize,
    fits: impl Fn(&str) -> bool,
    allowed: &str,
) -> Result<&'a str, Refused> {
    // Count a few characters only: the text may be a megabyte long.
    let short = value.chars().take(longest.saturating_add(1)).count() <= longest;
    if short && fits(value) { Ok(value) } else { Err(Refused::new(value, allowed)) }
}

/// A text of at most `longest` characters that matches a pattern. `allowed` describes both
/// conditions. A pattern that does not compile would match no text. A test excludes that.
pub fn matching<'a>(
    value: &'a str,
    longest: usize,
    pattern: &LazyLock<Option<Regex>>,
    allowed: &str,
) -> Result<&'a str, Refused> {
    shape(
        value,
        longest,
        |value| pattern.as_ref().is_some_and(|pattern| pattern.is_match(value)),
        allowed,
    )
}

/// One of a few names. Returns the element of `names`, not `value`.
pub fn one_of<'n>(value: &str, names: &[&'n str]) -> Result<&'n str, Refused> {
    if let Some(name) = names.iter().find(|name| **name == value) {
        return Ok(name);
    }
    Err(Refused::new(value, suggestion(value, names)))
}

/// All names, with a hint at the name that is most similar to `value`.
pub fn suggestion(value: &str, names: &[&str]) -> String {
    let hint = match crossplane::similar(value, names.iter().copied(), 1).first() {
        Some(name) if names.len() > 1 => format!(" (nearest: {name})"),
        _ => String::new(),
    };
    format!("{}{hint}", names.join(", "))
}

/// A value in the form of messages: quoted, cut, with each control, invisible or direction-changing
/// character escaped. A message then looks the same everywhere.
pub fn quoted(value: &str) -> String {
    match value.char_indices().nth(SHOWN) {
        None => format!("{value:?}"),
        Some((end, _)) => format!("{:?}… ({} characters)", &value[..end], value.chars().count()),
    }
}

/// Whether a character is a control character, is invisible or changes the direction of writing.
/// Names and comments must not contain such characters.
pub fn is_invisible(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}'
                | '\u{61c}'
                | '\u{180e}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

/// A foreign text in the form of messages: without invisible characters, at most 1 KiB.
pub fn shown(words: &str) -> String {
    let visible: String = words
        .chars()
        .take(MAX_MESSAGE_LEN)
        .map(|c| if is_invisible(c) { '\u{fffd}' } else { c })
        .collect();
    match visible.char_indices().find(|(index, c)| index + c.len_utf8() > MAX_MESSAGE_LEN - 3) {
        None => visible,
        Some((end, _)) => format!("{}…", &visible[..end]),
    }
}
