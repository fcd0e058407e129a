//! A cluster on Google Cloud: private nodes, and an API only for the networks of Settings.

use serde_json::json;

use super::settings::{place, unless_running};
use super::{Cluster, KUBECONFIG, Parameters, VirtualEnvironmentSettings, follows};
use crate::compose::Composer;
use crate::error::Error;
use crate::models::SIBLING;
use crate::models::gcp::{
    CidrBlock, Cluster as Gke, ClusterStatus, MasterAuthorizedNetworksConfig, NodeConfig,
    NodeManagement, NodePool, PrivateClusterConfig, ReleaseChannel, ShieldedInstanceConfig,
    WorkloadIdentityConfig, WorkloadMetadataConfig, first_pool,
};
use crate::observe::{NameRule, Observed};

/// Names of clusters and of node pools.
const NAME: NameRule = NameRule::dns(40);

/// The machine types of the nodes by size, without Settings.
pub(super) const MACHINES: [&str; 3] = ["e2-standard-2", "e2-standard-4", "e2-standard-8"];

impl Parameters {
    pub(super) fn gke(
        &self,
        settings: &VirtualEnvironmentSettings,
        cx: &mut Composer<'_>,
    ) -> Result<Cluster, Error> {
        let location = settings.gke.location.as_ref();
        let location = place(
            cx,
            "location",
            location,
            "gke.location",
            "a region or zone, for example \
                europe-west1",
        )?;
        let cluster = gke_cluster(settings, &location, cx)?;
        self.gke_nodes(settings, location, cx)?;
        cx.keep_usage("cluster", "node-pool")?;
        let has_usage = cx.has_usage("cluster", "node-pool");
        let endpoint = cluster
            .text(|cluster| cluster.endpoint.clone())
            .map(|address| format!("https://{address}"));
        Ok(Cluster {
            slot: "cluster",
            kubeconfig: cluster.connection(KUBECONFIG),
            identity: Some(
                json!({"type": "GoogleApplicationCredentials", "source": "InjectedIdentity"}),
            ),
            url: endpoint.clone(),
            endpoint,
            takes_all: false,
            // GKE deletes the nodes with their cluster.
            beneath: if has_usage { &["node-pool"] } else { &["cluster"] },
            storage_class: None,
        })
    }

    fn gke_nodes(
        &self,
        settings: &VirtualEnvironmentSettings,
        location: String,
        cx: &mut Composer<'_>,
    ) -> Result<(), Error> {
        let machine = settings.machine_types.gke.for_size(self.size, MACHINES);
        let pool = NodePool {
            cluster_selector: Some(SIBLING),
            location: Some(location),
            node_count: Some(1),
            management: Some(NodeManagement { auto_repair: Some(true), auto_upgrade: Some(true) }),
            node_config: Some(NodeConfig {
                machine_type: Some(machine),
                disk_size_gb: Some(settings.gke.disk_size_gb),
                oauth_scopes: vec!["https://www.googleapis.com/auth/cloud-platform".to_owned()],
                shielded_instance_config: Some(ShieldedInstanceConfig {
                    enable_secure_boot: Some(true),
                    enable_integrity_monitoring: Some(true),
                }),
                workload_metadata_config: Some(WorkloadMetadataConfig {
                    mode: Some("GKE_METADATA".to_owned()),
                }),
                ..NodeConfig::default()
            }),
        };
        let name = cx.xr.cloud_name(NAME);
        let orphan = !cx.has_usage("cluster", "node-pool");
        cx.managed("node-pool", pool)
            .external_name(name)
            .orphan(orphan)
            .resolved_from("size", self.size.name(), &["nodeConfig.machineType"])
            .add()
            .map(|_| ())
    }
}

fn gke_cluster(
    settings: &VirtualEnvironmentSettings,
    location: &str,
    cx: &mut Composer<'_>,
) -> Result<Observed<ClusterStatus>, Error> {
    let project = unless_running(
        cx.exists("cluster"),
        settings.gke.project_id.as_ref(),
        "gke.projectId",
        "the name of a project, for example acme-dev",
    )?;
    let networks = settings.networks(cx)?;
    let block =
        |network: &String| CidrBlock { cidr_block: Some(network.clone()), ..CidrBlock::default() };
    let cluster = Gke {
        location: Some(location.to_owned()),
        network: settings.gke.network.clone(),
        subnetwork: settings.gke.subnetwork.clone(),
        networking_mode: Some("VPC_NATIVE".to_owned()),
        remove_default_node_pool: Some(true),
        initial_node_count: Some(1),
        private_cluster_config: Some(PrivateClusterConfig {
            enable_private_nodes: Some(true),
            enable_private_endpoint: Some(false),
            ..PrivateClusterConfig::default()
        }),
        master_authorized_networks_config: Some(MasterAuthorizedNetworksConfig {
            cidr_blocks: networks.iter().map(block).collect(),
            gcp_public_cidrs_access_enabled: Some(false),
        }),
        release_channel: Some(ReleaseChannel { channel: Some("REGULAR".to_owned()) }),
        workload_identity_config: Some(WorkloadIdentityConfig {
            workload_pool: project.map(|project| format!("{project}.svc.id.goog")),
        }),
        deletion_protection: Some(false),
        ..Gke::default()
    };
    let name = cx.xr.cloud_name(NAME);
    let updatable = follows(networks, &["masterAuthorizedNetworksConfig.cidrBlocks"]);
    cx.managed("cluster", cluster)
        .external_name(name)
        .spec_field("initProvider", first_pool())
        .updatable(updatable)
        .publishes()
        .add()
}
