//! Helm, as the administrator of a control plane, and packed charts.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use function_paved_road::manifests::REGISTRY;
use tokio::task::spawn_blocking;
use xtask::package::{Args, chart};
use xtask::workspace;

use super::guides;
use crate::control_plane::{ControlPlane, Program};

/// Helm for a control plane.
pub(super) struct Helm {
    plane: Arc<ControlPlane>,
}

impl Helm {
    pub(super) fn new(plane: &Arc<ControlPlane>) -> Self {
        Self { plane: plane.clone() }
    }

    /// Packs the chart of a release, and returns its file.
    pub(super) async fn pack(&self, release: &str) -> Result<PathBuf> {
        let folder = self.plane.workdir().subfolder(&format!("chart-{release}"))?;
        let args = Args { release: release.to_owned(), ..Args::default() };
        spawn_blocking(move || chart::write(&args, &folder)).await?
    }

    /// Runs Helm, and returns its output.
    pub(super) async fn run(&self, args: &[&str]) -> Result<String> {
        let workdir = self.plane.workdir();
        let helm = Program::new("helm", &workdir.tools.helm).args(args.iter().copied());
        let kubeconfig = self.plane.kubeconfig().display().to_string();
        workdir.run(helm.env("KUBECONFIG", kubeconfig)).await
    }

    /// Runs a block of a guide with a packed chart in place of the published one.
    pub(super) async fn follow(&self, block: &str, chart: &Path) -> Result<String> {
        let programs = self.programs()?;
        let block = with_chart(block, chart)?;
        let environment =
            [("KUBECONFIG", self.plane.kubeconfig()), ("REGISTRY", Path::new(REGISTRY))];
        guides::run(&block, workspace::root(), &programs, &environment).await
    }

    /// A folder with Helm and kubectl.
    pub(super) fn programs(&self) -> Result<PathBuf> {
        let workdir = self.plane.workdir();
        let folder = workdir.subfolder("programs-of-guides")?;
        for (name, program) in
            [("helm", workdir.tools.helm.as_path()), ("kubectl", self.plane.kubectl_path())]
        {
            let link = folder.join(name);
            if !link.exists() {
                std::os::unix::fs::symlink(program, &link).context("linking a program")?;
            }
        }
        Ok(folder)
    }
}

/// A block of a guide with a packed chart in place of the published one.
pub(super) fn with_chart(block: &str, chart: &Path) -> Result<String> {
    const PUBLISHED: &str = "oci://$REGISTRY/charts/paved-road --version ";
    let (before, after) =
        block.split_once(PUBLISHED).with_context(|| format!("no chart in\n{block}"))?;
    let (_, after) = after.split_once(' ').context("no flags after the version")?;
    ensure!(!after.contains(PUBLISHED), "two charts in\n{block}");
    Ok(format!("{before}{} {after}", chart.display()))
}
