//! Our own chart repositories, at the addresses from which environments install charts.
//!
//! `e2e/charts/<host>/<path>/<chart>` is a chart of the repository `https://<host>/<path>`. The
//! chart of the platform is the released chart.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use xtask::package::{self, Args};
use xtask::workspace;

use super::{process::Program, workdir::Workdir};

/// The host of the chart of the platform. No name server knows it.
pub const OURS: &str = "charts.paved-road.example";

/// Packs the charts of the workspace, and of an earlier release's `sources`. Returns the folder
/// with one subfolder per host. If two charts have the same version, the workspace's chart is
/// packed.
pub async fn pack(workdir: &Workdir, sources: &Path) -> Result<PathBuf> {
    let sites = workdir.subfolder("sites")?;
    let mut repositories = BTreeMap::<PathBuf, Vec<PathBuf>>::new();
    let mut roots = vec![sources, workspace::root()];
    roots.dedup();
    for root in roots {
        let folder = root.join("e2e/charts");
        for chart in charts_in(&folder)? {
            let repository = chart.parent().unwrap_or(&folder).strip_prefix(&folder)?.to_owned();
            repositories.entry(repository).or_default().push(chart);
        }
    }
    for (repository, charts) in repositories {
        let target = sites.join(&repository);
        fs::create_dir_all(&target)?;
        let helm = Program::new("helm", &workdir.tools.helm).arg("package");
        let charts = charts.iter().map(|chart| chart.display().to_string());
        workdir
            .run(helm.args(charts).arg("--destination").arg(target.display().to_string()))
            .await?;
        index(workdir, &target).await?;
    }
    let target = sites.join(OURS);
    fs::create_dir_all(&target)?;
    package::chart::write(&Args::default(), &target)?;
    index(workdir, &target).await?;
    Ok(sites)
}

/// Writes the index that makes a folder of packed charts a repository.
async fn index(workdir: &Workdir, folder: &Path) -> Result<()> {
    let helm = Program::new("helm", &workdir.tools.helm).args(["repo", "index"]);
    workdir.run(helm.arg(folder.display().to_string())).await?;
    let file = folder.join("index.yaml");
    let index = fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
    fs::write(&file, with_v(&index)).with_context(|| format!("writing {}", file.display()))
}

/// Adds a `v` to the versions of Knative's operator in an index. The real index has it, but the
/// chart does not.
fn with_v(index: &str) -> String {
    if !index.contains("\n  knative-operator:\n") {
        return index.to_owned();
    }
    let line = |line: &str| match line.strip_prefix("    version: ") {
        Some(version) => format!("    version: v{}\n", version.trim_start_matches('v')),
        None => format!("{line}\n"),
    };
    index.lines().map(line).collect()
}

/// The folders with a `Chart.yaml`.
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

#[cfg(test)]
mod tests {
    use super::with_v;

    #[test]
    fn index_of_knatives_operator_writes_a_v_before_versions() {
        let of = |chart: &str, version: &str| {
            format!(
                "apiVersion: v1\nentries:\n  {chart}:\n  - apiVersion: v2\n    name: {chart}\n    version: {version}\n"
            )
        };
        assert_eq!(with_v(&of("knative-operator", "1.23.0")), of("knative-operator", "v1.23.0"));
        assert_eq!(with_v(&of("podinfo", "6.9.2")), of("podinfo", "6.9.2"));
    }
}
