//! Chart repositories of our own, under the addresses of those that environments install from.
//!
//! `e2e/charts/<host>/<path>/<chart>` is a chart of the repository `https://<host>/<path>`. The
//! portal's chart is what a release has.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use xtask::package::{self, Args};
use xtask::workspace;

use super::{process::Program, workdir::Workdir};

/// Where the portal's chart is: a host that is in no name server.
pub const OURS: &str = "charts.paved-road.example";

/// Packs the charts, and those of an earlier release's `sources`; the folder that holds one folder
/// per host. Of two charts with one version, today's is packed.
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

/// Makes a folder of packed charts a repository.
async fn index(workdir: &Workdir, folder: &Path) -> Result<()> {
    let helm = Program::new("helm", &workdir.tools.helm).args(["repo", "index"]);
    workdir.run(helm.arg(folder.display().to_string())).await?;
    let file = folder.join("index.yaml");
    let index = fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
    fs::write(&file, with_v(&index)).with_context(|| format!("writing {}", file.display()))
}

/// An index in which the versions of Knative's operator begin with a `v`, as in the real one: the
/// chart itself has none.
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
