//! Texts that Kubernetes accepts: names, image references, quantities of memory. The schemas have
//! the same patterns.

use std::sync::LazyLock;

use regex_lite::Regex;

use super::{Refused, matching};

/// An RFC 1123 label, for example the name of a namespace.
pub const LABEL: &str = "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$";

/// The value of a Kubernetes label, with at least one character.
pub const LABEL_VALUE: &str = "^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$";

/// The key of a label or an annotation.
fn key<'v>(value: &'v str, allowed: &str) -> Result<&'v str, Refused> {
    const KEY: &str = "^([a-z0-9]([a-z0-9-]*[a-z0-9])?([.][a-z0-9]([a-z0-9-]*[a-z0-9])?)*/)?\
                       [A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$";
    static PATTERN: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(KEY).ok());
    matching(value, 317, &PATTERN, allowed)
}

/// The name of an environment variable.
pub const VARIABLE: &str = "^[A-Za-z_][A-Za-z0-9_]*$";

/// A reference to a container image: registry, lowercase repository, tag and digest, in the syntax
/// of the OCI distribution specification.
pub const IMAGE: &str = "^([a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?([.][a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?)*(:[0-9]{1,5})?/)?\
                         [a-z0-9]+(([._]|__|-+)[a-z0-9]+)*(/[a-z0-9]+(([._]|__|-+)[a-z0-9]+)*)*\
                         (:[A-Za-z0-9_][A-Za-z0-9._-]{0,127})?(@sha256:[a-f0-9]{64})?$";

/// The longest reference to an image.
pub const LONGEST_IMAGE: usize = 512;

/// A quantity in Kubernetes' syntax, without a minus: a number, and a suffix or an exponent.
pub const QUANTITY: &str =
    "^[+]?([0-9]+[.]?[0-9]*|[.][0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$";

/// The longest quantity, in characters.
pub const LONGEST_QUANTITY: usize = 32;

/// A name of lowercase letters, digits and hyphens. RFC 1123 calls it a label.
pub fn label(value: &str) -> Result<&str, Refused> {
    static PATTERN: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(LABEL).ok());
    let allowed = "1 to 63 lowercase letters, digits and hyphens, starting and ending with a \
                   letter or digit";
    matching(value, 63, &PATTERN, allowed)
}

/// The value of a label.
pub fn label_value(value: &str) -> Result<&str, Refused> {
    static PATTERN: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(LABEL_VALUE).ok());
    let allowed = "1 to 63 letters, digits and . _ -, starting and ending with a letter or digit";
    matching(value, 63, &PATTERN, allowed)
}

/// The key of a label: an optional domain and a name.
pub fn label_key(value: &str) -> Result<&str, Refused> {
    key(value, "a label key, for example example.org/name")
}

/// The key of an annotation. Users must not set annotations in Crossplane's domains, which include
/// ours.
pub fn annotation_key(value: &str) -> Result<&str, Refused> {
    let allowed = "an annotation key outside Crossplane's domains, for example example.org/name";
    let ours = |domain: &str| domain == "crossplane.io" || domain.ends_with(".crossplane.io");
    let key = key(value, allowed)?;
    match key.split_once('/') {
        Some((domain, _)) if ours(domain) => Err(Refused::new(value, allowed)),
        _ => Ok(key),
    }
}

/// The name of an environment variable.
pub fn variable(value: &str) -> Result<&str, Refused> {
    static PATTERN: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(VARIABLE).ok());
    matching(
        value,
        128,
        &PATTERN,
        "letters, digits and _, not starting with a digit, for example \
         LOG_LEVEL",
    )
}

/// A reference to a container image.
pub fn image(value: &str) -> Result<&str, Refused> {
    static PATTERN: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(IMAGE).ok());
    let allowed = "an image with a lowercase repository, for example \
                   registry.example.org/team/app:1.2";
    matching(value, LONGEST_IMAGE, &PATTERN, allowed)
}

/// The least memory of a container, in bytes. No container starts with less.
const LEAST_MEMORY: u64 = 4 << 20;

/// A quantity of memory of a container, in bytes, rounded up as Kubernetes does.
pub fn memory(value: &str) -> Result<u64, Refused> {
    let allowed = || {
        let example = meant_memory(value).unwrap_or_else(|| "512Mi or 16Gi".to_owned());
        format!("an amount of memory from 4Mi to less than 8Ei, for example {example}")
    };
    let refused = || Refused::new(value, allowed());
    let amount = quantity(value, 1, "").map_err(|_| refused())?;
    match u64::try_from((amount + (NANO - 1)) / NANO).map_err(|_| refused())? {
        1 => Err(Refused::because(value, "1 byte", allowed())),
        few if few < LEAST_MEMORY => {
            Err(Refused::because(value, &format!("{few} bytes"), allowed()))
        }
        bytes => Ok(bytes),
    }
}

/// The amount that a user probably meant: `16Gi` for `16`, `16g`, `16GB` and `16 gigs`.
fn meant_memory(value: &str) -> Option<String> {
    /// The largest numbers without a unit that probably mean gibibytes and mebibytes.
    const MOST: [(f64, &str); 2] = [(64.0, "Gi"), (65_536.0, "Mi")];
    let value = value.trim();
    let end = value.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(value.len());
    let (number, unit) = value.split_at(end);
    let unit = match unit.trim().to_lowercase().as_str() {
        "" => {
            let number: f64 = number.parse().ok()?;
            MOST.into_iter().find(|(most, _)| number <= *most)?.1
        }
        "m" | "mb" | "mi" | "mib" => "Mi",
        "g" | "gb" | "gi" | "gib" | "gig" | "gigs" => "Gi",
        "t" | "tb" | "ti" | "tib" => "Ti",
        _ => return None,
    };
    let meant = format!("{number}{unit}");
    (nanos(&meant)? >= i128::from(LEAST_MEMORY) * NANO).then_some(meant)
}

/// An amount of CPU of at least a thousandth of a core.
pub fn cpu(value: &str) -> Result<&str, Refused> {
    let allowed = "0.001 cores or more, for example 2, 0.5 or 250m";
    quantity(value, NANO / 1000, allowed).map(|_| value)
}

/// A quantity of at least `least`, in thousand-millionths. Larger quantities are rejected, because
/// Kubernetes would cut them to 2⁶³ - 1.
fn quantity(value: &str, least: i128, allowed: &str) -> Result<i128, Refused> {
    static PATTERN: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(QUANTITY).ok());
    matching(value, LONGEST_QUANTITY, &PATTERN, allowed)?;
    let most = i128::from(i64::MAX) * NANO;
    let amount = nanos(value).filter(|amount| (least..=most).contains(amount));
    amount.ok_or_else(|| Refused::new(value, allowed))
}

/// Whether two quantities are the same amount in different notations. An API server turns `1.3Gi`
/// into `1395864371200m`.
pub fn same_quantity(one: &str, other: &str) -> bool {
    nanos(one).is_some_and(|amount| Some(amount) == nanos(other))
}

/// The unit that Kubernetes rounds quantities up to: a thousand-millionth.
const NANO: i128 = 1_000_000_000;

/// A parsed quantity in thousand-millionths. It has digits, an optional point, and a suffix or an
/// exponent.
fn nanos(quantity: &str) -> Option<i128> {
    const MAX_DIGITS: usize = 40;
    let (negative, rest) = match quantity.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, quantity.strip_prefix('+').unwrap_or(quantity)),
    };
    let end = rest.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(rest.len());
    let (number, suffix) = rest.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if number.len() > MAX_DIGITS || whole.len() + fraction.len() == 0 || fraction.contains('.') {
        return None;
    }
    let digits: i128 = format!("{whole}{fraction}").parse().ok()?;
    let (factor, tens) = scale(suffix)?;
    let tens = tens.checked_add(9)?.checked_sub(i32::try_from(fraction.len()).ok()?)?;
    let power = 10_i128.checked_pow(tens.unsigned_abs());
    let scaled = digits.checked_mul(factor)?;
    let amount = match (tens >= 0, power) {
        _ if scaled == 0 => 0,
        (true, power) => scaled.checked_mul(power?)?,
        (false, Some(power)) => scaled / power + i128::from(scaled % power != 0),
        (false, None) => 1,
    };
    Some(if negative { -amount } else { amount })
}

/// The factor of a suffix: a power of two, and the exponent of a power of ten.
fn scale(suffix: &str) -> Option<(i128, i32)> {
    const TENS: [(&str, i32); 10] = [
        ("n", -9),
        ("u", -6),
        ("m", -3),
        ("", 0),
        ("k", 3),
        ("M", 6),
        ("G", 9),
        ("T", 12),
        ("P", 15),
        ("E", 18),
    ];
    const TWOS: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    if let Some((_, tens)) = TENS.iter().find(|(known, _)| *known == suffix) {
        return Some((1, *tens));
    }
    if let Some(index) = TWOS.iter().position(|known| *known == suffix) {
        return Some((1024_i128.checked_pow(u32::try_from(index).ok()? + 1)?, 0));
    }
    let exponent = suffix.strip_prefix(['e', 'E'])?;
    Some((1, exponent.parse().ok()?))
}
