//! Checks of a spec: the checks of the schema, and further checks.

use std::sync::LazyLock;

use regex_lite::Regex;
use serde_json::Value;

use super::app::RunningApp;
use super::inside::{ARGOCD, KNATIVE_SERVING, running_repository};
use super::settings::version;
use super::vcluster::{host_namespace, is_exposed};
use super::{App, Chart, ClusterType, Expose, GitOps, Parameters, VirtualEnvironmentSettings};
use crate::check::{self, Fields, Refused, kubernetes, location};
use crate::compose::Composer;
use crate::error::Error;

/// The name of a chart.
pub const CHART: &str = "^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$";

/// A folder in a repository, relative to its root.
pub const FOLDER: &str = "^[A-Za-z0-9._@~+-][A-Za-z0-9._@~+/ -]*$";

/// A branch, a tag, a commit, or a range of tagged versions.
pub const REVISION: &str = "^[A-Za-z0-9~^v*][A-Za-z0-9._/@+*~^-]*$";

/// Maximum size of a chart's values, in bytes of JSON. The provider of Applications notes the whole
/// object in an annotation, which is limited to 256 KiB together with all other annotations.
const LONGEST_VALUES: usize = 240 * 1024;

/// Maximum depth of a chart's values: nested objects and lists, including the values themselves.
/// The status of an Application repeats them at a depth of its own.
const DEEPEST_VALUES: usize = 20;

impl Parameters {
    /// Checks every field. Returns the type of the cluster.
    pub(super) fn check(
        &self,
        settings: &VirtualEnvironmentSettings,
        cx: &Composer<'_>,
    ) -> Result<ClusterType, Error> {
        const TYPE: &str = "spec.parameters.type";
        let mut fields = Fields::default();
        let cluster_type = self.cluster_type(settings, cx);
        if let Some(&cluster_type) = fields.check(TYPE, cluster_type.as_ref()) {
            fields.check("spec.parameters.expose", self.check_expose(cluster_type, settings, cx));
            fields.check("spec.parameters.size", self.check_size(cluster_type, cx));
            if cluster_type == ClusterType::Vcluster {
                fields.check("metadata.name", host_namespace(cx));
            }
        }
        if let Some(app) = &self.app {
            app.check(settings, &mut fields, cx);
        }
        if let Some(gitops) = &self.gitops {
            gitops.check(&mut fields, cx);
        }
        fields.verdict(Error::InvalidSpec)?;
        cluster_type.map_err(|refused| Error::spec(TYPE, refused))
    }

    /// The cluster type: the type of the existing cluster, else the requested type, else the type
    /// in Settings.
    fn cluster_type(
        &self,
        settings: &VirtualEnvironmentSettings,
        cx: &Composer<'_>,
    ) -> Result<ClusterType, Refused> {
        match (running(cx), self.cluster_type) {
            (Some(running), Some(asked)) if running != asked => {
                let allowed = format!(
                    "{}, the current type. For another type, create a new environment",
                    running.name()
                );
                Err(Refused::new(asked.name(), allowed))
            }
            (Some(running), _) => Ok(running),
            (None, Some(asked)) if !settings.has(asked) => {
                let offered: Vec<&str> = settings.types().map(ClusterType::name).collect();
                Err(Refused::new(asked.name(), check::offer(asked.name(), &offered)))
            }
            (None, Some(asked)) => Ok(asked),
            (None, None) => Ok(settings.type_of(self.size)),
        }
    }

    fn check_expose(
        &self,
        cluster_type: ClusterType,
        settings: &VirtualEnvironmentSettings,
        cx: &Composer<'_>,
    ) -> Result<(), Refused> {
        if self.expose == Expose::Cluster {
            return Ok(());
        }
        let allowed = match cluster_type {
            ClusterType::Vcluster if settings.expose_allowed != Some(false) || is_exposed(cx) => {
                return Ok(());
            }
            ClusterType::Vcluster => {
                "cluster: the platform team does not allow load balancers (environment.exposeAllowed)"
                    .to_owned()
            }
            other => {
                let name = other.name();
                format!("cluster: the platform team decides who can reach a cluster of type {name}")
            }
        };
        Err(Refused::new("loadBalancer", allowed))
    }

    /// Nodes of EKS and AKS cannot be changed, because their providers reject it.
    fn check_size(&self, cluster_type: ClusterType, cx: &Composer<'_>) -> Result<(), Refused> {
        let nodes = match cluster_type {
            ClusterType::Eks => "node-pool",
            ClusterType::Aks => "cluster",
            ClusterType::Vcluster | ClusterType::Gke => return Ok(()),
        };
        match cx.noted(nodes, "size").filter(|noted| *noted != self.size.name()) {
            None => Ok(()),
            Some(noted) => {
                let allowed = format!(
                    "{}, the current size, because nodes of {} cannot be changed",
                    check::shown(noted),
                    cluster_type.name()
                );
                Err(Refused::new(self.size.name(), allowed))
            }
        }
    }
}

impl App {
    fn check(&self, settings: &VirtualEnvironmentSettings, fields: &mut Fields, cx: &Composer<'_>) {
        let running = RunningApp::find(cx);
        let is_same = running.as_ref().is_some_and(|running| running.has_chart(&self.chart));
        // A chart that runs stays, although its repository is not allowed for a new one.
        let allowed = (!is_same).then_some(settings);
        self.chart.check(allowed, fields);
        let namespace = self.check_namespace(running.as_ref());
        fields.check("spec.parameters.app.namespace", namespace);
        if !running.is_some_and(|running| running.has_values(&self.values)) {
            fields.check("spec.parameters.app.values", self.check_values());
        }
    }

    fn check_namespace(&self, running: Option<&RunningApp<'_, '_>>) -> Result<(), Refused> {
        kubernetes::label(&self.namespace)?;
        if self.namespace == KNATIVE_SERVING {
            let allowed = "another namespace, because Knative creates and deletes this namespace";
            return Err(Refused::new(&self.namespace, allowed));
        }
        if self.namespace == ARGOCD && !running.is_some_and(|running| running.is_release) {
            let allowed = "another namespace, because Argo CD, which installs the chart, has it";
            return Err(Refused::new(&self.namespace, allowed));
        }
        let running = running.and_then(RunningApp::namespace);
        if let Some(running) = running.filter(|running| *running != self.namespace) {
            let allowed = format!(
                "{}, the current namespace, because a Helm release cannot move",
                check::shown(running)
            );
            return Err(Refused::new(&self.namespace, allowed));
        }
        Ok(())
    }

    fn check_values(&self) -> Result<(), Refused> {
        if self.values.values().any(|value| is_deeper(value, DEEPEST_VALUES - 1)) {
            let found = format!("values with more than {DEEPEST_VALUES} levels");
            let allowed = format!("at most {DEEPEST_VALUES} levels of objects and lists");
            return Err(Refused { found, allowed });
        }
        let bytes = serde_json::to_string(&self.values).map_or(usize::MAX, |json| json.len());
        if bytes <= LONGEST_VALUES {
            return Ok(());
        }
        let found = format!("{bytes} bytes of values");
        Err(Refused { found, allowed: format!("at most {LONGEST_VALUES}") })
    }
}

/// Whether a value has more than `levels` nested objects and lists.
fn is_deeper(value: &Value, levels: usize) -> bool {
    let Some(left) = levels.checked_sub(1) else { return value.is_object() || value.is_array() };
    match value {
        Value::Object(fields) => fields.values().any(|value| is_deeper(value, left)),
        Value::Array(items) => items.iter().any(|value| is_deeper(value, left)),
        _ => false,
    }
}

impl Chart {
    /// Checks the chart. With Settings, its repository has to be one that they allow.
    fn check(&self, settings: Option<&VirtualEnvironmentSettings>, fields: &mut Fields) {
        static NAME: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(CHART).ok());
        let repository = location::chart_repository(&self.repository).and_then(|url| {
            settings.map_or(Ok(()), |settings| {
                location::public(url)?;
                settings.allows(url)
            })
        });
        fields.check("spec.parameters.app.chart.repository", repository);
        let name = check::shape(
            &self.name,
            128,
            |name| fits(&NAME, name),
            "the name of a chart, for example podinfo",
        );
        fields.check("spec.parameters.app.chart.name", name);
        fields.check("spec.parameters.app.chart.version", version(&self.version));
    }
}

impl GitOps {
    fn check(&self, fields: &mut Fields, cx: &Composer<'_>) {
        static PATH: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(FOLDER).ok());
        static REV: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(REVISION).ok());
        let is_same = running_repository(cx) == Some(self.repo_url.as_str());
        let repository = location::git_repository(&self.repo_url)
            .and_then(|url| if is_same { Ok(()) } else { location::public(url) });
        fields.check("spec.parameters.gitops.repoURL", repository);
        let inside = |path: &str| fits(&PATH, path) && path.split('/').all(|part| part != "..");
        let path = check::shape(
            &self.path,
            1024,
            inside,
            "a folder in the repository, for example deploy/production",
        );
        fields.check("spec.parameters.gitops.path", path);
        let revision = check::shape(
            &self.target_revision,
            255,
            |revision| fits(&REV, revision),
            "a branch, a tag or a commit",
        );
        fields.check("spec.parameters.gitops.targetRevision", revision);
    }
}

impl ClusterType {
    /// Its value in a claim.
    pub fn name(self) -> &'static str {
        match self {
            Self::Vcluster => "vcluster",
            Self::Gke => "gke",
            Self::Eks => "eks",
            Self::Aks => "aks",
        }
    }
}

/// The type of the cluster that exists or is being created, according to its resources.
fn running(cx: &Composer<'_>) -> Option<ClusterType> {
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
