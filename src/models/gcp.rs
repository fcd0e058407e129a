//! Google Cloud: clusters, databases, buckets, and who may use them.
//!
//! Fields and their types are those of provider-upjet-gcp 3.0; both flavours take the same ones.

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
        /// Region or zone; a regional cluster has nodes in three zones.
        pub location: Option<String>,
        /// Zones of the nodes, all of the cluster's region; none: Google chooses.
        pub node_locations: Vec<String>,
        /// The VPC network, by name.
        pub network: Option<String>,
        /// The subnet of the nodes, by name; none: that of the region in an automatic network.
        pub subnetwork: Option<String>,
        /// `VPC_NATIVE`: pods have addresses of the VPC, which a private database can answer.
        pub networking_mode: Option<String>,
        /// Secondary ranges of the subnet; none: GKE makes them.
        pub ip_allocation_policy: Option<IpAllocationPolicy>,
        /// Whether the pool that GKE insists on making is removed; node pools are resources of
        /// their own.
        pub remove_default_node_pool: Option<bool>,
        /// Nodes of the pool that is removed; GKE wants at least 1.
        pub initial_node_count: Option<i64>,
        /// Machines of the pool that is removed. Set this in `initProvider` only: once that pool is
        /// removed, GKE returns the machines of another pool here, and the provider would try to
        /// change a pool that no longer exists.
        pub node_config: Option<NodeConfig>,
        /// Whether nodes and API server have public addresses.
        pub private_cluster_config: Option<PrivateClusterConfig>,
        /// Who reaches the API server; absent: everyone.
        pub master_authorized_networks_config: Option<MasterAuthorizedNetworksConfig>,
        /// Who chooses the version.
        pub release_channel: Option<ReleaseChannel>,
        /// Lets pods act as Google service accounts without keys.
        pub workload_identity_config: Option<WorkloadIdentityConfig>,
        /// The provider's own protection, true unless said otherwise: a deletion would hang.
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
        /// Nodes have private addresses only: without Cloud NAT they reach nothing outside of
        /// Google.
        pub enable_private_nodes: Option<bool>,
        /// The API server has a private address only.
        pub enable_private_endpoint: Option<bool>,
        /// The API server's own network, a `/28`; none: GKE takes addresses of the subnet.
        pub master_ipv4_cidr_block: Option<String>,
    }

    /// Who reaches an API server, beside the cluster's own nodes.
    pub struct MasterAuthorizedNetworksConfig {
        /// From where; none: from nowhere.
        pub cidr_blocks: Vec<CidrBlock>,
        /// Whether everything with a public address of Google Cloud's reaches it too.
        pub gcp_public_cidrs_access_enabled: Option<bool>,
    }

    /// A network that reaches an API server.
    pub struct CidrBlock {
        /// The network.
        pub cidr_block: Option<String>,
        /// What it is called in the console.
        pub display_name: Option<String>,
    }

    /// Which stream of GKE releases a cluster follows.
    pub struct ReleaseChannel {
        /// `RAPID`, `REGULAR`, `STABLE` or `EXTENDED`.
        pub channel: Option<String>,
    }

    /// Where pods' identities come from.
    pub struct WorkloadIdentityConfig {
        /// `<project>.svc.id.goog`.
        pub workload_pool: Option<String>,
    }

    /// What a cluster became.
    pub struct ClusterStatus {
        /// Path of the cluster: `projects/…/locations/…/clusters/…`.
        pub id: Option<String>,
        /// Address of its API server, without a scheme.
        pub endpoint: Option<String>,
    }
}

/// `initProvider` of a cluster whose first pool is removed: its machines have small disks of the
/// cheapest type. GKE makes the pool before it can be removed, and the usual disks of three zones
/// are more than a new project's quota of SSDs allows.
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
        /// What GKE does on its own.
        pub management: Option<NodeManagement>,
        /// What the machines are like.
        pub node_config: Option<NodeConfig>,
    }

    /// What GKE does to nodes on its own; a release channel wants both.
    pub struct NodeManagement {
        /// Replace nodes that are not healthy.
        pub auto_repair: Option<bool>,
        /// Follow the version of the control plane.
        pub auto_upgrade: Option<bool>,
    }

    /// What the machines of a pool are like.
    pub struct NodeConfig {
        /// Machine type, such as `e2-medium`.
        pub machine_type: Option<String>,
        /// Size of the boot disk in GB.
        pub disk_size_gb: Option<i64>,
        /// Type of the boot disk, such as `pd-standard`.
        pub disk_type: Option<String>,
        /// Which of Google's APIs the nodes' own service account can use; IAM decides on what
        /// there.
        pub oauth_scopes: Vec<String>,
        /// What the machine may boot.
        pub shielded_instance_config: Option<ShieldedInstanceConfig>,
        /// What pods see of the machine's metadata.
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

    /// What pods see of the machine's metadata.
    pub struct WorkloadMetadataConfig {
        /// `GKE_METADATA`: workload identity; only in a cluster that has it.
        pub mode: Option<String>,
    }

    /// What a node pool became.
    pub struct NodePoolStatus {
        /// Path of the pool.
        pub id: Option<String>,
    }
}

model! {
    /// A Cloud SQL server. A name is blocked for a week after its deletion.
    pub struct DatabaseInstance {
        /// Region.
        pub region: Option<String>,
        /// Engine and major version, such as `POSTGRES_17`.
        pub database_version: Option<String>,
        /// The provider's own protection, true unless said otherwise: a deletion would hang.
        pub deletion_protection: Option<bool>,
        /// Everything else.
        pub settings: Option<DatabaseSettings>,
    }

    /// What a Cloud SQL server is like.
    pub struct DatabaseSettings {
        /// Machine type, such as `db-g1-small` (shared) or `db-custom-2-7680`.
        pub tier: Option<String>,
        /// `ENTERPRISE` or `ENTERPRISE_PLUS`; from PostgreSQL 16 on shared and custom tiers need
        /// the former said.
        pub edition: Option<String>,
        /// Disk in GB; it can only grow.
        pub disk_size: Option<i64>,
        /// `PD_SSD` or `PD_HDD`.
        pub disk_type: Option<String>,
        /// Whether Google grows the disk by itself, beyond what was asked for.
        pub disk_autoresize: Option<bool>,
        /// `ZONAL` or `REGIONAL`.
        pub availability_type: Option<String>,
        /// Google's own protection, beside the provider's.
        pub deletion_protection_enabled: Option<bool>,
        /// Backups.
        pub backup_configuration: Option<BackupConfiguration>,
        /// Who can connect.
        pub ip_configuration: Option<IpConfiguration>,
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

    /// Who can connect to a server. It lists no networks: connectors prove who they are instead.
    pub struct IpConfiguration {
        /// Whether it has a public address.
        pub ipv4_enabled: Option<bool>,
        /// The VPC network where it has a private one: `projects/…/global/networks/…`.
        pub private_network: Option<String>,
        /// `ENCRYPTED_ONLY`: no connection without TLS.
        pub ssl_mode: Option<String>,
    }

    /// What a server became.
    pub struct DatabaseInstanceStatus {
        /// `project:region:instance`, what Cloud SQL's connectors take.
        pub connection_name: Option<String>,
        /// The first of its addresses.
        pub first_ip_address: Option<String>,
        /// Public IPv4 address.
        pub public_ip_address: Option<String>,
        /// Private IPv4 address.
        pub private_ip_address: Option<String>,
    }
}

model! {
    /// A database on a server.
    pub struct Database {
        /// The server.
        pub instance_selector: Option<Selector>,
        /// Character set, such as `UTF8`.
        pub charset: Option<String>,
        /// `ABANDON`: it goes with its server. PostgreSQL drops no database that is in use.
        pub deletion_policy: Option<String>,
    }

    /// What a database became.
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
        /// `ABANDON`: it goes with its server. PostgreSQL drops no role that owns objects.
        pub deletion_policy: Option<String>,
    }

    /// What a user became.
    pub struct UserStatus {
        /// Id in the provider's state.
        pub id: Option<String>,
    }
}

model! {
    /// A bucket of Cloud Storage. Its name, the external name, is unique in the world.
    pub struct Bucket {
        /// Region, or a multi-region such as `EU`.
        pub location: Option<String>,
        /// Whether IAM alone decides on access, without lists on objects.
        pub uniform_bucket_level_access: Option<bool>,
        /// `enforced`: nothing can be made public.
        pub public_access_prevention: Option<String>,
        /// Whether a deletion takes the objects along; without it a bucket that is not empty stays.
        pub force_destroy: Option<bool>,
        /// Labels.
        pub labels: BTreeMap<String, String>,
    }

    /// What a bucket became.
    pub struct BucketStatus {
        /// Its name.
        pub id: Option<String>,
        /// `gs://<name>`.
        pub url: Option<String>,
        /// Number of the project that owns the bucket.
        pub project_number: Option<i64>,
    }

    /// Gives a principal a role on a bucket.
    pub struct BucketIamMember {
        /// The bucket.
        pub bucket_selector: Option<Selector>,
        /// The role, such as `roles/storage.objectUser`.
        pub role: Option<String>,
        /// The principal, such as `principalSet://iam.googleapis.com/…`.
        pub member: Option<String>,
    }

    /// Gives a principal a role in a project.
    pub struct ProjectIamMember {
        /// The project's id.
        pub project: Option<String>,
        /// The role, such as `roles/cloudsql.client`.
        pub role: Option<String>,
        /// The principal, such as `principalSet://iam.googleapis.com/…`.
        pub member: Option<String>,
        /// What the role is limited to.
        pub condition: Option<IamCondition>,
    }

    /// What a role is limited to.
    pub struct IamCondition {
        /// A short name.
        pub title: Option<String>,
        /// A condition in CEL.
        pub expression: Option<String>,
    }
}
