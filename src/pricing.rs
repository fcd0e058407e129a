//! The estimated price of an environment, from list prices and the prices of Settings.
//!
//! An estimate adds up the `parts` of an environment's resources that have a price by the hour:
//! machines, disks, clusters, database servers, addresses and load balancers. If one of them has no
//! price, there is no estimate. `docs/reference/prices.md` lists the parts that are not counted.
//!
//! Amounts are whole numbers. An hourly list price is multiplied by the hours of a month, so that
//! hourly and monthly prices add up exactly. The result is rounded once, up to the next thousandth
//! of a dollar per hour.

mod parts;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::RangeInclusive;

use jiff::civil::Date;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::catalog::prices::{self, Unit, Usd};
use crate::check::{self, Fields, Refused};
use crate::fingerprint::fingerprint;
use crate::value::Object;
use parts::Part;

/// Hours of a month, for prices by the month: a twelfth of 365 days.
const HOURS_PER_MONTH: u128 = 730;

/// Estimates are whole multiples of this many billionths of a dollar: of a thousandth.
const STEP: u128 = 1_000_000;

/// Percent of a whole.
const WHOLE: u128 = 100;

/// Discounts, in percent.
const DISCOUNT: RangeInclusive<i64> = 0..=100;

/// How many overrides Settings may have.
const MOST_OVERRIDES: usize = 500;

/// The longest name of a type or a region, in characters.
const LONGEST_NAME: usize = 63;

/// The pattern of the name of a type or a region, for the schema.
const NAME: &str = "^[A-Za-z0-9]([A-Za-z0-9._/-]*[A-Za-z0-9])?$";

/// Prices that differ from the list prices.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Pricing {
    /// Discount on list prices, in percent. The discount does not apply to overrides.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = *DISCOUNT.start(), max = *DISCOUNT.end()))]
    pub discount_percent: Option<i64>,
    /// Prices by type and region, for types without a list price and for negotiated prices.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = MOST_OVERRIDES))]
    pub overrides: Vec<Override>,
}

/// The price of a type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Override {
    /// Name of the type, for example g4dn.xlarge or ec2-volume-gp3.
    #[serde(rename = "type")]
    #[schemars(length(min = 1, max = LONGEST_NAME), regex(pattern = NAME))]
    pub name: String,
    /// Region of the price, for example eu-west-1. Default: every region that has no override.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = LONGEST_NAME), regex(pattern = NAME))]
    pub region: Option<String>,
    /// US dollars for one piece and one hour, as a decimal number in quotes. For a disk, the price
    /// is for one GiB and one hour.
    pub usd_per_hour: Usd,
}

impl Pricing {
    /// Whether Settings have no prices.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Checks the fields below `path`, for example `settings.pricing`.
    pub fn check(&self, path: &str, fields: &mut Fields) {
        if let Some(discount) = self.discount_percent {
            let checked = check::range(discount, DISCOUNT, "percent");
            fields.check(format!("{path}.discountPercent"), checked);
        }
        fields.check(format!("{path}.overrides"), check::count(&self.overrides, MOST_OVERRIDES));
        let mut seen = BTreeSet::new();
        for (index, own) in self.overrides.iter().enumerate() {
            let path = |field| format!("{path}.overrides[{index}].{field}");
            fields.check(path("type"), name(&own.name));
            if let Some(region) = &own.region {
                fields.check(path("region"), name(region));
            }
            if !seen.insert((&own.name, &own.region)) {
                let allowed = "one price for a type in a region";
                fields.refuse(path("type"), Refused::new(&own.name, allowed));
            }
        }
    }

    /// The price of one piece of a type for an hour. `None` if the type has no price in the region.
    pub fn of(&self, name: &str, region: &str) -> Option<Usd> {
        let part = Part { name: name.into(), region: Some(region), count: 1, stops: false };
        amount(&part, self).and_then(|(amount, _)| hourly(amount))
    }

    /// The own price of a type: that of its region, otherwise that of every region.
    fn find(&self, part: &Part<'_>) -> Option<Usd> {
        let price_in = |region: Option<&str>| {
            let mut own = self.overrides.iter();
            let found = own.find(|own| own.name == part.name && own.region.as_deref() == region)?;
            Some(found.usd_per_hour)
        };
        part.region.and_then(|region| price_in(Some(region))).or_else(|| price_in(None))
    }

    /// The percentage of the list price that is paid.
    fn share(&self) -> u128 {
        let discount = u128::try_from(self.discount_percent.unwrap_or(0)).unwrap_or(0);
        WHOLE.saturating_sub(discount)
    }
}

/// The name of a type or of a region.
fn name(text: &str) -> Result<&str, Refused> {
    let edge = |c: char| c.is_ascii_alphanumeric();
    let fits = |text: &str| {
        text.starts_with(edge)
            && text.ends_with(edge)
            && text.chars().all(|c| edge(c) || "._/-".contains(c))
    };
    let allowed = "a name of 1 to 63 letters, digits and . _ / -, for example g4dn.xlarge";
    check::shape(text, LONGEST_NAME, fits, allowed)
}

/// The price of an environment per hour. `docs/reference/prices.md` lists the excluded parts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Price {
    /// US dollars per hour while the environment runs.
    pub hourly: Usd,
    /// US dollars per hour while the environment is stopped. Absent if a stop turns no part off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped_hourly: Option<Usd>,
    /// The date of the oldest list price in the estimate. Absent if all prices are overrides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_of: Option<Date>,
    /// The fingerprint of the parts and of their prices in Settings.
    pub of: String,
}

/// Why there is no estimate: the types that have no price.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unpriced {
    /// Names of types, each with its region if it has one.
    pub types: BTreeSet<(String, Option<String>)>,
}

impl fmt::Display for Unpriced {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.types.is_empty() {
            return out.write_str("no resource has a price");
        }
        let types = self.types.iter().map(|(name, region)| match region {
            Some(region) => format!("{name} in {region}"),
            None => name.clone(),
        });
        write!(out, "no price for {}", types.collect::<Vec<_>>().join(", "))
    }
}

impl std::error::Error for Unpriced {}

/// The price of an environment.
///
/// `resources` are all resources of the environment as it runs, with those that it still delays.
/// `earlier` is the price from an earlier call. It stays until parts or their prices in Settings
/// change. List prices of a new release do not change it, because a release must not change the
/// status of a running environment. It also stays while a stop is wanted (`runs` is false), because
/// the resources then ask for fewer machines.
///
/// # Errors
/// The types that have no price. The environment then has no estimate.
pub fn price<'r>(
    resources: impl IntoIterator<Item = &'r Object>,
    pricing: &Pricing,
    earlier: Option<&Price>,
    runs: bool,
) -> Result<Price, Unpriced> {
    if !runs {
        return earlier.cloned().ok_or_else(Unpriced::default);
    }
    let resources: Vec<&Object> = resources.into_iter().collect();
    let parts = parts::of(&resources);
    let of = fingerprint_of(&parts, pricing);
    if let Some(earlier) = earlier.filter(|earlier| earlier.of == of) {
        return Ok(earlier.clone());
    }
    if parts.is_empty() {
        return Err(Unpriced::default());
    }
    let mut total = Total::default();
    for part in &parts {
        total.add(part, pricing);
    }
    total.price(of)
}

/// The sums, in hundredths of billionths of a dollar per month.
#[derive(Default)]
struct Total {
    running: u128,
    stopped: u128,
    can_stop: bool,
    as_of: Option<Date>,
    unpriced: Unpriced,
}

impl Total {
    fn add(&mut self, part: &Part<'_>, pricing: &Pricing) {
        let Some((amount, as_of)) = amount(part, pricing) else {
            let region = part.region.map(str::to_owned);
            self.unpriced.types.insert((part.name.to_string(), region));
            return;
        };
        self.running = self.running.saturating_add(amount);
        if part.stops {
            self.can_stop = true;
        } else {
            self.stopped = self.stopped.saturating_add(amount);
        }
        self.as_of = self.as_of.into_iter().chain(as_of).min();
    }

    fn price(self, of: String) -> Result<Price, Unpriced> {
        let running = hourly(self.running).filter(|_| self.unpriced.types.is_empty());
        let Some((hourly, stopped)) = running.zip(hourly(self.stopped)) else {
            return Err(self.unpriced);
        };
        let stopped_hourly = self.can_stop.then_some(stopped);
        Ok(Price { hourly, stopped_hourly, as_of: self.as_of, of })
    }
}

/// The amount for a part, and the date of its list price.
fn amount(part: &Part<'_>, pricing: &Pricing) -> Option<(u128, Option<Date>)> {
    let (monthly, share, as_of) = if let Some(own) = pricing.find(part) {
        (own.nanos() * HOURS_PER_MONTH, WHOLE, None)
    } else {
        let price = prices::find(&part.name, part.region?)?;
        let hours = match price.unit {
            Unit::Hour => HOURS_PER_MONTH,
            Unit::GibMonth => 1,
        };
        (price.usd.nanos() * hours, pricing.share(), Some(price.as_of))
    };
    Some((monthly.checked_mul(share)?.checked_mul(part.count)?, as_of))
}

/// An amount in hundredths of billionths per month as a price per hour, rounded up: no price is
/// shown as zero if it is not.
fn hourly(amount: u128) -> Option<Usd> {
    Usd::from_nanos(amount.div_ceil(WHOLE * HOURS_PER_MONTH * STEP) * STEP)
}

/// The fingerprint of the parts and of their prices in Settings. It leaves out list prices.
fn fingerprint_of(parts: &[Part<'_>], pricing: &Pricing) -> String {
    let mut counts: BTreeMap<(&str, &str, bool), u128> = BTreeMap::new();
    for part in parts {
        let key = (&*part.name, part.region.unwrap_or_default(), part.stops);
        let count = counts.entry(key).or_default();
        *count = count.saturating_add(part.count);
    }
    let own: BTreeSet<(&str, Option<&str>, Usd)> = parts
        .iter()
        .filter_map(|part| Some((&*part.name, part.region, pricing.find(part)?)))
        .collect();
    fingerprint(&format!("{counts:?} {own:?} {}", pricing.share()))
}
