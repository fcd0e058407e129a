//! GPU workspace: a GPU machine on EC2 with Python and OpenCV, reached by SSH or by SSM.

pub mod cloud_init;
mod settings;

use std::collections::BTreeMap;

use ipnet::IpNet;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Api, Info, Names};
use crate::catalog::gpu::{self, Machine};
use crate::catalog::opencv;
use crate::check;
use crate::compose::{Composition, NameRule};
use crate::error::Error;
use crate::models::SIBLING;
use crate::models::aws::{
    Instance, InstanceProfile, InstanceStatus, MetadataOptions, Role, RolePolicyAttachment, RootBlockDevice,
    SecurityGroup, SecurityGroupEgressRule, SecurityGroupIngressRule,
};
use cloud_init::CloudInit;
pub use settings::{GpuWorkspaceSettings, Images, Network};

/// A GPU machine with Python and OpenCV.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GpuDevWorkspace {
    /// What the workspace is like.
    pub parameters: Parameters,
}

/// What a workspace is like.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Parameters {
    /// Who the workspace is for: an e-mail address or a login.
    #[schemars(length(min = 1, max = 128), regex(pattern = r"^[A-Za-z0-9][A-Za-z0-9._+@-]*$"))]
    pub owner: String,
    /// EC2 machine type with a GPU. Changing it stops and starts the machine.
    #[serde(default = "default_instance_type")]
    #[schemars(length(min = 1, max = 32))]
    pub instance_type: String,
    /// AWS region. It cannot be changed.
    #[serde(default = "default_region")]
    #[schemars(length(min = 1, max = 32), regex(pattern = r"^[a-z]{2}(-[a-z]+)+-[0-9]$"))]
    #[x_kube(validation = Rule::new("self == oldSelf").message("region cannot be changed: make a new workspace"))]
    pub region: String,
    /// Release of OpenCV to install, in three or four parts, such as 4.8.0. It cannot be changed.
    #[serde(default = "default_opencv_version")]
    #[schemars(length(max = 20), regex(pattern = r"^[0-9]+(\.[0-9]+){2,3}$"))]
    #[x_kube(validation = Rule::new("self == oldSelf").message("opencvVersion cannot be changed: install another release with pip, or make a new workspace"))]
    pub opencv_version: String,
    /// SSH public keys of the people who log in, as lines of OpenSSH (ed25519, ecdsa, rsa of 2048 bits or more, sk-*).
    /// They cannot be changed.
    #[serde(default)]
    #[schemars(length(max = 20), inner(length(max = 8192)))]
    #[x_kube(validation = Rule::new("self == oldSelf").message("sshPublicKeys cannot be changed: edit ~/.ssh/authorized_keys, or make a new workspace"))]
    pub ssh_public_keys: Vec<String>,
    /// Networks from which SSH is let in, in CIDR notation. Default: those of the platform team's settings, else none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 100), inner(length(max = 43)))]
    pub allowed_cidrs: Option<Vec<String>>,
    /// Size of the disk in GiB. It can grow, never shrink.
    #[serde(rename = "diskGB", default = "default_disk_gb")]
    #[schemars(range(min = 75, max = 16384))]
    #[x_kube(validation = Rule::new("self >= oldSelf").message("diskGB can grow, never shrink"))]
    pub disk_gb: i64,
}

/// What is known of a workspace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GpuDevWorkspaceStatus {
    /// Id of the machine in EC2.
    pub instance_id: Option<String>,
    /// Public IPv4 address, while it has one.
    pub public_ip: Option<String>,
    /// Private IPv4 address.
    pub private_ip: Option<String>,
    /// How to get in: an ssh command, or one for an SSM session.
    pub connection: Option<String>,
    /// What the machine is, in one line: GPU, memory, vCPUs.
    pub machine: Option<String>,
}

impl Api for GpuDevWorkspace {
    const INFO: Info = Info {
        name: "gpu-workspace",
        title: "GPU workspace",
        summary: "A GPU machine on EC2 with Python and OpenCV, reached by SSH or by SSM.",
        provider: "aws",
        settings: "gpuWorkspace",
        composite: Names {
            kind: "GpuDevWorkspace",
            plural: "gpudevworkspaces",
            singular: "gpudevworkspace",
            short: &[],
        },
        claim: Names {
            kind: "GpuDevWorkspaceClaim",
            plural: "gpudevworkspaceclaims",
            singular: "gpudevworkspaceclaim",
            short: &["gpuws"],
        },
        namespaced: Names {
            kind: "GpuDevWorkspace",
            plural: "gpudevworkspaces",
            singular: "gpudevworkspace",
            short: &["gpuws"],
        },
        connection_keys: &["host", "instanceId", "user"],
        columns: &[
            ("Machine", ".spec.parameters.instanceType", "string"),
            ("Address", ".status.publicIp", "string"),
        ],
        since_revision: &[],
    };
    type Settings = GpuWorkspaceSettings;
    type Status = GpuDevWorkspaceStatus;

    fn compose(&self, settings: &Self::Settings, cx: &mut Composition<'_>) -> Result<Self::Status, Error> {
        let p = &self.parameters;
        let machine = p.machine(settings, cx)?;
        let cidrs = p.cidrs(settings)?;
        p.check(cx)?;

        let tags = p.tags(&cx.xr.name);
        p.firewall(&cidrs, &tags, settings, cx)?;
        let profile = p.identity(&tags, settings, cx)?;
        let instance = p.instance(machine, profile, &tags, settings, cx)?;
        cx.usage("security-group", "instance")?;
        cx.usage("role", "instance-profile")?;
        cx.usage("role", "role-ssm")?;

        let status = p.status(machine, &cidrs, &instance);
        cx.connection("host", status.public_ip.clone().or_else(|| status.private_ip.clone()));
        cx.connection("user", Some(cloud_init::USER));
        cx.connection("instanceId", status.instance_id.clone());
        Ok(status)
    }

    fn example_settings() -> Self::Settings {
        GpuWorkspaceSettings::example()
    }
}

impl Parameters {
    /// The machine type. What Settings offer counts for what is chosen now, not for what runs.
    fn machine(
        &self,
        settings: &GpuWorkspaceSettings,
        cx: &Composition<'_>,
    ) -> Result<&'static Machine, Error> {
        const PATH: &str = "spec.parameters.instanceType";
        let machine = gpu::machine(&self.instance_type).map_err(|error| Error::spec(PATH, error))?;
        let chosen_before = cx.noted("instance", "instance-type") == Some(&self.instance_type);
        let offered = &settings.instance_types;
        if !chosen_before && !offered.is_empty() {
            let offered: Vec<&str> = offered.iter().map(String::as_str).collect();
            check::one_of(&self.instance_type, &offered).map_err(|error| Error::spec(PATH, error))?;
        }
        let family = image_family(machine).unwrap_or(DEFAULT_IMAGE);
        match cx.noted("instance", "image-family") {
            Some(image) if image != family => {
                let message = format!(
                    "found \"{}\", which needs another machine image than the one that runs ({family} instead of {image}): \
                     make a new workspace",
                    self.instance_type
                );
                Err(Error::spec(PATH, message))
            }
            _ => Ok(machine),
        }
    }

    /// The networks that SSH is let in from, in canonical form, each once.
    fn cidrs(&self, settings: &GpuWorkspaceSettings) -> Result<Vec<IpNet>, Error> {
        let (path, list) = match &self.allowed_cidrs {
            Some(list) => ("spec.parameters.allowedCidrs", list),
            None => ("gpuWorkspace.allowedCidrs", &settings.allowed_cidrs),
        };
        let wrong = |index: usize, message: String| match self.allowed_cidrs {
            Some(_) => Error::spec(format!("{path}[{index}]"), message),
            None => Error::settings(format!("{path}[{index}]"), message),
        };
        check::count(list, 100).map_err(|error| match self.allowed_cidrs {
            Some(_) => Error::spec(path, error),
            None => Error::settings(path, error),
        })?;
        let mut cidrs = Vec::new();
        for (index, text) in list.iter().enumerate() {
            let cidr = check::cidr(text).map_err(|error| wrong(index, error.to_string()))?;
            if cidrs.contains(&cidr) {
                return Err(wrong(index, format!("found {cidr} twice; each network may be given once")));
            }
            cidrs.push(cidr);
        }
        Ok(cidrs)
    }

    /// Every other field, as the schema says it and beyond.
    fn check(&self, cx: &Composition<'_>) -> Result<(), Error> {
        let wrong = |name: &str, error: check::Refused| Error::spec(format!("spec.parameters.{name}"), error);
        let owner = |c: char| c.is_ascii_alphanumeric() || "._+@-".contains(c);
        check::text(
            &self.owner,
            1..=128,
            owner,
            "an e-mail address or a login: letters, digits and . _ + @ -",
        )
        .map_err(|error| wrong("owner", error))?;
        let region = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        check::text(&self.region, 1..=32, region, "an AWS region such as us-east-1")
            .map_err(|error| wrong("region", error))?;
        check::range(self.disk_gb, 75..=16384, "GiB").map_err(|error| wrong("diskGB", error))?;
        check::grows(self.disk_gb, cx.running("instance", &["rootBlockDevice", "volumeSize"]), "GiB")
            .map_err(|error| wrong("diskGB", error))?;
        check::count(&self.ssh_public_keys, 20).map_err(|error| wrong("sshPublicKeys", error))?;
        for (index, key) in self.ssh_public_keys.iter().enumerate() {
            check::ssh_public_key(key).map_err(|error| wrong(&format!("sshPublicKeys[{index}]"), error))?;
        }
        opencv::requirement(&self.opencv_version).map_err(|error| wrong("opencvVersion", error))?;
        Ok(())
    }

    fn tags(&self, name: &str) -> BTreeMap<String, String> {
        [("ManagedBy", "Crossplane"), ("Name", name), ("WorkspaceOwner", &self.owner)]
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into()
    }

    /// A security group that lets everything out and SSH in from the given networks.
    fn firewall(
        &self,
        cidrs: &[IpNet],
        tags: &BTreeMap<String, String>,
        settings: &GpuWorkspaceSettings,
        cx: &mut Composition<'_>,
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
        for cidr in cidrs {
            cx.managed(format!("ssh-{cidr}"), self.ssh_from(cidr)).add()?;
        }
        cx.retire_rest("ssh-")
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

    /// A role that lets the machine be reached by SSM, and nothing else. Gives back the profile's name: the machine takes
    /// it by name, without a selector.
    fn identity(
        &self,
        tags: &BTreeMap<String, String>,
        settings: &GpuWorkspaceSettings,
        cx: &mut Composition<'_>,
    ) -> Result<String, Error> {
        let name = cx.xr.cloud_name(NameRule::dns(64));
        let role = Role {
            assume_role_policy: Some(ASSUMED_BY_EC2.to_owned()),
            description: Some(format!("GPU workspace {}", cx.xr.name)),
            permissions_boundary: settings.permissions_boundary.clone(),
            tags: tags.clone(),
            ..Role::default()
        };
        cx.managed("role", role).external_name(&name).add()?;
        let session_manager = RolePolicyAttachment {
            role_selector: Some(SIBLING),
            policy_arn: Some(format!(
                "arn:{}:iam::aws:policy/AmazonSSMManagedInstanceCore",
                partition(&self.region)
            )),
        };
        cx.managed("role-ssm", session_manager).add()?;
        let profile = InstanceProfile { role_selector: Some(SIBLING), tags: tags.clone() };
        cx.managed("instance-profile", profile).external_name(&name).add()?;
        Ok(cx.external_name("instance-profile").unwrap_or(name))
    }

    fn instance(
        &self,
        machine: &Machine,
        profile: String,
        tags: &BTreeMap<String, String>,
        settings: &GpuWorkspaceSettings,
        cx: &mut Composition<'_>,
    ) -> Result<crate::compose::Observed<InstanceStatus>, Error> {
        let family = image_family(machine);
        // Image and user data belong to the machine's first boot: for one that runs there is nothing to look up.
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
        cx.managed("instance", instance)
            .live(&["rootBlockDevice.volumeSize", "rootBlockDevice.tags", "instanceType"])
            .note("instance-type", &self.instance_type)
            .note("image-family", family.unwrap_or(DEFAULT_IMAGE))
            .add()
    }

    fn user_data(&self) -> Result<String, Error> {
        let opencv = opencv::requirement(&self.opencv_version)
            .map_err(|error| Error::spec("spec.parameters.opencvVersion", error))?;
        cloud_init::render(&CloudInit { ssh_public_keys: &self.ssh_public_keys, opencv: &opencv })
            .map_err(|error| Error::spec("spec.parameters.sshPublicKeys", error))
    }

    fn status(
        &self,
        machine: &Machine,
        cidrs: &[IpNet],
        instance: &crate::compose::Observed<InstanceStatus>,
    ) -> GpuDevWorkspaceStatus {
        let instance_id = instance.text(|machine| machine.id.clone());
        let public_ip = instance.text(|machine| machine.public_ip.clone());
        let by_ssh = public_ip.as_ref().filter(|_| !self.ssh_public_keys.is_empty() && !cidrs.is_empty());
        let connection = match (by_ssh, &instance_id) {
            (Some(address), _) => Some(format!("ssh {}@{address}", cloud_init::USER)),
            (None, Some(id)) => Some(format!("aws ssm start-session --target {id} --region {}", self.region)),
            (None, None) => None,
        };
        GpuDevWorkspaceStatus {
            private_ip: instance.text(|machine| machine.private_ip.clone()),
            machine: Some(machine.line()),
            instance_id,
            public_ip,
            connection,
        }
    }
}

/// Names of security groups: at most 255 characters, and `sg-` is kept for their ids.
const SECURITY_GROUP_NAME: NameRule = NameRule { max: 255, not_at_start: &["sg-"], nowhere: &[] };

/// What we note as image family of a machine type that takes a region's default image.
const DEFAULT_IMAGE: &str = "default";

/// Who may take the machine's role: machines, nobody else.
const ASSUMED_BY_EC2: &str = r#"{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"ec2.amazonaws.com"},"Action":"sts:AssumeRole"}]}"#;

/// The key in Settings' `byFamily` of a machine type that cannot use a region's default image.
fn image_family(machine: &Machine) -> Option<&'static str> {
    (machine.gpu.driver == gpu::Driver::Proprietary).then(|| machine.family())
}

/// The partition in which a region's ARNs lie.
fn partition(region: &str) -> &'static str {
    match region {
        china if china.starts_with("cn-") => "aws-cn",
        government if government.starts_with("us-gov-") => "aws-us-gov",
        _ => "aws",
    }
}

fn default_instance_type() -> String {
    "g4dn.xlarge".to_owned()
}

fn default_region() -> String {
    "us-east-1".to_owned()
}

fn default_opencv_version() -> String {
    "4.8.0".to_owned()
}

fn default_disk_gb() -> i64 {
    100
}
