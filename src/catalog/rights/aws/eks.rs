//! EKS: clusters, their nodes and add-ons.

use super::{ANYTHING, Condition, SERVICE_ROLES, Scope, all, on};
use crate::catalog::rights::{Rights, create, delete, observe, update};
use crate::models::Managed;
use crate::models::aws::eks;

const CLUSTERS: &[&str] = &["eks:*:*:cluster/*"];
const NODE_GROUPS: &[&str] = &["eks:*:*:nodegroup/*"];
const ADD_ONS: &[&str] = &["eks:*:*:addon/*"];
const POD_IDENTITIES: &[&str] = &["eks:*:*:podidentityassociation/*"];
const CLUSTER_ROLE: &[&str] = &["/environment/eks/clusterRoleArn"];
const NODE_ROLE: &[&str] = &["/environment/eks/nodeRoleArn"];
const DRIVER_ROLE: &[&str] = &["/environment/eks/ebsCsiRoleArn"];

pub(super) const CLUSTER: Rights<Scope> = Rights {
    kind: eks::Cluster::KIND,
    grants: &[
        observe(&["eks:DescribeCluster", "eks:DescribeUpdate"], all(CLUSTERS)),
        // EKS looks at the subnets with the caller's rights.
        create(
            &["ec2:DescribeSecurityGroups", "ec2:DescribeSubnets", "ec2:DescribeVpcs"],
            ANYTHING,
        ),
        create(&["eks:CreateCluster"], on(&["*"], Condition::TaggedByRequest)),
        create(&["eks:TagResource"], on(CLUSTERS, Condition::TaggedByRequest)),
        create(&["iam:GetRole"], all(CLUSTER_ROLE)),
        create(&["iam:PassRole"], on(CLUSTER_ROLE, Condition::PassedTo(&["eks"]))),
        create(
            &["iam:CreateServiceLinkedRole"],
            on(SERVICE_ROLES, Condition::LinkedTo(&["eks.amazonaws.com"])),
        ),
        update(
            &[
                "eks:TagResource",
                "eks:UntagResource",
                "eks:UpdateClusterConfig",
                "eks:UpdateClusterVersion",
            ],
            on(CLUSTERS, Condition::Tagged),
        ),
        delete(&["eks:DeleteCluster"], on(CLUSTERS, Condition::Tagged)),
    ],
};

pub(super) const NODE_GROUP: Rights<Scope> = Rights {
    kind: eks::NodeGroup::KIND,
    grants: &[
        observe(&["eks:DescribeNodegroup", "eks:DescribeUpdate"], all(NODE_GROUPS)),
        create(&["ec2:DescribeSubnets"], ANYTHING),
        create(&["eks:CreateNodegroup"], on(CLUSTERS, Condition::TaggedByRequest)),
        create(&["eks:TagResource"], on(NODE_GROUPS, Condition::TaggedByRequest)),
        create(&["iam:GetRole", "iam:ListAttachedRolePolicies"], all(NODE_ROLE)),
        // EKS passes the role on to the machines.
        create(&["iam:PassRole"], on(NODE_ROLE, Condition::PassedTo(&["ec2", "eks"]))),
        create(
            &["iam:CreateServiceLinkedRole"],
            on(SERVICE_ROLES, Condition::LinkedTo(&["eks-nodegroup.amazonaws.com"])),
        ),
        update(
            &[
                "eks:TagResource",
                "eks:UntagResource",
                "eks:UpdateNodegroupConfig",
                "eks:UpdateNodegroupVersion",
            ],
            on(NODE_GROUPS, Condition::Tagged),
        ),
        delete(&["eks:DeleteNodegroup"], on(NODE_GROUPS, Condition::Tagged)),
    ],
};

/// The token of the kubeconfig is a signed request that needs no right.
pub(super) const CLUSTER_AUTH: Rights<Scope> = Rights {
    kind: eks::ClusterAuth::KIND,
    grants: &[observe(&["eks:DescribeCluster"], all(CLUSTERS))],
};

pub(super) const ADD_ON: Rights<Scope> = Rights {
    kind: eks::Addon::KIND,
    grants: &[
        observe(&["eks:DescribeAddon", "eks:DescribeUpdate"], all(ADD_ONS)),
        observe(&["eks:DescribePodIdentityAssociation"], all(POD_IDENTITIES)),
        create(&["eks:CreateAddon"], on(CLUSTERS, Condition::TaggedByRequest)),
        create(&["eks:TagResource"], on(ADD_ONS, Condition::TaggedByRequest)),
        create(&["eks:CreatePodIdentityAssociation"], all(CLUSTERS)),
        create(&["iam:GetRole"], all(DRIVER_ROLE)),
        create(&["iam:PassRole"], on(DRIVER_ROLE, Condition::PassedTo(&["pods.eks"]))),
        update(
            &["eks:TagResource", "eks:UntagResource", "eks:UpdateAddon"],
            on(ADD_ONS, Condition::Tagged),
        ),
        update(&["eks:UpdatePodIdentityAssociation"], all(POD_IDENTITIES)),
        delete(&["eks:DeleteAddon"], on(ADD_ONS, Condition::Tagged)),
        delete(&["eks:DeletePodIdentityAssociation"], all(POD_IDENTITIES)),
    ],
};
