//! RDS: a database server.

use std::collections::BTreeMap;

use crate::models::{Kind, Managed, SecretKeyRef};

impl Managed for Instance {
    const KIND: Kind = Kind::aws("rds", "Instance").versions("v1beta3", "v1beta1");
    type Status = InstanceStatus;
}

model! {
    /// A database server. AWS assigns the external name, `db-…`, once the server exists. Until then
    /// the external name is an identifier, with which the provider looks for an existing server.
    /// Its secret has `endpoint` (host and port), `address` (the host), `port`, `username` and
    /// `password`.
    pub struct Instance {
        /// AWS region.
        pub region: Option<String>,
        /// Name of the server in AWS. Absent: `terraform-` and a time. A change renames the server.
        pub identifier: Option<String>,
        /// `postgres`.
        pub engine: Option<String>,
        /// Version. For a major version, for example `16`, AWS chooses the minor version.
        pub engine_version: Option<String>,
        /// Machine type, for example `db.t4g.micro`.
        pub instance_class: Option<String>,
        /// Disk in GiB. It can only grow.
        pub allocated_storage: Option<i64>,
        /// Size in GiB up to which AWS grows the disk automatically. Absent: it does not grow it.
        pub max_allocated_storage: Option<i64>,
        /// Volume type, for example `gp3`.
        pub storage_type: Option<String>,
        /// Whether the disk is encrypted at rest.
        pub storage_encrypted: Option<bool>,
        /// The first database on the server. Its name has letters, digits and `_`.
        pub db_name: Option<String>,
        /// The master user.
        pub username: Option<String>,
        /// Whether the provider generates a password and writes it to `password_secret_ref`.
        pub auto_generate_password: Option<bool>,
        /// The master user's password.
        pub password_secret_ref: Option<SecretKeyRef>,
        /// Whether it has a public address.
        pub publicly_accessible: Option<bool>,
        /// Name of the group of subnets for the server. Absent: the subnets of the default VPC.
        pub db_subnet_group_name: Option<String>,
        /// The server's security groups.
        pub vpc_security_group_ids: Vec<String>,
        /// Retention of backups in days. 0: no backups.
        pub backup_retention_period: Option<i64>,
        /// Whether a deletion also deletes the data. If false, `final_snapshot_identifier` is
        /// required.
        pub skip_final_snapshot: Option<bool>,
        /// Name of the snapshot that remains after a deletion.
        pub final_snapshot_identifier: Option<String>,
        /// AWS's own protection. A deletion would hang.
        pub deletion_protection: Option<bool>,
        /// Whether a change of the machine type or the version restarts the server at once. If
        /// false, AWS waits for the maintenance window. Until then the provider requests the change
        /// at every observation.
        pub apply_immediately: Option<bool>,
        /// Whether AWS installs newer minor versions in the maintenance window.
        pub auto_minor_version_upgrade: Option<bool>,
        /// Whether snapshots get the server's tags.
        pub copy_tags_to_snapshot: Option<bool>,
        /// Whether AWS records how the database spends its time.
        pub performance_insights_enabled: Option<bool>,
        /// Tags.
        pub tags: BTreeMap<String, String>,
    }

    /// The observed state of a server.
    pub struct InstanceStatus {
        /// Its host.
        pub address: Option<String>,
        /// Its host and port: `<address>:<port>`.
        pub endpoint: Option<String>,
        /// Its port.
        pub port: Option<i64>,
        /// Its ARN.
        pub arn: Option<String>,
        /// For example `available`, `creating` or `modifying`.
        pub status: Option<String>,
    }
}
