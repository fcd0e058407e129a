//! A cluster on AWS: nodes in private subnets, and an API only for the VPC and the networks of
//! Settings.

use serde_json::{Value, json};

use super::settings::{place, unless_running};
use super::{Cluster, ClusterType, KUBECONFIG, Parameters, VirtualEnvironmentSettings, follows};
use crate::catalog::aws::Partition;
use crate::compose::Composer;
use crate::error::Error;
use crate::models::SIBLING;
use crate::models::aws::eks::{
    AccessConfig, Addon, Cluster as Eks, ClusterAuth, ClusterStatus, NodeGroup, PodIdentity,
    ScalingConfig, UpgradePolicy, VpcConfig,
};
use crate::models::aws::iam::{Role, RolePolicyAttachment};
use crate::observe::{NameRule, Observed};

/// Names of clusters and of node groups.
const NAME: NameRule = NameRule::dns(63);

/// Names of roles.
const ROLE_NAME: NameRule = NameRule::dns(64);

/// The slot of the driver that creates volumes of EBS. EKS does not include one.
const DRIVER: &str = "addon-ebs-csi";

/// The slot of the agent that gives pods their roles. Pods cannot use the nodes' roles, because the
/// nodes' metadata service is one hop too far.
const AGENT: &str = "addon-pod-identity";

/// The slots of the driver's own role, and of its policy.
const DRIVER_ROLE: &str = "ebs-csi-role";
const DRIVER_POLICY: &str = "ebs-csi-policy";

/// The trust policy of the driver's role: pods may assume it, through their service accounts.
const ASSUMED_BY_PODS: &str = r#"{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"pods.eks.amazonaws.com"},"Action":["sts:AssumeRole","sts:TagSession"]}]}"#;

/// The machine types of the nodes by size, without Settings.
pub(super) const MACHINES: [&str; 3] = ["m6i.large", "m6i.xlarge", "m6i.2xlarge"];

impl Parameters {
    pub(super) fn eks(
        &self,
        settings: &VirtualEnvironmentSettings,
        cx: &mut Composer<'_>,
    ) -> Result<Cluster, Error> {
        let region = place(
            cx,
            "region",
            settings.eks.region.as_ref(),
            "eks.region",
            "a region, for example eu-west-1",
        )?;
        let cluster = eks_cluster(settings, &region, cx)?;
        self.eks_nodes(settings, &region, cx)?;
        let has_volumes = cx.brings(2, &[DRIVER, AGENT, DRIVER_ROLE, DRIVER_POLICY]);
        if has_volumes {
            volumes(settings, &region, cx)?;
        }
        let is_older = cx.has_usage("cluster", "cluster-auth");
        let auth = ClusterAuth {
            region: Some(region),
            cluster_name_selector: Some(SIBLING),
            refresh_period: Some("10m0s".to_owned()),
        };
        let auth = cx.managed("cluster-auth", auth).publishes().orphan(!is_older).add()?;
        cx.usage("cluster", "node-pool")?;
        cx.keep_usage("cluster", "cluster-auth")?;
        let endpoint = cluster.text(|cluster| cluster.endpoint.clone());
        Ok(Cluster {
            slot: "cluster-auth",
            kubeconfig: auth.connection(KUBECONFIG),
            identity: None,
            url: endpoint.clone(),
            endpoint,
            takes_all: false,
            // Objects in the cluster may have volumes, which the driver deletes.
            beneath: match (has_volumes, is_older, cx.health(DRIVER_ROLE).is_some()) {
                (true, true, _) => &["node-pool", "cluster-auth", DRIVER],
                (true, false, true) => &["node-pool", "cluster-auth", DRIVER_ROLE],
                _ => &["node-pool", "cluster-auth"],
            },
            storage_class: has_volumes.then(storage_class),
        })
    }

    fn eks_nodes(
        &self,
        settings: &VirtualEnvironmentSettings,
        region: &str,
        cx: &mut Composer<'_>,
    ) -> Result<(), Error> {
        let exists = cx.exists("node-pool");
        let role = settings.eks.node_role_arn.as_ref();
        let role = unless_running(
            exists,
            role,
            "eks.nodeRoleArn",
            "the ARN of the role of the \
            nodes",
        )?;
        let machine = settings.machine_types.eks.for_size(self.size, MACHINES);
        let group = NodeGroup {
            region: Some(region.to_owned()),
            cluster_name_selector: Some(SIBLING),
            node_role_arn: role,
            subnet_ids: subnets(exists, settings, cx)?,
            scaling_config: Some(ScalingConfig {
                desired_size: Some(2),
                min_size: Some(1),
                max_size: Some(3),
            }),
            ami_type: Some(ami_type(&machine).to_owned()),
            instance_types: vec![machine],
            ..NodeGroup::default()
        };
        let name = cx.xr.cloud_name(NAME);
        cx.managed("node-pool", group)
            .external_name(name)
            .annotate("size", self.size.name())
            .add()
            .map(|_| ())
    }
}

/// The driver that creates volumes, and its rights in AWS.
fn volumes(
    settings: &VirtualEnvironmentSettings,
    region: &str,
    cx: &mut Composer<'_>,
) -> Result<(), Error> {
    let role = driver_role(settings, region, cx)?;
    let has_nodes = cx.is_ready("node-pool");
    let is_older = cx.has_usage("cluster", DRIVER);
    let addon = |name: &str| Addon {
        region: Some(region.to_owned()),
        cluster_name_selector: Some(SIBLING),
        addon_name: Some(name.to_owned()),
        ..Addon::default()
    };
    cx.managed(AGENT, addon("eks-pod-identity-agent"))
        .orphan(!is_older)
        .needs(has_nodes, "the nodes")
        .add()?;
    let has_role = role.is_some();
    let identity =
        PodIdentity { role_arn: role, service_account: Some("ebs-csi-controller-sa".to_owned()) };
    let driver = Addon { pod_identity_association: vec![identity], ..addon("aws-ebs-csi-driver") };
    cx.managed(DRIVER, driver)
        .orphan(!is_older)
        .needs(has_nodes, "the nodes")
        .needs(has_role, "its role")
        .add()?;
    // EKS deletes add-ons with their cluster.
    for (of, by) in
        [("cluster", AGENT), ("cluster", DRIVER), (DRIVER_POLICY, DRIVER), (AGENT, DRIVER)]
    {
        cx.keep_usage(of, by)?;
    }
    Ok(())
}

/// The ARN of the driver's role, once it is known: the role in Settings, or a role of the
/// environment's own.
fn driver_role(
    settings: &VirtualEnvironmentSettings,
    region: &str,
    cx: &mut Composer<'_>,
) -> Result<Option<String>, Error> {
    let has_own = cx.exists(DRIVER_ROLE) || cx.exists(DRIVER_POLICY);
    let given = settings.eks.ebs_csi_role_arn.clone();
    if !has_own && (given.is_some() || cx.exists(DRIVER)) {
        return Ok(given);
    }
    let partition = Partition::for_region(region).name;
    let role = Role {
        assume_role_policy: Some(ASSUMED_BY_PODS.to_owned()),
        description: Some(format!("EBS CSI driver of environment {}", cx.xr.name)),
        force_detach_policies: Some(true),
        ..Role::default()
    };
    let name = cx.xr.cloud_name(ROLE_NAME);
    let role = cx.managed(DRIVER_ROLE, role).external_name(name).add()?;
    let policy = RolePolicyAttachment {
        role_selector: Some(SIBLING),
        policy_arn: Some(format!(
            "arn:{partition}:iam::aws:policy/service-role/AmazonEBSCSIDriverPolicy"
        )),
    };
    let orphan = !cx.has_usage(DRIVER_ROLE, DRIVER_POLICY);
    cx.managed(DRIVER_POLICY, policy).orphan(orphan).add()?;
    cx.keep_usage(DRIVER_ROLE, DRIVER_POLICY)?;
    Ok(role.text(|role| role.arn.clone()))
}

/// The default class of volumes.
fn storage_class() -> Value {
    json!({
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {
            "name": "ebs-gp3",
            "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
        },
        "provisioner": "ebs.csi.aws.com",
        "parameters": {"type": "gp3", "encrypted": "true"},
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "WaitForFirstConsumer",
        "allowVolumeExpansion": true,
    })
}

/// The family of machine images for a machine type. EKS rejects an unsuitable image, or its nodes
/// never become ready.
///
/// A type consists of a family, its generation, its attributes and a size: `m7gd.large`. The
/// attribute `g` is a Graviton processor. The families `g`, `gr` and `p` have NVIDIA GPUs, except
/// types with AMD GPUs (`g4ad`).
fn ami_type(machine: &str) -> &'static str {
    let family = machine.split('.').next().unwrap_or_default();
    let generation = family.find(|c: char| c.is_ascii_digit()).unwrap_or(family.len());
    let (series, rest) = family.split_at(generation);
    let attributes = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_arm = series == "a" || attributes.contains('g');
    match series {
        "inf" | "trn" => "AL2023_x86_64_NEURON",
        "g" | "gr" | "p" if is_arm => "AL2023_ARM_64_NVIDIA",
        "g" | "gr" | "p" if !attributes.starts_with('a') => "AL2023_x86_64_NVIDIA",
        _ if is_arm => "AL2023_ARM_64_STANDARD",
        _ => "AL2023_x86_64_STANDARD",
    }
}

fn eks_cluster(
    settings: &VirtualEnvironmentSettings,
    region: &str,
    cx: &mut Composer<'_>,
) -> Result<Observed<ClusterStatus>, Error> {
    let exists = cx.exists("cluster");
    let role = settings.eks.cluster_role_arn.as_ref();
    let role = unless_running(
        exists,
        role,
        "eks.clusterRoleArn",
        "the ARN of the role of the control \
         plane",
    )?;
    let networks = settings.public_networks(ClusterType::Eks, cx)?;
    let cluster = Eks {
        region: Some(region.to_owned()),
        role_arn: role,
        upgrade_policy: Some(UpgradePolicy { support_type: Some("STANDARD".to_owned()) }),
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
        .updatable(follows(networks, &["vpcConfig.publicAccessCidrs"]))
        .add()
}

/// The subnets of a new resource: those of the existing cluster, else those of Settings.
fn subnets(
    exists: bool,
    settings: &VirtualEnvironmentSettings,
    cx: &Composer<'_>,
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

#[cfg(test)]
mod tests {
    use super::ami_type;

    #[test]
    fn machine_image_follows_the_machine_type() {
        for (machine, image) in [
            ("m6i.large", "AL2023_x86_64_STANDARD"),
            ("x2iedn.xlarge", "AL2023_x86_64_STANDARD"),
            ("g4ad.xlarge", "AL2023_x86_64_STANDARD"),
            ("m7g.large", "AL2023_ARM_64_STANDARD"),
            ("c7gn.2xlarge", "AL2023_ARM_64_STANDARD"),
            ("im4gn.large", "AL2023_ARM_64_STANDARD"),
            ("a1.medium", "AL2023_ARM_64_STANDARD"),
            ("g5.xlarge", "AL2023_x86_64_NVIDIA"),
            ("gr6.4xlarge", "AL2023_x86_64_NVIDIA"),
            ("p6-b200.48xlarge", "AL2023_x86_64_NVIDIA"),
            ("g5g.xlarge", "AL2023_ARM_64_NVIDIA"),
            ("p6e-gb200.36xlarge", "AL2023_ARM_64_NVIDIA"),
            ("inf2.xlarge", "AL2023_x86_64_NEURON"),
        ] {
            assert_eq!(ami_type(machine), image, "{machine}");
        }
    }
}
