//! S3: a bucket, and what protects it, each a resource of its own.

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
    /// A bucket. Its name, the external name, is unique in the world.
    pub struct Bucket {
        /// AWS region.
        pub region: Option<String>,
        /// Whether a deletion takes the objects along; without it a bucket that is not empty stays.
        pub force_destroy: Option<bool>,
        /// Tags.
        pub tags: BTreeMap<String, String>,
    }

    /// What a bucket became.
    pub struct BucketStatus {
        /// Its name.
        pub id: Option<String>,
        /// Its ARN.
        pub arn: Option<String>,
        /// `<name>.s3.<region>.amazonaws.com`, where CloudFront finds it without a redirect.
        pub bucket_regional_domain_name: Option<String>,
    }
}

model! {
    /// Who owns what is put into a bucket.
    pub struct BucketOwnershipControls {
        /// AWS region, that of the bucket.
        pub region: Option<String>,
        /// The bucket.
        pub bucket_selector: Option<Selector>,
        /// The only rule there is.
        pub rule: Option<OwnershipRule>,
    }

    /// Who owns an object.
    pub struct OwnershipRule {
        /// `BucketOwnerEnforced`: the bucket's owner, and access lists on objects mean nothing.
        pub object_ownership: Option<String>,
    }

    /// Keeps a bucket from being opened to everyone, whatever its policy or its access lists say.
    pub struct BucketPublicAccessBlock {
        /// AWS region, that of the bucket.
        pub region: Option<String>,
        /// The bucket.
        pub bucket_selector: Option<Selector>,
        /// Refuse access lists that open it.
        pub block_public_acls: Option<bool>,
        /// Refuse policies that open it.
        pub block_public_policy: Option<bool>,
        /// Pass over access lists that open it.
        pub ignore_public_acls: Option<bool>,
        /// Pass over policies that open it.
        pub restrict_public_buckets: Option<bool>,
    }

    /// How a bucket encrypts what is put into it.
    pub struct BucketServerSideEncryptionConfiguration {
        /// AWS region, that of the bucket.
        pub region: Option<String>,
        /// The bucket.
        pub bucket_selector: Option<Selector>,
        /// One rule.
        pub rule: Vec<EncryptionRule>,
    }

    /// How objects are encrypted.
    pub struct EncryptionRule {
        /// With what, unless the upload says otherwise.
        pub apply_server_side_encryption_by_default: Option<EncryptionByDefault>,
        /// Fewer calls of KMS; it matters with `aws:kms` only.
        pub bucket_key_enabled: Option<bool>,
    }

    /// With what objects are encrypted.
    pub struct EncryptionByDefault {
        /// `AES256`, keys of S3's own, or `aws:kms`.
        pub sse_algorithm: Option<String>,
    }

    /// Who may do what with a bucket.
    pub struct BucketPolicy {
        /// AWS region, that of the bucket.
        pub region: Option<String>,
        /// The bucket.
        pub bucket_selector: Option<Selector>,
        /// The policy, as JSON text.
        pub policy: Option<String>,
    }
}
