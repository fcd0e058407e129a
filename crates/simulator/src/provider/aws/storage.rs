//! Buckets, and the distributions in front of them.

use serde_json::{Value, json};

use super::super::kind_behaviour::{Context, Id, KindBehaviour, details, each, one};
use super::super::rules::{Rules, needed};
use super::{ACCOUNT, KIND, RULES};
use crate::core::World;
use ::crossplane::json::text;

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
            waits: await_functions,
            at_provider: |f| {
                let arn = format!("arn:aws:cloudfront::{ACCOUNT}:distribution/{}", f.external());
                let domain = format!("d{}.cloudfront.net", f.hex(13));
                json!({"arn": arn, "domainName": domain, "status": "Deployed"})
            },
            // A change reaches all edges after minutes.
            rules: Rules { slow: &["defaultCacheBehavior"], ..rules },
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
            waits: check_function,
            at_provider: |f| json!({"arn": function_arn(f), "status": "UNASSOCIATED"}),
            rules: Rules {
                needed_by: const { &[needed("Distribution", "/defaultCacheBehavior", IN_USE)] },
                ..rules
            },
            ..KIND
        },
        _ => KindBehaviour { id: Id::Capital("E"), rules, ..KIND },
    }
}

fn function_arn(f: &Context<'_>) -> String {
    format!("arn:aws:cloudfront::{ACCOUNT}:function/{}", f.external())
}

/// The longest code of a function, in bytes. Source: CloudFront's quotas.
const LONGEST_CODE: usize = 10 * 1024;

/// Checks a function as CloudFront does. The provider reads a missing Secret, and a missing key, as
/// an empty code (upjet, `pkg/resource/sensitive.go`).
fn check_function(object: &Value, world: &World) -> Result<(), String> {
    let f = Context::new(object, world);
    let refusal = |why: &str| {
        Err(format!(
            "creating CloudFront Function ({}): operation error CloudFront: CreateFunction, https \
             response error StatusCode: 400, RequestID: ..., InvalidArgument: {why}",
            f.external()
        ))
    };
    let is_name = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    if !(1..=64).contains(&f.external().len()) || !f.external().chars().all(is_name) {
        return refusal("The function name is not valid");
    }
    if !matches!(f.param("runtime"), Some("cloudfront-js-1.0" | "cloudfront-js-2.0")) {
        return refusal("The runtime is not valid");
    }
    let params = &object["spec"]["forProvider"]["codeSecretRef"];
    let part = |key| text(params, &[key]).unwrap_or_default();
    let namespace = text(object, &["metadata", "namespace"]).unwrap_or_else(|| part("namespace"));
    let code = world.secret_data(namespace, part("name")).remove(part("key")).unwrap_or_default();
    if code.is_empty() || code.len() > LONGEST_CODE {
        return refusal("The function code is empty or too large");
    }
    let is_handler = String::from_utf8(code).is_ok_and(|code| code.contains("function handler("));
    if is_handler { Ok(()) } else { refusal("The function code has no function handler") }
}

/// Checks the functions of a distribution. CloudFront rejects a function that does not exist, or
/// that has no published code.
fn await_functions(object: &Value, world: &World) -> Result<(), String> {
    let associated = object.pointer("/spec/forProvider/defaultCacheBehavior/functionAssociation");
    for association in associated.and_then(Value::as_array).into_iter().flatten() {
        let arn = &association["functionArn"];
        let is_live = |function: &&Value| {
            function["kind"] == "Function"
                && function["status"]["atProvider"]["arn"] == *arn
                && function["spec"]["forProvider"]["publish"] == true
        };
        if !world.resources().values().any(|function| is_live(&function)) {
            return Err(format!(
                "operation error CloudFront: UpdateDistribution, https response error StatusCode: \
                 400, RequestID: ..., InvalidFunctionAssociation: The function ARN {arn} is not \
                 found or not published"
            ));
        }
    }
    Ok(())
}

/// The refusal to delete a function of an existing distribution. Source: the error codes of
/// `DeleteFunction` in CloudFront's API reference, in terraform-provider-aws's form.
const IN_USE: &str = "deleting CloudFront Function (<name>): operation error CloudFront: \
    DeleteFunction, https response error StatusCode: 409, RequestID: ..., FunctionInUse: Cannot \
    delete the function because it is used by one or more cache behaviors";
