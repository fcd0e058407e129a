//! `cargo xtask eol`: lists the default versions of environments whose support ends soon.
//!
//! The versions come from the composed resources of the examples, so a new default is found
//! immediately. [`FACTS`] has the end of support of each version.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, bail};
use crossplane::api_version;
use jiff::{Timestamp, ToSpan as _, civil::Date, tz::TimeZone};
use serde_json::Value;

use crate::composed;

/// Flags of `cargo xtask eol`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Day of the check, for example 2026-11-25 [default: today].
    #[arg(long, value_name = "DATE")]
    on: Option<Date>,
    /// Number of days to look ahead.
    #[arg(long, value_name = "DAYS", default_value_t = DAYS)]
    within: u16,
}

/// The number of days before the end of support when a default must be raised.
pub const DAYS: u16 = 60;

/// The end of support of a version.
#[derive(Clone, Copy, Debug)]
pub struct Fact {
    /// The product, for example `RDS for PostgreSQL`.
    pub product: &'static str,
    /// The version. For charts, only its significant part, for example `0.36`.
    pub version: &'static str,
    /// The component in the version, if the support of this component ends.
    pub brings: &'static str,
    /// The last day of support without a surcharge.
    pub ends: (i16, i8, i8),
    /// The source of the date. A date without an announcement follows from the release policy here.
    pub source: &'static str,
}

const CLOUD_SQL: &str = "Cloud SQL for PostgreSQL";
const RDS: &str = "RDS for PostgreSQL";
const VCLUSTER: &str = "vcluster";
const ARGO_CD: &str = "argo-cd";
const KNATIVE: &str = "knative-operator";
const EKS: &str = "EKS";
const EKS_IMAGE: &str = "EKS machine image";

/// All versions that are or recently were defaults.
pub const FACTS: &[Fact] = &[
    Fact {
        product: CLOUD_SQL,
        version: "POSTGRES_14",
        brings: "",
        ends: (2027, 2, 1),
        source: "https://cloud.google.com/sql/docs/postgres/db-versions: extended support starts",
    },
    Fact {
        product: CLOUD_SQL,
        version: "POSTGRES_17",
        brings: "",
        ends: (2030, 2, 1),
        source: "https://cloud.google.com/sql/docs/postgres/db-versions: extended support starts",
    },
    Fact {
        product: RDS,
        version: "16",
        brings: "",
        ends: (2029, 2, 28),
        source: "https://docs.aws.amazon.com/AmazonRDS/latest/PostgreSQLReleaseNotes/postgresql-release-calendar.html",
    },
    Fact {
        product: VCLUSTER,
        version: "0.36",
        brings: "Kubernetes 1.36",
        ends: (2027, 6, 28),
        source: "https://kubernetes.io/releases/patch-releases/: 14 months after the release",
    },
    Fact {
        product: ARGO_CD,
        version: "10.1",
        brings: "Argo CD 3.4",
        ends: (2027, 2, 2),
        source: "https://argo-cd.readthedocs.io/en/stable/developer-guide/release-process-and-cadence/: ends with the release of 3.7",
    },
    Fact {
        product: KNATIVE,
        version: "1.21",
        brings: "",
        ends: (2026, 8, 4),
        source: "https://github.com/knative/community/blob/main/mechanics/RELEASE-SCHEDULE.md",
    },
    Fact {
        product: KNATIVE,
        version: "1.23",
        brings: "",
        ends: (2027, 1, 26),
        source: "https://github.com/knative/community/blob/main/mechanics/RELEASE-SCHEDULE.md: ends with the release of 1.25",
    },
    Fact {
        product: EKS,
        version: "1.34",
        brings: "",
        ends: (2026, 12, 2),
        source: "https://docs.aws.amazon.com/eks/latest/userguide/kubernetes-versions.html",
    },
    Fact {
        product: EKS,
        version: "1.35",
        brings: "",
        ends: (2027, 3, 27),
        source: "https://docs.aws.amazon.com/eks/latest/userguide/kubernetes-versions.html",
    },
    Fact {
        product: EKS,
        version: "1.36",
        brings: "",
        ends: (2027, 8, 2),
        source: "https://docs.aws.amazon.com/eks/latest/userguide/kubernetes-versions.html",
    },
    Fact {
        product: EKS_IMAGE,
        version: "AL2023",
        brings: "Amazon Linux 2023",
        ends: (2029, 6, 30),
        source: "https://docs.aws.amazon.com/linux/al2023/ug/release-cadence.html",
    },
];

/// Charts with a version from the claim, which are the example's own.
const CHOSEN_BY_CLAIMS: &[&str] = &["podinfo"];

/// A product and its default version.
type Version = (&'static str, String);

/// Prints the defaults with an end of support soon.
///
/// # Errors
/// The support of a default ends soon, or a default has no fact.
pub fn run(args: &Args) -> Result<()> {
    let on = args.on.unwrap_or_else(today);
    let found = ending(&defaults()?, FACTS, on, args.within)?;
    for line in &found {
        println!("{line}");
    }
    if found.is_empty() {
        println!("no default ends its support within {} days of {on}", args.within);
        return Ok(());
    }
    bail!("{} of our defaults end their support within {} days of {on}", found.len(), args.within)
}

/// Prints the same lines as warnings during the build of a release. The build does not fail, so
/// that an older release can be built at any time.
pub fn warn() -> Result<()> {
    for line in ending(&defaults()?, FACTS, today(), DAYS)? {
        eprintln!("warning: {line}");
    }
    Ok(())
}

/// Today's date in UTC.
pub(crate) fn today() -> Date {
    Timestamp::now().to_zoned(TimeZone::UTC).date()
}

/// Returns one line for each version whose support has ended, or ends within the days.
fn ending(
    versions: &BTreeSet<Version>,
    facts: &[Fact],
    on: Date,
    days: u16,
) -> Result<Vec<String>> {
    let until = on.checked_add(i64::from(days).days())?;
    let mut lines = Vec::new();
    for (product, version) in versions {
        let fact = fact(facts, product, version).with_context(|| {
            format!(
                "{product} {version}: the end of its support is unknown. Add it to FACTS in xtask/src/eol.rs"
            )
        })?;
        let (year, month, day) = fact.ends;
        let ends = Date::new(year, month, day)?;
        if ends <= until {
            let brings =
                if fact.brings.is_empty() { String::new() } else { format!(" ({})", fact.brings) };
            let verb = if ends < on { "ended" } else { "ends" };
            lines.push(format!(
                "{product} {version}{brings}: support {verb} on {ends}; {}",
                fact.source
            ));
        }
    }
    Ok(lines)
}

/// Returns the fact about a version, or about the release that contains the version.
fn fact<'f>(facts: &'f [Fact], product: &str, version: &str) -> Option<&'f Fact> {
    let version = version.trim_start_matches('v');
    facts.iter().filter(|fact| fact.product == product).find(|fact| {
        let rest = version.strip_prefix(fact.version);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '_', '-']))
    })
}

/// All versions that the examples compose. GKE and AKS clusters have no version, because a channel
/// chooses it.
fn defaults() -> Result<BTreeSet<Version>> {
    let mut found = BTreeSet::new();
    for object in composed::all()?.iter().flat_map(composed::Composed::objects) {
        let of = |path: &str| object["spec"]["forProvider"].pointer(path).and_then(Value::as_str);
        let group = api_version::group_of(object);
        let version = match object["kind"].as_str().unwrap_or_default() {
            "DatabaseInstance" => of("/databaseVersion").map(|version| (CLOUD_SQL, version)),
            "Instance" if group.starts_with("rds.") => {
                of("/engineVersion").map(|version| (RDS, version))
            }
            "Cluster" if group.starts_with("eks.") => of("/version").map(|version| (EKS, version)),
            "NodeGroup" => of("/amiType").map(|version| (EKS_IMAGE, version)),
            "Release" => chart(of("/chart/name"))?.zip(of("/chart/version")),
            _ => None,
        };
        found.extend(version.map(|(product, version)| (product, version.to_owned())));
    }
    Ok(found)
}

/// The product that a chart installs, or `None` if a claim chooses the chart.
fn chart(name: Option<&str>) -> Result<Option<&'static str>> {
    let name = name.unwrap_or_default();
    match [VCLUSTER, ARGO_CD, KNATIVE].into_iter().find(|ours| *ours == name) {
        None if CHOSEN_BY_CLAIMS.contains(&name) => Ok(None),
        None => bail!("the chart {name:?} is in neither list of xtask/src/eol.rs"),
        ours => Ok(ours),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(text: &str) -> Date {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    /// The date is long ago, so only a default without a fact can fail.
    #[test]
    fn every_default_has_a_fact() -> Result<()> {
        let defaults = defaults()?;
        let products: BTreeSet<&str> = defaults.iter().map(|(product, _)| *product).collect();
        let expected = BTreeSet::from([CLOUD_SQL, RDS, VCLUSTER, ARGO_CD, KNATIVE, EKS_IMAGE]);
        assert!(products.is_superset(&expected), "{products:?}");
        assert_eq!(ending(&defaults, FACTS, on("2020-01-01"), DAYS)?, Vec::<String>::new());
        Ok(())
    }

    #[test]
    fn support_that_ends_within_the_days_is_listed() -> Result<()> {
        let facts = [Fact {
            product: RDS,
            version: "16",
            brings: "",
            ends: (2029, 2, 28),
            source: "there",
        }];
        let versions = BTreeSet::from([(RDS, "16.4".to_owned())]);
        for (day, expected) in [
            ("2028-12-29", None),
            ("2028-12-30", Some("support ends on 2029-02-28; there")),
            ("2029-02-28", Some("support ends on 2029-02-28; there")),
            ("2029-03-01", Some("support ended on 2029-02-28; there")),
        ] {
            let found = ending(&versions, &facts, on(day), 60)?;
            let expected: Vec<String> =
                expected.iter().map(|rest| format!("RDS for PostgreSQL 16.4: {rest}")).collect();
            assert_eq!(found, expected, "{day}");
        }
        Ok(())
    }

    #[test]
    fn version_without_a_fact_is_an_error() {
        let versions = BTreeSet::from([(KNATIVE, "v9.1.0".to_owned())]);
        let Err(error) = ending(&versions, FACTS, on("2020-01-01"), DAYS) else {
            panic!("an error")
        };
        let error = error.to_string();
        assert!(
            error.starts_with("knative-operator v9.1.0: the end of its support is unknown"),
            "{error}"
        );
        for (found, version) in [(false, "160"), (true, "16"), (true, "16.4"), (true, "v16.4")] {
            let facts =
                [Fact { product: RDS, version: "16", brings: "", ends: (2029, 2, 28), source: "" }];
            assert_eq!(fact(&facts, RDS, version).is_some(), found, "{version}");
        }
    }
}
