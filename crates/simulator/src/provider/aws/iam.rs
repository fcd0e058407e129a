//! Roles and their permissions.

use serde_json::json;

use super::super::kind_behaviour::{Id, KindBehaviour, Reference, one};
use super::super::rules::{Dependent, Rules, needed};
use super::{ACCOUNT, KIND};

const ROLE: &[Reference] = &[one("role", "Role"), one("policyArn", "Policy")];

/// IAM has no regions.
const RULES: Rules = Rules { immutable: &[], ..super::RULES };

/// A provider deletes the policies of a role with it, and detaches its managed policies.
const PART_OF_ROLE: Rules = Rules { part_of: Some("role"), immutable: &["role"], ..RULES };

const HAS_POLICIES: &str = "deleting IAM Role (<name>): operation error IAM: DeleteRole, https \
     response error StatusCode: 409, DeleteConflict: Cannot delete entity, must delete policies \
     first.";

/// The field of a role that makes its provider detach and delete its policies first.
const FORCE: Option<&str> = Some("forceDetachPolicies");

pub(super) fn behaviour(kind: &str) -> KindBehaviour {
    match kind {
        "Role" => KindBehaviour {
            at_provider: |f| json!({"arn": format!("arn:aws:iam::{ACCOUNT}:role/{}", f.external())}),
            rules: Rules {
                // The provider always removes a role from its instance profiles first
                // (terraform-provider-aws, internal/service/iam/role.go, DeleteRole).
                needed_by: const {
                    &[
                        Dependent {
                            unless: FORCE,
                            ..needed("RolePolicyAttachment", "/role", "in use")
                        },
                        Dependent { unless: FORCE, ..needed("RolePolicy", "/role", HAS_POLICIES) },
                    ]
                },
                ..RULES
            },
            ..KIND
        },
        "RolePolicyAttachment" => KindBehaviour {
            id: Id::Assigned("attachment-"),
            references: ROLE,
            rules: PART_OF_ROLE,
            ..KIND
        },
        "RolePolicy" => KindBehaviour { references: ROLE, rules: PART_OF_ROLE, ..KIND },
        "InstanceProfile" => KindBehaviour {
            references: ROLE,
            at_provider: |f| {
                let arn = format!("arn:aws:iam::{ACCOUNT}:instance-profile/{}", f.external());
                json!({"arn": arn})
            },
            rules: RULES,
            ..KIND
        },
        _ => KindBehaviour { rules: RULES, ..KIND },
    }
}
