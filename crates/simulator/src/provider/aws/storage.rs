//! Buckets, and the distributions in front of them.

use serde_json::{Value, json};

use super::super::kind_behaviour::{Id, KindBehaviour, details, each, one};
use super::super::rules::{Rules, needed};
use super::{ACCOUNT, KIND, RULES};

/// The kinds of S3: a bucket and its settings.
pub(super) fn s3(kind: &str) -> KindBehaviour {
    match kind {
        "Bucket" => BUCKET,
        _ => KindBehaviour {
            references: const { &[one("bucket", "Bucket")] },
            rules: Rules { part_of: Some("bucket"), ..RULES },
            ..KIND
        },
    }
}

/// A fake bucket counts as full. Its deletion succeeds only if its files may be deleted too.
const BUCKET: KindBehaviour = KindBehaviour {
    at_provider: |f| {
        let (name, region) = (f.external(), f.region("us-east-1"));
        json!({
            "arn": format!("arn:aws:s3:::{name}"),
            "bucketDomainName": format!("{name}.s3.amazonaws.com"),
            "bucketRegionalDomainName": format!("{name}.s3.{region}.amazonaws.com"),
            "hostedZoneId": "Z3AQBSTGFYJSTF",
        })
    },
    connection: |f| {
        let arn = format!("arn:aws:s3:::{}", f.external());
        details([("id", f.external()), ("arn", &arn), ("region", f.region("us-east-1"))])
    },
    rules: Rules {
        protected: Some(|parameters: &Value| {
            (parameters["forceDestroy"] != true).then_some("not empty")
        }),
        foreign: Some("name taken by another account"),
        ..RULES
    },
    ..KIND
};

/// CloudFront has no regions. A distribution's ARN and domain are known once it is deployed.
pub(super) fn cloudfront(kind: &str) -> KindBehaviour {
    let rules = Rules { immutable: &[], ..RULES };
    match kind {
        "Distribution" => KindBehaviour {
            rounds: 4,
            id: Id::Capital("E"),
            references: const { &[each("origin", "originAccessControlId", "OriginAccessControl")] },
            at_provider: |f| {
                let arn = format!("arn:aws:cloudfront::{ACCOUNT}:distribution/{}", f.external());
                let domain = format!("d{}.cloudfront.net", f.hex(13));
                json!({"arn": arn, "domainName": domain, "status": "Deployed"})
            },
            rules,
            ..KIND
        },
        "OriginAccessControl" => KindBehaviour {
            id: Id::Capital("E"),
            rules: Rules {
                needed_by: const { &[needed("Distribution", "/origin", "in use")] },
                ..rules
            },
            ..KIND
        },
        "Function" => KindBehaviour {
            at_provider: |f| json!({"arn": format!("arn:aws:cloudfront::{ACCOUNT}:function/{}", f.external())}),
            rules: Rules {
                needed_by: const { &[needed("Distribution", "/defaultCacheBehavior", IN_USE)] },
                ..rules
            },
            ..KIND
        },
        _ => KindBehaviour { id: Id::Capital("E"), rules, ..KIND },
    }
}

/// The refusal to delete a function of an existing distribution. Source: the error codes of
/// `DeleteFunction` in CloudFront's API reference, in terraform-provider-aws's form.
const IN_USE: &str = "deleting CloudFront Function (<name>): operation error CloudFront: \
    DeleteFunction, https response error StatusCode: 409, RequestID: ..., FunctionInUse: Cannot \
    delete the function because it is used by one or more cache behaviors";
