//! EKS: a cluster, its nodes, and the token that opens it.

use std::collections::BTreeMap;

use crate::models::{Kind, Managed, Selector, Unread};

impl Managed for Cluster {
    const KIND: Kind =
        Kind::aws("eks", "Cluster").versions("v1beta2", "v1beta1").without_late_initialization();
    type Status = ClusterStatus;
}

impl Managed for NodeGroup {
    const KIND: Kind = Kind::aws("eks", "NodeGroup").versions("v1beta2", "v1beta1");
    type Status = Unread;
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
        /// ARN of the role that the control plane takes.
        pub role_arn: Option<String>,
        /// Minor version of Kubernetes, such as `1.34`; none: EKS's default, and AWS may raise it.
        pub version: Option<String>,
        /// What happens once AWS no longer supports the version at the standard price.
        pub upgrade_policy: Option<UpgradePolicy>,
        /// Where the control plane is, and who reaches it.
        pub vpc_config: Option<VpcConfig>,
        /// Who may do what in the cluster.
        pub access_config: Option<AccessConfig>,
        /// Logs of the control plane that are kept, such as `audit`.
        pub enabled_cluster_log_types: Vec<String>,
        /// Tags.
        pub tags: BTreeMap<String, String>,
    }

    /// What happens once AWS no longer supports a version at the standard price.
    pub struct UpgradePolicy {
        /// `STANDARD`: AWS upgrades the cluster. `EXTENDED`: the cluster keeps its version for a
        /// fee.
        pub support_type: Option<String>,
    }

    /// Where a control plane is, and who reaches it.
    pub struct VpcConfig {
        /// Subnets in at least two availability zones.
        pub subnet_ids: Vec<String>,
        /// Whether it is reached from the VPC.
        pub endpoint_private_access: Option<bool>,
        /// Whether it is reached from the internet.
        pub endpoint_public_access: Option<bool>,
        /// From where in the internet; none: from everywhere.
        pub public_access_cidrs: Vec<String>,
    }

    /// Who may do what in a cluster.
    pub struct AccessConfig {
        /// `API`, `API_AND_CONFIG_MAP` or `CONFIG_MAP`.
        pub authentication_mode: Option<String>,
        /// Whether who makes the cluster is its administrator; it cannot be changed later.
        pub bootstrap_cluster_creator_admin_permissions: Option<bool>,
    }

    /// What a cluster became.
    pub struct ClusterStatus {
        /// URL of its API server.
        pub endpoint: Option<String>,
        /// Its ARN.
        pub arn: Option<String>,
        /// One entry: who signs the API server's certificate.
        pub certificate_authority: Vec<CertificateAuthority>,
        /// Version of Kubernetes.
        pub version: Option<String>,
    }

    /// Who signs an API server's certificate.
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
        /// ARN of the role that the machines take.
        pub node_role_arn: Option<String>,
        /// Subnets of the machines.
        pub subnet_ids: Vec<String>,
        /// Machine types, such as `t3.large`.
        pub instance_types: Vec<String>,
        /// How many machines.
        pub scaling_config: Option<ScalingConfig>,
        /// Family of the machine image, such as `AL2023_x86_64_STANDARD`.
        pub ami_type: Option<String>,
        /// Disk of each machine in GiB.
        pub disk_size: Option<i64>,
        /// Tags of the group; the machines do not get them.
        pub tags: BTreeMap<String, String>,
    }

    /// How many machines a group has.
    pub struct ScalingConfig {
        /// Now.
        pub desired_size: Option<i64>,
        /// At most.
        pub max_size: Option<i64>,
        /// At least.
        pub min_size: Option<i64>,
    }

    /// Software of AWS's that runs in a cluster. Its external name is `<cluster>:<add-on>`, which
    /// the provider writes.
    pub struct Addon {
        /// AWS region, that of the cluster.
        pub region: Option<String>,
        /// The cluster.
        pub cluster_name_selector: Option<Selector>,
        /// Which software, such as `aws-ebs-csi-driver`.
        pub addon_name: Option<String>,
        /// Which roles its service accounts take. The cluster needs the add-on
        /// `eks-pod-identity-agent` for it.
        pub pod_identity_association: Vec<PodIdentity>,
        /// Tags.
        pub tags: BTreeMap<String, String>,
    }

    /// A role that a service account takes.
    pub struct PodIdentity {
        /// ARN of the role; it trusts `pods.eks.amazonaws.com`.
        pub role_arn: Option<String>,
        /// The service account's name.
        pub service_account: Option<String>,
    }

    /// Keeps a fresh token for a cluster in its secret: `kubeconfig`, `endpoint` and `clusterCA`.
    pub struct ClusterAuth {
        /// AWS region, that of the cluster.
        pub region: Option<String>,
        /// The cluster.
        pub cluster_name_selector: Option<Selector>,
        /// How often the token is made anew, such as `10m0s`; it lives for 15 minutes.
        pub refresh_period: Option<String>,
    }
}
