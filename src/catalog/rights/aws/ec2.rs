//! EC2: machines and their firewall.

use super::{ANYTHING, Condition, ROLES, Scope, all, on};
use crate::catalog::rights::{Grant, Rights, create, delete, observe, update};
use crate::models::Managed;
use crate::models::aws::ec2;

const INSTANCES: &[&str] = &["ec2:*:*:instance/*"];
const VOLUMES: &[&str] = &["ec2:*:*:volume/*"];
const SECURITY_GROUPS: &[&str] = &["ec2:*:*:security-group/*"];
const SECURITY_GROUP_RULES: &[&str] = &["ec2:*:*:security-group-rule/*"];

pub(super) const INSTANCE: Rights<Scope> = Rights {
    kind: ec2::Instance::KIND,
    grants: &[
        observe(
            &[
                "ec2:DescribeIamInstanceProfileAssociations",
                "ec2:DescribeImages",
                "ec2:DescribeInstanceCreditSpecifications",
                "ec2:DescribeInstanceTypes",
                "ec2:DescribeInstances",
                "ec2:DescribeTags",
                "ec2:DescribeVolumes",
                "ec2:DescribeVolumesModifications",
                "ec2:DescribeVpcs",
            ],
            ANYTHING,
        ),
        observe(&["ec2:DescribeInstanceAttribute"], all(INSTANCES)),
        create(&["ec2:RunInstances"], on(INSTANCES, Condition::TaggedByRequest)),
        create(&["ec2:RunInstances"], on(SECURITY_GROUPS, Condition::Tagged)),
        create(
            &["ec2:RunInstances"],
            all(&[
                "ec2:*::image/*",
                "ec2:*:*:network-interface/*",
                "ec2:*:*:subnet/*",
                "ec2:*:*:volume/*",
            ]),
        ),
        create(&["ec2:CreateTags"], on(INSTANCES, Condition::CreatedBy(&["RunInstances"]))),
        create(&["ec2:CreateTags"], on(VOLUMES, Condition::ManagedByRequest)),
        create(&["iam:PassRole"], on(ROLES, Condition::PassedTo(&["ec2"]))),
        update(
            &[
                "ec2:CreateTags",
                "ec2:DeleteTags",
                "ec2:ModifyInstanceAttribute",
                "ec2:ModifyInstanceMetadataOptions",
                "ec2:StartInstances",
                "ec2:StopInstances",
            ],
            on(INSTANCES, Condition::Tagged),
        ),
        update(
            &["ec2:CreateTags", "ec2:DeleteTags", "ec2:ModifyVolume"],
            on(VOLUMES, Condition::Managed),
        ),
        delete(
            &["ec2:ModifyInstanceAttribute", "ec2:TerminateInstances"],
            on(INSTANCES, Condition::Tagged),
        ),
    ],
};

/// Its deletion changes no machine.
pub(super) const INSTANCE_STATE: Rights<Scope> = Rights {
    kind: ec2::InstanceState::KIND,
    grants: &[
        observe(&["ec2:DescribeInstanceStatus", "ec2:DescribeInstances"], ANYTHING),
        create(&["ec2:StartInstances", "ec2:StopInstances"], on(INSTANCES, Condition::Tagged)),
        update(&["ec2:StartInstances", "ec2:StopInstances"], on(INSTANCES, Condition::Tagged)),
    ],
};

pub(super) const SECURITY_GROUP: Rights<Scope> = Rights {
    kind: ec2::SecurityGroup::KIND,
    grants: &[
        observe(
            &[
                "ec2:DescribeNetworkInterfaces",
                "ec2:DescribeSecurityGroupRules",
                "ec2:DescribeSecurityGroups",
            ],
            ANYTHING,
        ),
        create(&["ec2:CreateSecurityGroup"], on(SECURITY_GROUPS, Condition::TaggedByRequest)),
        create(&["ec2:CreateSecurityGroup"], all(&["ec2:*:*:vpc/*"])),
        create(
            &["ec2:CreateTags"],
            on(SECURITY_GROUPS, Condition::CreatedBy(&["CreateSecurityGroup"])),
        ),
        // AWS's own rule, which allows all egress.
        create(&["ec2:RevokeSecurityGroupEgress"], on(SECURITY_GROUPS, Condition::Tagged)),
        update(&["ec2:CreateTags", "ec2:DeleteTags"], on(SECURITY_GROUPS, Condition::Tagged)),
        delete(&["ec2:DeleteSecurityGroup"], on(SECURITY_GROUPS, Condition::Tagged)),
    ],
};

const OBSERVE_RULE: Grant<Scope> = observe(&["ec2:DescribeSecurityGroupRules"], ANYTHING);
const TAG_NEW_RULE: Grant<Scope> =
    create(&["ec2:CreateTags"], on(SECURITY_GROUP_RULES, Condition::TaggedByRequest));
const UPDATE_RULE: [Grant<Scope>; 2] = [
    update(&["ec2:ModifySecurityGroupRules"], on(SECURITY_GROUPS, Condition::Tagged)),
    update(
        &["ec2:CreateTags", "ec2:DeleteTags", "ec2:ModifySecurityGroupRules"],
        on(SECURITY_GROUP_RULES, Condition::Tagged),
    ),
];

pub(super) const INGRESS_RULE: Rights<Scope> = Rights {
    kind: ec2::SecurityGroupIngressRule::KIND,
    grants: &[
        OBSERVE_RULE,
        create(&["ec2:AuthorizeSecurityGroupIngress"], on(SECURITY_GROUPS, Condition::Tagged)),
        create(&["ec2:AuthorizeSecurityGroupIngress"], all(SECURITY_GROUP_RULES)),
        TAG_NEW_RULE,
        UPDATE_RULE[0],
        UPDATE_RULE[1],
        delete(&["ec2:RevokeSecurityGroupIngress"], on(SECURITY_GROUPS, Condition::Tagged)),
    ],
};

pub(super) const EGRESS_RULE: Rights<Scope> = Rights {
    kind: ec2::SecurityGroupEgressRule::KIND,
    grants: &[
        OBSERVE_RULE,
        create(&["ec2:AuthorizeSecurityGroupEgress"], on(SECURITY_GROUPS, Condition::Tagged)),
        create(&["ec2:AuthorizeSecurityGroupEgress"], all(SECURITY_GROUP_RULES)),
        TAG_NEW_RULE,
        UPDATE_RULE[0],
        UPDATE_RULE[1],
        delete(&["ec2:RevokeSecurityGroupEgress"], on(SECURITY_GROUPS, Condition::Tagged)),
    ],
};
