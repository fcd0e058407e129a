//! The application of an environment: a Helm chart inside its cluster.

use serde_json::{Value, json};

use super::inside::{APPLICATION, RELEASE, application, release};
use super::{App, Chart};
use crate::compose::Composer;
use crate::models::helm::Release;
use crate::value::Object;

/// The name of the Application, and of the release that its chart is rendered for.
const NAME: &str = "app";

impl App {
    /// The Release of an application that an earlier release installed.
    pub(super) fn release(&self) -> Release {
        let chart = &self.chart;
        Release {
            values: Some(Value::Object(self.values.clone())).filter(|_| !self.values.is_empty()),
            ..release(&chart.repository, &chart.name, &chart.version, &self.namespace)
        }
    }

    /// The Application that installs the chart.
    pub(super) fn application(&self) -> Value {
        let mut helm = json!({"releaseName": NAME});
        if !self.values.is_empty() {
            helm["valuesObject"] = Value::Object(self.values.clone());
        }
        let source = json!({
            "repoURL": repo_url(&self.chart.repository),
            "chart": self.chart.name,
            "targetRevision": self.chart.version,
            "helm": helm,
        });
        // A definition of a large kind does not fit into the annotation of a client-side apply.
        application(
            NAME,
            &source,
            &self.namespace,
            &["CreateNamespace=true", "ServerSideApply=true"],
        )
    }
}

/// A repository of charts in the notation of Argo CD. It takes a repository without a scheme for a
/// registry, and rejects `oci://` together with a chart's name.
fn repo_url(repository: &str) -> &str {
    repository.strip_prefix("oci://").map_or(repository, |place| place.trim_end_matches('/'))
}

/// The application that runs, of either kind.
pub(super) struct RunningApp<'c, 'r> {
    cx: &'c Composer<'r>,
    /// Whether a Release of provider-helm installed it.
    pub is_release: bool,
}

impl<'c, 'r> RunningApp<'c, 'r> {
    /// Finds the application of an environment.
    pub fn find(cx: &'c Composer<'r>) -> Option<Self> {
        let is_release = cx.exists(RELEASE);
        (is_release || cx.exists(APPLICATION)).then_some(Self { cx, is_release })
    }

    /// Its namespace.
    pub fn namespace(&self) -> Option<&'c str> {
        self.value(&["namespace"], &["destination", "namespace"])?.as_str()
    }

    /// Whether it has this chart: repository, name and version.
    pub fn has_chart(&self, chart: &Chart) -> bool {
        let url = &chart.repository;
        let repository = if self.is_release { url } else { repo_url(url) };
        let has = |of_release: &str, of_application: &str, wanted: &str| {
            let found = self.value(&["chart", of_release], &["source", of_application]);
            found.and_then(Value::as_str) == Some(wanted)
        };
        has("repository", "repoURL", repository)
            && has("name", "chart", &chart.name)
            && has("version", "targetRevision", &chart.version)
    }

    /// Whether it has these values.
    pub fn has_values(&self, values: &Object) -> bool {
        let found = self.value(&["values"], &["source", "helm", "valuesObject"]);
        found.and_then(Value::as_object) == Some(values)
    }

    /// The value at a path of a Release's `forProvider`, or of an Application's `spec`.
    fn value(&self, of_release: &[&str], of_application: &[&str]) -> Option<&'c Value> {
        if self.is_release {
            return self.cx.running(RELEASE, of_release);
        }
        self.cx.running(APPLICATION, &[&["manifest", "spec"], of_application].concat())
    }
}
