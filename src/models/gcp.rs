//! Google Cloud: clusters, databases, buckets, and access to them.
//!
//! Fields and types are those of provider-upjet-gcp 3.0, the same in both scopes.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Kind, Managed, SecretKeyRef, Selector, Unread};

impl Managed for Cluster {
    const KIND: Kind =
        Kind::gcp("container", "Cluster").labelled("resourceLabels").spec_fields(&["initProvider"]);
    type Status = ClusterStatus;
}

impl Managed for NodePool {
    const KIND: Kind = Kind::gcp("container", "NodePool").labelled("nodeConfig.resourceLabels");
    type Status = NodePoolStatus;
}

impl Managed for DatabaseInstance {
    const KIND: Kind = Kind::gcp("sql", "DatabaseInstance").labelled("settings.userLabels");
    type Status = DatabaseInstanceStatus;
}

impl Managed for Database {
    const KIND: Kind = Kind::gcp("sql", "Database").versions("v1beta1", "v1beta1");
    type Status = DatabaseStatus;
}

impl Managed for User {
    const KIND: Kind = Kind::gcp("sql", "User");
    type Status = UserStatus;
}

impl Managed for Bucket {
    const KIND: Kind =
        Kind::gcp("storage", "Bucket").versions("v1beta3", "v1beta2").labelled("labels");
    type Status = BucketStatus;
}

impl Managed for BucketIamMember {
    const KIND: Kind = Kind::gcp("storage", "BucketIAMMember").since(2);
    type Status = Unread;
}

impl Managed for ProjectIamMember {
    const KIND: Kind = Kind::gcp("cloudplatform", "ProjectIAMMember").since(2);
    type Status = Unread;
}

model! {
    /// A GKE cluster. Its secret has a `kubeconfig` with the server and its CA, but no token.
    pub struct Cluster {
        /// Region or zone. A regional cluster has nodes in three zones.
        pub location: Option<String>,
        /// Zones of the nodes, all in the cluster's region. Empty: Google chooses.
        pub node_locations: Vec<String>,
        /// The VPC network, by name.
        pub network: Option<String>,
        /// The subnet of the nodes, by name. Absent: the region's subnet in an automatic network.
        pub subnetwork: Option<String>,
        /// `VPC_NATIVE`: pods have addresses of the VPC, which a private database can answer.
        pub networking_mode: Option<String>,
        /// Secondary ranges of the subnet. Absent: GKE creates them.
        pub ip_allocation_policy: Option<IpAllocationPolicy>,
        /// Whether the default pool, which GKE always creates, is removed. Node pools are separate
        /// resources.
        pub remove_default_node_pool: Option<bool>,
        /// Nodes of the default pool. GKE requires at least 1.
        pub initial_node_count: Option<i64>,
        /// Machines of the default pool. Set this in `initProvider` only. Once that pool is
        /// removed, GKE returns the machines of another pool here. The provider would then try to
        /// change a pool that no longer exists.
        pub node_config: Option<NodeConfig>,
        /// Whether nodes and API server have public addresses.
        pub private_cluster_config: Option<PrivateClusterConfig>,
        /// Access to the API server. Absent: all networks have access.
        pub master_authorized_networks_config: Option<MasterAuthorizedNetworksConfig>,
        /// The source of the version.
        pub release_channel: Option<ReleaseChannel>,
        /// Lets pods use Google service accounts without keys.
        pub workload_identity_config: Option<WorkloadIdentityConfig>,
        /// The provider's own protection, true by default. A deletion would hang.
        pub deletion_protection: Option<bool>,
        /// Labels.
        pub resource_labels: BTreeMap<String, String>,
    }

    /// Secondary ranges of a subnet, by their names.
    pub struct IpAllocationPolicy {
        /// The range of the pods.
        pub cluster_secondary_range_name: Option<String>,
        /// The range of the services.
        pub services_secondary_range_name: Option<String>,
    }

    /// Whether nodes and API server have public addresses.
    pub struct PrivateClusterConfig {
        /// Nodes have only private addresses. Without Cloud NAT they cannot reach addresses outside
        /// of Google.
        pub enable_private_nodes: Option<bool>,
        /// The API server has only a private address.
        pub enable_private_endpoint: Option<bool>,
        /// The API server's own network, a `/28`. Absent: GKE uses addresses of the subnet.
        pub master_ipv4_cidr_block: Option<String>,
    }

    /// Networks with access to an API server, besides the cluster's own nodes.
    pub struct MasterAuthorizedNetworksConfig {
        /// The networks. Empty: no networks.
        pub cidr_blocks: Vec<CidrBlock>,
        /// Whether all public addresses of Google Cloud have access too.
        pub gcp_public_cidrs_access_enabled: Option<bool>,
    }

    /// A network with access to an API server.
    pub struct CidrBlock {
        /// The network.
        pub cidr_block: Option<String>,
        /// Its name in the console.
        pub display_name: Option<String>,
    }

    /// The stream of GKE releases that a cluster follows.
    pub struct ReleaseChannel {
        /// `RAPID`, `REGULAR`, `STABLE` or `EXTENDED`.
        pub channel: Option<String>,
    }

    /// The source of pods' identities.
    pub struct WorkloadIdentityConfig {
        /// `<project>.svc.id.goog`.
        pub workload_pool: Option<String>,
    }

    /// The observed state of a cluster.
    pub struct ClusterStatus {
        /// Path of the cluster: `projects/…/locations/…/clusters/…`.
        pub id: Option<String>,
        /// Address of its API server, without a scheme.
        pub endpoint: Option<String>,
    }
}

/// `initProvider` of a cluster, with small disks of the cheapest type for the default pool. GKE
/// creates this pool before it can be removed. The default disks of three zones exceed a new
/// project's quota of SSDs.
pub fn first_pool() -> Value {
    json!({"nodeConfig": {"diskType": "pd-standard", "diskSizeGb": 20}})
}

model! {
    /// Machines of one kind in a cluster.
    pub struct NodePool {
        /// The cluster.
        pub cluster_selector: Option<Selector>,
        /// Region or zone, that of the cluster.
        pub location: Option<String>,
        /// Nodes per zone.
        pub node_count: Option<i64>,
        /// Automatic actions of GKE.
        pub management: Option<NodeManagement>,
        /// Properties of the machines.
        pub node_config: Option<NodeConfig>,
    }

    /// GKE's automatic actions on nodes. A release channel requires both.
    pub struct NodeManagement {
        /// Replace nodes that are not healthy.
        pub auto_repair: Option<bool>,
        /// Follow the version of the control plane.
        pub auto_upgrade: Option<bool>,
    }

    /// Properties of a pool's machines.
    pub struct NodeConfig {
        /// Machine type, for example `e2-medium`.
        pub machine_type: Option<String>,
        /// Size of the boot disk in GB.
        pub disk_size_gb: Option<i64>,
        /// Type of the boot disk, for example `pd-standard`.
        pub disk_type: Option<String>,
        /// Google's APIs that the nodes' own service account can use. IAM decides on its rights
        /// there.
        pub oauth_scopes: Vec<String>,
        /// Restrictions of the machine's boot.
        pub shielded_instance_config: Option<ShieldedInstanceConfig>,
        /// The metadata of the machine that pods see.
        pub workload_metadata_config: Option<WorkloadMetadataConfig>,
        /// Labels of the machines.
        pub resource_labels: BTreeMap<String, String>,
    }

    /// Verified boot.
    pub struct ShieldedInstanceConfig {
        /// Only signed boot components.
        pub enable_secure_boot: Option<bool>,
        /// Compare each boot with the first.
        pub enable_integrity_monitoring: Option<bool>,
    }

    /// The metadata of the machine that pods see.
    pub struct WorkloadMetadataConfig {
        /// `GKE_METADATA`: workload identity. Only in a cluster with workload identity.
        pub mode: Option<String>,
    }

    /// The observed state of a node pool.
    pub struct NodePoolStatus {
        /// Path of the pool.
        pub id: Option<String>,
        /// Nodes per zone.
        pub node_count: Option<i64>,
    }
}

model! {
    /// A Cloud SQL server. A name is blocked for a week after its deletion.
    pub struct DatabaseInstance {
        /// Region.
        pub region: Option<String>,
        /// Engine and major version, for example `POSTGRES_17`.
        pub database_version: Option<String>,
        /// The provider's own protection, true by default. A deletion would hang.
        pub deletion_protection: Option<bool>,
        /// All other properties.
        pub settings: Option<DatabaseSettings>,
    }

    /// Properties of a Cloud SQL server.
    pub struct DatabaseSettings {
        /// Machine type, for example `db-g1-small` (shared) or `db-custom-2-7680`.
        pub tier: Option<String>,
        /// `ENTERPRISE` or `ENTERPRISE_PLUS`. From PostgreSQL 16 on, shared and custom tiers
        /// require `ENTERPRISE`.
        pub edition: Option<String>,
        /// Disk in GB. It can only grow.
        pub disk_size: Option<i64>,
        /// `PD_SSD` or `PD_HDD`.
        pub disk_type: Option<String>,
        /// Whether Google grows the disk automatically, beyond the requested size.
        pub disk_autoresize: Option<bool>,
        /// `ZONAL` or `REGIONAL`.
        pub availability_type: Option<String>,
        /// Google's own protection, besides the provider's.
        pub deletion_protection_enabled: Option<bool>,
        /// Backups.
        pub backup_configuration: Option<BackupConfiguration>,
        /// Access to the server.
        pub ip_configuration: Option<IpConfiguration>,
        /// `ALWAYS` or `NEVER`: whether the server runs. Set only to stop and start a server.
        pub activation_policy: Option<String>,
        /// Labels.
        pub user_labels: BTreeMap<String, String>,
    }

    /// Backups of a server.
    pub struct BackupConfiguration {
        /// Daily backups.
        pub enabled: Option<bool>,
        /// Return to any moment, not only to a backup.
        pub point_in_time_recovery_enabled: Option<bool>,
    }

    /// Access to a server. It lists no networks: connectors authenticate instead.
    pub struct IpConfiguration {
        /// Whether it has a public address.
        pub ipv4_enabled: Option<bool>,
        /// The VPC network of its private address, if it has one: `projects/…/global/networks/…`.
        pub private_network: Option<String>,
        /// `ENCRYPTED_ONLY`: no connection without TLS.
        pub ssl_mode: Option<String>,
    }

    /// The observed state of a server.
    pub struct DatabaseInstanceStatus {
        /// `project:region:instance`, the name for Cloud SQL's connectors.
        pub connection_name: Option<String>,
        /// The first of its addresses.
        pub first_ip_address: Option<String>,
        /// Public IPv4 address.
        pub public_ip_address: Option<String>,
        /// Private IPv4 address.
        pub private_ip_address: Option<String>,
        /// The observed properties.
        pub settings: Option<DatabaseSettingsStatus>,
    }

    /// The observed properties of a server.
    pub struct DatabaseSettingsStatus {
        /// `ALWAYS` or `NEVER`: whether the server runs.
        pub activation_policy: Option<String>,
    }
}

model! {
    /// A database on a server.
    pub struct Database {
        /// The server.
        pub instance_selector: Option<Selector>,
        /// Character set, for example `UTF8`.
        pub charset: Option<String>,
        /// `ABANDON`: it is deleted with its server. PostgreSQL does not drop databases that are in
        /// use.
        pub deletion_policy: Option<String>,
    }

    /// The observed state of a database.
    pub struct DatabaseStatus {
        /// Path of the database.
        pub id: Option<String>,
    }

    /// A user of a server. Its name is the external name.
    pub struct User {
        /// The server.
        pub instance_selector: Option<Selector>,
        /// Its password.
        pub password_secret_ref: Option<SecretKeyRef>,
        /// `ABANDON`: it is deleted with its server. PostgreSQL does not drop roles that own
        /// objects.
        pub deletion_policy: Option<String>,
    }

    /// The observed state of a user.
    pub struct UserStatus {
        /// Id in the provider's state.
        pub id: Option<String>,
    }
}

model! {
    /// A bucket of Cloud Storage. Its name, the external name, is globally unique.
    pub struct Bucket {
        /// Region, or a multi-region, for example `EU`.
        pub location: Option<String>,
        /// Whether only IAM decides on access, without lists on objects.
        pub uniform_bucket_level_access: Option<bool>,
        /// `enforced`: objects cannot be made public.
        pub public_access_prevention: Option<String>,
        /// Whether a deletion also deletes the objects. If false, a bucket that is not empty stays.
        pub force_destroy: Option<bool>,
        /// Labels.
        pub labels: BTreeMap<String, String>,
    }

    /// The observed state of a bucket.
    pub struct BucketStatus {
        /// Its name.
        pub id: Option<String>,
        /// `gs://<name>`.
        pub url: Option<String>,
        /// Number of the project that owns the bucket.
        pub project_number: Option<i64>,
        /// How long the bucket keeps deleted objects.
        pub soft_delete_policy: Option<SoftDeletePolicy>,
    }

    /// How long a bucket keeps deleted objects.
    pub struct SoftDeletePolicy {
        /// Seconds. 0 if the bucket keeps none.
        pub retention_duration_seconds: Option<i64>,
    }

    /// Grants a role on a bucket to a principal.
    pub struct BucketIamMember {
        /// The bucket.
        pub bucket_selector: Option<Selector>,
        /// The role, for example `roles/storage.objectUser`.
        pub role: Option<String>,
        /// The principal, for example `principalSet://iam.googleapis.com/…`.
        pub member: Option<String>,
    }

    /// Grants a role in a project to a principal.
    pub struct ProjectIamMember {
        /// The project's id.
        pub project: Option<String>,
        /// The role, for example `roles/cloudsql.client`.
        pub role: Option<String>,
        /// The principal, for example `principalSet://iam.googleapis.com/…`.
        pub member: Option<String>,
        /// The limit of the role.
        pub condition: Option<IamCondition>,
    }

    /// The limit of a role.
    pub struct IamCondition {
        /// A short name.
        pub title: Option<String>,
        /// A condition in CEL.
        pub expression: Option<String>,
    }
}
