//! Chart repositories of our own, under the addresses of those that environments install from.
//!
//! `e2e/charts/<host>/<path>/<chart>` is a chart of the repository `https://<host>/<path>`.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use xtask::workspace;

use super::{ground::Ground, process::Program};

/// Packs the charts; the folder that holds one folder per host.
pub async fn pack(ground: &Ground) -> Result<PathBuf> {
    let charts = workspace::root().join("e2e/charts");
    let sites = ground.subfolder("sites")?;
    let mut repositories = BTreeMap::<PathBuf, Vec<PathBuf>>::new();
    for chart in charts_in(&charts)? {
        let repository = chart.parent().unwrap_or(&charts).strip_prefix(&charts)?.to_owned();
        repositories.entry(repository).or_default().push(chart);
    }
    for (repository, charts) in repositories {
        let target = sites.join(&repository);
        fs::create_dir_all(&target)?;
        let helm = || Program::new("helm", &ground.tools.helm);
        let charts = charts.iter().map(|chart| chart.display().to_string());
        let to = target.display().to_string();
        ground.run(helm().arg("package").args(charts).args(["--destination", &to])).await?;
        ground.run(helm().args(["repo", "index", &to])).await?;
    }
    Ok(sites)
}

/// The folders that hold a `Chart.yaml`.
fn charts_in(folder: &Path) -> Result<Vec<PathBuf>> {
    if folder.join("Chart.yaml").is_file() {
        return Ok(vec![folder.to_owned()]);
    }
    let entries = fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))?;
    let mut charts = Vec::new();
    for entry in entries {
        let entry = entry?.path();
        if entry.is_dir() {
            charts.extend(charts_in(&entry)?);
        }
    }
    Ok(charts)
}
