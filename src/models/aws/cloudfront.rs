//! CloudFront: a site in front of a bucket. It knows no regions.

use std::collections::BTreeMap;

use crate::models::{Kind, Managed, Selector};

impl Managed for Distribution {
    const KIND: Kind = Kind::aws("cloudfront", "Distribution").versions("v1beta2", "v1beta1");
    type Status = DistributionStatus;
}

impl Managed for OriginAccessControl {
    const KIND: Kind = Kind::aws("cloudfront", "OriginAccessControl").untagged();
    type Status = OriginAccessControlStatus;
}

model! {
    /// How CloudFront proves to an origin who it is.
    pub struct OriginAccessControl {
        /// Its name, unique in the account; the external name is an id that AWS assigns.
        pub name: Option<String>,
        /// What it is for.
        pub description: Option<String>,
        /// `s3`.
        pub origin_access_control_origin_type: Option<String>,
        /// `always`: also where the viewer's request brings an authorisation of its own.
        pub signing_behavior: Option<String>,
        /// `sigv4`, the only one there is.
        pub signing_protocol: Option<String>,
    }

    /// What an access control became.
    pub struct OriginAccessControlStatus {
        /// The id that AWS assigned.
        pub id: Option<String>,
    }
}

model! {
    /// A distribution: a site, served from the edge. Its external name is an id that AWS assigns.
    pub struct Distribution {
        /// Whether it answers.
        pub enabled: Option<bool>,
        /// Whether it has IPv6 addresses too.
        pub is_ipv6_enabled: Option<bool>,
        /// What it is for, at most 128 characters.
        pub comment: Option<String>,
        /// What is served for `/`, such as `index.html`.
        pub default_root_object: Option<String>,
        /// Newest version of HTTP, such as `http2and3`.
        pub http_version: Option<String>,
        /// Which edges serve it, such as `PriceClass_100`.
        pub price_class: Option<String>,
        /// Whether the resource is ready only once every edge has it, which takes minutes.
        pub wait_for_deployment: Option<bool>,
        /// Where files come from.
        pub origin: Vec<Origin>,
        /// How requests are answered.
        pub default_cache_behavior: Option<CacheBehavior>,
        /// What is answered in place of an origin's error.
        pub custom_error_response: Vec<CustomErrorResponse>,
        /// Who is turned away.
        pub restrictions: Option<Restrictions>,
        /// What the site proves itself with.
        pub viewer_certificate: Option<ViewerCertificate>,
        /// Tags.
        pub tags: BTreeMap<String, String>,
    }

    /// Where files come from: without further settings, S3.
    pub struct Origin {
        /// The bucket's regional domain name; the CRD has neither a reference nor a selector for
        /// it.
        pub domain_name: Option<String>,
        /// Its name in the distribution.
        pub origin_id: Option<String>,
        /// How CloudFront proves to it who it is.
        pub origin_access_control_id_selector: Option<Selector>,
    }

    /// How requests are answered.
    pub struct CacheBehavior {
        /// Methods that are answered, such as `GET` and `HEAD`; their order means nothing.
        pub allowed_methods: Vec<String>,
        /// Methods whose answers are kept.
        pub cached_methods: Vec<String>,
        /// The origin, by its name in the distribution.
        pub target_origin_id: Option<String>,
        /// `redirect-to-https`, `https-only` or `allow-all`.
        pub viewer_protocol_policy: Option<String>,
        /// Whether answers are compressed.
        pub compress: Option<bool>,
        /// Id of the cache policy, such as that of AWS's own `CachingOptimized`.
        pub cache_policy_id: Option<String>,
    }

    /// What is answered in place of an origin's error.
    pub struct CustomErrorResponse {
        /// The origin's HTTP status; S3 says 403 for what is not there to whoever may not list.
        pub error_code: Option<i64>,
        /// The HTTP status that is answered instead.
        pub response_code: Option<i64>,
        /// What is served instead, such as `/index.html`.
        pub response_page_path: Option<String>,
        /// Seconds for which the edge keeps the error.
        pub error_caching_min_ttl: Option<i64>,
    }

    /// Who is turned away.
    pub struct Restrictions {
        /// By country.
        pub geo_restriction: Option<GeoRestriction>,
    }

    /// Who is turned away, by country.
    pub struct GeoRestriction {
        /// `none`, `whitelist` or `blacklist`.
        pub restriction_type: Option<String>,
    }

    /// What a site proves itself with. With CloudFront's own certificate its TLS version cannot be
    /// chosen.
    pub struct ViewerCertificate {
        /// CloudFront's own certificate, for `*.cloudfront.net`.
        pub cloudfront_default_certificate: Option<bool>,
    }

    /// What a distribution became.
    pub struct DistributionStatus {
        /// The id that AWS assigned.
        pub id: Option<String>,
        /// Its ARN, which a bucket's policy lets in.
        pub arn: Option<String>,
        /// `d….cloudfront.net`.
        pub domain_name: Option<String>,
        /// `Deployed` once every edge has it, `InProgress` before.
        pub status: Option<String>,
    }
}
