//! EKS: a cluster, its nodes, and the token for access to it.

use std::collections::BTreeMap;

use crate::models::{Kind, Managed, Selector, Unread};

impl Managed for Cluster {
    const KIND: Kind =
        Kind::aws("eks", "Cluster").versions("v1beta2", "v1beta1").without_late_initialization();
    type Status = ClusterStatus;
}

impl Managed for NodeGroup {
    const KIND: Kind = Kind::aws("eks", "NodeGroup").versions("v1beta2", "v1beta1");
    type Status = NodeGroupStatus;
}

impl Managed for Addon {
    const KIND: Kind = Kind::aws("eks", "Addon").since(2);
    type Status = Unread;
}

impl Managed for ClusterAuth {
    const KIND: Kind = Kind::aws("eks", "ClusterAuth").untagged();
    type Status = Unread;
}

model! {
    /// An EKS cluster. Its name is the external name. It has no secret: see [`ClusterAuth`].
    pub struct Cluster {
        /// AWS region.
        pub region: Option<String>,
        /// ARN of the role that the control plane assumes.
        pub role_arn: Option<String>,
        /// Minor version of Kubernetes, for example `1.34`. Absent: EKS's default. AWS may raise
        /// it.
        pub version: Option<String>,
        /// AWS's action once it no longer supports the version at the standard price.
        pub upgrade_policy: Option<UpgradePolicy>,
        /// The network of the control plane, and access to it.
        pub vpc_config: Option<VpcConfig>,
        /// Permissions in the cluster.
        pub access_config: Option<AccessConfig>,
        /// Logs of the control plane that are kept, for example `audit`.
        pub enabled_cluster_log_types: Vec<String>,
        /// Tags.
        pub tags: BTreeMap<String, String>,
    }

    /// AWS's action once it no longer supports a version at the standard price.
    pub struct UpgradePolicy {
        /// `STANDARD`: AWS upgrades the cluster. `EXTENDED`: the cluster keeps its version for a
        /// fee.
        pub support_type: Option<String>,
    }

    /// The network of a control plane, and access to it.
    pub struct VpcConfig {
        /// Subnets in at least two availability zones.
        pub subnet_ids: Vec<String>,
        /// Whether the VPC has access.
        pub endpoint_private_access: Option<bool>,
        /// Whether the internet has access.
        pub endpoint_public_access: Option<bool>,
        /// Networks in the internet with access. Empty: all networks.
        pub public_access_cidrs: Vec<String>,
    }

    /// Permissions in a cluster.
    pub struct AccessConfig {
        /// `API`, `API_AND_CONFIG_MAP` or `CONFIG_MAP`.
        pub authentication_mode: Option<String>,
        /// Whether the creator of the cluster is its administrator. It cannot be changed later.
        pub bootstrap_cluster_creator_admin_permissions: Option<bool>,
    }

    /// The observed state of a cluster.
    pub struct ClusterStatus {
        /// URL of its API server.
        pub endpoint: Option<String>,
        /// Its ARN.
        pub arn: Option<String>,
        /// One entry: the signer of the API server's certificate.
        pub certificate_authority: Vec<CertificateAuthority>,
        /// For example `CREATING`, `ACTIVE` or `FAILED`.
        pub status: Option<String>,
        /// Version of Kubernetes.
        pub version: Option<String>,
    }

    /// The signer of an API server's certificate.
    pub struct CertificateAuthority {
        /// PEM, as base64.
        pub data: Option<String>,
    }
}

model! {
    /// Machines of one kind in a cluster. Its name is the external name.
    pub struct NodeGroup {
        /// AWS region, that of the cluster.
        pub region: Option<String>,
        /// The cluster.
        pub cluster_name_selector: Option<Selector>,
        /// ARN of the role that the machines assume.
        pub node_role_arn: Option<String>,
        /// Subnets of the machines.
        pub subnet_ids: Vec<String>,
        /// Machine types, for example `t3.large`.
        pub instance_types: Vec<String>,
        /// Number of machines.
        pub scaling_config: Option<ScalingConfig>,
        /// Family of the machine image, for example `AL2023_x86_64_STANDARD`.
        pub ami_type: Option<String>,
        /// Disk of each machine in GiB.
        pub disk_size: Option<i64>,
        /// Tags of the group. The machines do not get them.
        pub tags: BTreeMap<String, String>,
    }

    /// Number of machines in a group.
    pub struct ScalingConfig {
        /// The current number.
        pub desired_size: Option<i64>,
        /// The maximum.
        pub max_size: Option<i64>,
        /// The minimum.
        pub min_size: Option<i64>,
    }

    /// The observed state of a node group.
    pub struct NodeGroupStatus {
        /// Number of machines.
        pub scaling_config: Option<ScalingConfig>,
        /// For example `CREATING`, `ACTIVE` or `DEGRADED`.
        pub status: Option<String>,
    }

    /// AWS's own software in a cluster. Its external name is `<cluster>:<add-on>`, which the
    /// provider writes.
    pub struct Addon {
        /// AWS region, that of the cluster.
        pub region: Option<String>,
        /// The cluster.
        pub cluster_name_selector: Option<Selector>,
        /// Name of the software, for example `aws-ebs-csi-driver`.
        pub addon_name: Option<String>,
        /// The roles that its service accounts assume. This requires the add-on
        /// `eks-pod-identity-agent` in the cluster.
        pub pod_identity_association: Vec<PodIdentity>,
        /// Tags.
        pub tags: BTreeMap<String, String>,
    }

    /// A role that a service account assumes.
    pub struct PodIdentity {
        /// ARN of the role. The role trusts `pods.eks.amazonaws.com`.
        pub role_arn: Option<String>,
        /// The service account's name.
        pub service_account: Option<String>,
    }

    /// Keeps a valid token for a cluster in its secret: `kubeconfig`, `endpoint` and `clusterCA`.
    pub struct ClusterAuth {
        /// AWS region, that of the cluster.
        pub region: Option<String>,
        /// The cluster.
        pub cluster_name_selector: Option<Selector>,
        /// Time until the token is renewed, for example `10m0s`. A token is valid for 15 minutes.
        pub refresh_period: Option<String>,
    }
}
