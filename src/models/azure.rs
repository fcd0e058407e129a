//! Microsoft Azure: a cluster.
//!
//! Fields and their types are those of provider-upjet-azure 2.7; both flavours take the same ones.

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
        /// Azure region, such as `westeurope`.
        pub location: Option<String>,
        /// The resource group that it belongs to.
        pub resource_group_name: Option<String>,
        /// What the name of its API server begins with.
        pub dns_prefix: Option<String>,
        /// Version of Kubernetes, such as `1.33`; none: AKS's own choice.
        pub kubernetes_version: Option<String>,
        /// Which new versions it follows by itself: `patch`, `stable`, `rapid` or `node-image`.
        pub automatic_upgrade_channel: Option<String>,
        /// The nodes that it cannot be without.
        pub default_node_pool: Option<DefaultNodePool>,
        /// Whom it acts as in Azure.
        pub identity: Option<Identity>,
        /// Whether its API server has a private address only.
        pub private_cluster_enabled: Option<bool>,
        /// Who reaches its API server; not for one with a private address only.
        pub api_server_access_profile: Option<ApiServerAccessProfile>,
        /// Whether there are no certificates that open the cluster, but identities of Entra ID
        /// only.
        pub local_account_disabled: Option<bool>,
        /// Identities of Entra ID in the cluster.
        pub azure_active_directory_role_based_access_control: Option<EntraAccessControl>,
        /// Whether the cluster vouches for its service accounts.
        pub oidc_issuer_enabled: Option<bool>,
        /// Lets pods act as Azure identities without keys; it needs the issuer.
        pub workload_identity_enabled: Option<bool>,
        /// Whether Kubernetes' roles decide who may do what; it cannot be changed later.
        pub role_based_access_control_enabled: Option<bool>,
        /// The network between its pods.
        pub network_profile: Option<NetworkProfile>,
        /// Tags.
        pub tags: BTreeMap<String, String>,
    }

    /// The nodes that a cluster cannot be without.
    pub struct DefaultNodePool {
        /// Its name: at most 12 lower-case letters and digits, a letter first.
        pub name: Option<String>,
        /// Machine type, such as `Standard_D2s_v5`.
        pub vm_size: Option<String>,
        /// Name of the pool that stands in while another machine type is rolled out, of the same
        /// shape: without it the type cannot change.
        pub temporary_name_for_rotation: Option<String>,
        /// How many nodes.
        pub node_count: Option<i64>,
        /// Id of the nodes' subnet; none: AKS makes a network.
        pub vnet_subnet_id: Option<String>,
    }

    /// Whom a cluster acts as in Azure.
    pub struct Identity {
        /// `SystemAssigned` or `UserAssigned`.
        #[serde(rename = "type")]
        pub kind: Option<String>,
        /// Ids of the identities, for `UserAssigned`.
        pub identity_ids: Vec<String>,
    }

    /// Who reaches an API server.
    pub struct ApiServerAccessProfile {
        /// From where in the internet, as CIDRs; none: from everywhere.
        pub authorized_ip_ranges: Vec<String>,
    }

    /// Identities of Entra ID in a cluster.
    pub struct EntraAccessControl {
        /// Whether role assignments in Azure decide what they may do, rather than Kubernetes'
        /// roles.
        pub azure_rbac_enabled: Option<bool>,
        /// The tenant; none: that of the provider.
        pub tenant_id: Option<String>,
    }

    /// The network between pods. Most of it cannot be changed later.
    pub struct NetworkProfile {
        /// `azure`, `kubenet` or `none`.
        pub network_plugin: Option<String>,
        /// `overlay`: pods take no addresses of the nodes' subnet.
        pub network_plugin_mode: Option<String>,
        /// What enforces network policies: `azure`, `calico` or `cilium`.
        pub network_policy: Option<String>,
        /// What carries the traffic: `azure`, or `cilium`, which its policies need.
        pub network_data_plane: Option<String>,
    }

    /// What a cluster became.
    pub struct KubernetesClusterStatus {
        /// Path of the cluster: `/subscriptions/…/managedClusters/…`.
        pub id: Option<String>,
        /// Name of its API server.
        pub fqdn: Option<String>,
        /// Name of its API server, where that has a private address only.
        pub private_fqdn: Option<String>,
    }
}
