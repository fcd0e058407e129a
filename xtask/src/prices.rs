//! `cargo xtask prices`: the slice of the facts about prices that the function uses.
//!
//! The name of a type is unique among the services of a region. Machines keep the cloud's name, as
//! in `g4dn.xlarge`. Other types get their service's name in front, as in `eks-cluster`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use function_paved_road::catalog::prices::{FILE, Set, Table, Unit};
use jiff::civil::Date;
use serde::Deserialize;
use serde_json::Number;

use crate::facts;

/// The services with types that have the cloud's name.
const MACHINES: [&str; 4] = ["cloud-sql", "ec2", "gce", "rds-postgres"];

/// Types that no estimate counts: see `docs/reference/prices.md`.
const UNUSED: [&str; 2] = ["ec2-volume-snapshot", "eks-cluster-extended-support"];

/// Flags of `cargo xtask prices`.
#[derive(clap::Args)]
pub struct Args {
    /// Folder with prices.json.
    #[arg(long, value_name = "DIR")]
    facts: PathBuf,
    /// Write no file, and fail if `src/catalog/prices.json` is outdated.
    #[arg(long)]
    check: bool,
}

/// Writes or checks the slice.
pub fn run(args: &Args) -> Result<()> {
    facts::update("prices", &args.facts.join("prices.json"), FILE, args.check, slice)
}

#[derive(Deserialize)]
struct Facts {
    about: String,
    sets: Vec<FactSet>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FactSet {
    service: String,
    region: String,
    unit: Unit,
    as_of: String,
    source: String,
    confidence: String,
    prices: BTreeMap<String, Number>,
}

/// The text of the slice.
fn slice(facts: &str) -> Result<String> {
    let facts: Facts = serde_json::from_str(facts)?;
    let about = format!(
        "Cut from prices.json by `cargo xtask prices`: do not edit. {} The unit `hour` is one \
         piece for an hour, and `GiB-month` is one GiB for a month.",
        facts.about
    );
    ensure!(facts.about.contains("USD"), "the prices are in another currency than USD");
    let sets = facts.sets.into_iter().map(cut).collect::<Result<_>>()?;
    let table = Table { about, currency: "USD".to_owned(), sets };
    Ok(format!("{}\n", serde_json::to_string_pretty(&table)?))
}

/// A set without the types that no estimate counts.
fn cut(set: FactSet) -> Result<Set> {
    let mut prices = BTreeMap::new();
    for (name, price) in set.prices {
        let is_machine = MACHINES.contains(&set.service.as_str());
        let name = if is_machine { name } else { format!("{}-{name}", set.service) };
        if UNUSED.contains(&name.as_str()) {
            continue;
        }
        // The shortest text of a number is the one that the facts have.
        let usd = price.to_string().parse().map_err(anyhow::Error::msg);
        prices.insert(name.clone(), usd.with_context(|| format!("the price of {name}"))?);
    }
    let as_of = if set.as_of.len() == 4 { format!("{}-01-01", set.as_of) } else { set.as_of };
    let as_of = as_of.parse::<Date>().with_context(|| format!("the date of {}", set.service))?;
    let verified = set.confidence == "read";
    // After the name of a source that was not read, the text has only the reason.
    let source = if verified { &*set.source } else { first_clause(&set.source) };
    Ok(Set {
        source: source.to_owned(),
        verified,
        as_of,
        region: set.region,
        unit: set.unit,
        prices,
    })
}

fn first_clause(text: &str) -> &str {
    text.split([',', ';']).next().unwrap_or(text)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::{Value, json};

    use super::*;

    fn facts(service: &str, as_of: &str, confidence: &str, prices: &Value) -> String {
        json!({"about": "List prices in USD.", "sets": [{
            "service": service, "region": "us-east-1", "unit": "hour", "asOf": as_of,
            "source": "A list, page 7", "confidence": confidence, "prices": prices,
        }]})
        .to_string()
    }

    fn set(facts: &str) -> Value {
        let table: Value = serde_json::from_str(&slice(facts).unwrap()).unwrap();
        table["sets"][0].clone()
    }

    #[test]
    fn slice_has_exact_prices_and_their_source() {
        let ec2 = set(&facts("ec2", "2026-07-20", "read", &json!({"p4d.24xlarge": 21.957_642})));
        assert_eq!(ec2["prices"], json!({"p4d.24xlarge": "21.957642"}));
        assert_eq!(ec2["source"], "A list, page 7");
        assert_eq!((&ec2["asOf"], &ec2["verified"]), (&json!("2026-07-20"), &json!(true)));
        let eks = json!({"cluster": 0.1, "cluster-extended-support": 0.6});
        let eks = set(&facts("eks", "2026", "verify", &eks));
        assert_eq!(eks["prices"], json!({"eks-cluster": "0.100"}));
        assert_eq!(eks["source"], "A list");
        assert_eq!((&eks["asOf"], &eks["verified"]), (&json!("2026-01-01"), &json!(false)));
    }

    #[test]
    fn facts_that_cannot_be_prices_are_an_error() {
        for wrong in [
            facts("ec2", "2026-07-20", "read", &json!({"a": -1})),
            facts("ec2", "2026-07-20", "read", &json!({"a": 1e-12})),
            facts("ec2", "July", "read", &json!({"a": 1})),
            facts("ec2", "2026-07-20", "read", &json!({"a": 1})).replace("USD", "EUR"),
            facts("ec2", "2026-07-20", "read", &json!({"a": 1})).replace("hour", "day"),
        ] {
            assert!(slice(&wrong).is_err(), "{wrong}");
        }
    }
}
