//! Microsoft Azure: a cluster.
//!
//! Fields and types are those of provider-upjet-azure 2.7, the same in both scopes.

use std::collections::BTreeMap;

use super::{Kind, Managed};

impl Managed for KubernetesCluster {
    const KIND: Kind =
        Kind::azure("containerservice", "KubernetesCluster").without_late_initialization();
    type Status = KubernetesClusterStatus;
}

model! {
    /// An AKS cluster. Its name is the external name. Its secret has a `kubeconfig`.
    pub struct KubernetesCluster {
        /// Azure region, for example `westeurope`.
        pub location: Option<String>,
        /// The resource group of the cluster.
        pub resource_group_name: Option<String>,
        /// The beginning of the name of its API server.
        pub dns_prefix: Option<String>,
        /// Version of Kubernetes, for example `1.33`. Absent: AKS's own choice.
        pub kubernetes_version: Option<String>,
        /// The new versions that it installs automatically: `patch`, `stable`, `rapid` or
        /// `node-image`.
        pub automatic_upgrade_channel: Option<String>,
        /// The required nodes.
        pub default_node_pool: Option<DefaultNodePool>,
        /// Its identity in Azure.
        pub identity: Option<Identity>,
        /// Whether its API server has only a private address.
        pub private_cluster_enabled: Option<bool>,
        /// Access to its API server. Not for a cluster with only a private address.
        pub api_server_access_profile: Option<ApiServerAccessProfile>,
        /// Whether certificates cannot open the cluster, but only identities of Entra ID.
        pub local_account_disabled: Option<bool>,
        /// Identities of Entra ID in the cluster.
        pub azure_active_directory_role_based_access_control: Option<EntraAccessControl>,
        /// Whether the cluster is an OIDC issuer for its service accounts.
        pub oidc_issuer_enabled: Option<bool>,
        /// Lets pods use Azure identities without keys. It needs the issuer.
        pub workload_identity_enabled: Option<bool>,
        /// Whether Kubernetes' roles decide on permissions. It cannot be changed later.
        pub role_based_access_control_enabled: Option<bool>,
        /// The network between its pods.
        pub network_profile: Option<NetworkProfile>,
        /// Tags.
        pub tags: BTreeMap<String, String>,
    }

    /// The required nodes of a cluster.
    pub struct DefaultNodePool {
        /// Its name: at most 12 lowercase letters and digits, beginning with a letter.
        pub name: Option<String>,
        /// Machine type, for example `Standard_D2s_v5`.
        pub vm_size: Option<String>,
        /// Name of the temporary pool that runs while another machine type is rolled out. Without
        /// this name, the type cannot change. The rules of `name` apply.
        pub temporary_name_for_rotation: Option<String>,
        /// Number of nodes.
        pub node_count: Option<i64>,
        /// Id of the nodes' subnet. Absent: AKS creates a network.
        pub vnet_subnet_id: Option<String>,
    }

    /// A cluster's identity in Azure.
    pub struct Identity {
        /// `SystemAssigned` or `UserAssigned`.
        #[serde(rename = "type")]
        pub kind: Option<String>,
        /// Ids of the identities, for `UserAssigned`.
        pub identity_ids: Vec<String>,
    }

    /// Access to an API server.
    pub struct ApiServerAccessProfile {
        /// Networks in the internet with access, as CIDRs. Empty: all networks.
        pub authorized_ip_ranges: Vec<String>,
    }

    /// Identities of Entra ID in a cluster.
    pub struct EntraAccessControl {
        /// Whether role assignments in Azure decide on their permissions, rather than Kubernetes'
        /// roles.
        pub azure_rbac_enabled: Option<bool>,
        /// The tenant. Absent: the provider's tenant.
        pub tenant_id: Option<String>,
    }

    /// The network between pods. Most fields cannot be changed later.
    pub struct NetworkProfile {
        /// `azure`, `kubenet` or `none`.
        pub network_plugin: Option<String>,
        /// `overlay`: pods use no addresses of the nodes' subnet.
        pub network_plugin_mode: Option<String>,
        /// The engine of network policies: `azure`, `calico` or `cilium`.
        pub network_policy: Option<String>,
        /// The data plane: `azure`, or `cilium`, which policies of `cilium` need.
        pub network_data_plane: Option<String>,
    }

    /// The observed state of a cluster.
    pub struct KubernetesClusterStatus {
        /// Path of the cluster: `/subscriptions/…/managedClusters/…`.
        pub id: Option<String>,
        /// Name of its API server.
        pub fqdn: Option<String>,
        /// Name of its API server, if it has only a private address.
        pub private_fqdn: Option<String>,
    }
}
