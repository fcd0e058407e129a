//! CloudFront: a site in front of a bucket. CloudFront has no regions.

use std::collections::BTreeMap;

use crate::models::{Kind, Managed, SecretKeyRef, Selector};

impl Managed for Distribution {
    const KIND: Kind = Kind::aws("cloudfront", "Distribution").versions("v1beta2", "v1beta1");
    type Status = DistributionStatus;
}

impl Managed for Function {
    /// The oldest supported provider has no tags for it.
    const KIND: Kind = Kind::aws("cloudfront", "Function").untagged().since(3);
    type Status = FunctionStatus;
}

impl Managed for OriginAccessControl {
    const KIND: Kind = Kind::aws("cloudfront", "OriginAccessControl").untagged();
    type Status = OriginAccessControlStatus;
}

model! {
    /// The identity of CloudFront for an origin.
    pub struct OriginAccessControl {
        /// Its name, unique in the account. The external name is an id that AWS assigns.
        pub name: Option<String>,
        /// Its purpose.
        pub description: Option<String>,
        /// `s3`.
        pub origin_access_control_origin_type: Option<String>,
        /// `always`: also if the viewer's request has its own authorization.
        pub signing_behavior: Option<String>,
        /// `sigv4`, the only protocol.
        pub signing_protocol: Option<String>,
    }

    /// The observed state of an access control.
    pub struct OriginAccessControlStatus {
        /// The id that AWS assigned.
        pub id: Option<String>,
    }
}

model! {
    /// A function that answers or changes requests at the edge. Its external name is its name,
    /// unique in the account.
    pub struct Function {
        /// Its purpose.
        pub comment: Option<String>,
        /// The version of JavaScript, for example `cloudfront-js-2.0`.
        pub runtime: Option<String>,
        /// Whether distributions get each change of the code.
        pub publish: Option<bool>,
        /// The code. The provider reads it from a Secret only.
        pub code_secret_ref: Option<SecretKeyRef>,
    }

    /// The observed state of a function.
    pub struct FunctionStatus {
        /// Its ARN.
        pub arn: Option<String>,
    }
}

model! {
    /// A distribution: a site, served from the edge. Its external name is an id that AWS assigns.
    pub struct Distribution {
        /// Whether it answers requests.
        pub enabled: Option<bool>,
        /// Whether it has IPv6 addresses too.
        pub is_ipv6_enabled: Option<bool>,
        /// Its purpose, at most 128 characters.
        pub comment: Option<String>,
        /// The file for `/`, for example `index.html`.
        pub default_root_object: Option<String>,
        /// Newest version of HTTP, for example `http2and3`.
        pub http_version: Option<String>,
        /// The class of edges that serve it, for example `PriceClass_100`.
        pub price_class: Option<String>,
        /// Whether the resource is ready only once all edges have it, which takes minutes.
        pub wait_for_deployment: Option<bool>,
        /// The origins of files.
        pub origin: Vec<Origin>,
        /// The handling of requests.
        pub default_cache_behavior: Option<CacheBehavior>,
        /// Answers that replace an origin's errors.
        pub custom_error_response: Vec<CustomErrorResponse>,
        /// Restrictions of viewers.
        pub restrictions: Option<Restrictions>,
        /// The site's certificate.
        pub viewer_certificate: Option<ViewerCertificate>,
        /// Tags.
        pub tags: BTreeMap<String, String>,
    }

    /// An origin of files. Without further settings, it is S3.
    pub struct Origin {
        /// The bucket's regional domain name. The CRD has neither a reference nor a selector for
        /// it.
        pub domain_name: Option<String>,
        /// Its name in the distribution.
        pub origin_id: Option<String>,
        /// The identity of CloudFront for this origin.
        pub origin_access_control_id_selector: Option<Selector>,
    }

    /// The handling of requests.
    pub struct CacheBehavior {
        /// Methods that are answered, for example `GET` and `HEAD`. Their order has no meaning.
        pub allowed_methods: Vec<String>,
        /// Methods with cached answers.
        pub cached_methods: Vec<String>,
        /// The origin, by its name in the distribution.
        pub target_origin_id: Option<String>,
        /// `redirect-to-https`, `https-only` or `allow-all`.
        pub viewer_protocol_policy: Option<String>,
        /// Whether answers are compressed.
        pub compress: Option<bool>,
        /// Id of the cache policy, for example of AWS's own `CachingOptimized`.
        pub cache_policy_id: Option<String>,
        /// Functions that handle requests at the edge.
        pub function_association: Vec<FunctionAssociation>,
    }

    /// A function, and the event that starts it.
    pub struct FunctionAssociation {
        /// For example `viewer-request`: before the cache is searched.
        pub event_type: Option<String>,
        /// The function's ARN. The CRD has neither a reference nor a selector for it.
        pub function_arn: Option<String>,
    }

    /// An answer that replaces an origin's error.
    pub struct CustomErrorResponse {
        /// The origin's HTTP status. For a missing file, S3 returns 403 to callers that may not
        /// list files.
        pub error_code: Option<i64>,
        /// The HTTP status of the answer.
        pub response_code: Option<i64>,
        /// The file of the answer, for example `/index.html`.
        pub response_page_path: Option<String>,
        /// Seconds for which the edge caches the error.
        pub error_caching_min_ttl: Option<i64>,
    }

    /// Restrictions of viewers.
    pub struct Restrictions {
        /// By country.
        pub geo_restriction: Option<GeoRestriction>,
    }

    /// Restrictions of viewers by country.
    pub struct GeoRestriction {
        /// `none`, `whitelist` or `blacklist`.
        pub restriction_type: Option<String>,
    }

    /// A site's certificate. With CloudFront's own certificate, the site's TLS version cannot be
    /// chosen.
    pub struct ViewerCertificate {
        /// CloudFront's own certificate, for `*.cloudfront.net`.
        pub cloudfront_default_certificate: Option<bool>,
    }

    /// The observed state of a distribution.
    pub struct DistributionStatus {
        /// The id that AWS assigned.
        pub id: Option<String>,
        /// Its ARN, which a bucket's policy allows.
        pub arn: Option<String>,
        /// `d….cloudfront.net`.
        pub domain_name: Option<String>,
        /// `Deployed` once all edges have it, `InProgress` before.
        pub status: Option<String>,
    }
}
