//! The resources of an application environment.

use super::{ApplicationEnvironmentSettings, DATABASE, DATABASE_USER, DeletionPolicy, Parameters};
use crate::compose::{Composer, Generated};
use crate::error::Error;
use crate::models::gcp::{
    BackupConfiguration, Bucket, BucketIamMember, BucketStatus, Cluster, ClusterStatus, Database,
    DatabaseInstance, DatabaseInstanceStatus, DatabaseSettings, IamCondition, IpConfiguration,
    NodeConfig, NodeManagement, NodePool, ProjectIamMember, ReleaseChannel, ShieldedInstanceConfig,
    User, WorkloadIdentityConfig, WorkloadMetadataConfig, first_pool,
};
use crate::models::{SIBLING, SecretKeyRef};
use crate::observe::{NameRule, Observed};

impl Parameters {
    fn orphan(&self) -> bool {
        self.deletion_policy == DeletionPolicy::Orphan
    }

    pub(super) fn cluster(
        &self,
        settings: &ApplicationEnvironmentSettings,
        cx: &mut Composer<'_>,
    ) -> Result<Observed<ClusterStatus>, Error> {
        // Zones and subnet apply at creation only, so an existing cluster needs no lookup.
        let subnetwork = if cx.exists(CLUSTER) {
            None
        } else {
            settings.check_zones(&self.region)?;
            settings.subnetwork(&self.region)?
        };
        let pool = settings.project_id.as_ref().map(|project| format!("{project}.svc.id.goog"));
        let cluster = Cluster {
            location: Some(self.region.clone()),
            node_locations: settings.zones(&self.region),
            network: settings.network.clone(),
            subnetwork,
            ip_allocation_policy: settings.ranges(),
            networking_mode: Some("VPC_NATIVE".to_owned()),
            remove_default_node_pool: Some(true),
            initial_node_count: Some(1),
            release_channel: Some(ReleaseChannel { channel: Some("REGULAR".to_owned()) }),
            workload_identity_config: pool
                .map(|pool| WorkloadIdentityConfig { workload_pool: Some(pool) }),
            deletion_protection: Some(false),
            ..Cluster::default()
        };
        let name = cx.xr.cloud_name(NameRule::dns(40));
        cx.managed(CLUSTER, cluster)
            .external_name(name)
            .spec_field("initProvider", first_pool())
            .orphan(self.orphan())
            .publishes()
            .add()
    }

    pub(super) fn node_pool(
        &self,
        settings: &ApplicationEnvironmentSettings,
        cx: &mut Composer<'_>,
    ) -> Result<(), Error> {
        let metadata = WorkloadMetadataConfig { mode: Some("GKE_METADATA".to_owned()) };
        let pool = NodePool {
            cluster_selector: Some(SIBLING),
            location: Some(self.region.clone()),
            node_count: Some(self.node_count),
            management: Some(NodeManagement { auto_repair: Some(true), auto_upgrade: Some(true) }),
            node_config: Some(NodeConfig {
                machine_type: Some(settings.machine_type(self.node_size)),
                disk_size_gb: Some(settings.disk_size_gb),
                oauth_scopes: vec!["https://www.googleapis.com/auth/cloud-platform".to_owned()],
                shielded_instance_config: Some(ShieldedInstanceConfig {
                    enable_secure_boot: Some(true),
                    enable_integrity_monitoring: Some(true),
                }),
                workload_metadata_config: settings.project_id.as_ref().map(|_| metadata),
                ..NodeConfig::default()
            }),
        };
        let name = cx.xr.cloud_name(NameRule::dns(40));
        // GKE deletes the nodes with their cluster.
        let orphan = self.orphan() || !cx.has_usage(CLUSTER, "node-pool");
        cx.managed("node-pool", pool)
            .external_name(name)
            .updatable(&["nodeCount"])
            .resolved_from("node-size", self.node_size.name(), &["nodeConfig.machineType"])
            .orphan(orphan)
            .add()
            .map(|_| ())
    }

    /// The Cloud SQL server: no open networks, and TLS only. With a network of the platform team,
    /// it has only a private address.
    pub(super) fn server(
        &self,
        settings: &ApplicationEnvironmentSettings,
        cx: &mut Composer<'_>,
    ) -> Result<Observed<DatabaseInstanceStatus>, Error> {
        let made = match settings.server() {
            // An existing server keeps its tier, edition and disk.
            Err(_) if cx.exists("cloudsql-instance") => None,
            made => Some(made?),
        };
        let server = DatabaseInstance {
            region: Some(self.region.clone()),
            database_version: Some(settings.database_version.clone()),
            deletion_protection: Some(false),
            settings: Some(DatabaseSettings {
                tier: Some(settings.database_tier.clone()),
                edition: made.and_then(|made| made.edition).map(str::to_owned),
                disk_size: Some(self.storage_gb),
                disk_type: made.map(|made| made.disk_type.to_owned()),
                disk_autoresize: Some(false),
                availability_type: Some("ZONAL".to_owned()),
                deletion_protection_enabled: Some(false),
                backup_configuration: Some(BackupConfiguration {
                    enabled: Some(true),
                    point_in_time_recovery_enabled: Some(true),
                }),
                ip_configuration: Some(IpConfiguration {
                    ipv4_enabled: Some(settings.network.is_none()),
                    private_network: settings.network.clone(),
                    ssl_mode: Some("ENCRYPTED_ONLY".to_owned()),
                }),
                ..DatabaseSettings::default()
            }),
        };
        let name = cx.xr.cloud_name(SERVER_NAME);
        cx.managed(SERVER, server)
            .external_name(name)
            .updatable(&["settings.diskSize"])
            .orphan(self.orphan())
            .add()
    }

    /// The database and the user are deleted with their server. PostgreSQL would refuse to drop a
    /// database in use, or a user with objects. So the providers only release them, and no Usage
    /// has to protect the server. Environments of earlier releases keep their Usages.
    pub(super) fn database_and_user(&self, cx: &mut Composer<'_>) -> Result<(), Error> {
        let abandoned = || Some("ABANDON".to_owned());
        let database = Database {
            instance_selector: Some(SIBLING),
            charset: Some("UTF8".to_owned()),
            deletion_policy: abandoned(),
        };
        let is_released = |slot, cx: &Composer<'_>| self.orphan() || !cx.has_usage(SERVER, slot);
        let orphan = is_released("database", cx);
        cx.managed("database", database).external_name(DATABASE).orphan(orphan).add()?;

        let Generated { reference, published } = cx.generated("db_password");
        let user = User {
            instance_selector: Some(SIBLING),
            password_secret_ref: reference.map(|(name, namespace, key)| SecretKeyRef {
                name,
                namespace,
                key,
            }),
            deletion_policy: abandoned(),
        };
        let has_secret = user.password_secret_ref.is_some();
        let orphan = is_released("database-user", cx);
        cx.managed("database-user", user)
            .external_name(DATABASE_USER)
            .orphan(orphan)
            .needs(
                has_secret,
                "a connection secret: the Composition has to set writeConnectionSecretsToNamespace",
            )
            .needs(published, "its password to be published")
            .add()
            .map(|_| ())
    }

    pub(super) fn bucket(&self, cx: &mut Composer<'_>) -> Result<Observed<BucketStatus>, Error> {
        let bucket = Bucket {
            location: Some(self.region.clone()),
            uniform_bucket_level_access: Some(true),
            public_access_prevention: Some("enforced".to_owned()),
            force_destroy: Some(!self.orphan()),
            ..Bucket::default()
        };
        let name = cx.xr.cloud_name(BUCKET_NAME);
        cx.managed("bucket", bucket)
            .external_name(name)
            .updatable(&["forceDestroy"])
            .orphan(self.orphan())
            .add()
    }

    /// Allows the pods of the environment's cluster to connect to its database server, and to use
    /// its bucket. A pool of workload identities belongs to a project. A namespace and a service
    /// account would identify those of every cluster in the project. `number` is the project's
    /// number, which the bucket's provider reports.
    pub(super) fn access(
        &self,
        settings: &ApplicationEnvironmentSettings,
        number: Option<i64>,
        cx: &mut Composer<'_>,
    ) -> Result<(), Error> {
        let project = project(settings, cx);
        let composed = |slot| cx.exists(slot) || (project.is_some() && cx.is_since(2));
        let [to_database, to_bucket] = [DATABASE_ACCESS, BUCKET_ACCESS].map(composed);
        let pods =
            project.as_ref().zip(number).map(|(project, number)| self.pods(project, number, cx));
        let project = project.unwrap_or_default();
        if to_database {
            let server = cx.external_name(SERVER).unwrap_or_else(|| cx.xr.cloud_name(SERVER_NAME));
            let this_server = format!(
                "resource.name == 'projects/{project}/instances/{server}' && resource.service == 'sqladmin.googleapis.com'"
            );
            let client = ProjectIamMember {
                project: Some(project),
                role: Some("roles/cloudsql.client".to_owned()),
                member: pods.clone(),
                condition: Some(IamCondition {
                    title: Some(format!("Server {server}")),
                    expression: Some(this_server),
                }),
            };
            cx.managed(DATABASE_ACCESS, client)
                .orphan(self.orphan())
                .needs(pods.is_some(), PROJECT_NUMBER)
                .add()?;
        }
        if to_bucket {
            let user = BucketIamMember {
                bucket_selector: Some(SIBLING),
                role: Some("roles/storage.objectUser".to_owned()),
                member: pods.clone(),
            };
            cx.managed(BUCKET_ACCESS, user)
                .orphan(self.orphan())
                .needs(pods.is_some(), PROJECT_NUMBER)
                .add()?;
        }
        Ok(())
    }

    /// All pods of the environment's cluster, in IAM's notation.
    fn pods(&self, project: &str, number: i64, cx: &Composer<'_>) -> String {
        let cluster =
            cx.external_name(CLUSTER).unwrap_or_else(|| cx.xr.cloud_name(NameRule::dns(40)));
        let pool = format!(
            "projects/{number}/locations/global/workloadIdentityPools/{project}.svc.id.goog"
        );
        let cluster = format!("projects/{project}/locations/{}/clusters/{cluster}", self.region);
        format!(
            "principalSet://iam.googleapis.com/{pool}/kubernetes.cluster/https://container.googleapis.com/v1/{cluster}"
        )
    }
}

/// The project of the identities of the cluster's pods. An existing cluster keeps its project.
fn project(settings: &ApplicationEnvironmentSettings, cx: &Composer<'_>) -> Option<String> {
    if !cx.exists(CLUSTER) {
        return settings.project_id.clone();
    }
    let pool = cx.running(CLUSTER, &["workloadIdentityConfig", "workloadPool"])?.as_str()?;
    pool.strip_suffix(".svc.id.goog").map(str::to_owned)
}

/// Slots that other resources depend on.
const CLUSTER: &str = "gke-cluster";
const SERVER: &str = "cloudsql-instance";

/// Access of the cluster's pods to the database server, and to the bucket.
const DATABASE_ACCESS: &str = "database-access";
const BUCKET_ACCESS: &str = "bucket-access";

/// The value that both wait for.
const PROJECT_NUMBER: &str = "the number of the project, which the bucket's provider reports";

/// Names of Cloud SQL servers. Together with the project's name, of at most 30 characters, and a
/// colon, they have at most 97 characters.
const SERVER_NAME: NameRule = NameRule::dns(63);

/// Names of buckets: 3 to 63 characters, without Google's own name and similar words.
const BUCKET_NAME: NameRule = NameRule {
    max: 63,
    not_at_start: &["goog"],
    nowhere: &["google", "g00gle", "go0gle", "g0ogle"],
};
