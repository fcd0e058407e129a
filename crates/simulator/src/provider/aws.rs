//! provider-upjet-aws.

mod ec2;
mod eks;
mod iam;
mod rds;
mod storage;

use super::manner::{Facts, Manner, UPJET};
use super::rules::Rules;

const ACCOUNT: &str = "123456789012";

/// The rules for every kind: a resource cannot move to another region. The facts list this for
/// their kinds.
const RULES: Rules = Rules { immutable: &["region"], ..Rules::NONE };

/// An ordinary kind of the provider.
const KIND: Manner = Manner { rules: RULES, ..UPJET };

pub(super) fn manner(service: &str, kind: &str) -> Manner {
    match service {
        "ec2" => ec2::manner(kind),
        "eks" => eks::manner(kind),
        "iam" => iam::manner(kind),
        "rds" if kind == "Instance" => rds::INSTANCE,
        "s3" => storage::s3(kind),
        "cloudfront" => storage::cloudfront(kind),
        _ => KIND,
    }
}

fn arn(f: &Facts<'_>, service: &str, kind: &str) -> String {
    format!("arn:aws:{service}:{}:{ACCOUNT}:{kind}/{}", f.region("us-east-1"), f.external())
}
