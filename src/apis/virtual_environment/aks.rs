//! A cluster on Azure: nodes without public addresses, an API only for the networks of Settings,
//! and no local accounts.

use serde_json::json;

use super::settings::{place, unless_running};
use super::{Cluster, ClusterType, KUBECONFIG, Parameters, VirtualEnvironmentSettings, follows};
use crate::compose::Composer;
use crate::error::Error;
use crate::models::azure::{
    ApiServerAccessProfile, DefaultNodePool, EntraAccessControl, Identity, KubernetesCluster,
    KubernetesClusterStatus, NetworkProfile,
};
use crate::observe::{NameRule, Observed};

/// Names of clusters. The names of their API servers begin with them.
const NAME: NameRule = NameRule::dns(54);

/// The environment variable with the providers' identity in Azure: JSON with `clientId`,
/// `tenantId`, `serverId`, `authorityHost` and `federatedTokenFile`. It contains no secret: the
/// token in that file belongs to the pod, and is short-lived.
const CREDENTIALS: &str = "AZURE_WORKLOAD_IDENTITY_CREDENTIALS";

/// The machine types of the nodes by size, without Settings.
pub(super) const MACHINES: [&str; 3] = ["Standard_D2s_v5", "Standard_D4s_v5", "Standard_D8s_v5"];

impl Parameters {
    pub(super) fn aks(
        &self,
        settings: &VirtualEnvironmentSettings,
        cx: &mut Composer<'_>,
    ) -> Result<Cluster, Error> {
        let cluster = self.aks_cluster(settings, cx)?;
        let endpoint =
            cluster.text(|cluster| cluster.fqdn.clone()).map(|name| format!("https://{name}:443"));
        Ok(Cluster {
            slot: "cluster",
            kubeconfig: cluster.connection(KUBECONFIG),
            identity: Some(json!({
                "type": "AzureWorkloadIdentityCredentials",
                "source": "Environment",
                "env": {"name": CREDENTIALS},
            })),
            url: endpoint.clone(),
            endpoint,
            takes_all: false,
            beneath: &["cluster"],
            storage_class: None,
        })
    }

    fn aks_cluster(
        &self,
        settings: &VirtualEnvironmentSettings,
        cx: &mut Composer<'_>,
    ) -> Result<Observed<KubernetesClusterStatus>, Error> {
        let aks = &settings.aks;
        let location = place(
            cx,
            "location",
            aks.location.as_ref(),
            "aks.location",
            "a location, for example westeurope",
        )?;
        let group = unless_running(
            cx.exists("cluster"),
            aks.resource_group_name.as_ref(),
            "aks.resourceGroupName",
            "the name of a resource group",
        )?;
        let networks = settings.public_networks(ClusterType::Aks, cx)?;
        let name = cx.xr.cloud_name(NAME);
        let cluster = KubernetesCluster {
            location: Some(location),
            resource_group_name: group,
            dns_prefix: Some(name.clone()),
            automatic_upgrade_channel: Some("stable".to_owned()),
            default_node_pool: Some(self.aks_nodes(settings)),
            identity: Some(identity(aks.identity.as_ref())),
            private_cluster_enabled: Some(false),
            api_server_access_profile: Some(ApiServerAccessProfile {
                authorized_ip_ranges: networks.to_vec(),
            }),
            local_account_disabled: Some(true),
            azure_active_directory_role_based_access_control: Some(EntraAccessControl {
                azure_rbac_enabled: Some(true),
                ..EntraAccessControl::default()
            }),
            role_based_access_control_enabled: Some(true),
            oidc_issuer_enabled: Some(true),
            workload_identity_enabled: Some(true),
            network_profile: Some(NetworkProfile {
                network_plugin: Some("azure".to_owned()),
                network_plugin_mode: Some("overlay".to_owned()),
                network_policy: Some("cilium".to_owned()),
                network_data_plane: Some("cilium".to_owned()),
            }),
            ..KubernetesCluster::default()
        };
        cx.managed("cluster", cluster)
            .external_name(name)
            .annotate("size", self.size.name())
            .updatable(follows(networks, &["apiServerAccessProfile.authorizedIpRanges"]))
            .publishes()
            .add()
    }

    fn aks_nodes(&self, settings: &VirtualEnvironmentSettings) -> DefaultNodePool {
        let machines = &settings.machine_types.aks;
        let machine = machines.for_size(self.size, MACHINES);
        DefaultNodePool {
            name: Some("nodes".to_owned()),
            vm_size: Some(machine),
            node_count: Some(2),
            ..DefaultNodePool::default()
        }
    }
}

/// The identity in Settings, or else the cluster's own.
fn identity(id: Option<&String>) -> Identity {
    let kind = if id.is_some() { "UserAssigned" } else { "SystemAssigned" };
    Identity { kind: Some(kind.to_owned()), identity_ids: id.into_iter().cloned().collect() }
}
