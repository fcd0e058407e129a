//! provider-upjet-aws.

mod ec2;
mod eks;
mod iam;
mod rds;
mod storage;

use super::kind_behaviour::{Context, KindBehaviour, UPJET};
use super::rules::Rules;

const ACCOUNT: &str = "123456789012";

/// The rules for every kind: a resource cannot move to another region. The facts list this for
/// their kinds.
const RULES: Rules = Rules { immutable: &["region"], ..Rules::NONE };

/// An ordinary kind of the provider.
const KIND: KindBehaviour = KindBehaviour { rules: RULES, ..UPJET };

pub(super) fn behaviour(service: &str, kind: &str) -> KindBehaviour {
    match service {
        "ec2" => ec2::behaviour(kind),
        "eks" => eks::behaviour(kind),
        "iam" => iam::behaviour(kind),
        "rds" if kind == "Instance" => rds::INSTANCE,
        "s3" => storage::s3(kind),
        "cloudfront" => storage::cloudfront(kind),
        _ => KIND,
    }
}

fn arn(f: &Context<'_>, service: &str, kind: &str) -> String {
    format!("arn:aws:{service}:{}:{ACCOUNT}:{kind}/{}", f.region("us-east-1"), f.external())
}
