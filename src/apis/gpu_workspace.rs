//! GPU workspace: a GPU machine on EC2 with Python and OpenCV, reached by SSH or by SSM.

mod checks;
pub mod cloud_init;
mod resources;
mod settings;

use std::ops::RangeInclusive;

use ipnet::IpNet;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Api, ConnectionTarget, Info, Names, Tagged};
use crate::catalog::aws;
use crate::catalog::gpu::{self, Machine};
use crate::catalog::opencv;
use crate::check::LONGEST_SSH_KEY;
use crate::compose::Composer;
use crate::error::Error;
use crate::models::Managed;
use crate::models::aws::ec2::{
    Instance, InstanceStatus, SecurityGroup, SecurityGroupEgressRule, SecurityGroupIngressRule,
};
use crate::models::aws::iam::{InstanceProfile, Role};
use crate::observe::Observed;
use crate::offers::{Offer, Offered, Prices};
use crate::status::Addition;
use cloud_init::CloudInit;
pub use resources::SESSION_MANAGER;
pub use settings::{GpuWorkspaceSettings, Images, Network, PLACEHOLDER_IMAGE};

/// Maximum number of a workspace's SSH public keys.
pub const MOST_KEYS: usize = 20;

/// Size of a workspace's disk in GiB. The largest is AWS's limit for gp3 volumes.
const DISK_GB: RangeInclusive<i64> = 75..=65_536;

/// A GPU machine with Python and OpenCV.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GpuDevWorkspace {
    /// Parameters of the workspace.
    pub parameters: Parameters,
}

/// Parameters of a workspace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Parameters {
    /// User of the workspace: an e-mail address or a login name.
    #[schemars(length(min = 1, max = 128), regex(pattern = r"^[A-Za-z0-9][A-Za-z0-9._+@-]*$"))]
    pub owner: String,
    /// EC2 machine type with a GPU. A change stops and starts the machine. A manually attached
    /// volume blocks the change, because the provider then also tries to manage that volume.
    #[serde(default = "default_instance_type")]
    #[schemars(length(min = 1, max = 32))]
    pub instance_type: String,
    /// AWS region. The region cannot be changed later.
    #[serde(default = "default_region")]
    #[schemars(length(min = 1, max = aws::LONGEST_REGION), regex(pattern = aws::REGION))]
    #[x_kube(validation = Rule::new("self == oldSelf").message("region cannot be changed: create a new workspace"))]
    pub region: String,
    /// OpenCV release with three or four numbers, for example 4.8.0. The release cannot be changed
    /// later. The PyPI wheels use the CPU only. For OpenCV on the GPU, run a container with GPU
    /// support or build OpenCV with the image's CUDA.
    #[serde(default = "default_opencv_version")]
    #[schemars(length(max = 20), regex(pattern = r"^[0-9]+(\.[0-9]+){2,3}$"))]
    #[x_kube(validation = Rule::new("self == oldSelf").message("opencvVersion cannot be changed: install another release with pip, or create a new workspace"))]
    pub opencv_version: String,
    /// SSH public keys for login, one OpenSSH line per key. Allowed types: ed25519, ecdsa, sk-* and
    /// rsa with at least 2048 bits. The keys cannot be changed later.
    #[serde(default)]
    #[schemars(length(max = MOST_KEYS), inner(length(max = LONGEST_SSH_KEY)))]
    #[x_kube(validation = Rule::new("self == oldSelf").message("sshPublicKeys cannot be changed: edit ~/.ssh/authorized_keys, or create a new workspace"))]
    pub ssh_public_keys: Vec<String>,
    /// Networks that may connect by SSH, in CIDR notation. Default: the networks in the platform
    /// team's Settings. Without networks in either place, SSH is closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 100), inner(length(max = 43)))]
    pub allowed_cidrs: Option<Vec<String>>,
    /// Disk size in GiB. The disk can only grow. A manually attached volume blocks the change.
    #[serde(rename = "diskGB", default = "default_disk_gb")]
    #[schemars(range(min = *DISK_GB.start(), max = *DISK_GB.end()))]
    #[x_kube(validation = Rule::new("self >= oldSelf").message("diskGB can only grow"))]
    pub disk_gb: i64,
}

/// Status of a workspace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GpuDevWorkspaceStatus {
    /// EC2 instance ID of the machine.
    pub instance_id: Option<String>,
    /// Public IPv4 address of the machine. Absent if the machine has no public address.
    pub public_ip: Option<String>,
    /// Private IPv4 address of the machine.
    pub private_ip: Option<String>,
    /// IPv6 address of the machine. Absent if the subnet has no IPv6.
    pub ipv6_address: Option<String>,
    /// Command that connects to the machine, by SSH or through an SSM session.
    pub connection: Option<String>,
    /// One-line description of the machine: GPU, memory, vCPUs.
    pub machine: Option<String>,
}

impl GpuDevWorkspace {
    /// The region of a workspace that names none.
    pub const DEFAULT_REGION: &str = "us-east-1";
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
        suffix: "gpu",
        endpoints: &["connection", "publicIp", "privateIp"],
        connection_keys: &["host", "instanceId", "user"],
        connection_targets: &[ConnectionTarget::Machine],
        columns: &[
            ("Machine", ".spec.parameters.instanceType", "string"),
            ("Address", ".status.publicIp", "string"),
        ],
        first_slots: &["security-group"],
        stoppable: &["instance"],
        when_stopped: "The disk keeps its data. Instance store data is lost. The address changes.",
        since_revision: &[Addition::field("ipv6Address", 2)],
    };
    type Settings = GpuWorkspaceSettings;
    type Status = GpuDevWorkspaceStatus;

    fn compose(
        &self,
        settings: &Self::Settings,
        cx: &mut Composer<'_>,
    ) -> Result<Self::Status, Error> {
        let p = &self.parameters;
        let (machine, cidrs) = p.check(settings, cx)?;
        settings.check()?;
        let cidrs = match cidrs {
            Some(cidrs) => cidrs,
            None => checks::other_cidrs(settings, cx)?,
        };

        let tags = p.tags(cx);
        p.firewall(&cidrs, &tags, settings, cx)?;
        let profile = p.identity(&tags, settings, cx)?;
        let instance = p.instance(machine, profile, &tags, settings, cx)?;
        cx.usage("security-group", "instance")?;
        cx.keep_usage("role", "instance-profile")?;

        let mut status = p.status(machine, &cidrs, &instance);
        if is_off(cx) {
            status.connection = None;
        }
        cx.connection("host", p.host(&status, &cidrs));
        cx.connection("user", Some(cloud_init::USER));
        cx.connection("instanceId", status.instance_id.clone());
        Ok(status)
    }

    fn check_settings(settings: &Self::Settings) -> Result<(), Error> {
        settings.check()?;
        settings.check_whole()
    }

    fn tagged(_: &Self::Settings) -> Tagged {
        let kinds = vec![
            Role::KIND,
            InstanceProfile::KIND,
            SecurityGroup::KIND,
            SecurityGroupIngressRule::KIND,
            SecurityGroupEgressRule::KIND,
            Instance::KIND,
        ];
        Tagged { kinds, own: &OWN_TAGS }
    }

    fn offers(settings: &Self::Settings, prices: Prices<'_>) -> Vec<Offer> {
        let regions = settings.regions();
        let usual = regions.first().copied().unwrap_or(Self::DEFAULT_REGION);
        let machine = |machine: &Machine| Offered::machine(machine, prices.of(machine.name, usual));
        let releases = opencv::RELEASES.iter().rev();
        let offer = |field, values| Offer { field, closed: true, values };
        vec![
            offer("spec.parameters.instanceType", settings.offer().map(machine).collect()),
            offer("spec.parameters.region", regions.into_iter().map(Offered::plain).collect()),
            Offer {
                closed: false,
                ..offer(
                    "spec.parameters.opencvVersion",
                    releases.map(|release| Offered::plain(release.version)).collect(),
                )
            },
        ]
    }

    fn example_settings() -> Self::Settings {
        GpuWorkspaceSettings::example()
    }
}

impl Parameters {
    fn status(
        &self,
        machine: &Machine,
        cidrs: &[IpNet],
        instance: &Observed<InstanceStatus>,
    ) -> GpuDevWorkspaceStatus {
        let mut status = GpuDevWorkspaceStatus {
            instance_id: instance.text(|machine| machine.id.clone()),
            public_ip: instance.text(|machine| machine.public_ip.clone()),
            private_ip: instance.text(|machine| machine.private_ip.clone()),
            ipv6_address: instance.text(|machine| machine.ipv6_addresses.first().cloned()),
            machine: Some(machine.line()),
            connection: None,
        };
        status.connection = match (self.ssh_address(&status, cidrs), &status.instance_id) {
            (Some(address), _) => Some(format!("ssh {}@{address}", cloud_init::USER)),
            (None, Some(id)) => {
                Some(format!("aws ssm start-session --target {id} --region {}", self.region))
            }
            (None, None) => None,
        };
        status
    }

    /// The address for SSH. The firewall must allow a network of the same IP version, and a key
    /// must exist.
    fn ssh_address<'s>(
        &self,
        status: &'s GpuDevWorkspaceStatus,
        cidrs: &[IpNet],
    ) -> Option<&'s str> {
        let open = |v6: bool| cidrs.iter().any(|cidr| cidr.addr().is_ipv6() == v6);
        let v4 = status.public_ip.as_deref().filter(|_| open(false));
        let v6 = || status.ipv6_address.as_deref().filter(|_| open(true));
        v4.or_else(v6).filter(|_| !self.ssh_public_keys.is_empty())
    }

    /// The address to publish: the address for SSH, else the best known address.
    fn host(&self, status: &GpuDevWorkspaceStatus, cidrs: &[IpNet]) -> Option<String> {
        let known = || status.public_ip.as_deref().or(status.private_ip.as_deref());
        self.ssh_address(status, cidrs).or_else(known).map(str::to_owned)
    }
}

/// Whether the machine was seen to be off: it has another address after its next start.
fn is_off(cx: &Composer<'_>) -> bool {
    let state = cx.status_of::<Instance>("instance").and_then(|status| status.instance_state);
    state.is_some_and(|state| state != "running" && state != "pending")
}

/// The keys of the tags of every resource of a workspace, besides the tags of Settings.
const OWN_TAGS: [&str; 3] = ["ManagedBy", "Name", "WorkspaceOwner"];

/// Prefix of the slots of the rules that allow networks to connect by SSH. The rest of a slot is
/// the network.
const SSH: &str = "ssh-";

/// Whether an environment of this kind, with these slots, is a workspace that allows no network to
/// connect by SSH.
pub fn is_closed_to_ssh<'s>(kind: &str, mut slots: impl Iterator<Item = &'s str>) -> bool {
    is_workspace(kind) && !slots.any(|slot| slot.starts_with(SSH))
}

/// Whether an environment of this kind, with this spec, is a workspace without an SSH key.
pub fn has_no_ssh_key(kind: &str, spec: &Value) -> bool {
    let keys = spec["parameters"]["sshPublicKeys"].as_array();
    is_workspace(kind) && keys.is_none_or(Vec::is_empty)
}

fn is_workspace(kind: &str) -> bool {
    let Info { claim, composite, namespaced, .. } = GpuDevWorkspace::INFO;
    [claim.kind, composite.kind, namespaced.kind].contains(&kind)
}

/// Names of the annotations that record the input of a machine's first boot.
const OPENCV: &str = "opencv-version";
const KEYS: &str = "ssh-public-keys";

/// The recorded image family of a machine type that uses a region's default image.
const DEFAULT_IMAGE: &str = "default";

/// The key in Settings' `byFamily` for a machine type that cannot use a region's default image.
fn image_family(machine: &Machine) -> Option<&'static str> {
    (machine.gpu.driver == gpu::Driver::Proprietary).then(|| machine.family())
}

fn default_instance_type() -> String {
    "g4dn.xlarge".to_owned()
}

fn default_region() -> String {
    GpuDevWorkspace::DEFAULT_REGION.to_owned()
}

fn default_opencv_version() -> String {
    "4.8.0".to_owned()
}

fn default_disk_gb() -> i64 {
    100
}
