//! `cargo xtask chart`: renders the chart from its released file with the real Helm.

mod combinations;
mod config;
pub mod helm;
mod network;
mod platform;
mod pods;
mod refusals;
mod rights;
mod shapes;
mod switches;

use std::{path::PathBuf, time::Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::package::{self, chart, portal};
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
const CHECKS: [(&str, Check); 6] = [
    ("objects have only known fields", shapes::check),
    ("pods are restricted, probed and spread over nodes", pods::check),
    ("connections are limited", network::check),
    ("the configuration is complete, and has no secret", config::check),
    ("rights cover the composed resources only", rights::check),
    ("the platform is the same as in packages and manifests", platform::check),
];

/// A rendered chart and its values.
struct Case {
    /// The name of the values.
    name: &'static str,
    /// All values, with the defaults.
    values: Value,
    /// The portal's objects.
    objects: Objects,
    /// The objects of the platform, which Helm keeps.
    platform: Objects,
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
        let text = helm.template(&file, &[])?;
        ensure!(text == helm.template(&file, &[])?, "two renders of the {name} values differ");
        let all = Objects(yaml::documents(&text)?);
        let (objects, platform) = (all.of(portal::NAME), all.kept());
        let case = Case { name, values: merged(name)?, objects, platform };
        for (promise, check) in CHECKS {
            check(&case).with_context(|| format!("{name} values: {promise}"))?;
            println!("{name:8} {promise}");
        }
    }
    let rendered = combinations::check(helm)?;
    println!("{rendered} combinations of APIs and groups give the same platform");
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

/// All values of a check.
fn merged(name: &str) -> Result<Value> {
    over_defaults(&yaml::read(&values(name))?.pop().context("no values")?)
}

/// The values merged over the defaults, as Helm merges them, with the values that empty ones mean.
fn over_defaults(values: &Value) -> Result<Value> {
    let defaults = chart::folder().join("values.yaml");
    let mut all = yaml::read(&defaults)?.pop().context("no values")?;
    crossplane::json::overlay(&mut all, values);
    if all["portal"]["apis"] == "" {
        all["portal"]["apis"] = all["apis"].clone();
    }
    if all["image"]["repository"] == "" {
        let registry = all["registry"].as_str().unwrap_or_default();
        all["image"]["repository"] = format!("{registry}/{}", portal::NAME).into();
    }
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
        !self.text("/portal/tls/secretName").is_empty()
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
