//! Durations as users write them.

use std::fmt;
use std::str::FromStr;

use jiff::SignedDuration;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A duration of the lifecycle: a whole number with a unit, as in `8h`, or `never`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Span {
    /// Without an end.
    Never,
    /// An amount and the unit's letter. The unit is kept, so that a span prints as it was written.
    For(u32, Unit),
}

/// The unit of a [`Span`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// `s`
    Seconds,
    /// `m`
    Minutes,
    /// `h`
    Hours,
    /// `d`, of 24 hours
    Days,
    /// `w`, of seven days
    Weeks,
}

impl Unit {
    const ALL: [(char, Self, i64); 5] = [
        ('s', Self::Seconds, 1),
        ('m', Self::Minutes, 60),
        ('h', Self::Hours, 3_600),
        ('d', Self::Days, 86_400),
        ('w', Self::Weeks, 604_800),
    ];

    /// The unit's letter and its length in seconds.
    fn row(self) -> (char, i64) {
        let row = Self::ALL.into_iter().find(|(_, unit, _)| *unit == self);
        row.map_or(('s', 1), |(letter, _, seconds)| (letter, seconds))
    }
}

impl Span {
    /// The pattern of a duration, for the schema.
    pub const PATTERN: &str = r"^([1-9][0-9]{0,4}[smhdw]|never)$";

    /// The values that a duration may have, in words.
    pub const ALLOWED: &str = "a whole number with a unit (s, m, h, d or w), for example 30m, 8h \
                               or 14d, or never";

    /// The length; `None` for `never`.
    pub fn length(self) -> Option<SignedDuration> {
        match self {
            Self::Never => None,
            Self::For(amount, unit) => {
                Some(SignedDuration::from_secs(i64::from(amount) * unit.row().1))
            }
        }
    }

    /// Whether this span ends later than `other`.
    pub fn exceeds(self, other: Self) -> bool {
        match (self.length(), other.length()) {
            (_, None) => false,
            (None, Some(_)) => true,
            (Some(own), Some(other)) => own > other,
        }
    }
}

impl fmt::Display for Span {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Never => out.write_str("never"),
            Self::For(amount, unit) => write!(out, "{amount}{}", unit.row().0),
        }
    }
}

impl FromStr for Span {
    type Err = &'static str;

    /// # Errors
    /// The values that are allowed, in words.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "never" {
            return Ok(Self::Never);
        }
        let unit = text.chars().next_back().ok_or(Self::ALLOWED)?;
        let (_, unit, _) =
            Unit::ALL.into_iter().find(|(letter, _, _)| *letter == unit).ok_or(Self::ALLOWED)?;
        let digits = &text[..text.len() - 1];
        let plain = digits.bytes().all(|byte| byte.is_ascii_digit())
            && !digits.starts_with('0')
            && (1..=5).contains(&digits.len());
        let amount = digits.parse().ok().filter(|_| plain).ok_or(Self::ALLOWED)?;
        Ok(Self::For(amount, unit))
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = Span;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str(Span::ALLOWED)
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Span, E> {
                text.parse().map_err(|_| E::invalid_value(de::Unexpected::Str(text), &self))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl JsonSchema for Span {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Span".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "pattern": Span::PATTERN})
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;
    use regex_lite::Regex;
    use serde_json::json;

    use super::*;

    #[test]
    fn units_have_their_lengths() {
        let seconds = |text: &str| text.parse::<Span>().unwrap().length().map(|d| d.as_secs());
        assert_eq!(seconds("45s"), Some(45));
        assert_eq!(seconds("30m"), Some(1_800));
        assert_eq!(seconds("8h"), Some(28_800));
        assert_eq!(seconds("14d"), Some(1_209_600));
        assert_eq!(seconds("2w"), Some(1_209_600));
        assert_eq!(seconds("never"), None);
    }

    #[test]
    fn other_values_name_the_allowed_ones() {
        let expected = |found: &str| format!("found {found}; allowed: {}", Span::ALLOWED);
        for (value, found) in [
            (json!(8), "8"),
            (json!(true), "true"),
            (json!("-1h"), "\"-1h\""),
            (json!("0s"), "\"0s\""),
            (json!("8"), "\"8\""),
            (json!("1h30m"), "\"1h30m\""),
            (json!("8 h"), "\"8 h\""),
            (json!("Never"), "\"Never\""),
            (json!(""), "\"\""),
        ] {
            let error = crate::check::typed::<Span>(&value, "spec.lifecycle.ttl").unwrap_err();
            assert_eq!(error.message, expected(found));
        }
    }

    #[test]
    fn longer_spans_exceed_shorter_ones() {
        let span = |text: &str| text.parse::<Span>().unwrap();
        assert!(span("2d").exceeds(span("47h")));
        assert!(!span("48h").exceeds(span("2d")));
        assert!(span("never").exceeds(span("99999w")));
        assert!(!span("never").exceeds(span("never")));
        assert!(!span("8h").exceeds(span("never")));
    }

    proptest! {
        /// The schema and the parser accept the same texts.
        #[test]
        fn schema_and_parser_agree(text in "[0-9]{0,7}[a-z ]{0,2}|never|[\\PC]{0,8}") {
            let pattern = Regex::new(Span::PATTERN).unwrap();
            let parsed = text.parse::<Span>();
            prop_assert_eq!(pattern.is_match(&text), parsed.is_ok());
            if let Ok(span) = parsed {
                prop_assert_eq!(span.to_string(), text);
            }
        }
    }
}
