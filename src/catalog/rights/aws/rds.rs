//! RDS: dedicated database servers.

use super::{Condition, SERVICE_ROLES, Scope, all, on};
use crate::catalog::rights::{Rights, create, delete, observe, update};
use crate::models::Managed;
use crate::models::aws::rds;

const DATABASES: &[&str] = &["rds:*:*:db:*"];

pub(super) const DATABASE: Rights<Scope> = Rights {
    kind: rds::Instance::KIND,
    grants: &[
        observe(&["rds:DescribeDBInstances", "rds:ListTagsForResource"], all(DATABASES)),
        create(
            &["rds:AddTagsToResource", "rds:CreateDBInstance"],
            on(DATABASES, Condition::TaggedByRequest),
        ),
        create(
            &["rds:CreateDBInstance"],
            all(&["rds:*:*:og:default:*", "rds:*:*:pg:default.*", "rds:*:*:subgrp:*"]),
        ),
        create(
            &["iam:CreateServiceLinkedRole"],
            on(SERVICE_ROLES, Condition::LinkedTo(&["rds.amazonaws.com"])),
        ),
        update(
            &["rds:AddTagsToResource", "rds:ModifyDBInstance", "rds:RemoveTagsFromResource"],
            on(DATABASES, Condition::Tagged),
        ),
        update(&["rds:ModifyDBInstance"], all(&["rds:*:*:og:default:*", "rds:*:*:pg:default.*"])),
        delete(
            &["rds:CreateDBSnapshot", "rds:DeleteDBInstance", "rds:ModifyDBInstance"],
            on(DATABASES, Condition::Tagged),
        ),
        delete(
            &["rds:AddTagsToResource", "rds:CreateDBSnapshot"],
            all(&["rds:*:*:snapshot:*-final"]),
        ),
    ],
};
