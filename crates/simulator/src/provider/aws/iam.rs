//! Roles and their permissions.

use serde_json::json;

use super::super::kind_behaviour::{Id, KindBehaviour, Reference, one};
use super::super::rules::{Rules, needed};
use super::{ACCOUNT, KIND};

const ROLE: &[Reference] = &[one("role", "Role"), one("policyArn", "Policy")];

/// IAM has no regions.
const RULES: Rules = Rules { immutable: &[], ..super::RULES };

const HAS_POLICIES: &str = "deleting IAM Role (<name>): operation error IAM: DeleteRole, https \
     response error StatusCode: 409, DeleteConflict: Cannot delete entity, must delete policies \
     first.";

const HAS_PROFILES: &str = "deleting IAM Role (<name>): operation error IAM: DeleteRole, https \
     response error StatusCode: 409, DeleteConflict: Cannot delete entity, must remove roles from \
     instance profile first.";

pub(super) fn behaviour(kind: &str) -> KindBehaviour {
    match kind {
        "Role" => KindBehaviour {
            at_provider: |f| json!({"arn": format!("arn:aws:iam::{ACCOUNT}:role/{}", f.external())}),
            rules: Rules {
                needed_by: const {
                    &[
                        needed("RolePolicyAttachment", "/role", "in use"),
                        needed("RolePolicy", "/role", HAS_POLICIES),
                        needed("InstanceProfile", "/role", HAS_PROFILES),
                    ]
                },
                ..RULES
            },
            ..KIND
        },
        "RolePolicyAttachment" => KindBehaviour {
            id: Id::Assigned("attachment-"),
            references: ROLE,
            rules: Rules { immutable: &["role"], ..RULES },
            ..KIND
        },
        "RolePolicy" => KindBehaviour {
            references: ROLE,
            rules: Rules { immutable: &["role"], ..RULES },
            ..KIND
        },
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
