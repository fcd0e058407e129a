//! Virtual environment: a dedicated cluster, virtual or managed, with an application, GitOps and
//! Knative inside.

mod aks;
mod app;
mod checks;
mod eks;
mod gke;
mod inside;
mod settings;
mod sizes;
mod vcluster;

use kube::KubeSchema;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Api, ConnectionTarget, Info, Names, Tagged};
use crate::check::{kubernetes, location};
use crate::compose::Composer;
use crate::error::Error;
use crate::lifecycle::CannotStop;
use crate::observe::SecretName;
use crate::offers::{Offer, Prices};
use crate::value::Object;
pub use settings::VirtualEnvironmentSettings;

/// A dedicated Kubernetes cluster with optional software inside.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(deny_unknown_fields)]
#[x_kube(
    validation = Rule::new("(has(self.parameters) && has(self.parameters.type)) == \
        (has(oldSelf.parameters) && has(oldSelf.parameters.type))")
        .message("type cannot be changed: create a new environment")
)]
pub struct VirtualEnvironment {
    /// Parameters of the environment. Default: the default of each parameter.
    // The XRD has no default: an API server would write it into claims of earlier releases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Parameters>,
}

/// Parameters of an environment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(
    validation = Rule::new("!has(self.type) || !(self.type in ['eks', 'aks']) || self.size == oldSelf.size")
        .message("size cannot be changed on eks and aks: create a new environment"),
    validation = Rule::new("!has(self.type) || self.type == 'vcluster' || self.expose != 'loadBalancer'")
        .message("expose: loadBalancer is for vcluster; the platform team decides who can reach a \
                  managed cluster")
)]
pub struct Parameters {
    /// Cluster type. Default: the platform team's type for the size, otherwise vcluster. The type
    /// cannot be changed later.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = Rule::new("self == oldSelf").message("type cannot be changed: create a new environment"))]
    pub cluster_type: Option<ClusterType>,
    /// Size of the environment. For a virtual cluster, the size sets resources and quotas. For a
    /// managed cluster, the size sets the nodes. On eks and aks the size cannot be changed later,
    /// because their nodes are fixed.
    #[serde(default)]
    pub size: Size,
    /// Application to install from a Helm chart. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app: Option<App>,
    /// Git repository that Argo CD deploys into the cluster. Argo CD is installed automatically and
    /// keeps the cluster in sync with the repository. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gitops: Option<GitOps>,
    /// Knative Serving, with Kourier as the ingress.
    #[serde(default)]
    pub knative: Knative,
    /// Access to a virtual cluster's API. The API is reachable from inside the host cluster, or
    /// through a dedicated load balancer. Only for type vcluster.
    #[serde(default)]
    pub expose: Expose,
}

/// Cluster types.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum ClusterType {
    /// A virtual cluster in Crossplane's own cluster, ready in about a minute.
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
    /// For several applications.
    Medium,
    /// For a team's whole system.
    Large,
}

impl Size {
    /// Its value in a claim.
    pub fn name(self) -> &'static str {
        match self {
            Self::Small => "small",
            Self::Medium => "medium",
            Self::Large => "large",
        }
    }
}

/// Access to a virtual cluster's API.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub enum Expose {
    /// The API is reachable from inside the host cluster.
    #[default]
    Cluster,
    /// The API is reachable through a dedicated load balancer.
    LoadBalancer,
}

/// An application, installed from a Helm chart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(deny_unknown_fields)]
pub struct App {
    /// Helm chart of the application.
    pub chart: Chart,
    /// Namespace of the application. The namespace cannot be changed later.
    #[serde(default = "default_namespace")]
    #[schemars(length(min = 1, max = 63), regex(pattern = kubernetes::LABEL))]
    #[x_kube(validation = Rule::new("self == oldSelf").message("namespace cannot be changed: a Helm release cannot move"))]
    pub namespace: String,
    /// Values of the chart. Do not put secrets here: every user with read access to Releases
    /// can read the values.
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[schemars(schema_with = "free_form")]
    pub values: Object,
}

/// A Helm chart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Chart {
    /// URL of the chart repository: https://… or oci://…, without credentials.
    #[schemars(length(min = 1, max = location::LONGEST_URL), regex(pattern = location::CHART_REPOSITORY))]
    pub repository: String,
    /// Name of the chart in the repository.
    #[schemars(length(min = 1, max = 128), regex(pattern = checks::CHART))]
    pub name: String,
    /// Exact chart version, with all three numbers.
    #[schemars(length(min = 1, max = 64), regex(pattern = settings::VERSION))]
    pub version: String,
}

/// Git source that Argo CD keeps the cluster in sync with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GitOps {
    /// URL of the Git repository, without credentials.
    #[serde(rename = "repoURL")]
    #[schemars(length(min = 1, max = location::LONGEST_URL), regex(pattern = location::GIT_REPOSITORY))]
    pub repo_url: String,
    /// Folder with the manifests in the Git repository.
    #[serde(default = "default_path")]
    #[schemars(length(min = 1, max = 1024), regex(pattern = checks::FOLDER))]
    pub path: String,
    /// Branch, tag or commit of the Git repository.
    #[serde(default = "default_revision")]
    #[schemars(length(min = 1, max = 255), regex(pattern = checks::REVISION))]
    pub target_revision: String,
}

/// Knative Serving.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Knative {
    /// Install Knative Serving.
    #[serde(default)]
    pub enabled: bool,
}

/// Status of an environment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VirtualEnvironmentStatus {
    /// Cluster type: vcluster, gke, eks or aks.
    #[serde(rename = "type")]
    pub cluster_type: Option<ClusterType>,
    /// URL of the cluster's API. With a load balancer, the URL is the load balancer's.
    pub endpoint: Option<String>,
    /// URL of the cluster's API inside the host cluster. For a managed cluster, the URL is the same
    /// as the endpoint.
    pub url: Option<String>,
    /// Secret with the cluster's kubeconfig. Absent until the Secret exists.
    pub kubeconfig_secret: Option<KubeconfigSecret>,
}

/// Reference to the Secret with a kubeconfig.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KubeconfigSecret {
    /// Name of the Secret.
    pub name: String,
    /// Namespace of the Secret.
    pub namespace: String,
    /// Key of the kubeconfig in the Secret's data.
    pub key: String,
}

/// Time that provider-helm waits for a release. It has to be shorter than the provider's own
/// `--timeout`, 10 minutes by default. If both are equal, the provider may give up first and leave
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
        connection_targets: &[ConnectionTarget::Cluster],
        columns: &[("Type", ".status.type", "string"), ("Endpoint", ".status.endpoint", "string")],
        first_slots: &["host-namespace", "cluster"],
        stoppable: &["node-pool"],
        when_stopped: "The cluster and its resources stay. The cluster has no nodes.",
        since_revision: &[],
    };
    type Settings = VirtualEnvironmentSettings;
    type Status = VirtualEnvironmentStatus;

    fn offers(settings: &Self::Settings, prices: Prices<'_>) -> Vec<Offer> {
        let sizes = [Size::Small, Size::Medium, Size::Large];
        vec![
            Offer {
                field: "spec.parameters.type",
                closed: true,
                values: settings.types().map(|kind| settings.offered(kind, prices)).collect(),
            },
            Offer {
                field: "spec.parameters.size",
                closed: true,
                values: sizes.map(|size| settings.offered_size(size)).into(),
            },
        ]
    }

    fn compose(
        &self,
        settings: &Self::Settings,
        cx: &mut Composer<'_>,
    ) -> Result<Self::Status, Error> {
        let p = &self.parameters.clone().unwrap_or_default();
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

    fn cannot_stop(spec: &Value, settings: &Self::Settings) -> CannotStop {
        let parameter = |name: &str| spec["parameters"][name].clone();
        let cluster_type = serde_json::from_value(parameter("type")).unwrap_or_else(|_| {
            settings.type_of(serde_json::from_value(parameter("size")).unwrap_or_default())
        });
        match cluster_type {
            ClusterType::Gke | ClusterType::Eks => None,
            ClusterType::Aks => Some("a cluster of type aks cannot be stopped"),
            ClusterType::Vcluster => Some("a virtual cluster cannot be stopped"),
        }
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

/// The facts about a cluster that its content depends on.
struct Cluster {
    /// The slot of the resource that publishes the kubeconfig.
    slot: &'static str,
    /// The kubeconfig, once it was observed.
    kubeconfig: Option<Vec<u8>>,
    /// The identity of the providers in the cluster, if the kubeconfig is not sufficient:
    /// `identity` of a provider config.
    identity: Option<serde_json::Value>,
    /// URL of its API.
    endpoint: Option<String>,
    /// URL of its API inside the host cluster.
    url: Option<String>,
    /// Whether a deletion of the cluster deletes all its content, so that the content needs no
    /// deletion first.
    takes_all: bool,
    /// The slots that are necessary to reach the content.
    beneath: &'static [&'static str],
    /// The default class of its volumes, if the cloud creates none.
    storage_class: Option<serde_json::Value>,
}

impl Cluster {
    /// Whether it runs in Crossplane's own cluster.
    fn is_virtual(&self) -> bool {
        self.takes_all
    }

    fn secret(&self, cx: &Composer<'_>) -> SecretName {
        cx.secret_of(self.slot)
    }
}

/// The fields that follow the networks of Settings. Empty if Settings have no networks.
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

/// An object with arbitrary content.
fn free_form(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}
