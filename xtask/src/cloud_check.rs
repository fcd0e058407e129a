//! `cargo xtask cloud-check`: creates and deletes an environment of each API and cloud, with
//! Chainsaw.
//!
//! The suite is in `e2e/cloud-check`, one folder for each check. The task refuses checks above a
//! price, deletes environments that a failed check leaves, and lists resources in the clouds that
//! still have the tag. It deletes no resource in a cloud by itself.

mod left;
mod page;

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

use crate::{tools, workspace};

/// The key of the tag in Settings by which the clouds are searched.
pub const TAG: &str = "cloud-check";

/// A check.
#[derive(Clone, Copy, Debug)]
pub struct Check {
    /// The folder in `e2e/cloud-check`.
    pub name: &'static str,
    /// The cloud of the environment. `None` is the cluster of the control plane.
    pub cloud: Option<Cloud>,
    /// List price in US dollars per hour, rounded up. Sources: the public price lists of August
    /// 2026, for us-east-1, us-central1 and eastus, without traffic and disks.
    pub usd_per_hour: f64,
}

/// A cloud with a command line of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cloud {
    /// `aws`
    Aws,
    /// `gcloud`
    Gcp,
    /// `az`
    Azure,
}

/// All checks.
pub const CHECKS: &[Check] = &[
    // g4dn.xlarge
    Check { name: "gpu-workspace", cloud: Some(Cloud::Aws), usd_per_hour: 0.6 },
    // GKE, three e2-small, db-g1-small
    Check { name: "application-environment", cloud: Some(Cloud::Gcp), usd_per_hour: 0.2 },
    // CloudFront and S3 cost by request, db.t4g.micro
    Check { name: "unified-environment", cloud: Some(Cloud::Aws), usd_per_hour: 0.1 },
    // EKS, two m6i.large
    Check { name: "virtual-environment-eks", cloud: Some(Cloud::Aws), usd_per_hour: 0.3 },
    // GKE, three e2-standard-2
    Check { name: "virtual-environment-gke", cloud: Some(Cloud::Gcp), usd_per_hour: 0.4 },
    // AKS, two Standard_D2s_v5
    Check { name: "virtual-environment-aks", cloud: Some(Cloud::Azure), usd_per_hour: 0.3 },
    // Pods on nodes that exist
    Check { name: "virtual-environment-vcluster", cloud: None, usd_per_hour: 0.0 },
    Check { name: "stock-pool", cloud: None, usd_per_hour: 0.0 },
];

/// Flags of `cargo xtask cloud-check`.
#[derive(clap::Args)]
pub struct Args {
    /// Checks to run [default: all checks].
    names: Vec<String>,
    /// Context of the kubeconfig. Its control plane must have the APIs and real providers.
    #[arg(long, value_name = "NAME")]
    context: String,
    /// Namespace for the environments. It must exist and have no environments.
    #[arg(long, value_name = "NAME")]
    namespace: String,
    /// Most US dollars that the checks may cost.
    #[arg(long, value_name = "USD")]
    max_usd: f64,
    /// Hours that each environment may exist, for the price.
    #[arg(long, value_name = "HOURS", default_value_t = 2.0, value_parser = hours)]
    hours: f64,
    /// Folder for the page with the results [default: target/cloud-check].
    #[arg(long, value_name = "DIR")]
    results: Option<PathBuf>,
}

/// Runs the checks.
///
/// # Errors
/// The checks may cost too much, a check fails, or a resource stays.
pub fn run(args: &Args) -> Result<()> {
    let checks = chosen(&args.names)?;
    let usd = price(&checks, args.hours, args.max_usd)?;
    let folder = args.results.clone().unwrap_or_else(|| workspace::target().join("cloud-check"));
    fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
    let settings =
        args.kubectl(&["get", "environmentconfig", "paved-road", "-o=jsonpath={.data}"])?;
    let settings: Value = serde_json::from_str(&settings).context("the Settings are not JSON")?;
    let tag = settings["tags"][TAG].as_str().with_context(|| {
        format!("the Settings have no tag {TAG}: set tags.{TAG}, by which resources are found")
    })?;
    let existing = args.environments()?;
    ensure!(existing.is_empty(), "{} has environments: {}", args.namespace, existing.join(", "));

    println!("{} checks, at most {usd:.2} USD", checks.len());
    let passed = args.chainsaw(&checks, &folder)?;
    // A failed deletion leaves resources, so the search and the page come first.
    let deleted = args.delete_environments();
    let left = left::resources(&checks, &settings, tag);
    let report = fs::read_to_string(folder.join("report.json")).context("reading the report")?;
    let report: Value = serde_json::from_str(&report).context("the report is not JSON")?;
    let page = folder.join("results.md");
    fs::write(&page, page::results(&report, &left)).context("writing the results")?;
    println!("{}", page.display());
    deleted?;
    ensure!(passed, "a check failed");
    ensure!(left.iter().all(left::Search::is_clean), "resources stay in the clouds");
    Ok(())
}

fn chosen(names: &[String]) -> Result<Vec<Check>> {
    if let Some(unknown) = names.iter().find(|name| CHECKS.iter().all(|check| check.name != **name))
    {
        let known: Vec<_> = CHECKS.iter().map(|check| check.name).collect();
        bail!("unknown checks: {unknown:?}; allowed: {}", known.join(", "));
    }
    let is_chosen =
        |check: &&Check| names.is_empty() || names.iter().any(|name| name == check.name);
    Ok(CHECKS.iter().filter(is_chosen).copied().collect())
}

/// Reads a positive number of hours.
fn hours(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|hours: &f64| hours.is_finite() && *hours > 0.0);
    number.ok_or_else(|| format!("{text:?}: expected a positive number, such as 1.5"))
}

/// The most that checks cost, in US dollars.
fn price(checks: &[Check], hours: f64, most: f64) -> Result<f64> {
    let usd = checks.iter().map(|check| check.usd_per_hour * hours).sum();
    ensure!(
        usd <= most,
        "{} checks of {hours} hours cost up to {usd:.2} USD; allowed by --max-usd: {most:.2}",
        checks.len()
    );
    Ok(usd)
}

impl Args {
    fn kubectl(&self, args: &[&str]) -> Result<String> {
        let mut kubectl = Command::new("kubectl");
        kubectl.args(["--context", &self.context]).args(args);
        let output = kubectl.output().context("could not run kubectl")?;
        let error = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "kubectl {}: {}", args.join(" "), error.trim());
        String::from_utf8(output.stdout).context("the output of kubectl is not UTF-8")
    }

    /// The environments in the namespace.
    fn environments(&self) -> Result<Vec<String>> {
        let listed = self.kubectl(&["get", "paved", "-o=name", "--namespace", &self.namespace])?;
        Ok(listed.lines().map(str::to_owned).collect())
    }

    /// Deletes the environments of failed checks.
    fn delete_environments(&self) -> Result<()> {
        if self.environments()?.is_empty() {
            return Ok(());
        }
        let delete = ["delete", "paved", "--all", "--timeout=45m", "--namespace", &self.namespace];
        self.kubectl(&delete).map(drop)
    }

    /// Runs Chainsaw, which writes `report.json`. Returns whether all checks passed.
    fn chainsaw(&self, checks: &[Check], folder: &std::path::Path) -> Result<bool> {
        let suite = workspace::root().join("e2e/cloud-check");
        let mut chainsaw = Command::new(tools::path(&tools::CHAINSAW)?);
        chainsaw
            .arg("test")
            .args(checks.iter().map(|check| suite.join(check.name)))
            .args(["--kube-context", &self.context, "--namespace", &self.namespace])
            .args(["--report-format", "JSON", "--report-name", "report", "--report-path"])
            .arg(folder);
        Ok(chainsaw.status().context("could not run chainsaw")?.success())
    }
}

#[cfg(test)]
mod tests;
