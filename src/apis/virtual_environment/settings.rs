//! Settings of virtual environments.

mod checks;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ClusterType, Size};
use crate::apis::Tagged;
use crate::catalog::{aws, gcp};
use crate::check::{self, Refused, location};
use crate::compose::Composer;
use crate::error::Error;
use crate::models::Managed;
use crate::models::aws::eks;
use crate::models::aws::iam::Role;
use crate::models::azure::KubernetesCluster;
use crate::models::gcp::{Cluster, NodePool};
use crate::offers::{Offered, Prices};

pub(super) use checks::{VERSION, version};

/// Settings of virtual environments.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct VirtualEnvironmentSettings {
    /// Versions of the Helm charts that environments install. Existing installations keep their
    /// versions.
    pub charts: Charts,
    /// Repositories that the chart of `app` may come from: URLs, each with everything below it, for
    /// example `https://charts.acme.io/team` or `oci://ghcr.io/acme`. Default: any `https://` or
    /// `oci://` repository on a public host. An app that runs keeps its chart.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "check::filled")]
    #[schemars(length(min = 1, max = 64), inner(length(max = location::LONGEST_URL), regex(pattern = location::CHART_REPOSITORY)))]
    pub chart_repositories: Vec<String>,
    /// Cluster types by size, for claims without a type. Default: vcluster.
    pub type_by_size: TypeBySize,
    /// Machine types of the nodes of managed clusters, by cluster type and size.
    pub machine_types: MachineTypes,
    /// Location and network of clusters on Google Cloud.
    pub gke: Gke,
    /// Location and network of clusters on AWS.
    pub eks: Eks,
    /// Location and identity of clusters on Azure.
    pub aks: Aks,
    /// IPv4 networks that may connect to the API of a managed cluster. Include the networks of the
    /// providers, because the providers install the software inside the clusters. A change applies
    /// to existing clusters unless it removes the last network. EKS and AKS accept public networks
    /// only. The networks are also the source ranges of virtual clusters' load balancers. Without
    /// networks, these load balancers are open to the internet.
    #[schemars(length(max = 40))]
    pub allowed_cidrs: Vec<String>,
    /// Allow claims to set `expose: loadBalancer`. Default: true. Clusters that are already exposed
    /// stay exposed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expose_allowed: Option<bool>,
    /// Annotations of the load balancers of virtual clusters, for example
    /// `service.beta.kubernetes.io/aws-load-balancer-scheme: internal`. Existing load balancers
    /// keep their annotations.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 32), inner(length(max = 1024)))]
    pub load_balancer_annotations: BTreeMap<String, String>,
}

/// Versions of Helm charts. A leading `v` is removed, because the three charts omit it in their own
/// versions. With a different spelling, provider-helm would upgrade the release repeatedly.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Charts {
    /// Version of the vcluster chart from <https://charts.loft.sh>. The values have the format of
    /// version 0.20 and later.
    #[schemars(length(min = 1, max = 64), regex(pattern = checks::VERSION))]
    pub vcluster: String,
    /// Version of the argo-cd chart from <https://argoproj.github.io/argo-helm>.
    #[schemars(length(min = 1, max = 64), regex(pattern = checks::VERSION))]
    pub argocd: String,
    /// Version of the knative-operator chart from <https://knative.github.io/operator>.
    #[schemars(length(min = 1, max = 64), regex(pattern = checks::VERSION))]
    pub knative: String,
}

/// Maximum number of allowed repositories in a message.
const SHOWN: usize = 5;

impl Charts {
    /// A version in the charts' own notation.
    pub(super) fn own_version(version: &str) -> String {
        version.trim_start_matches('v').to_owned()
    }

    /// The major and the minor number of a version.
    pub(super) fn minor(version: &str) -> Option<(u64, u64)> {
        let mut parts = version.trim_start_matches('v').split('.').map(|part| part.parse().ok());
        parts.next().flatten().zip(parts.next().flatten())
    }
}

impl Default for Charts {
    fn default() -> Self {
        Self {
            vcluster: "0.36.1".to_owned(),
            argocd: "10.1.1".to_owned(),
            knative: "1.23.0".to_owned(),
        }
    }
}

/// Cluster types by size.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TypeBySize {
    /// Value for size small.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub small: Option<ClusterType>,
    /// Value for size medium.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub medium: Option<ClusterType>,
    /// Value for size large.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub large: Option<ClusterType>,
}

/// Machine types by cluster type.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MachineTypes {
    /// Machine types of GKE nodes. Default: e2-standard-2, e2-standard-4, e2-standard-8.
    pub gke: BySize,
    /// Machine types of EKS nodes. Default: m6i.large, m6i.xlarge, m6i.2xlarge.
    pub eks: BySize,
    /// Machine types of AKS nodes. Default: Standard_D2s_v5, Standard_D4s_v5, Standard_D8s_v5.
    pub aks: BySize,
}

/// Machine types by size.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BySize {
    /// Value for size small.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63), regex(pattern = checks::MACHINE))]
    pub small: Option<String>,
    /// Value for size medium.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63), regex(pattern = checks::MACHINE))]
    pub medium: Option<String>,
    /// Value for size large.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63), regex(pattern = checks::MACHINE))]
    pub large: Option<String>,
}

/// Location and network of clusters on Google Cloud.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Gke {
    /// Region or zone. A regional cluster has nodes in three zones. Required for type gke.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63), regex(pattern = gcp::PLACE))]
    pub location: Option<String>,
    /// Name of the Google Cloud project. Required for type gke, because pods get their own
    /// identities in the project.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63), regex(pattern = checks::NAME))]
    pub project_id: Option<String>,
    /// Name of the VPC network. Nodes have private addresses, so the network needs Cloud NAT to
    /// pull images. Default: default.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512), regex(pattern = checks::PATH))]
    pub network: Option<String>,
    /// Name of the nodes' subnet. Default: the region's subnet in an automatic network.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512), regex(pattern = checks::PATH))]
    pub subnetwork: Option<String>,
    /// Size of each node's boot disk in GB.
    #[schemars(range(min = 20, max = 65536))]
    pub disk_size_gb: i64,
}

impl Default for Gke {
    fn default() -> Self {
        Self { location: None, project_id: None, network: None, subnetwork: None, disk_size_gb: 50 }
    }
}

/// Location and network of clusters on AWS.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Eks {
    /// AWS region. Required for type eks.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = aws::LONGEST_REGION), regex(pattern = aws::REGION))]
    pub region: Option<String>,
    /// Private subnets in at least two availability zones. Required for type eks.
    #[schemars(length(max = 16), inner(regex(pattern = checks::SUBNET)))]
    pub subnet_ids: Vec<String>,
    /// ARN of the IAM role of the control planes. Required for type eks.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2048), regex(pattern = aws::ROLE))]
    pub cluster_role_arn: Option<String>,
    /// ARN of the IAM role of the nodes. Required for type eks.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2048), regex(pattern = aws::ROLE))]
    pub node_role_arn: Option<String>,
    /// ARN of the IAM role of the EBS CSI driver, which creates volumes. The role needs AWS's
    /// policy `AmazonEBSCSIDriverPolicy`. The role must trust `pods.eks.amazonaws.com` with
    /// `sts:AssumeRole` and `sts:TagSession`. Default: provider-aws-iam creates a role for each
    /// environment. Applies to environments created with schema revision 2 or later.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2048), regex(pattern = aws::ROLE))]
    pub ebs_csi_role_arn: Option<String>,
}

/// Location and identity of clusters on Azure.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Aks {
    /// Azure region. Required for type aks.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63), regex(pattern = checks::NAME))]
    pub location: Option<String>,
    /// Name of the resource group. Required for type aks.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 90), regex(pattern = checks::GROUP))]
    pub resource_group_name: Option<String>,
    /// ID of the identity of the clusters. Default: each cluster has its own identity.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024), regex(pattern = checks::IDENTITY))]
    pub identity: Option<String>,
}

impl VirtualEnvironmentSettings {
    /// Checks that a chart may come from a repository.
    pub(super) fn allows(&self, repository: &str) -> Result<(), Refused> {
        if location::is_within(repository, &self.chart_repositories) {
            return Ok(());
        }
        let allowed: Vec<_> =
            self.chart_repositories.iter().take(SHOWN).map(String::as_str).collect();
        let more = if self.chart_repositories.len() > SHOWN { ", …" } else { "" };
        let allowed = format!(
            "the platform team's repositories and what is below them (environment.chartRepositories): {}{more}",
            allowed.join(", ")
        );
        Err(Refused::new(repository, allowed))
    }

    /// Settings for the examples of all cluster types.
    pub(super) fn example() -> Self {
        let text = |value: &str| Some(value.to_owned());
        Self {
            gke: Gke {
                location: text("europe-west1"),
                project_id: text("acme-dev"),
                network: text("environments"),
                subnetwork: text("environments-europe-west1"),
                ..Gke::default()
            },
            eks: Eks {
                region: text("eu-west-1"),
                subnet_ids: vec![
                    "subnet-0a1b2c3d4e5f60718".to_owned(),
                    "subnet-0b2c3d4e5f6071829".to_owned(),
                ],
                cluster_role_arn: text("arn:aws:iam::123456789012:role/environments-cluster"),
                node_role_arn: text("arn:aws:iam::123456789012:role/environments-nodes"),
                ebs_csi_role_arn: None,
            },
            aks: Aks {
                location: text("westeurope"),
                resource_group_name: text("environments"),
                identity: None,
            },
            allowed_cidrs: vec!["198.51.100.0/24".to_owned()],
            ..Self::default()
        }
    }

    /// The cluster types that users can choose: those that Settings configure.
    pub(super) fn types(&self) -> impl Iterator<Item = ClusterType> {
        let all = [ClusterType::Vcluster, ClusterType::Gke, ClusterType::Eks, ClusterType::Aks];
        all.into_iter().filter(|cluster_type| self.has(*cluster_type))
    }

    /// Whether Settings configure a cluster type.
    pub(super) fn has(&self, cluster_type: ClusterType) -> bool {
        match cluster_type {
            ClusterType::Vcluster => true,
            ClusterType::Gke => self.gke != Gke::default(),
            ClusterType::Eks => self.eks != Eks::default(),
            ClusterType::Aks => self.aks != Aks::default(),
        }
    }

    /// A cluster type with the price of its control plane.
    pub(super) fn offered(&self, cluster_type: ClusterType, prices: Prices<'_>) -> Offered {
        let managed = |name: &str, place: &Option<String>| {
            (
                place.clone().unwrap_or_default(),
                format!("{name} in {}", place.as_deref().unwrap_or("the cloud")),
            )
        };
        let (place, description) = match cluster_type {
            ClusterType::Vcluster => {
                (String::new(), "a virtual cluster, ready in about a minute".to_owned())
            }
            ClusterType::Gke => managed("Google Kubernetes Engine", &self.gke.location),
            ClusterType::Eks => managed("Amazon EKS", &self.eks.region),
            ClusterType::Aks => managed("Azure Kubernetes Service", &self.aks.location),
        };
        let price = format!("{}-cluster", cluster_type.name());
        Offered {
            hourly_usd: prices.of(&price, &place),
            ..Offered::described(cluster_type.name(), description)
        }
    }

    pub(super) fn type_of(&self, size: Size) -> ClusterType {
        let chosen = match size {
            Size::Small => self.type_by_size.small,
            Size::Medium => self.type_by_size.medium,
            Size::Large => self.type_by_size.large,
        };
        chosen.unwrap_or_default()
    }
}

impl BySize {
    /// The machine type for a size. `defaults` are those for small, medium and large.
    pub(super) fn for_size(&self, size: Size, defaults: [&str; 3]) -> String {
        let (chosen, default) = match size {
            Size::Small => (&self.small, defaults[0]),
            Size::Medium => (&self.medium, defaults[1]),
            Size::Large => (&self.large, defaults[2]),
        };
        chosen.clone().unwrap_or_else(|| default.to_owned())
    }
}

impl VirtualEnvironmentSettings {
    /// The kinds with tags in the managed clusters that Settings have a location for.
    pub(super) fn tagged(&self) -> Tagged {
        let mut kinds = Vec::new();
        if self.gke.location.is_some() {
            kinds.extend([Cluster::KIND, NodePool::KIND]);
        }
        if self.eks.region.is_some() {
            kinds.extend([eks::Cluster::KIND, eks::NodeGroup::KIND, eks::Addon::KIND, Role::KIND]);
        }
        if self.aks.location.is_some() {
            kinds.push(KubernetesCluster::KIND);
        }
        Tagged { kinds, own: &[] }
    }

    /// The networks with access to the API of a managed cluster. Without networks in Settings, an
    /// existing cluster keeps its own.
    pub(super) fn networks(&self, cx: &Composer<'_>) -> Result<&[String], Error> {
        let example = "the network of the providers, for example 198.51.100.0/24";
        let known = cx.exists("cluster") || !self.allowed_cidrs.is_empty();
        needed(known.then_some(self.allowed_cidrs.as_slice()), "allowedCidrs", example)
    }

    /// Like [`networks`](Self::networks), for clouds that reject networks that are not public. AKS
    /// uses 0.0.0.0/32 as a word for "no network at all".
    pub(super) fn public_networks(
        &self,
        cluster_type: ClusterType,
        cx: &Composer<'_>,
    ) -> Result<&[String], Error> {
        let networks = self.networks(cx)?;
        for (index, cidr) in networks.iter().enumerate() {
            let is_word =
                cluster_type == ClusterType::Aks && cidr == "0.0.0.0/32" && networks.len() == 1;
            if is_word || check::is_public(cidr) {
                continue;
            }
            // An existing cluster keeps its networks.
            if cx.exists("cluster") {
                return Ok(&[]);
            }
            let refused = Refused {
                found: format!("{}, which is not a public network", check::quoted(cidr)),
                allowed: format!("public networks, for clusters of type {}", cluster_type.name()),
            };
            return Err(Error::settings(format!("environment.allowedCidrs[{index}]"), refused));
        }
        Ok(networks)
    }
}

/// The location of a managed cluster: the observed location, else the location in Settings.
pub(super) fn place(
    cx: &Composer<'_>,
    field: &str,
    settings: Option<&String>,
    path: &str,
    example: &str,
) -> Result<String, Error> {
    let running = ["cluster", "node-pool", "cluster-auth"]
        .iter()
        .find_map(|slot| cx.running(slot, &[field])?.as_str().map(str::to_owned));
    needed(running.or_else(|| settings.cloned()), path, example)
}

/// A value that Settings must have before a resource is created. An existing resource keeps its
/// own.
pub(super) fn unless_running(
    exists: bool,
    value: Option<&String>,
    path: &str,
    example: &str,
) -> Result<Option<String>, Error> {
    if exists { Ok(value.cloned()) } else { needed(value.cloned(), path, example).map(Some) }
}

fn needed<T>(value: Option<T>, path: &str, example: &str) -> Result<T, Error> {
    let missing =
        || Error::settings(format!("environment.{path}"), format!("missing; allowed: {example}"));
    value.ok_or_else(missing)
}
