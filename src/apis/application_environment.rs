//! Application environment: a GKE cluster, a PostgreSQL server and a bucket on Google Cloud.

mod resources;
mod settings;

use std::ops::RangeInclusive;

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Api, ConnectionTarget, Info, Names, Tagged};
use crate::catalog::{gcp, regions};
use crate::check::{self, Fields};
use crate::compose::Composer;
use crate::error::Error;
use crate::models::Managed;
use crate::models::gcp::{Bucket, Cluster, DatabaseInstance, NodePool};
use crate::offers::{Offer, Offered, Prices};
pub use settings::ApplicationEnvironmentSettings;

/// A Kubernetes cluster, a PostgreSQL server and a bucket.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ApplicationEnvironment {
    /// Parameters of the environment.
    pub parameters: Parameters,
}

/// Nodes of a cluster in each zone.
const NODES: RangeInclusive<i64> = 1..=100;
/// Size of a database's disk.
const STORAGE_GB: RangeInclusive<i64> = 10..=65536;

/// Parameters of an environment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Parameters {
    /// Size of the cluster's nodes. A change replaces the nodes one after another.
    pub node_size: NodeSize,
    /// Number of nodes per zone. A cluster has three zones unless the platform team configures
    /// other zones.
    #[serde(default = "default_node_count")]
    #[schemars(range(min = *NODES.start(), max = *NODES.end()))]
    pub node_count: i64,
    /// Size of the database's disk in GB. The disk can only grow.
    #[serde(rename = "storageGB", default = "default_storage_gb")]
    #[schemars(range(min = *STORAGE_GB.start(), max = *STORAGE_GB.end()))]
    #[x_kube(validation = Rule::new("self >= oldSelf").message("storageGB can only grow"))]
    pub storage_gb: i64,
    /// Effect of deleting the environment on the cluster, the database and the bucket. Delete
    /// removes them with all their data. Orphan leaves them in the cloud with all their data.
    #[serde(default)]
    pub deletion_policy: DeletionPolicy,
    /// Google Cloud region. The region cannot be changed later.
    #[serde(default = "default_region")]
    #[schemars(length(min = 1, max = 32), regex(pattern = gcp::REGION))]
    #[x_kube(validation = Rule::new("self == oldSelf").message("region cannot be changed: create a new environment"))]
    pub region: String,
}

/// Sizes of nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum NodeSize {
    /// e2-small: 2 GiB of memory, with about 1.3 GiB available to pods.
    Small,
    /// e2-medium: 4 GiB of memory.
    Medium,
    /// e2-standard-4: 4 vCPUs and 16 GiB of memory.
    Large,
}

impl NodeSize {
    /// Its value in a claim.
    pub fn name(self) -> &'static str {
        match self {
            Self::Small => "small",
            Self::Medium => "medium",
            Self::Large => "large",
        }
    }
}

/// Effect of deleting an environment on its resources.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum DeletionPolicy {
    /// All resources are deleted.
    #[default]
    Delete,
    /// All resources stay in the cloud.
    Orphan,
}

/// Status of an environment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApplicationEnvironmentStatus {
    /// Address of the cluster's API server.
    pub gke_endpoint: Option<String>,
    /// Connection name of the database for the Cloud SQL connectors: project:region:instance.
    pub db_endpoint: Option<String>,
    /// IP address of the database.
    pub db_address: Option<String>,
    /// URL of the bucket: gs://…
    pub bucket_url: Option<String>,
}

impl Api for ApplicationEnvironment {
    const INFO: Info = Info {
        name: "application-environment",
        title: "application environment",
        summary: "A GKE cluster, a PostgreSQL server and a bucket on Google Cloud.",
        provider: "gcp",
        settings: "applicationEnvironment",
        composite: Names {
            kind: "XApplicationEnvironment",
            plural: "xapplicationenvironments",
            singular: "xapplicationenvironment",
            short: &[],
        },
        claim: Names {
            kind: "ApplicationEnvironment",
            plural: "applicationenvironments",
            singular: "applicationenvironment",
            short: &["appenv"],
        },
        namespaced: Names {
            kind: "ApplicationEnvironment",
            plural: "applicationenvironments",
            singular: "applicationenvironment",
            short: &["appenv"],
        },
        suffix: "app",
        endpoints: &["gkeEndpoint"],
        connection_keys: &[
            "db_address",
            "db_host",
            "db_name",
            "db_password",
            "db_port",
            "db_user",
            "kubeconfig",
        ],
        connection_targets: &[ConnectionTarget::Cluster, ConnectionTarget::Database],
        columns: &[
            ("Size", ".spec.parameters.nodeSize", "string"),
            ("Database", ".status.dbEndpoint", "string"),
        ],
        first_slots: &["gke-cluster"],
        stoppable: &["node-pool", "cloudsql-instance"],
        when_stopped: "Cluster, bucket and database keep their data. No nodes and no server run.",
        since_revision: &[],
    };
    type Settings = ApplicationEnvironmentSettings;
    type Status = ApplicationEnvironmentStatus;

    fn offers(settings: &Self::Settings, prices: Prices<'_>) -> Vec<Offer> {
        let size = |size: NodeSize| {
            let machine = settings.machine_type(size);
            Offered {
                hourly_usd: prices.of(&machine, &default_region()),
                ..Offered::described(size.name(), format!("{machine} for each node"))
            }
        };
        let mut regions: Vec<Offered> = regions::GOOGLE.regions().map(Offered::plain).collect();
        regions.sort_by_key(|region| region.value != default_region());
        vec![
            Offer {
                field: "spec.parameters.nodeSize",
                closed: true,
                values: [NodeSize::Small, NodeSize::Medium, NodeSize::Large].map(size).into(),
            },
            // Google adds regions, so the list may be incomplete.
            Offer { field: "spec.parameters.region", closed: false, values: regions },
        ]
    }

    fn compose(
        &self,
        settings: &Self::Settings,
        cx: &mut Composer<'_>,
    ) -> Result<Self::Status, Error> {
        let p = &self.parameters;
        p.check(cx)?;
        settings.check()?;
        let cluster = p.cluster(settings, cx)?;
        p.node_pool(settings, cx)?;
        let server = p.server(settings, cx)?;
        p.database_and_user(cx)?;
        let bucket = p.bucket(cx)?;
        p.access(settings, bucket.get(|bucket| bucket.project_number), cx)?;
        cx.keep_usage("gke-cluster", "node-pool")?;
        cx.keep_usage("cloudsql-instance", "database")?;
        cx.keep_usage("cloudsql-instance", "database-user")?;

        let status = ApplicationEnvironmentStatus {
            gke_endpoint: cluster.text(|cluster| cluster.endpoint.clone()),
            db_endpoint: server.text(|server| server.connection_name.clone()),
            db_address: server.text(|server| {
                server.private_ip_address.clone().or_else(|| server.first_ip_address.clone())
            }),
            bucket_url: bucket.text(|bucket| bucket.url.clone()),
        };
        cx.connection("kubeconfig", cluster.connection("kubeconfig"));
        cx.connection("db_host", status.db_endpoint.clone());
        cx.connection("db_address", status.db_address.clone());
        cx.connection("db_port", Some("5432"));
        cx.connection("db_user", Some(DATABASE_USER));
        cx.connection("db_name", Some(DATABASE));
        Ok(status)
    }

    fn check_settings(settings: &Self::Settings) -> Result<(), Error> {
        settings.check()?;
        settings.check_whole()
    }

    fn tagged(_: &Self::Settings) -> Tagged {
        Tagged {
            kinds: vec![Cluster::KIND, NodePool::KIND, DatabaseInstance::KIND, Bucket::KIND],
            own: &[],
        }
    }

    fn example_settings() -> Self::Settings {
        ApplicationEnvironmentSettings {
            project_id: Some("acme-dev".to_owned()),
            ..Self::Settings::default()
        }
    }
}

impl Parameters {
    /// Checks every field: the checks of the schema, and further checks.
    fn check(&self, cx: &Composer<'_>) -> Result<(), Error> {
        let mut fields = Fields::default();
        let nodes = check::range(self.node_count, NODES, "nodes per zone");
        fields.check("spec.parameters.nodeCount", nodes);
        let disk = cx.running("cloudsql-instance", &["settings", "diskSize"]);
        let storage = check::range(self.storage_gb, STORAGE_GB, "GB")
            .and_then(|storage| check::grows(storage, disk, "GB"));
        fields.check("spec.parameters.storageGB", storage);
        let running = cx
            .running("cloudsql-instance", &["region"])
            .or_else(|| cx.running("gke-cluster", &["location"]))
            .and_then(Value::as_str);
        let region = gcp::region(&self.region)
            .and_then(|region| check::unchanged(region, running, "create a new environment"));
        fields.check("spec.parameters.region", region);
        fields.verdict(Error::InvalidSpec)
    }
}

/// Name of the application's database.
const DATABASE: &str = "app";

/// Name of the application's database user.
const DATABASE_USER: &str = "app";

fn default_node_count() -> i64 {
    1
}

fn default_storage_gb() -> i64 {
    10
}

fn default_region() -> String {
    "us-central1".to_owned()
}
