//! The prices of the examples.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use function_paved_road::catalog::prices;
use function_paved_road::pricing::{Override, Pricing, price};
use support::simulated::{self, Case};
use support::world;

/// Prices for the types of the examples that no list has, and a discount that overrides ignore.
const OWN: [(&str, &str); 16] = [
    ("Standard_D4s_v5", "0.2"),
    ("aks-node-disk", "0.02"),
    ("backend-large", "0.04"),
    ("backend-medium", "0.02"),
    ("cloud-sql-disk-pd-ssd", "0.0002"),
    ("db.m7g.large", "0.168"),
    ("e2-standard-4", "0.15"),
    ("ec2-volume-gp3", "0.0001"),
    ("g1.1", "1.5"),
    ("gce-disk-pd-balanced", "0.0001"),
    ("load-balancer", "0.025"),
    ("m6i.xlarge", "0.2"),
    ("public-ipv4-address", "0.004"),
    ("rds-volume-gp3", "0.00015"),
    ("shared-database-medium", "0.03"),
    ("vcluster-small", "0.05"),
];

/// The prices of each example: API, variant, running, stopped, and the date of the oldest list
/// price.
#[rustfmt::skip]
const EXAMPLES: [(&str, &str, &str, &str, &str); 10] = [
    // 0.526 + 0.004 + 100 × 0.0001
    ("gpu-workspace", "", "0.540", "0.010", "2026-07-20"),
    // 0.1 + 3 × (0.03351 + 50 × 0.0001 + 0.004) + 0.035 + 20 × 0.0002
    ("application-environment", "", "0.267", "0.104", "2026-01-01"),
    // 0.03 + 2 × 0.02
    ("unified-environment", "", "0.070", "0.030", ""),
    // 0.168 + 100 × 0.00015 + 1 × 0.04
    ("unified-environment", "rds", "0.223", "0.183", ""),
    // 2 × 1.5
    ("stock-pool", "", "3.000", "0.000", ""),
    // 0.05; Knative has no load balancer in a virtual cluster
    ("virtual-environment", "", "0.050", "", ""),
    // 0.05 + 0.025
    ("virtual-environment", "exposed", "0.075", "", ""),
    // 0.1 + 3 × (0.15 + 50 × 0.0001) + 0.025
    ("virtual-environment", "gke", "0.590", "0.125", "2026-01-01"),
    // 0.1 + 2 × (0.2 + 20 × 0.0001) + 0.025
    ("virtual-environment", "eks", "0.529", "0.125", "2026-01-01"),
    // 2 × (0.2 + 0.02) + 0.025 + 0.025
    ("virtual-environment", "aks", "0.490", "", ""),
];

fn own_prices() -> Pricing {
    let own = |(name, usd): &(&str, &str)| Override {
        name: (*name).to_owned(),
        region: None,
        usd_per_hour: usd.parse().unwrap(),
    };
    Pricing { overrides: OWN.iter().map(own).collect(), ..Pricing::default() }
}

/// The price of an environment after all its resources were created.
fn estimate(case: &Case, pricing: &Pricing) -> Result<[String; 3], String> {
    let desired = world::desired(&case.call(&case.settled()));
    let price = price(desired.values(), pricing, None, true).map_err(|why| why.to_string())?;
    let stopped = price.stopped_hourly.map(|usd| usd.to_string()).unwrap_or_default();
    let as_of = price.as_of.map(|date| date.to_string()).unwrap_or_default();
    Ok([price.hourly.to_string(), stopped, as_of])
}

#[test]
fn examples_cost_the_sum_of_their_parts() {
    let pricing = own_prices();
    for case in simulated::all() {
        let (name, variant) = (case.api().info().name, case.variant().unwrap_or_default());
        let row = EXAMPLES.iter().find(|row| (row.0, row.1) == (name, variant.as_str()));
        let (_, _, running, stopped, as_of) = row.unwrap_or_else(|| panic!("{}", case.name()));
        let expected = [running, stopped, as_of].map(|text| (*text).to_owned());
        assert_eq!(estimate(&case, &pricing), Ok(expected), "{}", case.name());
    }
}

#[test]
fn without_prices_in_settings_only_the_workspace_has_an_estimate() {
    for case in simulated::all() {
        let found = estimate(&case, &Pricing::default());
        if case.api().info().name == "gpu-workspace" {
            let expected = ["0.542", "0.011", "2026-01-01"].map(str::to_owned);
            assert_eq!(found, Ok(expected), "{}", case.name());
        } else {
            assert!(found.is_err(), "{}: {found:?}", case.name());
        }
    }
}

#[test]
fn reference_names_every_source_and_date() {
    let page = include_str!("../docs/reference/prices.md");
    for set in prices::sets() {
        let date = set.as_of.to_string();
        assert!(page.contains(&set.source) && page.contains(&date), "{} of {date}", set.source);
    }
}
