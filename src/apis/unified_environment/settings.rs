//! Settings of unified environments.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Size;
use crate::apis::Tagged;
use crate::catalog::aws::{self, Partition};
use crate::check::{self, Refused, kubernetes};
use crate::error::Error;
use crate::models::Managed;
use crate::models::aws::{cloudfront, rds, s3};

/// Disk size in GiB up to which AWS may let a server's disk grow.
const MOST_STORAGE_GB: RangeInclusive<i64> = 110..=65536;

/// Settings of unified environments.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct UnifiedEnvironmentSettings {
    /// AWS region of buckets and of dedicated database servers.
    #[schemars(length(min = 1, max = aws::LONGEST_REGION), regex(pattern = r"^[a-z]{2}(-[a-z]+)+-[0-9]$"))]
    pub region: String,
    /// Placement of databases.
    pub database: DatabaseSettings,
    /// Settings of dedicated database servers. Required if every environment gets a dedicated
    /// server.
    pub rds: RdsSettings,
    /// CPU and memory of each backend replica, by the size of the database.
    pub resources: Resources,
    /// Access to backends from outside their cluster.
    pub ingress: IngressSettings,
    /// ARNs of the IAM roles that may upload websites: arn:aws:iam::123456789012:role/…
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 20),
        inner(
            length(max = 600),
            regex(pattern = r"^arn:aws:iam::[0-9]{12}:role/[A-Za-z0-9_+=,.@/-]+$")
        )
    )]
    pub publisher_role_arns: Vec<String>,
}

/// Placement of databases.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DatabaseSettings {
    /// Placement of the databases. Databases are on the shared server of providerConfigs.sql, or
    /// each on a dedicated RDS instance.
    pub mode: Mode,
}

/// Placement of databases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum Mode {
    /// All databases are on a shared server.
    #[default]
    Shared,
    /// Each database is on a dedicated RDS instance.
    Rds,
}

/// Network, disk growth and deletion of dedicated database servers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct RdsSettings {
    /// Name of the DB subnet group.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 255), regex(pattern = r"^[a-z0-9][a-z0-9 ._-]*$"))]
    pub subnet_group: Option<String>,
    /// IDs of the security groups. The groups must allow connections from the cluster's pods.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 5), inner(regex(pattern = r"^sg-[0-9a-f]{8,17}$")))]
    pub security_group_ids: Vec<String>,
    /// Keep a final snapshot of the server when an environment is deleted. AWS keeps the snapshots
    /// until they are deleted manually, and counts them against a quota. AWS does not take a
    /// snapshot of a failed server.
    pub final_snapshot: bool,
    /// Maximum disk size in GiB for automatic growth by AWS. Default: the disk never grows.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = *MOST_STORAGE_GB.start(), max = *MOST_STORAGE_GB.end()))]
    pub max_allocated_storage: Option<i64>,
}

impl Default for RdsSettings {
    fn default() -> Self {
        Self {
            subnet_group: None,
            security_group_ids: Vec::new(),
            final_snapshot: true,
            max_allocated_storage: None,
        }
    }
}

/// CPU and memory of each backend replica.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Resources {
    /// CPU and memory for size small. Default: 100m and 256Mi.
    #[serde(skip_serializing_if = "Amounts::is_default")]
    pub small: Amounts,
    /// CPU and memory for size medium. Default: 500m and 1Gi.
    #[serde(skip_serializing_if = "Amounts::is_default")]
    pub medium: Amounts,
    /// CPU and memory for size large. Default: 1 and 2Gi.
    #[serde(skip_serializing_if = "Amounts::is_default")]
    pub large: Amounts,
}

/// CPU and memory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Amounts {
    /// CPU request in cores or thousandths of a core, for example 250m. CPU has no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = kubernetes::LONGEST_QUANTITY), regex(pattern = kubernetes::QUANTITY))]
    pub cpu: Option<String>,
    /// Memory request and limit, for example 512Mi.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = kubernetes::LONGEST_QUANTITY), regex(pattern = kubernetes::QUANTITY))]
    pub memory: Option<String>,
}

/// Access to backends.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct IngressSettings {
    /// Domain of the backends. Every backend gets a host in this domain, named after its
    /// environment. Default: no domain and no Ingress.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 189),
        regex(pattern = r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?([.][a-z0-9]([a-z0-9-]*[a-z0-9])?)*$")
    )]
    pub domain: Option<String>,
    /// IngressClass of the Ingresses. Default: the cluster's default class.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 253),
        regex(pattern = r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?([.][a-z0-9]([a-z0-9-]*[a-z0-9])?)*$")
    )]
    pub class_name: Option<String>,
    /// Annotations of the Ingresses, for the ingress controller and other controllers.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = MOST_ANNOTATIONS), inner(length(max = LONGEST_ANNOTATION)))]
    pub annotations: BTreeMap<String, String>,
    /// Name of the cert-manager ClusterIssuer that issues the certificates. The name becomes the
    /// annotation cert-manager.io/cluster-issuer.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 253),
        regex(pattern = r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?([.][a-z0-9]([a-z0-9-]*[a-z0-9])?)*$")
    )]
    pub cluster_issuer: Option<String>,
    /// Name of a Secret with a certificate for every host. You maintain this Secret in the
    /// namespace of each environment. Default: each Ingress has its own Secret, <name>-tls.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 253),
        regex(pattern = r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?([.][a-z0-9]([a-z0-9-]*[a-z0-9])?)*$")
    )]
    pub tls_secret_name: Option<String>,
}

/// Maximum number of an Ingress's annotations.
const MOST_ANNOTATIONS: usize = 50;

/// The longest value of an annotation, in characters.
const LONGEST_ANNOTATION: usize = 4096;

/// The annotation with cert-manager's issuer of a certificate.
const CLUSTER_ISSUER: &str = "cert-manager.io/cluster-issuer";

impl IngressSettings {
    /// The annotations of a new Ingress.
    pub(super) fn annotations(&self) -> BTreeMap<String, String> {
        let mut all = self.annotations.clone();
        all.extend(
            self.cluster_issuer.iter().map(|name| (CLUSTER_ISSUER.to_owned(), name.clone())),
        );
        all
    }
}

impl Default for UnifiedEnvironmentSettings {
    fn default() -> Self {
        Self {
            region: "us-east-1".to_owned(),
            database: DatabaseSettings::default(),
            rds: RdsSettings::default(),
            resources: Resources::default(),
            ingress: IngressSettings::default(),
            publisher_role_arns: Vec::new(),
        }
    }
}

impl Amounts {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl UnifiedEnvironmentSettings {
    /// CPU and memory for a size.
    pub(super) fn amounts(&self, size: Size) -> (&str, &str) {
        let (chosen, cpu, memory) = match size {
            Size::Small => (&self.resources.small, "100m", "256Mi"),
            Size::Medium => (&self.resources.medium, "500m", "1Gi"),
            Size::Large => (&self.resources.large, "1", "2Gi"),
        };
        (chosen.cpu.as_deref().unwrap_or(cpu), chosen.memory.as_deref().unwrap_or(memory))
    }

    /// Repeats the checks of the schema: Crossplane does not validate Settings.
    pub(super) fn check(&self) -> Result<(), Error> {
        check::shape(&self.region, 32, is_region, REGIONS).map_err(wrong("region"))?;
        if let Some(group) = &self.rds.subnet_group {
            let allowed = "1 to 255 lowercase letters, digits, spaces and . _ -, starting with a \
                           letter or \
                 digit";
            check::shape(group, 255, is_subnet_group, allowed).map_err(wrong("rds.subnetGroup"))?;
        }
        check::count(&self.rds.security_group_ids, 5).map_err(wrong("rds.securityGroupIds"))?;
        for (index, id) in self.rds.security_group_ids.iter().enumerate() {
            check::shape(
                id,
                32,
                is_security_group,
                "the ID of a security group, for example sg-0123456789abcdef0",
            )
            .map_err(wrong(&format!("rds.securityGroupIds[{index}]")))?;
        }
        check::count(&self.publisher_role_arns, 20).map_err(wrong("publisherRoleArns"))?;
        for (index, arn) in self.publisher_role_arns.iter().enumerate() {
            let allowed = "the ARN of an IAM role, for example \
                           arn:aws:iam::123456789012:role/publisher";
            check::shape(arn, 600, is_role, allowed)
                .map_err(wrong(&format!("publisherRoleArns[{index}]")))?;
        }
        if let Some(storage) = self.rds.max_allocated_storage {
            check::range(storage, MOST_STORAGE_GB, "GiB")
                .map_err(wrong("rds.maxAllocatedStorage"))?;
        }
        self.check_ingress()?;
        self.check_annotations()?;
        self.check_resources()
    }

    fn check_ingress(&self) -> Result<(), Error> {
        let names = [
            ("domain", 189, &self.ingress.domain),
            ("className", 253, &self.ingress.class_name),
            ("clusterIssuer", 253, &self.ingress.cluster_issuer),
            ("tlsSecretName", 253, &self.ingress.tls_secret_name),
        ];
        for (field, longest, name) in names {
            let Some(name) = name else { continue };
            let allowed = format!(
                "at most {longest} lowercase letters, digits, hyphens and dots, for example \
                 apps.example.org"
            );
            check::shape(name, longest, is_subdomain, &allowed)
                .map_err(wrong(&format!("ingress.{field}")))?;
        }
        Ok(())
    }

    fn check_annotations(&self) -> Result<(), Error> {
        let annotations = &self.ingress.annotations;
        if annotations.len() > MOST_ANNOTATIONS {
            let found = format!("{} annotations", annotations.len());
            let refused = Refused { found, allowed: format!("at most {MOST_ANNOTATIONS}") };
            return Err(wrong("ingress.annotations")(refused));
        }
        for (key, value) in annotations {
            let path = format!("ingress.annotations.{key}");
            kubernetes::annotation_key(key).map_err(wrong(&path))?;
            let issuer = self.ingress.cluster_issuer.as_ref().filter(|_| key == CLUSTER_ISSUER);
            if let Some(issuer) = issuer.filter(|issuer| *issuer != value) {
                let allowed = format!(
                    "{issuer}, the value of ingress.clusterIssuer. Set only one of the \
                             two settings"
                );
                return Err(wrong(&path)(Refused::new(value, allowed)));
            }
            let fits = |value: &str| !value.contains('\0');
            let allowed = format!("at most {LONGEST_ANNOTATION} characters without NUL");
            check::shape(value, LONGEST_ANNOTATION, fits, &allowed).map_err(wrong(&path))?;
        }
        Ok(())
    }

    fn check_resources(&self) -> Result<(), Error> {
        let sizes = [
            ("small", &self.resources.small),
            ("medium", &self.resources.medium),
            ("large", &self.resources.large),
        ];
        for (size, amounts) in sizes {
            if let Some(cpu) = &amounts.cpu {
                kubernetes::cpu(cpu).map_err(wrong(&format!("resources.{size}.cpu")))?;
            }
            if let Some(memory) = &amounts.memory {
                kubernetes::memory(memory).map_err(wrong(&format!("resources.{size}.memory")))?;
            }
        }
        Ok(())
    }

    /// The kinds with tags in a new environment.
    pub(super) fn tagged(&self) -> Tagged {
        let mut kinds = vec![s3::Bucket::KIND, cloudfront::Distribution::KIND];
        if self.database.mode == Mode::Rds {
            kinds.push(rds::Instance::KIND);
        }
        Tagged { kinds, own: &[] }
    }

    /// Checks the roles in a new policy. AWS rejects a policy with a role of another partition.
    pub(super) fn check_publishers(&self, region: &str) -> Result<(), Error> {
        for (index, arn) in self.publisher_role_arns.iter().enumerate() {
            Partition::for_region(region)
                .has(arn)
                .map_err(wrong(&format!("publisherRoleArns[{index}]")))?;
        }
        Ok(())
    }

    /// The subnet group and the security groups of a new dedicated server.
    ///
    /// # Errors
    /// The subnets or the security groups are missing. The pods could not reach a server in the
    /// default VPC.
    pub(super) fn server(&self) -> Result<(Option<&str>, &[String]), Error> {
        let missing = |field: &str, what: &str| {
            let message = format!(
                "missing; allowed: {what}, because unifiedEnvironment.database.mode is rds"
            );
            Error::settings(format!("unifiedEnvironment.rds.{field}"), message)
        };
        let group = self.rds.subnet_group.as_deref();
        if group.is_none() {
            return Err(missing("subnetGroup", "a subnet group"));
        }
        if self.rds.security_group_ids.is_empty() {
            return Err(missing(
                "securityGroupIds",
                "security groups that allow connections from the cluster's pods",
            ));
        }
        Ok((group, &self.rds.security_group_ids))
    }

    /// An Ingress for every backend, and a role that uploads the sites.
    pub(super) fn example() -> Self {
        Self {
            ingress: IngressSettings {
                domain: Some("apps.acme.io".to_owned()),
                class_name: Some("nginx".to_owned()),
                ..IngressSettings::default()
            },
            publisher_role_arns: vec!["arn:aws:iam::123456789012:role/site-publisher".to_owned()],
            ..Self::default()
        }
    }
}

fn wrong(field: &str) -> impl FnOnce(Refused) -> Error {
    let path = check::shown(&format!("unifiedEnvironment.{field}"));
    move |error| Error::settings(path, error)
}

/// CloudFront, and the ARNs of its partition, belong to AWS's public regions.
const REGIONS: &str = "a public AWS region, for example us-east-1. CloudFront does not serve \
                       regions of China and of governments";

/// A region of AWS's public partition.
fn is_region(name: &str) -> bool {
    aws::region(name).is_ok() && Partition::for_region(name).name == PUBLIC
}

/// The partition of AWS's public regions.
const PUBLIC: &str = "aws";

fn is_subnet_group(name: &str) -> bool {
    let edge = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    name.starts_with(edge) && name.chars().all(|c| edge(c) || " ._-".contains(c))
}

fn is_security_group(id: &str) -> bool {
    id.strip_prefix("sg-").is_some_and(|rest| {
        (8..=17).contains(&rest.len()) && rest.chars().all(|c| matches!(c, '0'..='9' | 'a'..='f'))
    })
}

fn is_role(arn: &str) -> bool {
    let parts: Vec<&str> = arn.splitn(6, ':').collect();
    let [arn, partition, "iam", "", account, role] = parts.as_slice() else { return false };
    let of_partition = |c: char| c.is_ascii_lowercase() || c == '-';
    let of_role = |c: char| c.is_ascii_alphanumeric() || "_+=,.@/-".contains(c);
    *arn == "arn"
        && partition.strip_prefix("aws").is_some_and(|rest| rest.chars().all(of_partition))
        && account.len() == 12
        && account.chars().all(|c| c.is_ascii_digit())
        && role
            .strip_prefix("role/")
            .is_some_and(|name| !name.is_empty() && name.chars().all(of_role))
}

fn is_subdomain(name: &str) -> bool {
    name.split('.').all(|label| kubernetes::label(label).is_ok())
}
