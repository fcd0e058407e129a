//! RDS: a database server.

use std::collections::BTreeMap;

use crate::models::{Kind, Managed, SecretKeyRef};

impl Managed for Instance {
    const KIND: Kind = Kind::aws("rds", "Instance").versions("v1beta3", "v1beta1");
    type Status = InstanceStatus;
}

model! {
    /// A database server. AWS assigns the external name, `db-…`, once the server is there. Until
    /// then the external name is an identifier under which the provider looks for a server that
    /// exists. Its secret has `endpoint` (host and port), `address` (the host), `port`, `username`
    /// and `password`.
    pub struct Instance {
        /// AWS region.
        pub region: Option<String>,
        /// Name of the server in AWS; none: `terraform-` and a time. A change renames the server.
        pub identifier: Option<String>,
        /// `postgres`.
        pub engine: Option<String>,
        /// Version: a major one alone, such as `16`, leaves the minor one to AWS.
        pub engine_version: Option<String>,
        /// Machine type, such as `db.t4g.micro`.
        pub instance_class: Option<String>,
        /// Disk in GiB; it can only grow.
        pub allocated_storage: Option<i64>,
        /// Disk in GiB up to which AWS grows it; none: it never grows by itself.
        pub max_allocated_storage: Option<i64>,
        /// Volume type, such as `gp3`.
        pub storage_type: Option<String>,
        /// Whether the disk is encrypted at rest.
        pub storage_encrypted: Option<bool>,
        /// The database that comes with it; letters, digits and `_`.
        pub db_name: Option<String>,
        /// The master user.
        pub username: Option<String>,
        /// Whether the provider makes up a password and writes it where `password_secret_ref`
        /// points.
        pub auto_generate_password: Option<bool>,
        /// The master user's password.
        pub password_secret_ref: Option<SecretKeyRef>,
        /// Whether it has a public address.
        pub publicly_accessible: Option<bool>,
        /// The subnets that it may stand in, by the group's name; none: those of the default VPC.
        pub db_subnet_group_name: Option<String>,
        /// Which security groups guard it.
        pub vpc_security_group_ids: Vec<String>,
        /// Days for which backups are kept; 0: none are made.
        pub backup_retention_period: Option<i64>,
        /// Whether a deletion takes the data along; without it `final_snapshot_identifier` must be
        /// given.
        pub skip_final_snapshot: Option<bool>,
        /// Name of the snapshot that a deletion leaves behind.
        pub final_snapshot_identifier: Option<String>,
        /// AWS's own protection: a deletion would hang.
        pub deletion_protection: Option<bool>,
        /// Whether a change of the machine type or the version restarts the server at once. Without
        /// it AWS waits for the maintenance window, and the provider asks again at every look until
        /// then.
        pub apply_immediately: Option<bool>,
        /// Whether AWS goes to newer minor versions in the maintenance window.
        pub auto_minor_version_upgrade: Option<bool>,
        /// Whether snapshots get the server's tags.
        pub copy_tags_to_snapshot: Option<bool>,
        /// Whether AWS keeps what the database spent its time on.
        pub performance_insights_enabled: Option<bool>,
        /// Tags.
        pub tags: BTreeMap<String, String>,
    }

    /// What a server became.
    pub struct InstanceStatus {
        /// Its host.
        pub address: Option<String>,
        /// Its host and port: `<address>:<port>`.
        pub endpoint: Option<String>,
        /// Its port.
        pub port: Option<i64>,
        /// Its ARN.
        pub arn: Option<String>,
        /// `available`, `creating`, `modifying` and the like.
        pub status: Option<String>,
    }
}
