//! Repeats the checks of the schema: Crossplane does not validate Settings.

use std::sync::LazyLock;

use regex_lite::Regex;

use super::{BySize, Charts, VirtualEnvironmentSettings};
use crate::apis::virtual_environment::ClusterType;
use crate::catalog::aws::{self, Partition};
use crate::catalog::gcp;
use crate::check::{self, Refused, location};
use crate::error::Error;

/// The full version of a chart. With a shorter version, provider-helm mistakes the installed chart
/// for another chart.
pub const VERSION: &str = r"^v?[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$";

/// A name in the notation of Google Cloud, AWS' regions and Azure's locations.
pub const NAME: &str = "^[a-z][a-z0-9.:-]*$";

/// A machine type of any cloud.
pub const MACHINE: &str = "^[A-Za-z][A-Za-z0-9._-]*$";

/// A network of Google Cloud, by its name or by its path.
pub const PATH: &str = "^[a-z][a-z0-9.:/-]*$";

/// A subnet of AWS.
pub const SUBNET: &str = "^subnet-[0-9a-f]{8,17}$";

/// A resource group of Azure.
pub const GROUP: &str = "^[A-Za-z0-9_().-]*[A-Za-z0-9_()-]$";

/// A user-assigned identity of Azure.
pub const IDENTITY: &str = "^/subscriptions/[0-9a-fA-F-]{36}/resourceGroups/[A-Za-z0-9_().-]+/providers/Microsoft.ManagedIdentity/userAssignedIdentities/[A-Za-z0-9_-]+$";

/// Checks the version of a chart.
pub(in crate::apis::virtual_environment) fn version(version: &str) -> Result<(), Refused> {
    static PATTERN: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(VERSION).ok());
    let fits = |version: &str| PATTERN.as_ref().is_some_and(|pattern| pattern.is_match(version));
    check::shape(version, 64, fits, "a full version, for example 1.2.3").map(|_| ())
}

/// The requirements for a text: its maximum length, its pattern, and both in words.
struct Kind {
    longest: usize,
    pattern: LazyLock<Option<Regex>>,
    words: &'static str,
}

impl Kind {
    const fn new(longest: usize, pattern: fn() -> Option<Regex>, words: &'static str) -> Self {
        Self { longest, pattern: LazyLock::new(pattern), words }
    }

    fn check(&self, path: &str, value: &str) -> Result<(), Error> {
        let fits =
            |value: &str| self.pattern.as_ref().is_some_and(|pattern| pattern.is_match(value));
        check::shape(value, self.longest, fits, self.words)
            .map_err(|refused| wrong(path, refused))?;
        Ok(())
    }

    fn check_some(&self, path: &str, value: Option<&String>) -> Result<(), Error> {
        value.map_or(Ok(()), |value| self.check(path, value))
    }
}

static PLACE: Kind = Kind::new(
    63,
    || Regex::new(NAME).ok(),
    "a region or zone, for example \
    europe-west1",
);
static PROJECT: Kind = Kind::new(
    63,
    || Regex::new(NAME).ok(),
    "the name of a project, for \
    example acme-dev",
);
static NETWORK: Kind =
    Kind::new(512, || Regex::new(PATH).ok(), "the name or the path of a network");
static REGION: Kind = Kind::new(32, || Regex::new(NAME).ok(), "a region, for example eu-west-1");
static SUBNET_ID: Kind =
    Kind::new(24, || Regex::new(SUBNET).ok(), "a subnet, for example subnet-0a1b2c3d4e5f60718");
static ROLE_ARN: Kind = Kind::new(
    2048,
    || Regex::new(aws::ROLE).ok(),
    "a role, for example arn:aws:iam::123456789012:role/nodes",
);
static LOCATION: Kind =
    Kind::new(63, || Regex::new(NAME).ok(), "a location, for example westeurope");
static RESOURCE_GROUP: Kind =
    Kind::new(90, || Regex::new(GROUP).ok(), "the name of a resource group");
static IDENTITY_ID: Kind = Kind::new(
    1024,
    || Regex::new(IDENTITY).ok(),
    "/subscriptions/…/resourceGroups/…/providers/Microsoft.ManagedIdentity/userAssignedIdentities/…",
);
/// The key of an annotation: a name, optionally after a DNS name and a slash.
static ANNOTATION: Kind = Kind::new(
    317,
    || {
        Regex::new("^([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$")
            .ok()
    },
    "an annotation key, for example service.beta.kubernetes.io/aws-load-balancer-scheme",
);
static MACHINE_TYPE: Kind =
    Kind::new(63, || Regex::new(MACHINE).ok(), "a machine type, for example e2-standard-4");

// The values that each cloud accepts for a new cluster. An existing cluster keeps its values.
static GKE_PLACE: Kind = Kind::new(
    63,
    || Regex::new(gcp::PLACE).ok(),
    "a region or zone of Google Cloud, for example europe-west1",
);
static GKE_MACHINE: Kind = Kind::new(
    63,
    || Regex::new(gcp::MACHINE).ok(),
    "a machine type of Google Cloud, for example e2-standard-4",
);
static EKS_REGION: Kind = Kind::new(
    aws::LONGEST_REGION,
    || Regex::new(aws::REGION).ok(),
    "an AWS region, for example \
        eu-west-1",
);
static EKS_MACHINE: Kind = Kind::new(
    63,
    || Regex::new(aws::MACHINE).ok(),
    "a machine type of EC2, for example m6i.xlarge",
);
static AKS_LOCATION: Kind = Kind::new(
    63,
    || Regex::new("^[a-z][a-z0-9]*$").ok(),
    "an Azure region, for example westeurope",
);
static AKS_MACHINE: Kind = Kind::new(
    63,
    || Regex::new("^[A-Za-z]+_[A-Za-z0-9_-]+$").ok(),
    "a machine type of Azure, for example Standard_D4s_v5",
);

impl VirtualEnvironmentSettings {
    /// Checks the values for a new cluster of a type, by the rules of its cloud.
    pub(in crate::apis::virtual_environment) fn check_cloud(
        &self,
        cluster: ClusterType,
    ) -> Result<(), Error> {
        let machines = &self.machine_types;
        match cluster {
            ClusterType::Vcluster => Ok(()),
            ClusterType::Gke => {
                GKE_PLACE.check_some("gke.location", self.gke.location.as_ref())?;
                machines.gke.check("gke", &GKE_MACHINE)
            }
            ClusterType::Eks => self.check_eks(),
            ClusterType::Aks => {
                AKS_LOCATION.check_some("aks.location", self.aks.location.as_ref())?;
                machines.aks.check("aks", &AKS_MACHINE)
            }
        }
    }

    /// Checks the values for EKS. Roles must belong to the region's partition.
    fn check_eks(&self) -> Result<(), Error> {
        let eks = &self.eks;
        EKS_REGION.check_some("eks.region", eks.region.as_ref())?;
        self.machine_types.eks.check("eks", &EKS_MACHINE)?;
        let Some(region) = &eks.region else { return Ok(()) };
        for (field, arn) in [
            ("clusterRoleArn", &eks.cluster_role_arn),
            ("nodeRoleArn", &eks.node_role_arn),
            ("ebsCsiRoleArn", &eks.ebs_csi_role_arn),
        ] {
            let Some(arn) = arn else { continue };
            Partition::for_region(region)
                .has(arn)
                .map_err(|refused| wrong(&format!("eks.{field}"), refused))?;
        }
        Ok(())
    }

    /// Checks every field, for all types of clusters.
    pub(in crate::apis::virtual_environment) fn check(&self) -> Result<(), Error> {
        let charts = &self.charts;
        for (name, value) in [
            ("vcluster", &charts.vcluster),
            ("argocd", &charts.argocd),
            ("knative", &charts.knative),
        ] {
            version(value).map_err(|refused| wrong(&format!("charts.{name}"), refused))?;
        }
        self.check_repositories()?;
        has_todays_values(&charts.vcluster).map_err(|refused| wrong("charts.vcluster", refused))?;
        let (gke, eks, aks) = (&self.gke, &self.eks, &self.aks);
        let texts = [
            (&PLACE, "gke.location", &gke.location),
            (&PROJECT, "gke.projectId", &gke.project_id),
            (&NETWORK, "gke.network", &gke.network),
            (&NETWORK, "gke.subnetwork", &gke.subnetwork),
            (&REGION, "eks.region", &eks.region),
            (&ROLE_ARN, "eks.clusterRoleArn", &eks.cluster_role_arn),
            (&ROLE_ARN, "eks.nodeRoleArn", &eks.node_role_arn),
            (&ROLE_ARN, "eks.ebsCsiRoleArn", &eks.ebs_csi_role_arn),
            (&LOCATION, "aks.location", &aks.location),
            (&RESOURCE_GROUP, "aks.resourceGroupName", &aks.resource_group_name),
            (&IDENTITY_ID, "aks.identity", &aks.identity),
        ];
        for (kind, path, value) in texts {
            kind.check_some(path, value.as_ref())?;
        }
        check::count(&eks.subnet_ids, 16).map_err(|refused| wrong("eks.subnetIds", refused))?;
        for (index, id) in eks.subnet_ids.iter().enumerate() {
            let path = format!("eks.subnetIds[{index}]");
            SUBNET_ID.check(&path, id)?;
            once(&path, id, &eks.subnet_ids[..index], "subnet")?;
        }
        let machines = &self.machine_types;
        for (name, types) in
            [("gke", &machines.gke), ("eks", &machines.eks), ("aks", &machines.aks)]
        {
            types.check(name, &MACHINE_TYPE)?;
        }
        for (key, value) in &self.load_balancer_annotations {
            let path = format!("loadBalancerAnnotations.{}", check::shown(key));
            ANNOTATION.check(&path, key)?;
            check::shape(
                value,
                1024,
                |value| !value.chars().any(check::is_invisible),
                "visible text",
            )
            .map_err(|refused| wrong(&path, refused))?;
        }
        check::count(&self.load_balancer_annotations.keys().collect::<Vec<_>>(), 32)
            .map_err(|refused| wrong("loadBalancerAnnotations", refused))?;
        self.check_networks()
    }

    /// Allowed repositories are public, as those of users.
    fn check_repositories(&self) -> Result<(), Error> {
        let all = &self.chart_repositories;
        check::count(all, 64).map_err(|refused| wrong("chartRepositories", refused))?;
        for (index, url) in all.iter().enumerate() {
            let path = format!("chartRepositories[{index}]");
            location::chart_repository(url)
                .and_then(location::public)
                .map_err(|refused| wrong(&path, refused))?;
            once(&path, url, &all[..index], "repository")?;
        }
        Ok(())
    }

    /// All networks with access to a managed cluster are IPv4, because GKE and AKS support no
    /// other.
    fn check_networks(&self) -> Result<(), Error> {
        check::count(&self.allowed_cidrs, 40).map_err(|refused| wrong("allowedCidrs", refused))?;
        for (index, cidr) in self.allowed_cidrs.iter().enumerate() {
            let path = format!("allowedCidrs[{index}]");
            let network = check::cidr(cidr).map_err(|refused| wrong(&path, refused))?;
            if network.addr().is_ipv6() {
                return Err(wrong(
                    &path,
                    Refused::new(
                        cidr,
                        "an IPv4 network, for example \
                         203.0.113.0/24",
                    ),
                ));
            }
            // An accepted network has only one notation.
            once(&path, cidr, &self.allowed_cidrs[..index], "network")?;
        }
        Ok(())
    }
}

impl BySize {
    fn check(&self, name: &str, kind: &Kind) -> Result<(), Error> {
        for (size, value) in
            [("small", &self.small), ("medium", &self.medium), ("large", &self.large)]
        {
            kind.check_some(&format!("machineTypes.{name}.{size}"), value.as_ref())?;
        }
        Ok(())
    }
}

/// Rejects a value that is already in the list before it.
fn once(path: &str, value: &str, before: &[String], what: &str) -> Result<(), Error> {
    if before.iter().all(|other| other != value) {
        return Ok(());
    }
    let message = format!("found {value} twice; each {what} may be given once");
    Err(Error::settings(format!("environment.{path}"), message))
}

/// Checks that vcluster's chart has the names of values that we use, which came with 0.20.
fn has_todays_values(version: &str) -> Result<(), Refused> {
    if Charts::minor(version).is_some_and(|version| version < (0, 20)) {
        return Err(Refused::new(
            version,
            "0.20.0 or later, because earlier charts have other values",
        ));
    }
    Ok(())
}

fn wrong(path: &str, refused: Refused) -> Error {
    Error::settings(format!("environment.{path}"), refused)
}
