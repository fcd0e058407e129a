//! The rights in Google Cloud: permissions of custom roles.
//!
//! Sources: terraform-provider-google at e03b762 (August 2026), `google/services/container`,
//! `sql`, `storage` and `resourcemanager`, for the methods that it calls. The IAM references of
//! these services have the permission of each method.

use super::{Grant, Rights, create, delete, observe, update};
use crate::models::{Managed, gcp};

/// The scope of a granted role.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// The project.
    Project,
    /// The service account of the nodes. In the whole project, the right would give the rights of
    /// every service account.
    NodeAccount,
    /// The project, with a condition: the grantee may grant and withdraw these roles only.
    ProjectPolicy(&'static [&'static str]),
}

/// The role that application environments grant in the project.
pub const DATABASE_CLIENT: &str = "roles/cloudsql.client";

/// GKE creates nodes only for a caller with the right to use their service account.
const NODES: Grant<Scope> = create(&["iam.serviceAccounts.actAs"], Scope::NodeAccount);

const fn observe_in_project(permissions: &'static [&'static str]) -> Grant<Scope> {
    observe(permissions, Scope::Project)
}

/// The rights of each kind.
pub static RIGHTS: &[Rights<Scope>] = &[
    Rights {
        kind: gcp::Cluster::KIND,
        grants: &[
            observe_in_project(&["container.clusters.get", "container.operations.get"]),
            create(&["container.clusters.create"], Scope::Project),
            NODES,
            // The removal of the default pool is an update too.
            update(&["container.clusters.update"], Scope::Project),
            delete(&["container.clusters.delete"], Scope::Project),
        ],
    },
    Rights {
        kind: gcp::NodePool::KIND,
        grants: &[
            observe_in_project(&[
                "container.clusters.get",
                "container.operations.get",
                "compute.instanceGroupManagers.get",
                "compute.instanceGroupManagers.list",
            ]),
            create(&["container.clusters.update"], Scope::Project),
            NODES,
            update(&["container.clusters.update"], Scope::Project),
            delete(&["container.clusters.update"], Scope::Project),
        ],
    },
    Rights {
        kind: gcp::DatabaseInstance::KIND,
        grants: &[
            // Operations of Cloud SQL are read with the right to read the server. After the
            // creation, the provider looks for the root user that MySQL would have.
            observe_in_project(&["cloudsql.instances.get", "cloudsql.users.list"]),
            create(&["cloudsql.instances.create"], Scope::Project),
            update(&["cloudsql.instances.update"], Scope::Project),
            delete(&["cloudsql.instances.delete"], Scope::Project),
        ],
    },
    Rights {
        kind: gcp::Database::KIND,
        // Deleted with its server.
        grants: &[
            observe_in_project(&["cloudsql.databases.get", "cloudsql.instances.get"]),
            create(&["cloudsql.databases.create"], Scope::Project),
            update(&["cloudsql.databases.update"], Scope::Project),
        ],
    },
    Rights {
        kind: gcp::User::KIND,
        // Deleted with its server.
        grants: &[
            observe_in_project(&["cloudsql.users.list", "cloudsql.instances.get"]),
            create(&["cloudsql.users.create"], Scope::Project),
            update(&["cloudsql.users.update"], Scope::Project),
        ],
    },
    Rights {
        kind: gcp::Bucket::KIND,
        grants: &[
            observe_in_project(&["storage.buckets.get"]),
            create(&["storage.buckets.create"], Scope::Project),
            update(&["storage.buckets.update"], Scope::Project),
            // The provider first deletes the objects.
            delete(
                &["storage.buckets.delete", "storage.objects.list", "storage.objects.delete"],
                Scope::Project,
            ),
        ],
    },
    Rights {
        kind: gcp::BucketIamMember::KIND,
        grants: &[
            observe_in_project(&["storage.buckets.getIamPolicy"]),
            create(&["storage.buckets.setIamPolicy"], Scope::Project),
            delete(&["storage.buckets.setIamPolicy"], Scope::Project),
        ],
    },
    Rights {
        kind: gcp::ProjectIamMember::KIND,
        grants: &[
            observe_in_project(&["resourcemanager.projects.getIamPolicy"]),
            create(
                &["resourcemanager.projects.setIamPolicy"],
                Scope::ProjectPolicy(&[DATABASE_CLIENT]),
            ),
            delete(
                &["resourcemanager.projects.setIamPolicy"],
                Scope::ProjectPolicy(&[DATABASE_CLIENT]),
            ),
        ],
    },
];
