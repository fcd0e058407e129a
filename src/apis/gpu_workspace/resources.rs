//! The resources of a workspace.

use std::collections::BTreeMap;

use ipnet::IpNet;

use super::{
    CloudInit, DEFAULT_IMAGE, GpuWorkspaceSettings, KEYS, OPENCV, OWN_TAGS, Parameters, SSH,
    cloud_init, image_family,
};
use crate::catalog::aws::Partition;
use crate::catalog::gpu::Machine;
use crate::catalog::opencv;
use crate::check;
use crate::compose::Composer;
use crate::error::Error;
use crate::models::aws::ec2::{
    Instance, InstanceStatus, MetadataOptions, RootBlockDevice, SecurityGroup,
    SecurityGroupEgressRule, SecurityGroupIngressRule,
};
use crate::models::aws::iam::{InstanceProfile, Role, RolePolicy, RolePolicyAttachment};
use crate::models::{Managed, SIBLING};
use crate::observe::{NameRule, Observed};

impl Parameters {
    pub(super) fn tags(&self, cx: &Composer<'_>) -> BTreeMap<String, String> {
        let values = ["Crossplane", &cx.xr.name, &self.owner];
        let mut tags = cx.tags(&Instance::KIND);
        tags.extend(
            OWN_TAGS.into_iter().zip(values).map(|(key, value)| (key.to_owned(), value.to_owned())),
        );
        tags
    }

    /// A security group that allows all outgoing traffic, and SSH from the given networks, by IPv4
    /// and by IPv6.
    pub(super) fn firewall(
        &self,
        cidrs: &[IpNet],
        tags: &BTreeMap<String, String>,
        settings: &GpuWorkspaceSettings,
        cx: &mut Composer<'_>,
    ) -> Result<(), Error> {
        let group = SecurityGroup {
            region: Some(self.region.clone()),
            name: Some(cx.xr.cloud_name(SECURITY_GROUP_NAME)),
            description: Some(format!("GPU workspace {}", cx.xr.name)),
            vpc_id: settings.network(&self.region).and_then(|network| network.vpc_id.clone()),
            tags: tags.clone(),
        };
        cx.managed("security-group", group).add()?;
        let everywhere = SecurityGroupEgressRule {
            region: Some(self.region.clone()),
            security_group_id_selector: Some(SIBLING),
            cidr_ipv4: Some("0.0.0.0/0".to_owned()),
            ip_protocol: Some("-1".to_owned()),
            ..SecurityGroupEgressRule::default()
        };
        cx.managed("egress", everywhere).add()?;
        if cx.brings(2, &["egress-v6"]) {
            let everywhere = SecurityGroupEgressRule {
                region: Some(self.region.clone()),
                security_group_id_selector: Some(SIBLING),
                cidr_ipv6: Some("::/0".to_owned()),
                ip_protocol: Some("-1".to_owned()),
                ..SecurityGroupEgressRule::default()
            };
            cx.managed("egress-v6", everywhere).add()?;
        }
        for cidr in cidrs {
            cx.managed(format!("{SSH}{cidr}"), self.ssh_from(cidr)).add()?;
        }
        cx.remove_rest(SSH)
    }

    fn ssh_from(&self, cidr: &IpNet) -> SecurityGroupIngressRule {
        let (v4, v6) = match cidr {
            IpNet::V4(v4) => (Some(v4.to_string()), None),
            IpNet::V6(v6) => (None, Some(v6.to_string())),
        };
        SecurityGroupIngressRule {
            region: Some(self.region.clone()),
            security_group_id_selector: Some(SIBLING),
            cidr_ipv4: v4,
            cidr_ipv6: v6,
            ip_protocol: Some("tcp".to_owned()),
            from_port: Some(22),
            to_port: Some(22),
            description: Some("SSH".to_owned()),
            ..SecurityGroupIngressRule::default()
        }
    }

    /// A role that allows access to the machine through SSM, and grants no other rights. Returns
    /// the profile's name, because the machine refers to it by name, without a selector.
    pub(super) fn identity(
        &self,
        tags: &BTreeMap<String, String>,
        settings: &GpuWorkspaceSettings,
        cx: &mut Composer<'_>,
    ) -> Result<String, Error> {
        let name = cx.xr.cloud_name(NameRule::dns(64));
        let partition = Partition::for_region(&self.region);
        if !cx.exists("role") {
            settings.check_boundary(Some(partition))?;
        }
        let role = Role {
            assume_role_policy: Some(assumed_by_machines(partition)),
            description: Some(format!("GPU workspace {}", cx.xr.name)),
            force_detach_policies: Some(true),
            permissions_boundary: settings.permissions_boundary.clone(),
            tags: tags.clone(),
        };
        cx.managed("role", role).external_name(&name).add()?;
        self.session_manager(&name, cx)?;
        let profile = InstanceProfile { role_selector: Some(SIBLING), tags: tags.clone() };
        cx.managed("instance-profile", profile).external_name(&name).add()?;
        Ok(cx.external_name("instance-profile").unwrap_or(name))
    }

    /// Grants the rights that Session Manager needs, and no others. Workspaces of earlier releases
    /// keep AWS's own policy, which also lets the machine read every parameter of the account.
    fn session_manager(&self, name: &str, cx: &mut Composer<'_>) -> Result<(), Error> {
        let own = cx.brings(2, &["role-policy"]);
        if own {
            let policy = RolePolicy {
                policy: Some(SESSION_MANAGER.to_owned()),
                role_selector: Some(SIBLING),
            };
            cx.managed("role-policy", policy).external_name(name).add()?;
            cx.keep_usage("role", "role-policy")?;
        }
        if !own || cx.exists("role-ssm") {
            let (core, partition) =
                ("AmazonSSMManagedInstanceCore", Partition::for_region(&self.region));
            let attachment = RolePolicyAttachment {
                role_selector: Some(SIBLING),
                policy_arn: Some(format!("arn:{}:iam::aws:policy/{core}", partition.name)),
            };
            cx.managed("role-ssm", attachment).add()?;
            cx.keep_usage("role", "role-ssm")?;
        }
        Ok(())
    }

    pub(super) fn instance(
        &self,
        machine: &Machine,
        profile: String,
        tags: &BTreeMap<String, String>,
        settings: &GpuWorkspaceSettings,
        cx: &mut Composer<'_>,
    ) -> Result<Observed<InstanceStatus>, Error> {
        let family = image_family(machine);
        // Image and user data apply at the first boot only, so an existing machine needs no lookup.
        let (ami, user_data) = if cx.exists("instance") {
            (None, None)
        } else {
            (Some(settings.image(&self.region, family)?.to_owned()), Some(self.user_data()?))
        };
        let instance = Instance {
            region: Some(self.region.clone()),
            ami,
            instance_type: Some(self.instance_type.clone()),
            subnet_id: settings.network(&self.region).and_then(|network| network.subnet_id.clone()),
            iam_instance_profile: Some(profile),
            vpc_security_group_id_selector: Some(SIBLING),
            user_data,
            user_data_replace_on_change: Some(false),
            instance_initiated_shutdown_behavior: cx.is_since(3).then(|| "stop".to_owned()),
            root_block_device: Some(RootBlockDevice {
                volume_size: Some(self.disk_gb),
                volume_type: Some("gp3".to_owned()),
                encrypted: Some(true),
                delete_on_termination: Some(true),
                tags: tags.clone(),
            }),
            metadata_options: Some(MetadataOptions {
                http_endpoint: Some("enabled".to_owned()),
                http_tokens: Some("required".to_owned()),
                http_put_response_hop_limit: Some(2),
            }),
            tags: tags.clone(),
        };
        let subnet = cx.status_of::<Instance>("instance").and_then(|status| status.subnet_id);
        let subnet = subnet.filter(|id| !id.is_empty());
        cx.managed("instance", instance)
            // AWS or a person may terminate the machine. Without the subnet, the provider would
            // request its replacement with the network interface that was deleted with the machine.
            .chosen("subnetId", subnet)
            .updatable(&["rootBlockDevice.volumeSize", "rootBlockDevice.tags", "instanceType"])
            .annotate("instance-type", &self.instance_type)
            .annotate("image-family", family.unwrap_or(DEFAULT_IMAGE))
            .annotate(OPENCV, &self.opencv_version)
            .annotate(KEYS, self.keys())
            .add()
    }

    fn user_data(&self) -> Result<String, Error> {
        let opencv = opencv::requirement(&self.opencv_version)
            .map_err(|error| Error::spec("spec.parameters.opencvVersion", error))?;
        let keys: Vec<String> =
            self.ssh_public_keys.iter().map(|key| check::ssh_key_line(key)).collect();
        cloud_init::render(&CloudInit { ssh_public_keys: &keys, opencv: &opencv })
            .map_err(|error| Error::spec("spec.parameters.sshPublicKeys", error))
    }
}

/// Names of security groups: at most 255 characters. The prefix `sg-` is reserved for their ids.
const SECURITY_GROUP_NAME: NameRule = NameRule { max: 255, not_at_start: &["sg-"], nowhere: &[] };

/// The trust policy of the machine's role: only machines may assume it.
fn assumed_by_machines(partition: &Partition) -> String {
    let machines = partition.principal("ec2");
    format!(
        r#"{{"Version":"2012-10-17","Statement":[{{"Effect":"Allow","Principal":{{"Service":"{machines}"}},"Action":"sts:AssumeRole"}}]}}"#
    )
}

/// The rights of Session Manager's agent.
pub const SESSION_MANAGER: &str = r#"{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":["ssm:UpdateInstanceInformation","ssmmessages:CreateControlChannel","ssmmessages:CreateDataChannel","ssmmessages:OpenControlChannel","ssmmessages:OpenDataChannel","ec2messages:AcknowledgeMessage","ec2messages:DeleteMessage","ec2messages:FailMessage","ec2messages:GetEndpoint","ec2messages:GetMessages","ec2messages:SendReply"],"Resource":"*"}]}"#;
