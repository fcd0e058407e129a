//! IAM: roles of machines and drivers.

use super::{Condition, ROLES, Scope, all, on};
use crate::catalog::rights::{Rights, create, delete, observe, update};
use crate::models::Managed;
use crate::models::aws::iam;

const PROFILES: &[&str] = &["iam::*:instance-profile/*"];

/// AWS's own policies that roles get, by the API that composes the role.
pub const POLICIES: &[(&str, &str)] = &[
    // Only in environments of schema revision 1.
    ("gpu-workspace", "AmazonSSMManagedInstanceCore"),
    ("virtual-environment", "service-role/AmazonEBSCSIDriverPolicy"),
];

pub(super) const ROLE: Rights<Scope> = Rights {
    kind: iam::Role::KIND,
    grants: &[
        observe(
            &[
                "iam:GetRole",
                "iam:GetRolePolicy",
                "iam:ListAttachedRolePolicies",
                "iam:ListInstanceProfilesForRole",
                "iam:ListRolePolicies",
            ],
            all(ROLES),
        ),
        create(&["iam:CreateRole", "iam:TagRole"], on(ROLES, Condition::TaggedByRequest)),
        update(
            &[
                "iam:TagRole",
                "iam:UntagRole",
                "iam:UpdateAssumeRolePolicy",
                "iam:UpdateRole",
                "iam:UpdateRoleDescription",
            ],
            on(ROLES, Condition::Tagged),
        ),
        delete(
            &["iam:DeleteRole", "iam:DeleteRolePolicy", "iam:DetachRolePolicy"],
            on(ROLES, Condition::Tagged),
        ),
        delete(&["iam:RemoveRoleFromInstanceProfile"], on(PROFILES, Condition::Tagged)),
    ],
};

pub(super) const ROLE_POLICY: Rights<Scope> = Rights {
    kind: iam::RolePolicy::KIND,
    grants: &[
        observe(&["iam:GetRolePolicy"], all(ROLES)),
        create(&["iam:PutRolePolicy"], on(ROLES, Condition::Tagged)),
        delete(&["iam:DeleteRolePolicy"], on(ROLES, Condition::Tagged)),
    ],
};

pub(super) const ROLE_POLICY_ATTACHMENT: Rights<Scope> = Rights {
    kind: iam::RolePolicyAttachment::KIND,
    grants: &[
        observe(&["iam:ListAttachedRolePolicies"], all(ROLES)),
        create(&["iam:AttachRolePolicy"], on(ROLES, Condition::TaggedForPolicies)),
        delete(&["iam:DetachRolePolicy"], on(ROLES, Condition::TaggedForPolicies)),
    ],
};

pub(super) const INSTANCE_PROFILE: Rights<Scope> = Rights {
    kind: iam::InstanceProfile::KIND,
    grants: &[
        observe(&["iam:GetInstanceProfile"], all(PROFILES)),
        create(
            &["iam:CreateInstanceProfile", "iam:TagInstanceProfile"],
            on(PROFILES, Condition::TaggedByRequest),
        ),
        create(&["iam:AddRoleToInstanceProfile"], on(PROFILES, Condition::Tagged)),
        create(&["iam:PassRole"], on(ROLES, Condition::PassedTo(&["ec2"]))),
        update(
            &["iam:TagInstanceProfile", "iam:UntagInstanceProfile"],
            on(PROFILES, Condition::Tagged),
        ),
        delete(
            &["iam:DeleteInstanceProfile", "iam:RemoveRoleFromInstanceProfile"],
            on(PROFILES, Condition::Tagged),
        ),
    ],
};
