//! The site: a private bucket, and CloudFront as its only reader.

use serde_json::{Value, json};

use super::place::Place;
use super::rewrite::{self, Rewrite};
use super::{FilesOnDeletion, Frontend, MissingFiles, SiteKind, UnifiedEnvironmentSettings};
use crate::catalog::aws::Partition;
use crate::check::Refused;
use crate::compose::Composer;
use crate::error::Error;
use crate::models::SIBLING;
use crate::models::aws::cloudfront::{
    CacheBehavior, CustomErrorResponse, Distribution, DistributionStatus, FunctionAssociation,
    GeoRestriction, Origin, OriginAccessControl, Restrictions, ViewerCertificate,
};
use crate::models::aws::s3::{
    Bucket, BucketOwnershipControls, BucketPolicy, BucketPublicAccessBlock,
    BucketServerSideEncryptionConfiguration, EncryptionByDefault, EncryptionRule, OwnershipRule,
};
use crate::observe::{NameRule, Observed};

pub(super) const BUCKET: &str = "frontend-bucket";
const POLICY: &str = "frontend-bucket-policy";
const ACCESS: &str = "frontend-access";
const SITE: &str = "frontend-site";

/// The beginning of all buckets' names. The app's name and a part of the environment's uid follow.
pub(super) const BUCKET_PREFIX: &str = "acme-mfe-";

/// The choice on a distribution that was created for a function.
const MISSING_FILES: &str = "missing-files";

/// AWS's own cache policy `CachingOptimized`: files are cached by path only.
const CACHING_OPTIMIZED: &str = "658327ea-f89d-4fab-a63d-7e88639e58f6";

/// The observed state of a site.
pub(super) struct Site {
    /// The region of the bucket, which may not exist yet.
    pub region: String,
    /// The bucket's name, once the bucket exists.
    pub bucket: Option<String>,
    pub domain: Option<String>,
    pub distribution_id: Option<String>,
    /// The answer for a missing file, once the distribution exists.
    pub missing_files: Option<MissingFiles>,
    /// Whether all edges have the site.
    deployed: bool,
    /// Whether the site has a function that rewrites paths.
    rewrites: bool,
}

impl Site {
    /// Whether the site is served everywhere, its paths are rewritten, and CloudFront may read the
    /// bucket.
    pub fn is_served(&self, cx: &Composer<'_>) -> bool {
        let rewrites = !self.rewrites || cx.is_ready(rewrite::FUNCTION);
        self.deployed && rewrites && cx.is_ready(SITE) && cx.is_ready(POLICY)
    }
}

/// Whether the site has a function that rewrites paths. Only a new distribution gets a function,
/// because other answers for missing files could break a running site. An existing function stays.
fn rewrites(cx: &Composer<'_>) -> bool {
    let is_new = !cx.exists(SITE) && cx.is_since(rewrite::SINCE);
    is_new || cx.noted(SITE, MISSING_FILES).is_some() || rewrite::exists(cx)
}

impl Frontend {
    pub(super) fn files_on_deletion(&self) -> FilesOnDeletion {
        if self.retain_files { FilesOnDeletion::Retained } else { FilesOnDeletion::Deleted }
    }

    /// Checks that the environment has the function that its kind of site needs.
    pub(super) fn check_kind(&self, cx: &Composer<'_>) -> Result<(), Refused> {
        if self.kind == SiteKind::App || rewrites(cx) {
            return Ok(());
        }
        let allowed = if cx.exists(BUCKET) {
            "app, because the environment is older than sites of several pages: create a new \
             environment"
                .to_owned()
        } else {
            format!(
                "app, because the Composition has a schemaRevision below {}: ask the platform team \
                 to upgrade the APIs",
                rewrite::SINCE
            )
        };
        Err(Refused::new(self.kind.name(), allowed))
    }

    pub(super) fn compose(
        &self,
        place: &Place,
        settings: &UnifiedEnvironmentSettings,
        cx: &mut Composer<'_>,
    ) -> Result<Site, Error> {
        let running = cx.running(BUCKET, &["region"]).and_then(Value::as_str).map(str::to_owned);
        let region = running.unwrap_or_else(|| settings.region.clone());
        let new = || format!("{BUCKET_PREFIX}{}-{}", self.app_name, cx.xr.uid(8));
        let bucket = cx.external_name(BUCKET).unwrap_or_else(new);
        self.bucket(&bucket, &region, cx)?;
        self.protection(&region, cx)?;
        access(cx)?;
        let rewrite =
            if rewrites(cx) { Some(rewrite::compose(self.kind, place, cx)?) } else { None };
        let rewrites = rewrite.is_some();
        let site = distribution(&bucket, &region, rewrite.as_ref(), cx)?;
        let arn = site.text(|site| site.arn.clone());
        policy(&bucket, &region, arn, rewrites, settings, cx)?;
        cx.usage(ACCESS, SITE)?;
        if rewrites {
            cx.usage(rewrite::FUNCTION, SITE)?;
        }
        let missing_files = if rewrites { MissingFiles::NotFound } else { MissingFiles::IndexPage };
        Ok(Site {
            region,
            bucket: cx.exists(BUCKET).then_some(bucket),
            domain: site.text(|site| site.domain_name.clone()),
            distribution_id: site.text(|site| site.id.clone()),
            missing_files: cx.exists(SITE).then_some(missing_files),
            deployed: site.text(|site| site.status.clone()).as_deref() == Some("Deployed"),
            rewrites,
        })
    }

    fn bucket(&self, name: &str, region: &str, cx: &mut Composer<'_>) -> Result<(), Error> {
        let bucket = Bucket {
            region: Some(region.to_owned()),
            force_destroy: Some(!self.retain_files),
            ..Bucket::default()
        };
        cx.managed(BUCKET, bucket)
            .external_name(name)
            .updatable(&["forceDestroy"])
            .orphan(self.retain_files)
            .add()
            .map(|_| ())
    }

    /// The bucket's protection stays with the bucket. Access lists have no effect: the bucket's
    /// owner owns all objects, and public access is blocked.
    fn protection(&self, region: &str, cx: &mut Composer<'_>) -> Result<(), Error> {
        let ownership = BucketOwnershipControls {
            region: Some(region.to_owned()),
            bucket_selector: Some(SIBLING),
            rule: Some(OwnershipRule { object_ownership: Some("BucketOwnerEnforced".to_owned()) }),
        };
        cx.managed("frontend-bucket-ownership", ownership).orphan(self.retain_files).add()?;
        let block = BucketPublicAccessBlock {
            region: Some(region.to_owned()),
            bucket_selector: Some(SIBLING),
            block_public_acls: Some(true),
            block_public_policy: Some(true),
            ignore_public_acls: Some(true),
            restrict_public_buckets: Some(true),
        };
        cx.managed("frontend-bucket-public-access", block).orphan(self.retain_files).add()?;
        let encryption = BucketServerSideEncryptionConfiguration {
            region: Some(region.to_owned()),
            bucket_selector: Some(SIBLING),
            rule: vec![EncryptionRule {
                apply_server_side_encryption_by_default: Some(EncryptionByDefault {
                    sse_algorithm: Some("AES256".to_owned()),
                }),
                bucket_key_enabled: Some(true),
            }],
        };
        cx.managed("frontend-bucket-encryption", encryption)
            .orphan(self.retain_files)
            .add()
            .map(|_| ())
    }
}

/// CloudFront signs its requests to the bucket.
fn access(cx: &mut Composer<'_>) -> Result<(), Error> {
    let control = OriginAccessControl {
        name: Some(cx.xr.cloud_name(NameRule::dns(64))),
        description: Some(format!("Site of {}", cx.xr.name)),
        origin_access_control_origin_type: Some("s3".to_owned()),
        signing_behavior: Some("always".to_owned()),
        signing_protocol: Some("sigv4".to_owned()),
    };
    cx.managed(ACCESS, control).add().map(|_| ())
}

/// The answers for missing files. With a function that rewrites paths, the answer for a missing file
/// is 404, with the site's own 404.html if it exists. Without a function, each missing file is a
/// path of the app.
fn missing_files(rewrites: bool) -> Vec<CustomErrorResponse> {
    let answer = |found, status, page: &str| CustomErrorResponse {
        error_code: Some(found),
        response_code: Some(status),
        response_page_path: Some(page.to_owned()),
        ..CustomErrorResponse::default()
    };
    if rewrites {
        return vec![answer(404, 404, "/404.html")];
    }
    // For a missing file, S3 returns 403 to callers that may not list files.
    vec![answer(403, 200, "/index.html"), answer(404, 200, "/index.html")]
}

/// The bucket's domain name depends only on its name, so the distribution does not wait for the
/// bucket. The distribution does not wait for its function either: the function is associated once
/// its ARN is known. The association is preserved while the ARN is unknown again, for example after
/// a person deleted the function's resource.
fn distribution(
    bucket: &str,
    region: &str,
    rewrite: Option<&Rewrite>,
    cx: &mut Composer<'_>,
) -> Result<Observed<DistributionStatus>, Error> {
    let methods = || ["GET", "HEAD"].map(str::to_owned).to_vec();
    let arn = rewrite.and_then(|rewrite| rewrite.arn.clone());
    let updatable: &[&'static str] =
        if arn.is_some() { &["defaultCacheBehavior.functionAssociation"] } else { &[] };
    let association = |arn: String| FunctionAssociation {
        event_type: Some("viewer-request".to_owned()),
        function_arn: Some(arn),
    };
    let site = Distribution {
        enabled: Some(true),
        is_ipv6_enabled: Some(true),
        comment: Some(format!("Site of {}", cx.xr.name)),
        default_root_object: Some("index.html".to_owned()),
        http_version: Some("http2and3".to_owned()),
        price_class: Some("PriceClass_100".to_owned()),
        // The resource is then ready only once it is deployed. Otherwise the provider would check
        // for `Deployed` only minutes later.
        wait_for_deployment: Some(true),
        origin: vec![Origin {
            domain_name: Some(Partition::for_region(region).bucket_host(bucket, region)),
            origin_id: Some("bucket".to_owned()),
            origin_access_control_id_selector: Some(SIBLING),
        }],
        default_cache_behavior: Some(CacheBehavior {
            allowed_methods: methods(),
            cached_methods: methods(),
            target_origin_id: Some("bucket".to_owned()),
            viewer_protocol_policy: Some("redirect-to-https".to_owned()),
            compress: Some(true),
            cache_policy_id: Some(CACHING_OPTIMIZED.to_owned()),
            function_association: arn.map(association).into_iter().collect(),
        }),
        custom_error_response: missing_files(rewrite.is_some()),
        restrictions: Some(Restrictions {
            geo_restriction: Some(GeoRestriction { restriction_type: Some("none".to_owned()) }),
        }),
        viewer_certificate: Some(ViewerCertificate { cloudfront_default_certificate: Some(true) }),
        ..Distribution::default()
    };
    let mut site = cx.managed(SITE, site).updatable(updatable);
    if rewrite.is_some() {
        site = site.annotate(MISSING_FILES, "not-found");
    }
    site.add()
}

/// Allows this distribution to read, and the platform team's publishers to write. `lists` also
/// allows the distribution to find out that a file is missing.
fn policy(
    bucket: &str,
    region: &str,
    distribution: Option<String>,
    lists: bool,
    settings: &UnifiedEnvironmentSettings,
    cx: &mut Composer<'_>,
) -> Result<(), Error> {
    if !cx.exists(POLICY) {
        settings.check_publishers(region)?;
    }
    let known = distribution.is_some();
    let partition = Partition::for_region(region);
    let publishers = &settings.publisher_role_arns;
    let running = cx.running(POLICY, &["policy"]).and_then(Value::as_str);
    let text = distribution.map(|arn| {
        let [named, compared] = [Publishers::Named(publishers), Publishers::Compared(publishers)]
            .map(|publishers| statements(partition, bucket, &arn, lists, &publishers));
        // A policy of an earlier release with the same publishers is preserved.
        let stays = running
            .filter(|running| serde_json::from_str(running).is_ok_and(|it: Value| it == named));
        stays.map_or_else(|| compared.to_string(), str::to_owned)
    });
    let policy = BucketPolicy {
        region: Some(region.to_owned()),
        bucket_selector: Some(SIBLING),
        policy: text,
    };
    // The policy is preserved while the distribution is not observed. It is also preserved if the
    // EnvironmentConfig, which may name publishers, was not found.
    let follows = known && !cx.settings.config_not_found;
    let updatable: &[&'static str] = if follows { &["policy"] } else { &[] };
    cx.managed(POLICY, policy)
        .updatable(updatable)
        .needs(known, "the ARN of the distribution that may read the bucket")
        .add()
        .map(|_| ())
}

/// The roles that may upload a site, by their ARNs.
enum Publishers<'a> {
    /// As principals, in the form of earlier releases. AWS rejects the whole policy if a single
    /// role does not exist.
    Named(&'a [String]),
    /// As a condition for all principals. It applies to roles that exist. Its fixed ARNs keep the
    /// policy from being public.
    Compared(&'a [String]),
}

impl Publishers<'_> {
    fn allow(&self, sid: &str, actions: &Value, resource: &str) -> Option<Value> {
        let mut statement =
            json!({"Sid": sid, "Effect": "Allow", "Action": actions, "Resource": resource});
        match self {
            Self::Named([]) | Self::Compared([]) => return None,
            Self::Named(roles) => statement["Principal"] = json!({"AWS": roles}),
            Self::Compared(roles) => {
                statement["Principal"] = json!("*");
                statement["Condition"] = json!({"StringEquals": {"aws:PrincipalArn": roles}});
            }
        }
        Some(statement)
    }
}

fn statements(
    partition: &Partition,
    bucket: &str,
    distribution: &str,
    lists: bool,
    publishers: &Publishers<'_>,
) -> Value {
    let bucket = format!("arn:{}:s3:::{bucket}", partition.name);
    let files = format!("{bucket}/*");
    let site = |sid: &str, action: &str, resource: &str| {
        json!({
            "Sid": sid, "Effect": "Allow", "Principal": {"Service": partition.principal("cloudfront")},
            "Action": action, "Resource": resource,
            "Condition": {"StringEquals": {"AWS:SourceArn": distribution}},
        })
    };
    let mut statements = vec![
        site("SiteReads", "s3:GetObject", &files),
        json!({
            "Sid": "NothingUnencrypted", "Effect": "Deny", "Principal": "*", "Action": "s3:*",
            "Resource": [bucket, files], "Condition": {"Bool": {"aws:SecureTransport": "false"}},
        }),
    ];
    // Without this right, S3 answers 403 for a missing file. Viewers cannot list files: the function
    // rewrites the path of the list.
    statements.extend(lists.then(|| site("SiteFinds", "s3:ListBucket", &bucket)));
    statements.extend(publishers.allow(
        "PublishersWrite",
        &json!(["s3:PutObject", "s3:DeleteObject"]),
        &files,
    ));
    statements.extend(publishers.allow("PublishersList", &json!("s3:ListBucket"), &bucket));
    json!({"Version": "2012-10-17", "Statement": statements})
}
