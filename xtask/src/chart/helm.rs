//! Helm, and the objects that it renders.

use std::{
    path::{Path, PathBuf},
    process::{Command, Output},
};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::tools;

/// The oldest Kubernetes that the chart supports.
pub const KUBERNETES: &str = "1.30.0";

/// The release and its namespace.
pub const NAMESPACE: &str = "paved-road";

/// Helm, and a packed chart.
pub struct Helm {
    program: PathBuf,
    chart: PathBuf,
}

/// The objects of a rendered chart.
pub struct Objects(pub Vec<Value>);

impl Helm {
    /// Uses a packed chart. Builds Helm if it does not exist.
    pub fn new(chart: PathBuf) -> Result<Self> {
        Ok(Self { program: tools::path(&tools::HELM)?, chart })
    }

    /// Fails if Helm finds an error in the chart.
    pub fn lint(&self, values: &Path) -> Result<()> {
        let mut command = Command::new(&self.program);
        command.args(["lint", "--strict", "--quiet", "--kube-version", KUBERNETES, "--values"]);
        let answer = command.arg(values).arg(&self.chart).output().context("starting helm")?;
        ensure!(answer.status.success(), "helm lint: {}", told(&answer));
        Ok(())
    }

    /// Renders the objects as text.
    pub fn template(&self, values: &Path, set: &[&str]) -> Result<String> {
        let answer = self.run(Some(values), set)?;
        ensure!(answer.status.success(), "helm template: {}", told(&answer));
        Ok(String::from_utf8(answer.stdout)?)
    }

    /// The error of Helm for rejected values. Fails if Helm accepts them.
    pub fn refusal(&self, values: Option<&Path>, set: &[&str]) -> Result<String> {
        let answer = self.run(values, set)?;
        if answer.status.success() {
            bail!("helm accepted {}", set.join(" "));
        }
        Ok(String::from_utf8_lossy(&answer.stderr).into_owned())
    }

    fn run(&self, values: Option<&Path>, set: &[&str]) -> Result<Output> {
        let mut command = Command::new(&self.program);
        command.args([
            "template",
            NAMESPACE,
            "--namespace",
            NAMESPACE,
            "--kube-version",
            KUBERNETES,
        ]);
        command.arg(&self.chart);
        if let Some(values) = values {
            command.arg("--values").arg(values);
        }
        command.args(set.iter().flat_map(|set| ["--set-json", set]));
        command.output().context("starting helm")
    }
}

fn told(answer: &Output) -> String {
    let both = [&answer.stdout, &answer.stderr]
        .map(|text| String::from_utf8_lossy(text).trim().to_owned());
    both.join("\n")
}

impl Objects {
    /// The objects of a program, by their label.
    pub fn of(&self, program: &str) -> Self {
        let label = "app.kubernetes.io/name";
        let is_its = |object: &&Value| object["metadata"]["labels"][label] == program;
        Self(self.0.iter().filter(is_its).cloned().collect())
    }

    /// The objects that Helm keeps.
    pub fn kept(&self) -> Self {
        let policy =
            |object: &Value| object["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep";
        Self(self.0.iter().filter(|object| policy(object)).cloned().collect())
    }

    /// All objects of a kind.
    pub fn all<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Value> {
        self.0.iter().filter(move |object| object["kind"] == kind)
    }

    /// The only object of a kind.
    pub fn one<'a>(&'a self, kind: &'a str) -> Result<&'a Value> {
        let mut all = self.all(kind);
        let one = all.next().with_context(|| format!("found no {kind}"))?;
        ensure!(all.next().is_none(), "found more than one {kind}");
        Ok(one)
    }
}
