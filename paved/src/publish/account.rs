//! The AWS account in the caller's hands: credentials and endpoints, found as the AWS CLI finds
//! them.

use aws_config::retry::RetryConfig;
use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_sdk_s3::config::{
    ProvideCredentials, RequestChecksumCalculation, ResponseChecksumValidation,
};

use super::trouble;
use crate::failure::Failure;

/// How often a request is tried: pipelines run over networks that stumble.
const TRIES: u32 = 5;

/// An account, and where it is spoken to.
pub(super) struct Account {
    config: SdkConfig,
}

impl Account {
    /// Takes the first credentials that there are: variables, profiles with single sign-on or other
    /// sources, web identity, the roles of containers and machines.
    pub(super) async fn open(region: &str, endpoint: Option<&str>) -> Result<Self, Failure> {
        let mut loader = aws_config::defaults(BehaviorVersion::latest())
            .region(Region::new(region.to_owned()))
            .retry_config(RetryConfig::standard().with_max_attempts(TRIES));
        if let Some(url) = endpoint {
            loader = loader.endpoint_url(url);
        }
        let config = loader.load().await;
        // Asked for now, so that their absence is told as such.
        if let Some(credentials) = config.credentials_provider() {
            credentials
                .provide_credentials()
                .await
                .map_err(|error| trouble::no_credentials(&error))?;
        }
        Ok(Self { config })
    }

    /// Parts bring their MD5, which every server that speaks S3 knows; of the newer checksums some
    /// know none. Servers other than AWS have no host name for each bucket.
    pub(super) fn s3(&self) -> aws_sdk_s3::Client {
        let elsewhere = self.config.endpoint_url().is_some()
            || std::env::var_os("AWS_ENDPOINT_URL_S3").is_some();
        let config = aws_sdk_s3::config::Builder::from(&self.config)
            .force_path_style(elsewhere)
            .request_checksum_calculation(RequestChecksumCalculation::WhenRequired)
            .response_checksum_validation(ResponseChecksumValidation::WhenRequired)
            .build();
        aws_sdk_s3::Client::from_conf(config)
    }

    pub(super) fn cloudfront(&self) -> aws_sdk_cloudfront::Client {
        aws_sdk_cloudfront::Client::new(&self.config)
    }
}
