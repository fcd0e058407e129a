//! What the platform team decides about GPU workspaces.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::Error;

/// Settings of GPU workspaces.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct GpuWorkspaceSettings {
    /// Machine images by region. AWS's Deep Learning Base images carry driver, Docker and the container toolkit.
    pub amis: BTreeMap<String, Images>,
    /// Networks by region. Default: the account's default VPC.
    pub networks: BTreeMap<String, Network>,
    /// Networks from which SSH is let in where a claim names none. Default: none.
    pub allowed_cidrs: Vec<String>,
    /// Machine types on offer. Default: the whole catalogue.
    pub instance_types: Vec<String>,
    /// ARN of a policy that caps what the machines' roles can ever be given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permissions_boundary: Option<String>,
}

/// The machine images of one region.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Images {
    /// Id of the image for every family that is not named below.
    pub default: String,
    /// Ids of images for families that need another one, such as `p3`, whose V100 needs NVIDIA's proprietary driver.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub by_family: BTreeMap<String, String>,
}

/// Where machines start in one region.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Network {
    /// Id of the VPC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vpc_id: Option<String>,
    /// Id of a subnet of that VPC; it decides whether machines get a public address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subnet_id: Option<String>,
}

impl GpuWorkspaceSettings {
    /// The image for a region, and for an image family that is not the default one.
    pub(super) fn image(&self, region: &str, family: Option<&str>) -> Result<&str, Error> {
        let path = format!("gpuWorkspace.amis.{region}");
        let images = self.amis.get(region).ok_or_else(|| {
            let known: Vec<&str> = self.amis.keys().map(String::as_str).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            Error::settings(
                &path,
                format!("missing: region {region} has no machine image; regions with one: {known}"),
            )
        })?;
        let Some(family) = family else { return Ok(&images.default) };
        images.by_family.get(family).map(String::as_str).ok_or_else(|| {
            let path = format!("{path}.byFamily.{family}");
            Error::settings(
                path,
                format!("missing: machine types of family {family} cannot use the default image"),
            )
        })
    }

    pub(super) fn network(&self, region: &str) -> Option<&Network> {
        self.networks.get(region)
    }

    /// One region with an image id that has to be replaced by a real one.
    pub(super) fn example() -> Self {
        let images = Images { default: "ami-0123456789abcdef0".to_owned(), by_family: BTreeMap::new() };
        Self { amis: BTreeMap::from([("us-east-1".to_owned(), images)]), ..Self::default() }
    }
}
