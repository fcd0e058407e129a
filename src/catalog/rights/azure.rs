//! The rights in Azure: actions of role definitions.
//!
//! Sources: terraform-provider-azurerm at 69697b7 (August 2026),
//! `internal/services/containers/kubernetes_cluster_resource.go`: it reads the credentials of
//! users, and those of administrators only for clusters with local accounts. Names of actions:
//! Azure's resource provider operations for Microsoft.ContainerService, Microsoft.ManagedIdentity
//! and Microsoft.Resources.

use super::{Rights, create, delete, observe, update};
use crate::models::{Managed, azure};

/// The scope of a role assignment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// The resource group of Settings.
    Group,
    /// The identity of Settings that clusters use.
    Identity,
}

/// The rights of each kind.
pub static RIGHTS: &[Rights<Scope>] = &[Rights {
    kind: azure::KubernetesCluster::KIND,
    grants: &[
        observe(
            &[
                "Microsoft.ContainerService/managedClusters/read",
                "Microsoft.ContainerService/managedClusters/agentPools/read",
                "Microsoft.ContainerService/managedClusters/listClusterUserCredential/action",
                "Microsoft.Resources/subscriptions/resourceGroups/read",
            ],
            Scope::Group,
        ),
        create(&["Microsoft.ContainerService/managedClusters/write"], Scope::Group),
        create(
            &[
                "Microsoft.ManagedIdentity/userAssignedIdentities/read",
                "Microsoft.ManagedIdentity/userAssignedIdentities/assign/action",
            ],
            Scope::Identity,
        ),
        update(
            &[
                "Microsoft.ContainerService/managedClusters/write",
                "Microsoft.ContainerService/managedClusters/agentPools/write",
            ],
            Scope::Group,
        ),
        delete(&["Microsoft.ContainerService/managedClusters/delete"], Scope::Group),
    ],
}];
