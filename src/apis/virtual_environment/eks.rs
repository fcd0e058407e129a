//! A cluster on AWS: nodes in private subnets, an API for the VPC and the networks of Settings only.

use super::settings::{place, unless_running};
use super::{Cluster, KUBECONFIG, Parameters, VirtualEnvironmentSettings, follows};
use crate::compose::{Composition, NameRule, Observed};
use crate::error::Error;
use crate::models::SIBLING;
use crate::models::aws::eks::{
    AccessConfig, Cluster as Eks, ClusterAuth, ClusterStatus, NodeGroup, ScalingConfig, VpcConfig,
};

/// Names of clusters and of node groups.
const NAME: NameRule = NameRule::dns(63);

impl Parameters {
    pub(super) fn eks(
        &self,
        settings: &VirtualEnvironmentSettings,
        cx: &mut Composition<'_>,
    ) -> Result<Cluster, Error> {
        let region =
            place(cx, "region", settings.eks.region.as_ref(), "eks.region", "a region such as eu-west-1")?;
        let cluster = eks_cluster(settings, &region, cx)?;
        self.eks_nodes(settings, &region, cx)?;
        let auth = ClusterAuth {
            region: Some(region),
            cluster_name_selector: Some(SIBLING),
            refresh_period: Some("10m0s".to_owned()),
        };
        let auth = cx.managed("cluster-auth", auth).publishes().add()?;
        cx.usage("cluster", "node-pool")?;
        cx.usage("cluster", "cluster-auth")?;
        let endpoint = cluster.text(|cluster| cluster.endpoint.clone());
        Ok(Cluster {
            slot: "cluster-auth",
            kubeconfig: auth.connection(KUBECONFIG),
            identity: None,
            url: endpoint.clone(),
            endpoint,
            takes_all: false,
            beneath: &["node-pool", "cluster-auth"],
        })
    }

    fn eks_nodes(
        &self,
        settings: &VirtualEnvironmentSettings,
        region: &str,
        cx: &mut Composition<'_>,
    ) -> Result<(), Error> {
        let exists = cx.exists("node-pool");
        let role = settings.eks.node_role_arn.as_ref();
        let role = unless_running(exists, role, "eks.nodeRoleArn", "the ARN of the role that nodes take")?;
        let machine = settings.machine_types.eks.of(self.size, ["m6i.large", "m6i.xlarge", "m6i.2xlarge"]);
        let group = NodeGroup {
            region: Some(region.to_owned()),
            cluster_name_selector: Some(SIBLING),
            node_role_arn: role,
            subnet_ids: subnets(exists, settings, cx)?,
            instance_types: vec![machine],
            scaling_config: Some(ScalingConfig {
                desired_size: Some(2),
                min_size: Some(1),
                max_size: Some(3),
            }),
            ami_type: Some("AL2023_x86_64_STANDARD".to_owned()),
            ..NodeGroup::default()
        };
        let name = cx.xr.cloud_name(NAME);
        cx.managed("node-pool", group).external_name(name).note("size", self.size.name()).add().map(|_| ())
    }
}

fn eks_cluster(
    settings: &VirtualEnvironmentSettings,
    region: &str,
    cx: &mut Composition<'_>,
) -> Result<Observed<ClusterStatus>, Error> {
    let exists = cx.exists("cluster");
    let role = settings.eks.cluster_role_arn.as_ref();
    let role =
        unless_running(exists, role, "eks.clusterRoleArn", "the ARN of the role that control planes take")?;
    let networks = settings.networks(cx)?;
    let cluster = Eks {
        region: Some(region.to_owned()),
        role_arn: role,
        vpc_config: Some(VpcConfig {
            subnet_ids: subnets(exists, settings, cx)?,
            endpoint_private_access: Some(true),
            endpoint_public_access: Some(true),
            public_access_cidrs: networks.to_vec(),
        }),
        access_config: Some(AccessConfig {
            authentication_mode: Some("API".to_owned()),
            bootstrap_cluster_creator_admin_permissions: Some(true),
        }),
        enabled_cluster_log_types: ["api", "audit", "authenticator"].map(str::to_owned).into(),
        ..Eks::default()
    };
    let name = cx.xr.cloud_name(NAME);
    cx.managed("cluster", cluster)
        .external_name(name)
        .live(follows(networks, &["vpcConfig.publicAccessCidrs"]))
        .add()
}

/// The subnets of a resource that is to be made: those of the cluster that runs, else those of Settings.
fn subnets(
    exists: bool,
    settings: &VirtualEnvironmentSettings,
    cx: &Composition<'_>,
) -> Result<Vec<String>, Error> {
    let running = cx.running("cluster", &["vpcConfig", "subnetIds"]).and_then(|ids| ids.as_array());
    let running: Vec<String> =
        running.into_iter().flatten().filter_map(|id| Some(id.as_str()?.to_owned())).collect();
    let ids = &settings.eks.subnet_ids;
    if !running.is_empty() {
        return Ok(running);
    }
    if exists || ids.len() >= 2 {
        return Ok(ids.clone());
    }
    let found = if ids.is_empty() { "missing" } else { "found one" };
    let message = format!("{found}; allowed: subnets in at least two availability zones");
    Err(Error::settings("environment.eks.subnetIds", message))
}
