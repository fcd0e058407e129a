//! The meaning of scalars in kubectl: the rules of go-yaml 2, and then of Go's JSON.
//!
//! `tests/yaml-scalars.tsv` has kubectl's results for many scalars. A test compares them with this
//! reader, and another test compares them with kubectl itself.

use base64::Engine;
use serde_json::{Number, Value};

/// The tag of a scalar.
#[derive(Clone, Copy)]
pub(super) enum Tag<'t> {
    /// No tag. The text determines the type.
    None,
    /// A standard tag of YAML, without `!!`.
    Standard(&'t str),
    /// An unknown tag.
    Custom,
}

/// The type of a plain text.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Plain {
    Null,
    Bool(bool),
    Integer(i128),
    Float(f64),
    Text,
}

/// A scalar as a JSON value, or the reason why it is invalid.
pub(super) fn value(tag: Tag<'_>, text: &str) -> Result<Value, String> {
    let wanted = match tag {
        Tag::None => return json(plain(text), text),
        Tag::Custom | Tag::Standard("str") => return Ok(Value::from(text)),
        Tag::Standard("binary") => {
            let bytes =
                base64::engine::general_purpose::STANDARD.decode(text.replace(['\n', '\r'], ""));
            let bytes = bytes.map_err(|_| "!!binary needs base64".to_owned())?;
            return Ok(Value::from(String::from_utf8_lossy(&bytes)));
        }
        Tag::Standard(name) => name,
    };
    let found = plain(text);
    match (wanted, found) {
        ("null", Plain::Null)
        | ("bool", Plain::Bool(_))
        | ("int", Plain::Integer(_))
        | ("float", Plain::Float(_) | Plain::Integer(_)) => json(found, text),
        ("null" | "bool" | "int" | "float", _) => Err(format!(
            "found {text:?}; not a valid \
            !!{wanted}"
        )),
        _ => Ok(Value::from(text)),
    }
}

/// A key as a JSON text. `None` if the key is invalid.
pub(super) fn key(tag: Tag<'_>, text: &str) -> Option<String> {
    if !matches!(tag, Tag::None) {
        return match value(tag, text).ok()? {
            Value::String(text) => Some(text),
            plain @ (Value::Bool(_) | Value::Number(_)) => Some(plain.to_string()),
            Value::Null | Value::Array(_) | Value::Object(_) => None,
        };
    }
    match plain(text) {
        Plain::Text => Some(text.to_owned()),
        Plain::Bool(value) => Some(value.to_string()),
        Plain::Integer(number) => i64::try_from(number).ok().map(|number| number.to_string()),
        Plain::Float(number) => Some(short(number)),
        Plain::Null => None,
    }
}

fn json(plain: Plain, text: &str) -> Result<Value, String> {
    Ok(match plain {
        Plain::Null => Value::Null,
        Plain::Bool(value) => Value::Bool(value),
        // Kubernetes has signed integers of 64 bits. Larger integers become doubles.
        #[expect(clippy::cast_precision_loss, reason = "as Kubernetes does")]
        Plain::Integer(number) => {
            i64::try_from(number).map_or_else(|_| Value::from(number as f64), Value::from)
        }
        Plain::Float(number) => {
            let Some(double) = Number::from_f64(number) else {
                return Err(format!("JSON has no number {text}. Put it in quotes"));
            };
            // Go writes a whole double without a point, and then reads it as an integer.
            let digits = number.to_string();
            let whole = if number.abs() < 1e21 { digits.parse::<i64>().ok() } else { None };
            whole.map_or(Value::Number(double), Value::from)
        }
        Plain::Text => Value::from(text),
    })
}

/// The type and value of a text without quotes and tag.
fn plain(text: &str) -> Plain {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Plain::Null,
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            return Plain::Bool(true);
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            return Plain::Bool(false);
        }
        ".nan" | ".NaN" | ".NAN" => return Plain::Float(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => {
            return Plain::Float(f64::INFINITY);
        }
        "-.inf" | "-.Inf" | "-.INF" => return Plain::Float(f64::NEG_INFINITY),
        _ => {}
    }
    match text.as_bytes()[0] {
        b'.' if has_good_underscores(text) => float(&text.replace('_', "")).unwrap_or(Plain::Text),
        b'+' | b'-' | b'0'..=b'9' => {
            let digits = text.replace('_', "");
            integer(&digits)
                .or_else(|| float(&digits))
                .or_else(|| binary(&digits))
                .unwrap_or(Plain::Text)
        }
        _ => Plain::Text,
    }
}

/// Reads an integer in any base, as Go's `ParseInt` and `ParseUint` do.
fn integer(text: &str) -> Option<Plain> {
    let (is_negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let prefix = digits.get(..2).unwrap_or_default().to_ascii_lowercase();
    let (base, digits) = match prefix.as_str() {
        "0x" if digits.len() > 2 => (16, &digits[2..]),
        "0o" if digits.len() > 2 => (8, &digits[2..]),
        "0b" if digits.len() > 2 => (2, &digits[2..]),
        _ if digits.len() > 1 && digits.starts_with('0') => (8, &digits[1..]),
        _ => (10, digits),
    };
    let number = magnitude(digits, base)?;
    let signed = if is_negative { -number } else { number };
    // The maximum is an unsigned integer of 64 bits, or a signed integer after a plus.
    let is_unsigned = text.as_bytes()[0].is_ascii_digit();
    let most = if is_unsigned { i128::from(u64::MAX) } else { i128::from(i64::MAX) };
    (i128::from(i64::MIN)..=most).contains(&signed).then_some(Plain::Integer(signed))
}

/// Reads digits of a base, without a sign.
fn magnitude(digits: &str, base: u32) -> Option<i128> {
    let are_digits = !digits.is_empty() && digits.chars().all(|digit| digit.is_digit(base));
    if are_digits { i128::from_str_radix(digits, base).ok() } else { None }
}

/// Reads `0b` before a sign, which go-yaml allows.
fn binary(text: &str) -> Option<Plain> {
    let (is_negative, digits) = match text.strip_prefix("0b") {
        Some(digits) if digits.starts_with('-') => (true, &digits[1..]),
        Some(digits) => (false, digits.strip_prefix('+')?),
        None => return None,
    };
    let number = magnitude(digits, 2)?;
    let signed = if is_negative { -number } else { number };
    i64::try_from(signed).is_ok().then_some(Plain::Integer(signed))
}

/// Reads `[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`. A number that is too large for a
/// double is a text.
fn float(text: &str) -> Option<Plain> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.find(['e', 'E']) {
        Some(at) => (&unsigned[..at], Some(&unsigned[at + 1..])),
        None => (unsigned, None),
    };
    let are_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let has_digits = !whole.is_empty() || !fraction.is_empty();
    let exponent_fits = exponent.is_none_or(|exponent| {
        let digits = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
        !digits.is_empty() && are_digits(digits)
    });
    if !(has_digits && are_digits(whole) && are_digits(fraction) && exponent_fits) {
        return None;
    }
    text.parse::<f64>().ok().filter(|number| number.is_finite()).map(Plain::Float)
}

/// Whether each underscore is between two digits.
fn has_good_underscores(text: &str) -> bool {
    let bytes = text.as_bytes();
    let is_digit =
        |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_digit);
    (0..bytes.len())
        .filter(|at| bytes[*at] == b'_')
        .all(|at| is_digit(at.checked_sub(1)) && is_digit(Some(at + 1)))
}

/// Go's shortest form of a float of 32 bits, which is used for keys.
fn short(number: f64) -> String {
    #[expect(clippy::cast_possible_truncation, reason = "as kubectl does")]
    let number = number as f32;
    if number.is_nan() {
        return ".nan".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { ".inf" } else { "-.inf" }.to_owned();
    }
    let scientific = format!("{number:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if (-4..6).contains(&exponent) {
        return number.to_string();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}
