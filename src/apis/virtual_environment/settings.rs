//! What the platform team decides about virtual environments.

mod checks;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ClusterType, Size};
use crate::apis::Tagged;
use crate::catalog::{aws, gcp};
use crate::check::{self, Refused};
use crate::compose::Composition;
use crate::error::Error;
use crate::models::Managed;
use crate::models::aws::eks;
use crate::models::aws::iam::Role;
use crate::models::azure::KubernetesCluster;
use crate::models::gcp::{Cluster, NodePool};

pub(super) use checks::{VERSION, version};

/// Settings of virtual environments.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct VirtualEnvironmentSettings {
    /// Versions of the charts that environments are made of. What runs keeps its own.
    pub charts: Charts,
    /// Kinds of cluster by size, for claims that name none. Default: vcluster.
    pub type_by_size: TypeBySize,
    /// Machine types of the nodes of managed clusters, by size.
    pub machine_types: MachineTypes,
    /// Where clusters on Google Cloud are made.
    pub gke: Gke,
    /// Where clusters on AWS are made.
    pub eks: Eks,
    /// Where clusters on Azure are made.
    pub aks: Aks,
    /// IPv4 networks from which the API of a managed cluster is reached; the providers, which
    /// install what is inside, must be among them. A change reaches clusters that run, unless it
    /// takes the last network away. EKS and AKS take public networks only. Also the source ranges
    /// of load balancers of virtual clusters; without networks these are open to the internet.
    #[schemars(length(max = 40))]
    pub allowed_cidrs: Vec<String>,
    /// Whether claims may set `expose: loadBalancer`. Default: true. What is exposed already stays
    /// exposed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expose_allowed: Option<bool>,
    /// Annotations of the load balancers of virtual clusters, for example
    /// `service.beta.kubernetes.io/aws-load-balancer-scheme: internal`. What is exposed already
    /// keeps its own.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 32), inner(length(max = 1024)))]
    pub load_balancer_annotations: BTreeMap<String, String>,
}

/// Versions of charts. A leading `v` is left out: none of the three charts has it in its own
/// version, and provider-helm upgrades a release again and again whose version is spelled
/// otherwise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Charts {
    /// Of vcluster, from <https://charts.loft.sh>; its values are those of 0.20 and later.
    #[schemars(length(min = 1, max = 64), regex(pattern = checks::VERSION))]
    pub vcluster: String,
    /// Of argo-cd, from <https://argoproj.github.io/argo-helm>.
    #[schemars(length(min = 1, max = 64), regex(pattern = checks::VERSION))]
    pub argocd: String,
    /// Of knative-operator, from <https://knative.github.io/operator>.
    #[schemars(length(min = 1, max = 64), regex(pattern = checks::VERSION))]
    pub knative: String,
}

impl Charts {
    /// A version as the charts themselves write it.
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

/// Kinds of cluster by size.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TypeBySize {
    /// For small.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub small: Option<ClusterType>,
    /// For medium.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub medium: Option<ClusterType>,
    /// For large.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub large: Option<ClusterType>,
}

/// Machine types by kind of cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MachineTypes {
    /// Of GKE. Default: e2-standard-2, e2-standard-4, e2-standard-8.
    pub gke: BySize,
    /// Of EKS. Default: m6i.large, m6i.xlarge, m6i.2xlarge.
    pub eks: BySize,
    /// Of AKS. Default: Standard_D2s_v5, Standard_D4s_v5, Standard_D8s_v5.
    pub aks: BySize,
}

/// Machine types by size.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BySize {
    /// For small.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63), regex(pattern = checks::MACHINE))]
    pub small: Option<String>,
    /// For medium.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63), regex(pattern = checks::MACHINE))]
    pub medium: Option<String>,
    /// For large.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63), regex(pattern = checks::MACHINE))]
    pub large: Option<String>,
}

/// Where clusters on Google Cloud are made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Gke {
    /// Region or zone. A regional cluster has nodes in three zones. Required for type gke.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63), regex(pattern = gcp::PLACE))]
    pub location: Option<String>,
    /// Name of the project. Required for type gke: pods get identities of their own in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63), regex(pattern = checks::NAME))]
    pub project_id: Option<String>,
    /// Name of the VPC network. Nodes have private addresses: without Cloud NAT there they pull no
    /// images. Default: default.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512), regex(pattern = checks::PATH))]
    pub network: Option<String>,
    /// Name of the subnet of the nodes. Default: that of the region in an automatic network.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512), regex(pattern = checks::PATH))]
    pub subnetwork: Option<String>,
    /// Boot disk of each node in GB.
    #[schemars(range(min = 20, max = 65536))]
    pub disk_size_gb: i64,
}

impl Default for Gke {
    fn default() -> Self {
        Self { location: None, project_id: None, network: None, subnetwork: None, disk_size_gb: 50 }
    }
}

/// Where clusters on AWS are made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Eks {
    /// Region. Required for type eks.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = aws::LONGEST_REGION), regex(pattern = aws::REGION))]
    pub region: Option<String>,
    /// Private subnets in at least two availability zones. Required for type eks.
    #[schemars(length(max = 16), inner(regex(pattern = checks::SUBNET)))]
    pub subnet_ids: Vec<String>,
    /// ARN of the role that control planes take. Required for type eks.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2048), regex(pattern = aws::ROLE))]
    pub cluster_role_arn: Option<String>,
    /// ARN of the role that nodes take. Required for type eks.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2048), regex(pattern = aws::ROLE))]
    pub node_role_arn: Option<String>,
    /// ARN of the role that the EBS CSI driver takes, which makes volumes. It has AWS's policy
    /// `AmazonEBSCSIDriverPolicy`, and trusts `pods.eks.amazonaws.com` with `sts:AssumeRole` and
    /// `sts:TagSession`. Default: each environment gets a role of its own, which provider-aws-iam
    /// makes. In environments made with schema revision 2 or later.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2048), regex(pattern = aws::ROLE))]
    pub ebs_csi_role_arn: Option<String>,
}

/// Where clusters on Azure are made.
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
    /// Id of the identity that clusters take. Default: each has one of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024), regex(pattern = checks::IDENTITY))]
    pub identity: Option<String>,
}

impl VirtualEnvironmentSettings {
    /// What the examples of all types work with.
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
    /// The machine type for a size; `defaults` are those for small, medium and large.
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
    /// What carries tags in the managed clusters for which Settings name a place.
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

    /// Who reaches the API of a managed cluster. Nobody: what runs keeps what it has.
    pub(super) fn networks(&self, cx: &Composition<'_>) -> Result<&[String], Error> {
        let example = "the network of the providers, for example 198.51.100.0/24";
        let known = cx.exists("cluster") || !self.allowed_cidrs.is_empty();
        needed(known.then_some(self.allowed_cidrs.as_slice()), "allowedCidrs", example)
    }

    /// The same for the clouds that refuse networks which are not public. AKS knows 0.0.0.0/32 as a
    /// word for "no network at all".
    pub(super) fn public_networks(
        &self,
        cluster_type: ClusterType,
        cx: &Composition<'_>,
    ) -> Result<&[String], Error> {
        let networks = self.networks(cx)?;
        for (index, cidr) in networks.iter().enumerate() {
            let is_word =
                cluster_type == ClusterType::Aks && cidr == "0.0.0.0/32" && networks.len() == 1;
            if is_word || check::is_public(cidr) {
                continue;
            }
            // A cluster that runs keeps the networks that it has.
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

/// Where a managed cluster is: where it runs, else where Settings say.
pub(super) fn place(
    cx: &Composition<'_>,
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

/// A value that Settings have to give before a resource is made; what runs keeps its own.
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
