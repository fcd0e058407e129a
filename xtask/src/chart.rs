//! `cargo xtask chart`: renders the portal's chart from its released file with the real Helm.

mod config;
pub mod helm;
mod network;
mod pods;
mod refusals;
mod rights;
mod shapes;
mod switches;

use std::{fs, path::PathBuf, time::Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::package::{self, chart};
use crate::yaml;
use helm::{Helm, Objects};

/// Flags of `cargo xtask chart`.
#[derive(clap::Args)]
pub struct Args {
    /// Check the chart with the required values only and with all values, instead of printing it.
    #[arg(long)]
    check: bool,
    /// File with the values [default: deploy/chart/ci/full-values.yaml].
    #[arg(long, short = 'f', value_name = "FILE", conflicts_with = "check")]
    values: Option<PathBuf>,
}

/// A check of the rendered chart that passes with all values.
type Check = fn(&Case) -> Result<()>;

/// The checks, in the order of their lines.
const CHECKS: [(&str, Check); 5] = [
    ("objects have only known fields", shapes::check),
    ("pods are restricted, probed and spread over nodes", pods::check),
    ("connections are limited", network::check),
    ("the configuration is complete, and has no secret", config::check),
    ("rights cover the composed resources only", rights::check),
];

/// A rendered chart and its values.
struct Case {
    /// The name of the values.
    name: &'static str,
    /// All values, with the defaults.
    values: Value,
    objects: Objects,
}

/// Renders the chart, or checks it.
pub fn run(args: &Args) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let packed = chart::write(&package::Args::default(), folder.path())?;
    let helm = Helm::new(packed)?;
    if args.check {
        return check(&helm);
    }
    let values = args.values.clone().unwrap_or_else(|| values("full"));
    print!("{}", helm.template(&values, &[])?);
    Ok(())
}

/// Prints one line for each check that passes. The first failed check is the error.
fn check(helm: &Helm) -> Result<()> {
    let start = Instant::now();
    for name in ["minimal", "full"] {
        let file = values(name);
        helm.lint(&file)?;
        println!("{name:8} lint");
        let objects = yaml::documents(&helm.template(&file, &[])?)?;
        let case = Case { name, values: merged(name)?, objects: Objects(objects) };
        for (promise, check) in CHECKS {
            check(&case).with_context(|| format!("{name} values: {promise}"))?;
            println!("{name:8} {promise}");
        }
    }
    let switched = switches::check(helm, &values("minimal"))?;
    println!("{switched} options have only their documented effect");
    let refused = refusals::check(helm, &values("minimal"))?;
    println!("{refused} invalid values are rejected with the name of their field");
    println!("{:.1} s", start.elapsed().as_secs_f64());
    Ok(())
}

/// A file with values for the checks.
fn values(name: &str) -> PathBuf {
    chart::folder().join("ci").join(format!("{name}-values.yaml"))
}

/// The values merged over the defaults, as Helm merges them.
fn merged(name: &str) -> Result<Value> {
    let read = |path: PathBuf| {
        let text =
            fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        yaml::documents(&text)?.pop().context("no values")
    };
    let mut all = read(chart::folder().join("values.yaml"))?;
    crossplane::json::overlay(&mut all, &read(values(name))?);
    Ok(all)
}

impl Case {
    /// The value at a path.
    fn value(&self, path: &str) -> &Value {
        self.values.pointer(path).unwrap_or(&Value::Null)
    }

    /// The text at a path, or an empty text.
    fn text(&self, path: &str) -> &str {
        self.value(path).as_str().unwrap_or_default()
    }

    /// The Deployment's pod.
    fn pod(&self) -> Result<&Value> {
        Ok(&self.objects.one("Deployment")?["spec"]["template"])
    }

    /// Whether the portal itself terminates TLS.
    fn has_tls(&self) -> bool {
        !self.text("/tls/secretName").is_empty()
    }

    /// The name of the port that the portal listens on.
    fn port(&self) -> &'static str {
        if self.has_tls() { "https" } else { "http" }
    }
}

/// Fails if two values differ.
fn same(what: &str, found: &Value, expected: &Value) -> Result<()> {
    ensure!(found == expected, "{what}: found {found}, expected {expected}");
    Ok(())
}
