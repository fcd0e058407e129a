//! List prices of clouds.
//!
//! `cargo xtask prices` cuts the table `prices.json` from the facts about prices. Each set of
//! prices has its source, date, region and unit. An amount is a whole number of billionths of a
//! dollar, written as decimal text. No amount is ever a float.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::iter::Sum;
use std::str::FromStr;
use std::sync::LazyLock;

use jiff::civil::Date;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// The table, from the root of the repository.
pub const FILE: &str = "src/catalog/prices.json";

/// The region of a set with prices for every region.
const EVERY_REGION: &str = "*";

/// The pattern of an amount, for the schema.
pub(crate) const PATTERN: &str = r"^(0|[1-9][0-9]{0,8})(\.[0-9]{1,9})?$";

/// The amounts that are allowed, in words.
pub(crate) const ALLOWED: &str = "US dollars as a decimal number in quotes, with at most nine digits before \
                       and after the point, for example \"0.526\"";

/// Billionths of a dollar in a dollar.
const NANOS: u64 = 1_000_000_000;

/// An amount of US dollars, in billionths. As text: `0.526`, with three decimals or more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Usd(u64);

impl Usd {
    /// The largest amount.
    const MAX: Self = Self(NANOS * NANOS - 1);

    /// An amount below a billion dollars.
    pub fn from_nanos(nanos: u128) -> Option<Self> {
        let nanos = u64::try_from(nanos).ok()?;
        (nanos < NANOS * NANOS).then_some(Self(nanos))
    }

    /// Billionths of a dollar.
    pub fn nanos(self) -> u128 {
        self.0.into()
    }

    /// The sum of two amounts, at most the largest amount.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self(self.0 + other.0).min(Self::MAX)
    }

    /// The difference of two amounts, at least zero.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Sum for Usd {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::default(), Self::plus)
    }
}

impl fmt::Display for Usd {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let decimals = format!("{:09}", self.0 % NANOS);
        write!(out, "{}.{:0<3}", self.0 / NANOS, decimals.trim_end_matches('0'))
    }
}

impl FromStr for Usd {
    type Err = &'static str;

    /// # Errors
    /// The amounts that are allowed, in words.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
        let are_digits = |part: &str| {
            (1..=9).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit())
        };
        let is_short = whole == "0" || !whole.starts_with('0');
        if !are_digits(whole) || !are_digits(decimals) || !is_short {
            return Err(ALLOWED);
        }
        format!("{whole}{decimals:0<9}").parse().map(Self).map_err(|_| ALLOWED)
    }
}

impl Serialize for Usd {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Usd {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = Usd;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str(ALLOWED)
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Usd, E> {
                text.parse().map_err(|_| E::invalid_value(de::Unexpected::Str(text), &self))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl JsonSchema for Usd {
    fn schema_name() -> Cow<'static, str> {
        "Usd".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "maxLength": 19, "pattern": PATTERN})
    }
}

/// The table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// The kind of the prices, and the origin of the file.
    pub about: String,
    /// `USD`
    pub currency: String,
    /// The sets of prices.
    pub sets: Vec<Set>,
}

/// Prices of one source, date, region and unit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Set {
    /// Where the prices come from.
    pub source: String,
    /// Whether the prices were read at the source. If not, they still have to be compared with it.
    pub verified: bool,
    /// The date of the prices. For a source that states only a year, the first day of the year.
    pub as_of: Date,
    /// The region of the prices, or `*` for every region.
    pub region: String,
    /// The unit of the prices.
    pub unit: Unit,
    /// The price of each type.
    pub prices: BTreeMap<String, Usd>,
}

/// The unit of a price.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unit {
    /// One piece for an hour.
    #[serde(rename = "hour")]
    Hour,
    /// One GiB for a month.
    #[serde(rename = "GiB-month")]
    GibMonth,
}

/// The list price of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListPrice {
    /// The amount for one unit.
    pub usd: Usd,
    /// The unit.
    pub unit: Unit,
    /// The date of the price.
    pub as_of: Date,
}

/// A table that cannot be read has no prices, which the tests notice.
static TABLE: LazyLock<Table> =
    LazyLock::new(|| serde_json::from_str(include_str!("prices.json")).unwrap_or_default());

/// The sets of prices.
pub fn sets() -> &'static [Set] {
    &TABLE.sets
}

/// The list price of a type in a region, for example of `g4dn.xlarge` in `us-east-1`.
pub fn find(name: &str, region: &str) -> Option<ListPrice> {
    let mut here = TABLE.sets.iter().filter(|set| [region, EVERY_REGION].contains(&&*set.region));
    here.find_map(|set| {
        let usd = *set.prices.get(name)?;
        Some(ListPrice { usd, unit: set.unit, as_of: set.as_of })
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;
    use regex_lite::Regex;
    use serde_json::json;

    use super::*;

    #[test]
    fn table_is_read_and_has_each_type_once_for_a_region() {
        assert_eq!(TABLE.currency, "USD");
        for (index, set) in sets().iter().enumerate() {
            assert!(!set.source.is_empty() && !set.prices.is_empty(), "{set:?}");
            for other in &sets()[..index] {
                let meet = set.region == other.region
                    || [&set.region, &other.region].iter().any(|region| **region == EVERY_REGION);
                let twice = set.prices.keys().find(|name| other.prices.contains_key(*name));
                assert!(!meet || twice.is_none(), "{twice:?} of {} has two prices", set.region);
            }
        }
        let workspace = find("g4dn.xlarge", "us-east-1").unwrap();
        assert_eq!((workspace.usd.to_string().as_str(), workspace.unit), ("0.526", Unit::Hour));
        assert_eq!(find("gke-cluster", "europe-west1").unwrap().usd.to_string(), "0.100");
        assert_eq!(find("g4dn.xlarge", "eu-west-1"), None);
        assert_eq!(find("g4dn.nano", "us-east-1"), None);
    }

    #[test]
    fn amounts_are_exact() {
        for (text, nanos, shown) in [
            ("0", 0, "0.000"),
            ("0.1", 100_000_000, "0.100"),
            ("21.957642", 21_957_642_000, "21.957642"),
            ("0.000000001", 1, "0.000000001"),
            ("999999999.999999999", 999_999_999_999_999_999, "999999999.999999999"),
        ] {
            let usd: Usd = text.parse().unwrap();
            assert_eq!((usd.nanos(), usd.to_string().as_str()), (nanos, shown));
            assert_eq!(Usd::from_nanos(nanos), Some(usd));
        }
        assert_eq!(Usd::from_nanos(1_000_000_000_000_000_000), None);
        assert_eq!(Usd::from_nanos(u128::MAX), None);
    }

    #[test]
    fn sums_and_differences_stay_in_range() {
        let usd = |text: &str| -> Usd { text.parse().unwrap() };
        assert_eq!([usd("0.1"), usd("0.2")].into_iter().sum::<Usd>(), usd("0.3"));
        assert_eq!(Usd::MAX.plus(Usd::MAX), Usd::MAX);
        assert_eq!(Usd::MAX, usd("999999999.999999999"));
        assert_eq!(usd("1.5").minus(usd("0.4")), usd("1.1"));
        assert_eq!(usd("1").minus(usd("2")), usd("0"));
    }

    #[test]
    fn other_amounts_name_the_allowed_ones() {
        for (value, found) in [
            (json!(0.5), "0.5"),
            (json!(1), "1"),
            (json!("-1"), "\"-1\""),
            (json!("1."), "\"1.\""),
            (json!(".5"), "\".5\""),
            (json!("1e3"), "\"1e3\""),
            (json!("0.0000000001"), "\"0.0000000001\""),
            (json!("1,5"), "\"1,5\""),
            (json!("$1"), "\"$1\""),
        ] {
            let error = crate::check::typed::<Usd>(&value, "usdPerHour").unwrap_err();
            assert_eq!(error.message, format!("found {found}; allowed: {ALLOWED}"));
        }
    }

    proptest! {
        /// The schema and the parser accept the same texts, and each amount can be read again.
        #[test]
        fn schema_and_parser_agree(text in "[0-9]{0,11}(\\.[0-9]{0,11})?|[\\PC]{0,8}") {
            let pattern = Regex::new(PATTERN).unwrap();
            let parsed = text.parse::<Usd>();
            prop_assert_eq!(pattern.is_match(&text), parsed.is_ok());
            if let Ok(usd) = parsed {
                prop_assert_eq!(usd.to_string().parse(), Ok(usd));
            }
        }
    }
}
