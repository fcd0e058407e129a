//! The rights in AWS: actions of IAM policies, with resources and conditions.
//!
//! Sources: terraform-provider-aws, `internal/service/{ec2,iam,s3,cloudfront,rds,eks}`, for the
//! API calls of each resource. AWS's Service Authorization Reference (August 2026) has the actions,
//! resources and condition keys. The rights that EKS checks for the caller of CreateNodegroup are
//! in aws-controllers-k8s/community issue 2164.
//!
//! The provider tags every resource with `crossplane-kind`, if its kind has tags
//! (crossplane-runtime `pkg/resource/resource.go`). The rights to change and delete are limited to
//! resources with this tag. Resources without tags are exceptions: docs/reference/cloud-rights.md
//! lists them.

mod ec2;
mod eks;
mod iam;
mod rds;
mod site;

pub use iam::POLICIES;

use super::{Grant, Rights, observe, update};

/// The resources and the condition of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scope {
    /// ARNs without `arn:PARTITION:`, or `*`. An entry with a leading `/` is the path of an ARN in
    /// Settings. Without this setting, the entry means all roles.
    pub resources: &'static [&'static str],
    /// The condition.
    pub condition: Condition,
}

/// A condition of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// No condition.
    None,
    /// The request has the provider's tag.
    TaggedByRequest,
    /// The resource has the provider's tag.
    Tagged,
    /// The request has the tag `ManagedBy`, as all tags of a workspace's disk.
    ManagedByRequest,
    /// The resource has the tag `ManagedBy`.
    Managed,
    /// The tags come with one of these EC2 actions, which create the resource.
    CreatedBy(&'static [&'static str]),
    /// The role is passed to one of these services.
    PassedTo(&'static [&'static str]),
    /// The role belongs to one of these services.
    LinkedTo(&'static [&'static str]),
    /// The role has the provider's tag, and the policy is one of the API's [`POLICIES`].
    TaggedForPolicies,
}

const fn on(resources: &'static [&'static str], condition: Condition) -> Scope {
    Scope { resources, condition }
}

const fn all(resources: &'static [&'static str]) -> Scope {
    on(resources, Condition::None)
}

const ANYTHING: Scope = all(&["*"]);

const ROLES: &[&str] = &["iam::*:role/*"];
const SITE_BUCKETS: &[&str] = &["s3:::acme-mfe-*"];
const SITE_FILES: &[&str] = &["s3:::acme-mfe-*/*"];
const DISTRIBUTIONS: &[&str] = &["cloudfront::*:distribution/*"];
const SERVICE_ROLES: &[&str] = &["iam::*:role/aws-service-role/*"];

/// The actions that give rights to a role. A permissions boundary limits these rights.
pub const BOUNDED: &[&str] = &["iam:CreateRole", "iam:PutRolePolicy"];

/// The rights of each kind.
pub static RIGHTS: &[Rights<Scope>] = &[
    ec2::INSTANCE,
    ec2::INSTANCE_STATE,
    ec2::SECURITY_GROUP,
    ec2::INGRESS_RULE,
    ec2::EGRESS_RULE,
    iam::ROLE,
    iam::ROLE_POLICY,
    iam::ROLE_POLICY_ATTACHMENT,
    iam::INSTANCE_PROFILE,
    site::BUCKET,
    site::OWNERSHIP_CONTROLS,
    site::PUBLIC_ACCESS_BLOCK,
    site::ENCRYPTION,
    site::BUCKET_POLICY,
    site::ORIGIN_ACCESS_CONTROL,
    site::FUNCTION,
    site::DISTRIBUTION,
    rds::DATABASE,
    eks::CLUSTER,
    eks::NODE_GROUP,
    eks::CLUSTER_AUTH,
    eks::ADD_ON,
];

/// The rights of a role that runs `paved publish`. The bucket policy gives the first three already
/// to roles of the same account.
pub const PUBLISHER: &[Grant<Scope>] = &[
    observe(&["s3:ListBucket", "s3:ListBucketMultipartUploads"], all(SITE_BUCKETS)),
    update(&["s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload"], all(SITE_FILES)),
    update(
        &[
            "cloudfront:CreateInvalidation",
            "cloudfront:GetInvalidation",
            "cloudfront:ListInvalidations",
        ],
        on(DISTRIBUTIONS, Condition::Tagged),
    ),
];
