//! What people may ask for, as the schema says it and beyond.

use std::sync::LazyLock;

use regex_lite::Regex;

use super::inside::KNATIVE_SERVING;
use super::{App, Chart, ClusterType, Expose, GitOps, Parameters, VirtualEnvironmentSettings};
use crate::check::{self, Refused, kubernetes, location};
use crate::compose::Composition;
use crate::error::Error;

/// The name of a chart.
pub const CHART: &str = "^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$";

/// The version of a chart, all of it: with less, provider-helm takes what it installed for another.
pub const VERSION: &str = r"^v?[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$";

/// A folder in a repository, relative to its root.
pub const FOLDER: &str = "^[A-Za-z0-9._@~+-][A-Za-z0-9._@~+/ -]*$";

/// A branch, a tag, a commit, or a range of tagged versions.
pub const REVISION: &str = "^[A-Za-z0-9~^v*][A-Za-z0-9._/@+*~^-]*$";

/// The longest values of a chart, in bytes of JSON: a Release has to fit into etcd, and all of them into one answer.
const LONGEST_VALUES: usize = 256 * 1024;

impl Parameters {
    /// What kind of cluster it is: that which runs, else what was asked for, else what Settings say.
    pub(super) fn cluster_type(
        &self,
        settings: &VirtualEnvironmentSettings,
        cx: &Composition<'_>,
    ) -> Result<ClusterType, Error> {
        match (running(cx), self.cluster_type) {
            (Some(running), Some(asked)) if running != asked => {
                let allowed =
                    format!("{}, as it is: make a new environment for another type", running.name());
                Err(wrong("type", Refused::new(asked.name(), allowed)))
            }
            (Some(running), _) => Ok(running),
            (None, Some(asked)) => Ok(asked),
            (None, None) => Ok(settings.type_of(self.size)),
        }
    }

    pub(super) fn check(&self, cluster_type: ClusterType, cx: &Composition<'_>) -> Result<(), Error> {
        if self.expose == Expose::LoadBalancer && cluster_type != ClusterType::Vcluster {
            let allowed = format!(
                "cluster: the platform team decides who reaches a cluster of type {}",
                cluster_type.name()
            );
            return Err(wrong("expose", Refused::new("loadBalancer", allowed)));
        }
        self.check_size(cluster_type, cx)?;
        self.app.as_ref().map_or(Ok(()), |app| app.check(cx))?;
        self.gitops.as_ref().map_or(Ok(()), GitOps::check)
    }

    /// Nodes of EKS and AKS cannot become others: their providers refuse it.
    fn check_size(&self, cluster_type: ClusterType, cx: &Composition<'_>) -> Result<(), Error> {
        let nodes = match cluster_type {
            ClusterType::Eks => "node-pool",
            ClusterType::Aks => "cluster",
            ClusterType::Vcluster | ClusterType::Gke => return Ok(()),
        };
        match cx.noted(nodes, "size").filter(|noted| *noted != self.size.name()) {
            None => Ok(()),
            Some(noted) => {
                let allowed = format!(
                    "{}, as it is: nodes of {} cannot be changed",
                    check::shown(noted),
                    cluster_type.name()
                );
                Err(wrong("size", Refused::new(self.size.name(), allowed)))
            }
        }
    }
}

impl App {
    fn check(&self, cx: &Composition<'_>) -> Result<(), Error> {
        self.chart.check()?;
        kubernetes::label(&self.namespace).map_err(|refused| wrong("app.namespace", refused))?;
        if self.namespace == KNATIVE_SERVING {
            let allowed = "another namespace: this one comes and goes with Knative";
            return Err(wrong("app.namespace", Refused::new(&self.namespace, allowed)));
        }
        let running = cx.running("app", &["namespace"]).and_then(serde_json::Value::as_str);
        if let Some(running) = running.filter(|running| *running != self.namespace) {
            let allowed = format!("{}, where it runs: a release does not move", check::shown(running));
            return Err(wrong("app.namespace", Refused::new(&self.namespace, allowed)));
        }
        let bytes = serde_json::to_string(&self.values).map_or(usize::MAX, |json| json.len());
        if bytes <= LONGEST_VALUES {
            return Ok(());
        }
        let found = format!("{bytes} bytes of values");
        Err(wrong("app.values", Refused { found, allowed: format!("at most {LONGEST_VALUES}") }))
    }
}

impl Chart {
    fn check(&self) -> Result<(), Error> {
        static NAME: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(CHART).ok());
        location::chart_repository(&self.repository)
            .map_err(|refused| wrong("app.chart.repository", refused))?;
        check::shape(&self.name, 128, |name| fits(&NAME, name), "the name of a chart, such as podinfo")
            .map_err(|refused| wrong("app.chart.name", refused))?;
        version(&self.version).map_err(|refused| wrong("app.chart.version", refused))
    }
}

impl GitOps {
    fn check(&self) -> Result<(), Error> {
        static PATH: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(FOLDER).ok());
        static REV: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(REVISION).ok());
        location::git_repository(&self.repo_url).map_err(|refused| wrong("gitops.repoURL", refused))?;
        let inside = |path: &str| fits(&PATH, path) && path.split('/').all(|part| part != "..");
        check::shape(&self.path, 1024, inside, "a folder in the repository, such as deploy/production")
            .map_err(|refused| wrong("gitops.path", refused))?;
        check::shape(
            &self.target_revision,
            255,
            |revision| fits(&REV, revision),
            "a branch, a tag or a commit",
        )
        .map_err(|refused| wrong("gitops.targetRevision", refused))?;
        Ok(())
    }
}

impl ClusterType {
    /// As it stands in a claim.
    pub fn name(self) -> &'static str {
        match self {
            Self::Vcluster => "vcluster",
            Self::Gke => "gke",
            Self::Eks => "eks",
            Self::Aks => "aks",
        }
    }
}

/// The version of a chart.
pub(super) fn version(version: &str) -> Result<(), Refused> {
    static PATTERN: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(VERSION).ok());
    check::shape(version, 64, |version| fits(&PATTERN, version), "a whole version such as 1.2.3").map(|_| ())
}

/// What kind of cluster runs, or is being made: the resources themselves say it.
fn running(cx: &Composition<'_>) -> Option<ClusterType> {
    if ["vcluster", "host-namespace"].iter().any(|slot| cx.exists(slot)) {
        return Some(ClusterType::Vcluster);
    }
    let group = ["cluster", "node-pool", "cluster-auth"].iter().find_map(|slot| cx.group(slot))?;
    match group.split('.').next()? {
        "container" => Some(ClusterType::Gke),
        "eks" => Some(ClusterType::Eks),
        "containerservice" => Some(ClusterType::Aks),
        _ => None,
    }
}

fn fits(pattern: &LazyLock<Option<Regex>>, value: &str) -> bool {
    pattern.as_ref().is_some_and(|pattern| pattern.is_match(value))
}

fn wrong(field: &str, refused: Refused) -> Error {
    Error::spec(format!("spec.parameters.{field}"), refused)
}
