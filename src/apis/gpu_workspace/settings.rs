//! Settings of GPU workspaces.

use std::collections::BTreeMap;

use ipnet::IpNet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::GpuDevWorkspace;
use crate::catalog::aws::{self, Partition};
use crate::catalog::gpu::{self, Machine};
use crate::check::{self, Fields, Refused};
use crate::error::Error;

/// Settings of GPU workspaces.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct GpuWorkspaceSettings {
    /// Machine images by region. AWS's Deep Learning Base images include the driver, Docker and the
    /// container toolkit. The public parameter
    /// /aws/service/deeplearning/ami/x86_64/base-oss-nvidia-driver-gpu-ubuntu-24.04/latest/ami-id
    /// contains the newest image's ID.
    pub amis: BTreeMap<String, Images>,
    /// Networks by region. Default: the default VPC of the account.
    pub networks: BTreeMap<String, Network>,
    /// Networks that may connect by SSH if a claim sets no networks. Default: none.
    pub allowed_cidrs: Vec<String>,
    /// Ranges that limit the networks allowed to connect by SSH, in CIDR notation. Every allowed
    /// network must lie inside one of the ranges. Default: no limit. Networks that are already
    /// allowed stay allowed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), inner(length(max = 43)))]
    pub allowed_cidrs_within: Vec<String>,
    /// Machine types that users can choose. Default: the sizes of g4dn, g5, g6 and g6e with one
    /// GPU. An existing workspace keeps its type.
    pub instance_types: Vec<String>,
    /// ARN of the IAM policy that limits the permissions of the machines' roles.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2048), regex(pattern = aws::POLICY))]
    pub permissions_boundary: Option<String>,
}

/// Machine images of one region.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Images {
    /// ID of the image for all families without an entry in `byFamily`.
    #[schemars(regex(pattern = r"^ami-[0-9a-f]{8,17}$"))]
    pub default: String,
    /// IDs of the images for families that need a different image. These families are `p3` and
    /// `p3dn`, because their V100 needs NVIDIA's proprietary driver.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(inner(regex(pattern = r"^ami-[0-9a-f]{8,17}$")))]
    pub by_family: BTreeMap<String, String>,
}

/// Network of the machines in one region.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Network {
    /// ID of the VPC.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^vpc-[0-9a-f]{8,17}$"))]
    pub vpc_id: Option<String>,
    /// ID of a subnet of that VPC. The subnet decides whether machines get a public address.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^subnet-[0-9a-f]{8,17}$"))]
    pub subnet_id: Option<String>,
}

impl GpuWorkspaceSettings {
    /// The image for a region. `family` is the image family, unless it is the default.
    pub(super) fn image(&self, region: &str, family: Option<&str>) -> Result<&str, Error> {
        let path = format!("gpuWorkspace.amis.{region}");
        let images = self.amis.get(region).ok_or_else(|| {
            let message = format!(
                "missing; allowed: the machine image of {region}. Without an image, no machine can \
                 start in the region"
            );
            Error::settings(&path, message)
        })?;
        let Some(family) = family else { return Ok(&images.default) };
        images.by_family.get(family).map(String::as_str).ok_or_else(|| {
            let path = format!("{path}.byFamily.{family}");
            Error::settings(
                path,
                format!(
                    "missing. Machine types of family {family} cannot use the default image; \
                         set an image for the family"
                ),
            )
        })
    }

    /// Repeats the checks of the schema: Crossplane does not validate Settings.
    pub(super) fn check(&self) -> Result<(), Error> {
        let wrong = |path: String, error: Refused| {
            Error::settings(check::shown(&format!("gpuWorkspace.{path}")), error)
        };
        let limits = self.limits()?;
        for (index, cidr) in self.cidrs()?.iter().enumerate() {
            within(cidr, &limits)
                .map_err(|error| wrong(format!("allowedCidrs[{index}]"), error))?;
        }
        for (region, images) in &self.amis {
            let families = images
                .by_family
                .iter()
                .map(|(family, id)| (format!("amis.{region}.byFamily.{family}"), id));
            for (path, id) in
                std::iter::once((format!("amis.{region}.default"), &images.default)).chain(families)
            {
                check::shape(
                    id,
                    32,
                    |id| is_id(id, "ami-"),
                    "the ID of a machine image, for example ami-0123456789abcdef0",
                )
                .map_err(|error| wrong(path, error))?;
            }
        }
        for (region, network) in &self.networks {
            let path = |field| format!("networks.{region}.{field}");
            for (field, id, prefix) in
                [("vpcId", &network.vpc_id, "vpc-"), ("subnetId", &network.subnet_id, "subnet-")]
            {
                let Some(id) = id else { continue };
                check::shape(
                    id,
                    32,
                    |id| is_id(id, prefix),
                    &format!(
                        "an ID that starts with \
                    {prefix}"
                    ),
                )
                .map_err(|error| wrong(path(field), error))?;
            }
            if network.subnet_id.is_some() && network.vpc_id.is_none() {
                let message = "missing; allowed: the VPC of the subnet, because the security \
                               group must be in the same VPC";
                return Err(Error::settings(format!("gpuWorkspace.{}", path("vpcId")), message));
            }
        }
        Ok(())
    }

    /// Rejects values that would fail for new workspaces, or that have no effect.
    pub(super) fn check_whole(&self) -> Result<(), Error> {
        let mut fields = Fields::default();
        let path = |path: String| check::shown(&format!("settings.gpuWorkspace.{path}"));
        for (map, regions) in [
            ("amis", self.amis.keys().collect::<Vec<_>>()),
            ("networks", self.networks.keys().collect()),
        ] {
            for region in regions {
                fields.check(path(format!("{map}.{region}")), aws::region(region));
            }
        }
        let families = gpu::families();
        for (region, images) in &self.amis {
            for family in images.by_family.keys() {
                let path = path(format!("amis.{region}.byFamily.{family}"));
                fields.check(path, check::one_of(family, &families));
            }
        }
        fields.verdict(Error::InvalidSettings)?;
        self.check_boundary(None)?;
        self.check_offer()
    }

    /// The regions with a machine image, the default region first.
    pub(super) fn regions(&self) -> Vec<&str> {
        let mut regions: Vec<&str> = self.amis.keys().map(String::as_str).collect();
        regions.sort_by_key(|region| *region != GpuDevWorkspace::DEFAULT_REGION);
        regions
    }

    /// The machine types that users can choose.
    pub fn offer(&self) -> impl Iterator<Item = &'static Machine> {
        let is_offered =
            |machine: &Machine| self.instance_types.iter().any(|name| name == machine.name);
        gpu::MACHINES.iter().filter(move |machine| {
            if self.instance_types.is_empty() { machine.is_usual() } else { is_offered(machine) }
        })
    }

    /// Checks that EC2 has the offered machine types.
    pub(super) fn check_offer(&self) -> Result<(), Error> {
        let mut fields = Fields::default();
        for (index, name) in self.instance_types.iter().enumerate() {
            fields
                .check(format!("settings.gpuWorkspace.instanceTypes[{index}]"), gpu::machine(name));
        }
        fields.verdict(Error::InvalidSettings)
    }

    /// Checks that the boundary is a policy, and that it belongs to the partition if that is known.
    /// IAM rejects a role with a boundary of another partition.
    pub(super) fn check_boundary(&self, partition: Option<&Partition>) -> Result<(), Error> {
        let Some(arn) = &self.permissions_boundary else { return Ok(()) };
        aws::policy(arn)
            .and_then(|arn| partition.map_or(Ok(()), |partition| partition.has(arn)))
            .map_err(|error| Error::settings("gpuWorkspace.permissionsBoundary", error))
    }

    /// The networks for SSH if a claim names none, in canonical form.
    pub(super) fn cidrs(&self) -> Result<Vec<IpNet>, Error> {
        let mut fields = Fields::default();
        let cidrs =
            check::cidrs("settings.gpuWorkspace.allowedCidrs", &self.allowed_cidrs, &mut fields);
        fields.verdict(Error::InvalidSettings)?;
        Ok(cidrs)
    }

    /// The networks that must contain all networks for SSH. Empty: no limit.
    pub(super) fn limits(&self) -> Result<Vec<IpNet>, Error> {
        let mut fields = Fields::default();
        let path = "settings.gpuWorkspace.allowedCidrsWithin";
        let limits = check::cidrs(path, &self.allowed_cidrs_within, &mut fields);
        fields.verdict(Error::InvalidSettings)?;
        Ok(limits)
    }

    pub(super) fn network(&self, region: &str) -> Option<&Network> {
        self.networks.get(region)
    }

    /// One region with a placeholder image, which has to be replaced.
    pub(super) fn example() -> Self {
        let images = Images { default: PLACEHOLDER_IMAGE.to_owned(), by_family: BTreeMap::new() };
        Self { amis: BTreeMap::from([("us-east-1".to_owned(), images)]), ..Self::default() }
    }
}

/// The image of the examples. It does not exist, and has to be replaced.
pub const PLACEHOLDER_IMAGE: &str = "ami-0123456789abcdef0";

/// Checks that a network is within one of `limits`. Without limits, every network is allowed.
pub(super) fn within(cidr: &IpNet, limits: &[IpNet]) -> Result<(), Refused> {
    if limits.is_empty() || limits.iter().any(|limit| limit.contains(cidr)) {
        return Ok(());
    }
    let limits: Vec<String> = limits.iter().map(ToString::to_string).collect();
    let allowed =
        format!("networks within {} (setting gpuWorkspace.allowedCidrsWithin)", limits.join(", "));
    Err(Refused { found: cidr.to_string(), allowed })
}

/// An id of EC2: a prefix and hexadecimal digits.
fn is_id(id: &str, prefix: &str) -> bool {
    id.strip_prefix(prefix).is_some_and(|rest| {
        (8..=17).contains(&rest.len()) && rest.chars().all(|c| matches!(c, '0'..='9' | 'a'..='f'))
    })
}
