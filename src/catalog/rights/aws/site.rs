//! S3 and CloudFront: sites.

use super::{ANYTHING, Condition, DISTRIBUTIONS, SITE_BUCKETS, SITE_FILES, Scope, all, on};
use crate::catalog::rights::{Rights, create, delete, observe, update};
use crate::models::Managed;
use crate::models::aws::{cloudfront, s3};

const ORIGIN_ACCESS: &[&str] = &["cloudfront::*:origin-access-control/*"];

const FUNCTIONS: &[&str] = &["cloudfront::*:function/*"];

const TAG_BUCKET: &[&str] = &["s3:PutBucketTagging", "s3:TagResource", "s3:UntagResource"];

pub(super) const BUCKET: Rights<Scope> = Rights {
    kind: s3::Bucket::KIND,
    grants: &[
        observe(
            &[
                "s3:GetAccelerateConfiguration",
                "s3:GetBucketAcl",
                "s3:GetBucketCORS",
                "s3:GetBucketLocation",
                "s3:GetBucketLogging",
                "s3:GetBucketObjectLockConfiguration",
                "s3:GetBucketPolicy",
                "s3:GetBucketRequestPayment",
                "s3:GetBucketTagging",
                "s3:GetBucketVersioning",
                "s3:GetBucketWebsite",
                "s3:GetEncryptionConfiguration",
                "s3:GetLifecycleConfiguration",
                "s3:GetReplicationConfiguration",
                "s3:ListBucket",
                "s3:ListTagsForResource",
            ],
            all(SITE_BUCKETS),
        ),
        create(&["s3:CreateBucket"], all(SITE_BUCKETS)),
        create(TAG_BUCKET, all(SITE_BUCKETS)),
        update(TAG_BUCKET, all(SITE_BUCKETS)),
        delete(&["s3:DeleteBucket", "s3:ListBucketVersions"], all(SITE_BUCKETS)),
        delete(&["s3:DeleteObject", "s3:DeleteObjectVersion"], all(SITE_FILES)),
    ],
};

pub(super) const OWNERSHIP_CONTROLS: Rights<Scope> = Rights {
    kind: s3::BucketOwnershipControls::KIND,
    grants: &[
        observe(&["s3:GetBucketOwnershipControls"], all(SITE_BUCKETS)),
        create(&["s3:PutBucketOwnershipControls"], all(SITE_BUCKETS)),
        update(&["s3:PutBucketOwnershipControls"], all(SITE_BUCKETS)),
        delete(&["s3:PutBucketOwnershipControls"], all(SITE_BUCKETS)),
    ],
};

pub(super) const PUBLIC_ACCESS_BLOCK: Rights<Scope> = Rights {
    kind: s3::BucketPublicAccessBlock::KIND,
    grants: &[
        observe(&["s3:GetBucketPublicAccessBlock"], all(SITE_BUCKETS)),
        create(&["s3:PutBucketPublicAccessBlock"], all(SITE_BUCKETS)),
        update(&["s3:PutBucketPublicAccessBlock"], all(SITE_BUCKETS)),
        delete(&["s3:PutBucketPublicAccessBlock"], all(SITE_BUCKETS)),
    ],
};

pub(super) const ENCRYPTION: Rights<Scope> = Rights {
    kind: s3::BucketServerSideEncryptionConfiguration::KIND,
    grants: &[
        observe(&["s3:GetEncryptionConfiguration"], all(SITE_BUCKETS)),
        create(&["s3:PutEncryptionConfiguration"], all(SITE_BUCKETS)),
        update(&["s3:PutEncryptionConfiguration"], all(SITE_BUCKETS)),
        delete(&["s3:PutEncryptionConfiguration"], all(SITE_BUCKETS)),
    ],
};

pub(super) const BUCKET_POLICY: Rights<Scope> = Rights {
    kind: s3::BucketPolicy::KIND,
    grants: &[
        observe(&["s3:GetBucketPolicy"], all(SITE_BUCKETS)),
        create(&["s3:PutBucketPolicy"], all(SITE_BUCKETS)),
        update(&["s3:PutBucketPolicy"], all(SITE_BUCKETS)),
        delete(&["s3:DeleteBucketPolicy"], all(SITE_BUCKETS)),
    ],
};

pub(super) const ORIGIN_ACCESS_CONTROL: Rights<Scope> = Rights {
    kind: cloudfront::OriginAccessControl::KIND,
    grants: &[
        observe(&["cloudfront:GetOriginAccessControl"], all(ORIGIN_ACCESS)),
        create(&["cloudfront:CreateOriginAccessControl"], ANYTHING),
        update(&["cloudfront:UpdateOriginAccessControl"], all(ORIGIN_ACCESS)),
        delete(&["cloudfront:DeleteOriginAccessControl"], all(ORIGIN_ACCESS)),
    ],
};

pub(super) const FUNCTION: Rights<Scope> = Rights {
    kind: cloudfront::Function::KIND,
    grants: &[
        observe(&["cloudfront:DescribeFunction", "cloudfront:GetFunction"], all(FUNCTIONS)),
        create(&["cloudfront:CreateFunction", "cloudfront:PublishFunction"], all(FUNCTIONS)),
        update(&["cloudfront:PublishFunction", "cloudfront:UpdateFunction"], all(FUNCTIONS)),
        delete(&["cloudfront:DeleteFunction"], all(FUNCTIONS)),
    ],
};

pub(super) const DISTRIBUTION: Rights<Scope> = Rights {
    kind: cloudfront::Distribution::KIND,
    grants: &[
        observe(
            &["cloudfront:GetDistribution", "cloudfront:ListTagsForResource"],
            all(DISTRIBUTIONS),
        ),
        create(&["cloudfront:CreateDistribution"], on(&["*"], Condition::TaggedByRequest)),
        create(&["cloudfront:TagResource"], on(DISTRIBUTIONS, Condition::TaggedByRequest)),
        update(
            &[
                "cloudfront:TagResource",
                "cloudfront:UntagResource",
                "cloudfront:UpdateDistribution",
            ],
            on(DISTRIBUTIONS, Condition::Tagged),
        ),
        // A distribution must be disabled first.
        delete(
            &["cloudfront:DeleteDistribution", "cloudfront:UpdateDistribution"],
            on(DISTRIBUTIONS, Condition::Tagged),
        ),
    ],
};
