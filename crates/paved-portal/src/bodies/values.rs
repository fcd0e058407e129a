//! The number and the depth of the values of a JSON text, without building them.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::problem::Problem;

/// The maximum number of values in a body. A value of a few bytes takes hundreds in memory.
pub(super) const MOST: usize = 20_000;

/// The maximum depth of a body. The function cannot read a deeper document from Crossplane.
const DEEPEST: usize = 32;

/// Counts the values of a JSON text: texts, numbers, objects and so on. An invalid text counts up
/// to its first error.
///
/// # Errors
/// More than [`MOST`] values, or more than [`DEEPEST`] levels.
pub(super) fn count(text: &[u8]) -> Result<usize, Problem> {
    let mut counter = Counter::default();
    let mut reader = serde_json::Deserializer::from_slice(text);
    // The caller parses the text, and reports errors of its syntax.
    let _ = Level { counter: &mut counter, depth: 0 }.deserialize(&mut reader);
    match counter.excess {
        Some(excess) => Err(Problem::field("body", excess)),
        None => Ok(counter.values.max(1)),
    }
}

#[derive(Default)]
struct Counter {
    values: usize,
    excess: Option<String>,
}

/// A value, and the number of objects and lists around it.
struct Level<'c> {
    counter: &'c mut Counter,
    depth: usize,
}

impl<'de> DeserializeSeed<'de> for Level<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        self.counter.values += 1;
        let excess = if self.counter.values > MOST {
            format!("found more than {MOST} values; allowed: at most {MOST}")
        } else if self.depth > DEEPEST {
            format!("found more than {DEEPEST} levels; allowed: at most {DEEPEST}")
        } else {
            return reader.deserialize_any(self);
        };
        self.counter.excess = Some(excess);
        Err(D::Error::custom("too large"))
    }
}

impl<'de> Visitor<'de> for Level<'_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a value")
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let Self { counter, depth } = self;
        while list.next_element_seed(Level { counter: &mut *counter, depth: depth + 1 })?.is_some()
        {
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self { counter, depth } = self;
        while map.next_key::<IgnoredAny>()?.is_some() {
            map.next_value_seed(Level { counter: &mut *counter, depth: depth + 1 })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn detail(text: &str) -> String {
        count(text.as_bytes()).unwrap_err().detail().to_owned()
    }

    #[test]
    fn values_are_counted_flat_and_nested() {
        for (text, values) in [
            ("1", 1),
            ("[]", 1),
            (r#"{"a": [1, "b", null, true, 1.5, -3], "c": {}}"#, 9),
            ("[[[]]]", 3),
            ("", 1),
            ("[1, 2", 3),
            ("[1, x, 3]", 3),
        ] {
            assert_eq!(count(text.as_bytes()).unwrap(), values, "{text}");
        }
    }

    #[test]
    fn document_with_too_many_values_is_rejected() {
        let list = |each: &str, count: usize| format!("[{}]", vec![each; count].join(","));
        assert_eq!(count(list("{}", MOST - 1).as_bytes()).unwrap(), MOST);
        let fields: Vec<String> = (0..MOST).map(|number| format!("\"{number}\":0")).collect();
        for text in [
            list("{}", MOST),
            list("0", MOST),
            list("[0]", MOST / 2),
            format!("{{{}}}", fields.join(",")),
            format!("{{\"spec\":{}}}", list("{\"a\":{\"b\":\"\"}}", MOST / 3 + 1)),
            // The rest of the text is not read.
            format!("{} x", list("{}", MOST).trim_end_matches(']')),
        ] {
            assert_eq!(detail(&text), "body: found more than 20000 values; allowed: at most 20000");
        }
    }

    #[test]
    fn document_with_too_many_levels_is_rejected() {
        let nested = |open: &str, close: &str, levels: usize| {
            format!("{}0{}", open.repeat(levels), close.repeat(levels))
        };
        for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
            assert_eq!(count(nested(open, close, DEEPEST).as_bytes()).unwrap(), DEEPEST + 1);
            for levels in [DEEPEST + 1, 100, 10_000] {
                assert_eq!(
                    detail(&nested(open, close, levels)),
                    "body: found more than 32 levels; allowed: at most 32"
                );
            }
        }
    }
}
