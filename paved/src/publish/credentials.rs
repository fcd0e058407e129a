//! The caller's AWS account, with the credentials and endpoints that the AWS CLI would find.

use aws_config::retry::RetryConfig;
use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_credential_types::provider::ProvideCredentials;
use aws_runtime::auth::SigningOptions;
use aws_types::service_config::ServiceConfigKey;
use function_paved_road::catalog::aws::Partition;

use super::error;
use super::service::Service;
use crate::failure::Failure;

/// Number of attempts for each request, because networks of pipelines are unreliable.
const TRIES: u32 = 5;

/// An account and its endpoints.
pub(super) struct Account {
    config: SdkConfig,
    region: String,
}

impl Account {
    /// Uses the first credentials that it finds: variables, profiles with single sign-on or other
    /// sources, web identity, the roles of containers and machines.
    pub(super) async fn open(region: &str, endpoint: Option<&str>) -> Result<Self, Failure> {
        let mut loader = aws_config::defaults(BehaviorVersion::latest())
            .region(Region::new(region.to_owned()))
            .retry_config(RetryConfig::standard().with_max_attempts(TRIES));
        if let Some(url) = endpoint {
            loader = loader.endpoint_url(url);
        }
        let config = loader.load().await;
        // Requests the credentials now, so that their absence has its own error message.
        if let Some(credentials) = config.credentials_provider() {
            credentials
                .provide_credentials()
                .await
                .map_err(|error| error::no_credentials(&error))?;
        }
        Ok(Self { config, region: region.to_owned() })
    }

    /// S3's requests for the objects of a bucket.
    pub(super) fn bucket(&self, bucket: &str) -> Service {
        let endpoint = match self.endpoint("S3") {
            // Servers other than AWS have no host name for each bucket.
            Some(url) => format!("{}/{bucket}", url.trim_end_matches('/')),
            None => bucket_url(bucket, &self.region, self.variant()),
        };
        let mut options = SigningOptions::default();
        options.double_uri_encode = false;
        options.normalize_uri_path = false;
        options.content_sha256_header = true;
        Service::new(&self.config, "s3", &endpoint, &self.region, options)
    }

    pub(super) fn cloudfront(&self) -> Service {
        let partition = Partition::for_region(&self.region);
        let endpoint = self.endpoint("CloudFront");
        let endpoint = endpoint.unwrap_or_else(|| cloudfront_url(partition, self.variant()));
        let region = partition.global_region;
        Service::new(&self.config, "cloudfront", &endpoint, region, SigningOptions::default())
    }

    /// The configured endpoint of a service: the flag, the service's own variable or setting of the
    /// profile, or the ones of all services.
    fn endpoint(&self, service: &str) -> Option<String> {
        let common = self.config.endpoint_url().map(str::to_owned);
        if self.config.get_origin("endpoint_url").is_client_config() {
            return common;
        }
        let key = ServiceConfigKey::builder().service_id(service);
        let key = key.env("AWS_ENDPOINT_URL").profile("endpoint_url").build().ok();
        key.and_then(|key| self.config.service_config()?.load_config(key)).or(common)
    }

    fn variant(&self) -> Variant {
        Variant {
            fips: self.config.use_fips().unwrap_or_default(),
            dual_stack: self.config.use_dual_stack().unwrap_or_default(),
        }
    }
}

/// The wanted kind of AWS's endpoints.
#[derive(Clone, Copy)]
struct Variant {
    /// With validated cryptography.
    fips: bool,
    /// With IPv4 and IPv6 addresses.
    dual_stack: bool,
}

/// AWS's endpoint of a bucket, by the SDK's rules. S3's certificates do not cover host names of
/// buckets with a dot.
fn bucket_url(bucket: &str, region: &str, variant: Variant) -> String {
    let fips = if variant.fips { "-fips" } else { "" };
    let dual_stack = if variant.dual_stack { ".dualstack" } else { "" };
    let domain = Partition::for_region(region).domain;
    let host = format!("s3{fips}{dual_stack}.{region}.{domain}");
    if bucket.contains('.') {
        format!("https://{host}/{bucket}")
    } else {
        format!("https://{bucket}.{host}")
    }
}

/// AWS's endpoint of CloudFront, by the SDK's rules.
fn cloudfront_url(partition: &Partition, variant: Variant) -> String {
    let fips = if variant.fips { "-fips" } else { "" };
    let domain = match (partition.name, variant.dual_stack) {
        ("aws", true) => format!("global.{}", partition.dual_stack_domain),
        ("aws-cn", false) => format!("{}.{}", partition.global_region, partition.domain),
        (_, true) => partition.dual_stack_domain.to_owned(),
        (_, false) => partition.domain.to_owned(),
    };
    format!("https://cloudfront{fips}.{domain}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected URLs are those of the endpoint tests in aws-sdk-s3 and aws-sdk-cloudfront.
    #[test]
    fn endpoints_are_the_ones_of_the_sdk() {
        let variant = |fips, dual_stack| Variant { fips, dual_stack };
        for (bucket, region, fips, dual_stack, url) in [
            ("site", "us-west-2", false, false, "https://site.s3.us-west-2.amazonaws.com"),
            ("site", "us-west-2", true, false, "https://site.s3-fips.us-west-2.amazonaws.com"),
            (
                "site",
                "us-west-2",
                true,
                true,
                "https://site.s3-fips.dualstack.us-west-2.amazonaws.com",
            ),
            (
                "site",
                "cn-north-1",
                false,
                true,
                "https://site.s3.dualstack.cn-north-1.amazonaws.com.cn",
            ),
            ("a.b", "us-east-1", false, false, "https://s3.us-east-1.amazonaws.com/a.b"),
        ] {
            assert_eq!(bucket_url(bucket, region, variant(fips, dual_stack)), url);
        }
        for (region, fips, dual_stack, host) in [
            ("eu-west-1", false, false, "cloudfront.amazonaws.com"),
            ("eu-west-1", true, false, "cloudfront-fips.amazonaws.com"),
            ("eu-west-1", true, true, "cloudfront-fips.global.api.aws"),
            ("cn-north-1", true, false, "cloudfront-fips.cn-northwest-1.amazonaws.com.cn"),
            ("cn-north-1", false, true, "cloudfront.api.amazonwebservices.com.cn"),
            ("us-gov-east-1", false, true, "cloudfront.api.aws"),
            ("us-iso-east-1", false, false, "cloudfront.c2s.ic.gov"),
            ("eusc-de-east-1", true, false, "cloudfront-fips.amazonaws.eu"),
        ] {
            let partition = Partition::for_region(region);
            let url = cloudfront_url(partition, variant(fips, dual_stack));
            assert_eq!(url, format!("https://{host}"));
        }
    }
}
