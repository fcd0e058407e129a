//! Virtual environment: a cluster of one's own, virtual or managed, with an application, GitOps and
//! Knative inside.

mod aks;
mod checks;
mod eks;
mod gke;
mod inside;
mod settings;
mod vcluster;

use kube::KubeSchema;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::{Api, Info, Names, Tagged};
use crate::check::{kubernetes, location};
use crate::compose::{Composition, SecretName};
use crate::error::Error;
use crate::value::Object;
pub use settings::VirtualEnvironmentSettings;

/// A Kubernetes cluster of one's own, and what is installed inside.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VirtualEnvironment {
    /// What the environment is like.
    pub parameters: Parameters,
}

/// What an environment is like.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(
    validation = Rule::new("has(self.type) == has(oldSelf.type)").message("type cannot be \
        changed: create a new environment"),
    validation = Rule::new("!has(self.type) || !(self.type in ['eks', 'aks']) || self.size == oldSelf.size")
        .message("size cannot be changed on eks and aks: create a new environment"),
    validation = Rule::new("!has(self.type) || self.type == 'vcluster' || self.expose != 'loadBalancer'")
        .message("expose: loadBalancer is for vcluster; the platform team decides who can reach a \
                  managed cluster")
)]
pub struct Parameters {
    /// What kind of cluster. Default: what the platform team chose for the size, else vcluster. It
    /// cannot be changed.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = Rule::new("self == oldSelf").message("type cannot be changed: create a new environment"))]
    pub cluster_type: Option<ClusterType>,
    /// How much the environment may use: resources and quotas of a virtual cluster, the nodes of a
    /// managed one. It cannot be changed on eks and aks, whose nodes stay what they are.
    #[serde(default)]
    pub size: Size,
    /// An application to install from a Helm chart. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app: Option<App>,
    /// A Git repository that Argo CD, which is installed for it, keeps the cluster in step with.
    /// Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gitops: Option<GitOps>,
    /// Knative Serving, with Kourier as its ingress.
    #[serde(default)]
    pub knative: Knative,
    /// From where a virtual cluster's API is reached: from within the cluster that hosts it, or
    /// through a load balancer of its own. For type vcluster only.
    #[serde(default)]
    pub expose: Expose,
}

/// Kinds of cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum ClusterType {
    /// A virtual cluster in the one that Crossplane runs in: there in a minute.
    #[default]
    Vcluster,
    /// Google Kubernetes Engine.
    Gke,
    /// Amazon Elastic Kubernetes Service.
    Eks,
    /// Azure Kubernetes Service.
    Aks,
}

/// Sizes of environments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum Size {
    /// For one application.
    #[default]
    Small,
    /// For several.
    Medium,
    /// For a team's whole system.
    Large,
}

impl Size {
    /// As it stands in a claim.
    pub fn name(self) -> &'static str {
        match self {
            Self::Small => "small",
            Self::Medium => "medium",
            Self::Large => "large",
        }
    }
}

/// From where a virtual cluster's API is reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub enum Expose {
    /// From within the cluster that hosts it.
    #[default]
    Cluster,
    /// Through a load balancer of its own.
    LoadBalancer,
}

/// An application.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(deny_unknown_fields)]
pub struct App {
    /// Its chart.
    pub chart: Chart,
    /// The namespace that it is installed in. It cannot be changed.
    #[serde(default = "default_namespace")]
    #[schemars(length(min = 1, max = 63), regex(pattern = kubernetes::LABEL))]
    #[x_kube(validation = Rule::new("self == oldSelf").message("namespace cannot be changed: a Helm release cannot move"))]
    pub namespace: String,
    /// The chart's values. Everybody who may read Releases sees them: no secrets.
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[schemars(schema_with = "free_form")]
    pub values: Object,
}

/// A Helm chart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Chart {
    /// URL of its repository: https://… or oci://…, without credentials.
    #[schemars(length(min = 1, max = location::LONGEST_URL), regex(pattern = location::CHART_REPOSITORY))]
    pub repository: String,
    /// Its name there.
    #[schemars(length(min = 1, max = 128), regex(pattern = checks::CHART))]
    pub name: String,
    /// Its version, all three parts of it.
    #[schemars(length(min = 1, max = 64), regex(pattern = settings::VERSION))]
    pub version: String,
}

/// What Argo CD keeps the cluster in step with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GitOps {
    /// URL of a Git repository, without credentials.
    #[serde(rename = "repoURL")]
    #[schemars(length(min = 1, max = location::LONGEST_URL), regex(pattern = location::GIT_REPOSITORY))]
    pub repo_url: String,
    /// The folder in it that holds the manifests.
    #[serde(default = "default_path")]
    #[schemars(length(min = 1, max = 1024), regex(pattern = checks::FOLDER))]
    pub path: String,
    /// A branch, a tag or a commit.
    #[serde(default = "default_revision")]
    #[schemars(length(min = 1, max = 255), regex(pattern = checks::REVISION))]
    pub target_revision: String,
}

/// Knative Serving.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Knative {
    /// Whether it is installed.
    #[serde(default)]
    pub enabled: bool,
}

/// What is known of an environment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VirtualEnvironmentStatus {
    /// What kind of cluster it is: vcluster, gke, eks or aks.
    #[serde(rename = "type")]
    pub cluster_type: Option<ClusterType>,
    /// URL at which the cluster's API is reached: through the load balancer where there is one.
    pub endpoint: Option<String>,
    /// URL at which the cluster's API is reached from within the cluster that hosts it; for a
    /// managed cluster the endpoint.
    pub url: Option<String>,
    /// The Secret with the cluster's kubeconfig, once there is one.
    pub kubeconfig_secret: Option<KubeconfigSecret>,
}

/// Where a kubeconfig is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KubeconfigSecret {
    /// Name of the Secret.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// The key in its data.
    pub key: String,
}

/// How long provider-helm waits for a release. It has to be shorter than the provider's own
/// `--timeout`, 10 minutes by default: at an equal one, the provider may give up first and leave
/// the release `pending-install`.
const WAIT_TIMEOUT: &str = "8m0s";

/// Key of the kubeconfig, in the cluster's own Secret and in the connection details.
const KUBECONFIG: &str = "kubeconfig";

impl Api for VirtualEnvironment {
    const INFO: Info = Info {
        name: "virtual-environment",
        title: "virtual environment",
        summary: "Your own Kubernetes cluster, virtual or managed, with an application, GitOps \
                  and Knative if you need them.",
        provider: "vcluster",
        settings: "environment",
        composite: Names {
            kind: "XEnvironment",
            plural: "xenvironments",
            singular: "xenvironment",
            short: &[],
        },
        claim: Names {
            kind: "Environment",
            plural: "environments",
            singular: "environment",
            short: &["venv"],
        },
        namespaced: Names {
            kind: "Environment",
            plural: "environments",
            singular: "environment",
            short: &["venv"],
        },
        suffix: "cluster",
        endpoints: &["url", "endpoint"],
        connection_keys: &[KUBECONFIG],
        columns: &[("Type", ".status.type", "string"), ("Endpoint", ".status.endpoint", "string")],
        first_slots: &["host-namespace", "cluster"],
        since_revision: &[],
    };
    type Settings = VirtualEnvironmentSettings;
    type Status = VirtualEnvironmentStatus;

    fn compose(
        &self,
        settings: &Self::Settings,
        cx: &mut Composition<'_>,
    ) -> Result<Self::Status, Error> {
        let p = &self.parameters;
        let cluster_type = p.check(settings, cx)?;
        settings.check()?;
        if !cx.exists("cluster") {
            settings.check_cloud(cluster_type)?;
        }
        let cluster = match cluster_type {
            ClusterType::Vcluster => p.vcluster(settings, cx)?,
            ClusterType::Gke => p.gke(settings, cx)?,
            ClusterType::Eks => p.eks(settings, cx)?,
            ClusterType::Aks => p.aks(settings, cx)?,
        };
        p.inside(&cluster, settings, cx)?;
        let secret = cluster.secret(cx);
        let known = cluster.kubeconfig.is_some();
        cx.connection(KUBECONFIG, cluster.kubeconfig);
        Ok(VirtualEnvironmentStatus {
            cluster_type: Some(cluster_type),
            endpoint: cluster.endpoint,
            url: cluster.url,
            kubeconfig_secret: known.then(|| KubeconfigSecret {
                name: secret.name,
                namespace: secret.namespace,
                key: KUBECONFIG.to_owned(),
            }),
        })
    }

    fn check_settings(settings: &Self::Settings) -> Result<(), Error> {
        settings.check()?;
        [ClusterType::Gke, ClusterType::Eks, ClusterType::Aks]
            .into_iter()
            .try_for_each(|cluster| settings.check_cloud(cluster))
    }

    fn tagged(settings: &Self::Settings) -> Tagged {
        settings.tagged()
    }

    fn example_settings() -> Self::Settings {
        VirtualEnvironmentSettings::example()
    }
}

/// A cluster as what is inside needs to know it.
struct Cluster {
    /// The slot whose Secret holds the kubeconfig.
    slot: &'static str,
    /// The kubeconfig, once it was observed.
    kubeconfig: Option<Vec<u8>>,
    /// Who the providers are in the cluster, where the kubeconfig alone does not say it: `identity`
    /// of a provider config.
    identity: Option<serde_json::Value>,
    /// URL of its API.
    endpoint: Option<String>,
    /// URL of its API from within the cluster that hosts it.
    url: Option<String>,
    /// Whether everything inside goes with it, so that nothing has to be deleted before.
    takes_all: bool,
    /// The slots without which nothing inside can be reached.
    beneath: &'static [&'static str],
    /// The default class of its volumes, where the cloud makes none.
    storage_class: Option<serde_json::Value>,
}

impl Cluster {
    /// Whether it runs in the cluster that Crossplane runs in.
    fn is_virtual(&self) -> bool {
        self.takes_all
    }

    fn secret(&self, cx: &Composition<'_>) -> SecretName {
        cx.secret_of(self.slot)
    }
}

/// The fields that follow the networks of Settings; none where those name nobody.
fn follows<'f>(networks: &[String], fields: &'f [&'static str]) -> &'f [&'static str] {
    if networks.is_empty() { &[] } else { fields }
}

fn default_namespace() -> String {
    "app".to_owned()
}

fn default_path() -> String {
    ".".to_owned()
}

fn default_revision() -> String {
    "HEAD".to_owned()
}

/// An object that may hold anything.
fn free_form(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}
