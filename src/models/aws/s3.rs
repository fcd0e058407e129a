//! S3: a bucket and its protection, each a separate resource.

use std::collections::BTreeMap;

use crate::models::{Kind, Managed, Selector, Unread};

impl Managed for Bucket {
    const KIND: Kind = Kind::aws("s3", "Bucket").versions("v1beta2", "v1beta1");
    type Status = BucketStatus;
}

impl Managed for BucketOwnershipControls {
    const KIND: Kind =
        Kind::aws("s3", "BucketOwnershipControls").versions("v1beta2", "v1beta1").untagged();
    type Status = Unread;
}

impl Managed for BucketPublicAccessBlock {
    const KIND: Kind = Kind::aws("s3", "BucketPublicAccessBlock").untagged();
    type Status = Unread;
}

impl Managed for BucketServerSideEncryptionConfiguration {
    const KIND: Kind = Kind::aws("s3", "BucketServerSideEncryptionConfiguration")
        .versions("v1beta2", "v1beta1")
        .untagged();
    type Status = Unread;
}

impl Managed for BucketPolicy {
    const KIND: Kind = Kind::aws("s3", "BucketPolicy").untagged();
    type Status = Unread;
}

model! {
    /// A bucket. Its name, the external name, is globally unique.
    pub struct Bucket {
        /// AWS region.
        pub region: Option<String>,
        /// Whether a deletion also deletes the objects. If false, a bucket that is not empty stays.
        pub force_destroy: Option<bool>,
        /// Tags.
        pub tags: BTreeMap<String, String>,
    }

    /// The observed state of a bucket.
    pub struct BucketStatus {
        /// Its name.
        pub id: Option<String>,
        /// Its ARN.
        pub arn: Option<String>,
        /// `<name>.s3.<region>.amazonaws.com`, which CloudFront can use without a redirect.
        pub bucket_regional_domain_name: Option<String>,
    }
}

model! {
    /// The ownership of the objects in a bucket.
    pub struct BucketOwnershipControls {
        /// AWS region, that of the bucket.
        pub region: Option<String>,
        /// The bucket.
        pub bucket_selector: Option<Selector>,
        /// The only rule.
        pub rule: Option<OwnershipRule>,
    }

    /// The ownership of an object.
    pub struct OwnershipRule {
        /// `BucketOwnerEnforced`: the bucket's owner. Access lists on objects have no effect.
        pub object_ownership: Option<String>,
    }

    /// Prevents public access to a bucket, regardless of its policy and its access lists.
    pub struct BucketPublicAccessBlock {
        /// AWS region, that of the bucket.
        pub region: Option<String>,
        /// The bucket.
        pub bucket_selector: Option<Selector>,
        /// Reject access lists that allow public access.
        pub block_public_acls: Option<bool>,
        /// Reject policies that allow public access.
        pub block_public_policy: Option<bool>,
        /// Ignore access lists that allow public access.
        pub ignore_public_acls: Option<bool>,
        /// Ignore policies that allow public access.
        pub restrict_public_buckets: Option<bool>,
    }

    /// The encryption of the objects in a bucket.
    pub struct BucketServerSideEncryptionConfiguration {
        /// AWS region, that of the bucket.
        pub region: Option<String>,
        /// The bucket.
        pub bucket_selector: Option<Selector>,
        /// One rule.
        pub rule: Vec<EncryptionRule>,
    }

    /// The encryption of objects.
    pub struct EncryptionRule {
        /// The default encryption of uploads.
        pub apply_server_side_encryption_by_default: Option<EncryptionByDefault>,
        /// Fewer calls of KMS. It matters only with `aws:kms`.
        pub bucket_key_enabled: Option<bool>,
    }

    /// An algorithm for objects.
    pub struct EncryptionByDefault {
        /// `AES256`, with S3's own keys, or `aws:kms`.
        pub sse_algorithm: Option<String>,
    }

    /// The rights on a bucket.
    pub struct BucketPolicy {
        /// AWS region, that of the bucket.
        pub region: Option<String>,
        /// The bucket.
        pub bucket_selector: Option<Selector>,
        /// The policy, as JSON text.
        pub policy: Option<String>,
    }
}
