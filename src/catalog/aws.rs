//! AWS's partitions: groups of regions with their own accounts, ARNs and domains.
//!
//! Domains and global regions are those of the endpoints that the AWS SDKs use (`partitions.json`).
//! Service principals are those that eksctl and terraform-provider-aws use: mostly
//! `SERVICE.amazonaws.com` in every partition, with exceptions (eksctl `pkg/utils/api`,
//! terraform-provider-aws pull request 47141).

use std::sync::LazyLock;

use regex_lite::Regex;

use crate::check::{self, Refused};

/// A partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partition {
    /// Its name, which is also the second part of its ARNs: `aws-cn`.
    pub name: &'static str,
    /// The domain of its endpoints and of its buckets: `amazonaws.com.cn`.
    pub domain: &'static str,
    /// The domain of endpoints that have IPv4 and IPv6 addresses: `api.aws`.
    pub dual_stack_domain: &'static str,
    /// The region that signs requests to services without regions, for example CloudFront.
    pub global_region: &'static str,
    /// The beginnings of the names of its regions. Empty for the partition with all other regions.
    regions: &'static [&'static str],
    /// The services with principals that end in `domain`. The principals of other services end in
    /// `amazonaws.com`.
    own_principals: &'static [&'static str],
}

/// Every partition, the one of the public regions first.
pub static PARTITIONS: [Partition; 8] = [
    partition("aws", ["amazonaws.com", "api.aws"], "us-east-1", &[], &[]),
    partition(
        "aws-cn",
        ["amazonaws.com.cn", "api.amazonwebservices.com.cn"],
        "cn-northwest-1",
        &["cn-"],
        &["ec2", "s3"],
    ),
    partition("aws-us-gov", ["amazonaws.com", "api.aws"], "us-gov-west-1", &["us-gov-"], &[]),
    partition("aws-iso", ["c2s.ic.gov", "api.aws.ic.gov"], "us-iso-east-1", &["us-iso-"], &["ec2"]),
    partition(
        "aws-iso-b",
        ["sc2s.sgov.gov", "api.aws.scloud"],
        "us-isob-east-1",
        &["us-isob-"],
        &["ec2"],
    ),
    partition(
        "aws-iso-e",
        ["cloud.adc-e.uk", "api.cloud-aws.adc-e.uk"],
        "eu-isoe-west-1",
        &["eu-isoe-"],
        &[],
    ),
    partition(
        "aws-iso-f",
        ["csp.hci.ic.gov", "api.aws.hci.ic.gov"],
        "us-isof-south-1",
        &["us-isof-"],
        &[],
    ),
    partition(
        "aws-eusc",
        ["amazonaws.eu", "api.amazonwebservices.eu"],
        "eusc-de-east-1",
        &["eusc-"],
        &[],
    ),
];

/// A region's name: `us-east-1`, `us-gov-west-1`, `eusc-de-east-1`.
pub const REGION: &str = "^[a-z]{2,4}(-[a-z]+)+-[0-9]$";

/// The longest name of a region, in characters.
pub const LONGEST_REGION: usize = 32;

/// The ARN of a role, in any partition.
pub const ROLE: &str = "^arn:aws[a-z-]*:iam::[0-9]{12}:role/[A-Za-z0-9_+=,.@/-]+$";

/// The ARN of a policy, in any partition: one of AWS's own, or one of an account.
pub const POLICY: &str = "^arn:aws[a-z-]*:iam::(aws|[0-9]{12}):policy/[A-Za-z0-9_+=,.@/-]+$";

/// A machine type of EC2: `m6i.xlarge`, `u-6tb1.112xlarge`.
pub const MACHINE: &str = "^[a-z][a-z0-9-]*[.][a-z0-9-]+$";

impl Partition {
    /// The partition that a region belongs to.
    pub fn for_region(region: &str) -> &'static Self {
        let has =
            |partition: &&Self| partition.regions.iter().any(|prefix| region.starts_with(prefix));
        PARTITIONS.iter().find(has).unwrap_or(&PARTITIONS[0])
    }

    /// The principal of a service in policies: `ec2.amazonaws.com`.
    pub fn principal(&self, service: &str) -> String {
        let own = self.own_principals.contains(&service);
        format!("{service}.{}", if own { self.domain } else { PARTITIONS[0].domain })
    }

    /// The host of a bucket in a region: `site.s3.eu-west-1.amazonaws.com`.
    pub fn bucket_host(&self, bucket: &str, region: &str) -> String {
        format!("{bucket}.s3.{region}.{}", self.domain)
    }

    /// Rejects an ARN of another partition.
    pub fn has(&self, arn: &str) -> Result<(), Refused> {
        if arn.split(':').nth(1) == Some(self.name) {
            return Ok(());
        }
        let allowed =
            format!("an ARN of the partition {}, which starts with arn:{}:", self.name, self.name);
        Err(Refused::new(arn, allowed))
    }
}

/// A region's name, of any partition.
pub fn region(name: &str) -> Result<&str, Refused> {
    static PATTERN: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(REGION).ok());
    check::matching(name, LONGEST_REGION, &PATTERN, "an AWS region, for example us-east-1")
}

/// The ARN of a policy.
pub fn policy(arn: &str) -> Result<&str, Refused> {
    static PATTERN: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(POLICY).ok());
    let allowed = "the ARN of an IAM policy, for example \
                   arn:aws:iam::123456789012:policy/developers";
    check::matching(arn, 2048, &PATTERN, allowed)
}

const fn partition(
    name: &'static str,
    [domain, dual_stack_domain]: [&'static str; 2],
    global_region: &'static str,
    regions: &'static [&'static str],
    own_principals: &'static [&'static str],
) -> Partition {
    Partition { name, domain, dual_stack_domain, global_region, regions, own_principals }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn region_belongs_to_one_partition() {
        for (region, name) in [
            ("us-east-1", "aws"),
            ("eu-isoe-west-1", "aws-iso-e"),
            ("cn-north-1", "aws-cn"),
            ("us-gov-west-1", "aws-us-gov"),
            ("us-iso-east-1", "aws-iso"),
            ("us-isob-east-1", "aws-iso-b"),
            ("us-isof-south-1", "aws-iso-f"),
            ("eusc-de-east-1", "aws-eusc"),
        ] {
            assert_eq!(Partition::for_region(region).name, name);
            assert_eq!(super::region(region), Ok(region));
        }
        for wrong in ["", "us-east", "us-east-1a", "europe-west1", "US-east-1", "us--east-1"] {
            assert!(super::region(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn principals_and_buckets_have_the_domain_of_their_partition() {
        let principals = |region: &str| {
            let partition = Partition::for_region(region);
            ["ec2", "eks", "cloudfront"].map(|service| partition.principal(service))
        };
        let public = ["ec2.amazonaws.com", "eks.amazonaws.com", "cloudfront.amazonaws.com"];
        assert_eq!(principals("eu-west-1"), public);
        assert_eq!(principals("us-gov-west-1"), public);
        assert_eq!(
            principals("cn-north-1"),
            ["ec2.amazonaws.com.cn", "eks.amazonaws.com", "cloudfront.amazonaws.com"]
        );
        assert_eq!(principals("us-iso-east-1")[..2], ["ec2.c2s.ic.gov", "eks.amazonaws.com"]);
        let host = |region: &str| Partition::for_region(region).bucket_host("site", region);
        assert_eq!(host("eu-west-1"), "site.s3.eu-west-1.amazonaws.com");
        assert_eq!(host("cn-north-1"), "site.s3.cn-north-1.amazonaws.com.cn");
    }

    #[test]
    fn arn_of_another_partition_is_refused() {
        let china = Partition::for_region("cn-north-1");
        assert_eq!(china.has("arn:aws-cn:iam::123456789012:role/a"), Ok(()));
        let refused =
            china.has("arn:aws:iam::123456789012:role/a").map_err(|error| error.to_string());
        let message = "found \"arn:aws:iam::123456789012:role/a\"; \
                       allowed: an ARN of the partition aws-cn, which starts with arn:aws-cn:";
        assert_eq!(refused, Err(message.to_owned()));
    }
}
