//! What Kubernetes takes: names, image references, quantities of memory. Each pattern stands in the schemas too.

use std::sync::LazyLock;

use regex_lite::Regex;

use super::{Refused, shape};

/// A name as RFC 1123 wants it of a label: of a namespace, for example.
pub const LABEL: &str = "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$";

/// The value of a Kubernetes label, of which there is at least one character.
pub const LABEL_VALUE: &str = "^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$";

/// The name of an environment variable.
pub const VARIABLE: &str = "^[A-Za-z_][A-Za-z0-9_]*$";

/// A reference to a container image: registry, repository in lower case, tag and digest, as the OCI distribution
/// specification writes it.
pub const IMAGE: &str = "^([a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?([.][a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?)*(:[0-9]{1,5})?/)?\
                         [a-z0-9]+(([._]|__|-+)[a-z0-9]+)*(/[a-z0-9]+(([._]|__|-+)[a-z0-9]+)*)*\
                         (:[A-Za-z0-9_][A-Za-z0-9._-]{0,127})?(@sha256:[a-f0-9]{64})?$";

/// The longest reference to an image.
pub const LONGEST_IMAGE: usize = 512;

/// A quantity of memory: bytes, or with one of Kubernetes' suffixes.
pub const MEMORY: &str = "^[0-9]{1,15}([.][0-9]{1,3})?(Ki|Mi|Gi|Ti|Pi|Ei|k|M|G|T|P|E)?$";

/// A name of lower-case letters, digits and hyphens: RFC 1123 calls it a label.
pub fn label(value: &str) -> Result<&str, Refused> {
    static PATTERN: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(LABEL).ok());
    let allowed =
        "1 to 63 lower-case letters, digits and hyphens, beginning and ending with a letter or digit";
    shape(value, 63, |value| fits(&PATTERN, value), allowed)
}

/// The value of a label.
pub fn label_value(value: &str) -> Result<&str, Refused> {
    static PATTERN: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(LABEL_VALUE).ok());
    let allowed = "1 to 63 letters, digits and . _ -, beginning and ending with a letter or digit";
    shape(value, 63, |value| fits(&PATTERN, value), allowed)
}

/// The name of an environment variable.
pub fn variable(value: &str) -> Result<&str, Refused> {
    static PATTERN: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(VARIABLE).ok());
    shape(value, 128, |value| fits(&PATTERN, value), "letters, digits and _, no digit first, as in LOG_LEVEL")
}

/// A reference to a container image.
pub fn image(value: &str) -> Result<&str, Refused> {
    static PATTERN: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(IMAGE).ok());
    let allowed =
        "a reference to an image, such as registry.example.org/team/app:1.2; the repository is in lower case";
    shape(value, LONGEST_IMAGE, |value| fits(&PATTERN, value), allowed)
}

/// A quantity of memory of at least one byte, in bytes.
pub fn memory(value: &str) -> Result<u64, Refused> {
    static PATTERN: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(MEMORY).ok());
    let refused = || Refused::new(value, "a quantity of memory above 0, such as 512Mi or 16Gi");
    shape(value, 32, |value| fits(&PATTERN, value), "a quantity of memory, such as 512Mi or 16Gi")?;
    bytes(value).filter(|bytes| *bytes > 0).ok_or_else(refused)
}

/// Rounded up, as Kubernetes does; `None` beyond 2⁶³, as it does too.
fn bytes(value: &str) -> Option<u64> {
    const SUFFIXES: [(&str, u32, u32); 12] = [
        ("Ki", 2, 10),
        ("Mi", 2, 20),
        ("Gi", 2, 30),
        ("Ti", 2, 40),
        ("Pi", 2, 50),
        ("Ei", 2, 60),
        ("k", 10, 3),
        ("M", 10, 6),
        ("G", 10, 9),
        ("T", 10, 12),
        ("P", 10, 15),
        ("E", 10, 18),
    ];
    let (number, unit) = SUFFIXES
        .iter()
        .find_map(|(suffix, base, power)| Some((value.strip_suffix(suffix)?, u128::from(*base).pow(*power))))
        .unwrap_or((value, 1));
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let thousandths: u128 = format!("{whole}{fraction:0<3}").parse().ok()?;
    let bytes = thousandths.checked_mul(unit)?.div_ceil(1000);
    i64::try_from(bytes).ok().and_then(|bytes| u64::try_from(bytes).ok())
}

/// Whether a value matches; nothing does where the pattern is none, which a test rules out.
fn fits(pattern: &LazyLock<Option<Regex>>, value: &str) -> bool {
    pattern.as_ref().is_some_and(|pattern| pattern.is_match(value))
}
