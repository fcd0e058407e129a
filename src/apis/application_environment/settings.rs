//! Settings of application environments.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::NodeSize;
use crate::catalog::{cloudsql, gcp};
use crate::check::{self, Refused};
use crate::error::Error;
use crate::models::gcp::IpAllocationPolicy;

/// Size of a node's boot disk.
const DISK_GB: RangeInclusive<i64> = 20..=65536;

/// Settings of application environments.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct ApplicationEnvironmentSettings {
    /// Machine types by node size: small, medium and large. Default: e2-small, e2-medium and
    /// e2-standard-4.
    pub machine_types: MachineTypes,
    /// PostgreSQL version in Cloud SQL's notation.
    #[schemars(regex(pattern = r"^POSTGRES_[0-9]+(_[0-9]+)?$"))]
    pub database_version: String,
    /// Machine type of the database server, in Cloud SQL's notation for PostgreSQL. The machine
    /// type decides the edition. Shared and custom machines (db-g1-small, db-custom-2-7680) are
    /// Enterprise. Other machines (db-perf-optimized-N-2) are Enterprise Plus.
    #[schemars(length(max = cloudsql::LONGEST_TIER), regex(pattern = cloudsql::TIER))]
    pub database_tier: String,
    /// VPC network of the cluster and the database: projects/PROJECT/global/networks/NAME. The
    /// network needs private services access. Default: the project's default network. The database
    /// then has a public address that only the Cloud SQL connectors may use.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^projects/[a-z0-9.:-]+/global/networks/[a-z0-9-]+$"))]
    pub network: Option<String>,
    /// Subnet of the nodes: a name, or projects/PROJECT/regions/REGION/subnetworks/NAME. Required
    /// for networks in custom mode and for shared networks. Default: the region's subnet in an
    /// automatic-mode network.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512), regex(pattern = SUBNETWORK))]
    pub subnetwork: Option<String>,
    /// Subnets by region, for regions with a subnet other than `subnetwork`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(inner(length(max = 512), regex(pattern = SUBNETWORK)))]
    pub subnetworks: BTreeMap<String, String>,
    /// Name of the subnet's secondary range for pods. Required for shared networks. Default: GKE
    /// creates a range.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63), regex(pattern = RANGE))]
    pub cluster_secondary_range_name: Option<String>,
    /// Name of the subnet's secondary range for services. Required for shared networks. Default:
    /// GKE creates a range.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63), regex(pattern = RANGE))]
    pub services_secondary_range_name: Option<String>,
    /// Size of each node's boot disk in GB.
    #[schemars(range(min = *DISK_GB.start(), max = *DISK_GB.end()))]
    pub disk_size_gb: i64,
    /// Google Cloud project. If set, pods get their own identities (workload identity). The
    /// identities in the environment's cluster may then use the environment's database and bucket.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[a-z][a-z0-9.:-]*$"))]
    pub project_id: Option<String>,
    /// Zones of the nodes by region. Default: Google chooses three zones.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub zones: BTreeMap<String, Vec<String>>,
}

/// A subnet: its name, or its path.
const SUBNETWORK: &str =
    r"^(projects/[a-z0-9.:-]+/regions/[a-z0-9-]+/subnetworks/)?[a-z]([a-z0-9-]*[a-z0-9])?$";

/// The name of a secondary range.
const RANGE: &str = r"^[a-z]([a-z0-9-]*[a-z0-9])?$";

/// Machine types by node size.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MachineTypes {
    /// Machine type for size small. Default: e2-small.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63), regex(pattern = gcp::MACHINE))]
    pub small: Option<String>,
    /// Machine type for size medium. Default: e2-medium.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63), regex(pattern = gcp::MACHINE))]
    pub medium: Option<String>,
    /// Machine type for size large. Default: e2-standard-4.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63), regex(pattern = gcp::MACHINE))]
    pub large: Option<String>,
}

impl Default for ApplicationEnvironmentSettings {
    fn default() -> Self {
        Self {
            machine_types: MachineTypes::default(),
            database_version: "POSTGRES_17".to_owned(),
            database_tier: "db-g1-small".to_owned(),
            network: None,
            subnetwork: None,
            subnetworks: BTreeMap::new(),
            cluster_secondary_range_name: None,
            services_secondary_range_name: None,
            disk_size_gb: 50,
            project_id: None,
            zones: BTreeMap::new(),
        }
    }
}

impl ApplicationEnvironmentSettings {
    pub(super) fn machine_type(&self, size: NodeSize) -> String {
        let (chosen, default) = match size {
            NodeSize::Small => (&self.machine_types.small, "e2-small"),
            NodeSize::Medium => (&self.machine_types.medium, "e2-medium"),
            NodeSize::Large => (&self.machine_types.large, "e2-standard-4"),
        };
        chosen.clone().unwrap_or_else(|| default.to_owned())
    }

    pub(super) fn zones(&self, region: &str) -> Vec<String> {
        self.zones.get(region).cloned().unwrap_or_default()
    }

    /// The subnet of a region.
    ///
    /// # Errors
    /// The path names another region.
    pub(super) fn subnetwork(&self, region: &str) -> Result<Option<String>, Error> {
        let own = self.subnetworks.get(region).map(|path| (format!("subnetworks.{region}"), path));
        let shared = || self.subnetwork.as_ref().map(|path| ("subnetwork".to_owned(), path));
        let Some((field, subnet)) = own.or_else(shared) else { return Ok(None) };
        match subnet.split('/').nth(3) {
            Some(other) if other != region => {
                let allowed = format!(
                    "a subnet of {region}, the region of the environment. Set \
                     subnetworks.{region}, or a name that exists in every region"
                );
                Err(wrong(&field, Refused::new(subnet, allowed)))
            }
            _ => Ok(Some(subnet.clone())),
        }
    }

    /// The secondary ranges, if one has a name.
    pub(super) fn ranges(&self) -> Option<IpAllocationPolicy> {
        let ranges = IpAllocationPolicy {
            cluster_secondary_range_name: self.cluster_secondary_range_name.clone(),
            services_secondary_range_name: self.services_secondary_range_name.clone(),
        };
        (ranges != IpAllocationPolicy::default()).then_some(ranges)
    }

    /// The properties of a new server that depend on its tier.
    pub(super) fn server(&self) -> Result<cloudsql::Server, Error> {
        let version = self.major_version().unwrap_or_default();
        cloudsql::server(&self.database_tier, version).map_err(|error| wrong("databaseTier", error))
    }

    fn major_version(&self) -> Option<u32> {
        self.database_version.strip_prefix("POSTGRES_")?.split('_').next()?.parse().ok()
    }

    /// Repeats the checks of the schema: Crossplane does not validate Settings.
    pub(super) fn check(&self) -> Result<(), Error> {
        if self.major_version().is_none() {
            let allowed = "POSTGRES_ and a version, for example POSTGRES_16";
            return Err(wrong("databaseVersion", Refused::new(&self.database_version, allowed)));
        }
        for (field, name) in self.names() {
            if !is_name(name) {
                let allowed = "a Google Cloud name with letters, digits and hyphens, starting \
                               with a \
                     lowercase letter";
                return Err(wrong(&field, Refused::new(name, allowed)));
            }
        }
        if let Some(network) = self.network.as_ref().filter(|network| !is_network(network)) {
            return Err(wrong(
                "network",
                Refused::new(network, "projects/PROJECT/global/networks/NAME"),
            ));
        }
        if self.network.is_none()
            && let Some((field, _)) = self.subnets().next()
        {
            let message = format!("missing; allowed: the network of the subnet in {field}");
            return Err(Error::settings("applicationEnvironment.network", message));
        }
        for (field, subnet) in self.subnets() {
            if !is_subnetwork(subnet) {
                let allowed = "a name, or projects/PROJECT/regions/REGION/subnetworks/NAME";
                return Err(wrong(&field, Refused::new(subnet, allowed)));
            }
        }
        check::range(self.disk_size_gb, DISK_GB, "GB")
            .map_err(|error| wrong("diskSizeGb", error))
            .map(|_| ())
    }

    /// All subnets, by their paths in Settings.
    fn subnets(&self) -> impl Iterator<Item = (String, &str)> {
        let shared =
            self.subnetwork.iter().map(|subnet| ("subnetwork".to_owned(), subnet.as_str()));
        let own = self.subnetworks.iter();
        shared.chain(own.map(|(region, subnet)| (format!("subnetworks.{region}"), subnet.as_str())))
    }

    /// Rejects values that would fail for new environments, or that have no effect.
    pub(super) fn check_whole(&self) -> Result<(), Error> {
        self.server()?;
        for (size, name) in self.machine_types() {
            gcp::machine(name).map_err(|error| wrong(&format!("machineTypes.{size}"), error))?;
        }
        for region in self.zones.keys() {
            gcp::region(region).map_err(|error| wrong(&format!("zones.{region}"), error))?;
            self.check_zones(region)?;
        }
        Ok(())
    }

    /// Checks that the zones for a region are in it.
    pub(super) fn check_zones(&self, region: &str) -> Result<(), Error> {
        let zones = self.zones.get(region).into_iter().flatten().enumerate();
        for (index, zone) in zones {
            gcp::zone(zone, region)
                .map_err(|error| wrong(&format!("zones.{region}[{index}]"), error))?;
        }
        Ok(())
    }

    /// The machine types that Settings name, by size.
    fn machine_types(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let types = [
            ("small", &self.machine_types.small),
            ("medium", &self.machine_types.medium),
            ("large", &self.machine_types.large),
        ];
        types.into_iter().filter_map(|(size, name)| Some((size, name.as_deref()?)))
    }

    /// All names, by their paths.
    fn names(&self) -> Vec<(String, &str)> {
        let mut names = vec![("databaseTier".to_owned(), self.database_tier.as_str())];
        let ranges = [
            ("clusterSecondaryRangeName", &self.cluster_secondary_range_name),
            ("servicesSecondaryRangeName", &self.services_secondary_range_name),
        ];
        names.extend(
            ranges
                .into_iter()
                .filter_map(|(field, name)| Some((field.to_owned(), name.as_deref()?))),
        );
        names.extend(self.project_id.iter().map(|id| ("projectId".to_owned(), id.as_str())));
        names.extend(
            self.machine_types().map(|(size, name)| (format!("machineTypes.{size}"), name)),
        );
        for (region, zones) in &self.zones {
            let zones = zones.iter().enumerate();
            names.extend(
                zones.map(|(index, zone)| (format!("zones.{region}[{index}]"), zone.as_str())),
            );
        }
        names
    }
}

/// For example `db-perf-optimized-N-2`, `e2-medium` or `us-central1-a`. A project may be in a
/// domain: `acme.io:shop`.
fn is_name(name: &str) -> bool {
    let inner = |c: char| c.is_ascii_alphanumeric() || "-.:".contains(c);
    name.len() <= 63
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(inner)
}

fn wrong(field: &str, error: Refused) -> Error {
    Error::settings(check::shown(&format!("applicationEnvironment.{field}")), error)
}

/// A name or a path: `gke`, `projects/acme-dev/regions/us-central1/subnetworks/gke`.
fn is_subnetwork(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    match parts[..] {
        [name] => is_name(name),
        ["projects", project, "regions", region, "subnetworks", name] => {
            [project, region, name].into_iter().all(is_name)
        }
        _ => false,
    }
}

fn is_network(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    matches!(parts[..], ["projects", project, "global", "networks", name] if !project.is_empty() && !name.is_empty())
}
