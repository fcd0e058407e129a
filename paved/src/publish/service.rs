//! Signed requests to a service of AWS, with the retries, time limits and credentials of its SDK.
//!
//! The SDK's crates of S3 and CloudFront have 279 operations, and compile for more than a minute.
//! `paved publish` needs eleven operations, and writes and reads their few elements itself.

use std::collections::HashMap;
use std::error::Error;

use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_runtime::auth::sigv4::{SCHEME_ID, SigV4AuthScheme};
use aws_runtime::auth::{SigV4OperationSigningConfig, SigningOptions};
use aws_runtime::invocation_id::InvocationIdInterceptor;
use aws_runtime::recursion_detection::RecursionDetectionInterceptor;
use aws_runtime::request_info::RequestInfoInterceptor;
use aws_runtime::retries::classifiers::{AwsErrorCodeClassifier, TRANSIENT_ERRORS};
use aws_runtime::service_clock_skew::{
    DisableClockSkewCorrection, ServiceClockSkewClassifier, ServiceClockSkewInterceptor,
};
use aws_runtime::user_agent::{ApiMetadata, UserAgentInterceptor};
use aws_smithy_runtime::client::http::connection_poisoning::ConnectionPoisoningInterceptor;
use aws_smithy_runtime::client::orchestrator::operation::Operation;
use aws_smithy_runtime::client::retries::classifiers::{
    HttpStatusCodeClassifier, TransientErrorClassifier,
};
use aws_smithy_runtime::client::stalled_stream_protection::StalledStreamProtectionInterceptor;
use aws_smithy_runtime_api::client::auth::AuthSchemeOptionResolverParams;
use aws_smithy_runtime_api::client::auth::static_resolver::StaticAuthSchemeOptionResolver;
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse, OrchestratorError};
use aws_smithy_runtime_api::client::result::{CreateUnhandledError, SdkError};
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponentsBuilder;
use aws_smithy_runtime_api::client::runtime_plugin::StaticRuntimePlugin;
use aws_smithy_runtime_api::http::HttpError;
use aws_smithy_types::body::SdkBody;
use aws_smithy_types::config_bag::Layer;
use aws_smithy_types::error::metadata::{ErrorMetadata, ProvideErrorMetadata};
use aws_smithy_xml::decode::{Document, ScopedDecoder, try_data};
use aws_smithy_xml::encode::XmlWriter;
use aws_types::SigningName;
use aws_types::region::SigningRegion;

use super::error::failed;
use crate::failure::Failure;

/// A service at its endpoint.
pub(super) struct Service {
    operation: Operation<HttpRequest, Answer, Refused>,
}

/// The result of a request: an answer, a refusal, or no answer.
pub(super) type Sent = Result<Answer, SdkError<Refused, HttpResponse>>;

/// A successful answer.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) etag: Option<String>,
    body: String,
}

/// The texts of an element's children, by name.
pub(super) type Record = HashMap<String, String>;

/// A service's error code and message.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Refused(ErrorMetadata);

impl ProvideErrorMetadata for Refused {
    fn meta(&self) -> &ErrorMetadata {
        &self.0
    }
}

impl CreateUnhandledError for Refused {
    fn create_unhandled_error(
        _: Box<dyn Error + Send + Sync>,
        metadata: Option<ErrorMetadata>,
    ) -> Self {
        Self(metadata.unwrap_or_default())
    }
}

impl Service {
    /// Creates the service with `name` in signatures, for example `s3`. Its requests are signed for
    /// `region`.
    pub(super) fn new(
        config: &SdkConfig,
        name: &'static str,
        endpoint: &str,
        region: &str,
        signing_options: SigningOptions,
    ) -> Self {
        let mut layer = Layer::new(name);
        layer.store_put(ApiMetadata::new(name, env!("CARGO_PKG_VERSION")));
        layer.store_put(SigningName::from_static(name));
        layer.store_put(SigningRegion::from(Region::new(region.to_owned())));
        layer.store_put(SigV4OperationSigningConfig { signing_options, ..Default::default() });
        layer.store_put(AuthSchemeOptionResolverParams::new(()));
        if let Some(retry) = config.retry_config() {
            layer.store_put(retry.clone());
        }
        if let Some(timeout) = config.timeout_config() {
            layer.store_put(timeout.clone());
        }
        if let Some(protection) = config.stalled_stream_protection() {
            layer.store_put(protection);
        }
        if let Some(app) = config.app_name() {
            layer.store_put(app.clone());
        }
        if let Some(disabled) = config.disable_clock_skew_correction() {
            layer.store_put(DisableClockSkewCorrection::from(disabled));
        }
        let schemes = StaticAuthSchemeOptionResolver::new(vec![SCHEME_ID]);
        let transient = [TRANSIENT_ERRORS, &["InternalError"]].concat();
        let codes = AwsErrorCodeClassifier::<Refused>::builder().transient_errors(transient);
        let mut components = RuntimeComponentsBuilder::new(name)
            .with_http_client(config.http_client())
            .with_time_source(config.time_source())
            .with_sleep_impl(config.sleep_impl())
            .with_identity_cache(config.identity_cache())
            .with_auth_scheme(SigV4AuthScheme::new())
            .with_auth_scheme_option_resolver(Some(schemes))
            .with_interceptor(ConnectionPoisoningInterceptor::new())
            .with_interceptor(StalledStreamProtectionInterceptor::default())
            .with_interceptor(ServiceClockSkewInterceptor::new())
            .with_interceptor(RequestInfoInterceptor::new())
            .with_interceptor(UserAgentInterceptor::new())
            .with_interceptor(InvocationIdInterceptor::new())
            .with_interceptor(RecursionDetectionInterceptor::new())
            .with_retry_classifier(HttpStatusCodeClassifier::default())
            .with_retry_classifier(TransientErrorClassifier::<Refused>::new())
            .with_retry_classifier(codes.build())
            .with_retry_classifier(ServiceClockSkewClassifier::<Refused>::new());
        if let Some(credentials) = config.credentials_provider() {
            components.set_identity_resolver(SCHEME_ID, credentials);
        }
        let plugin = StaticRuntimePlugin::new()
            .with_config(layer.freeze())
            .with_runtime_components(components);
        let operation = Operation::builder()
            .service_name(name)
            .operation_name("request")
            .behavior_version(BehaviorVersion::latest())
            .endpoint_url(endpoint)
            .runtime_plugin(plugin)
            .serializer(|request: HttpRequest| Ok(request))
            .deserializer(read)
            .build();
        Self { operation }
    }

    /// Sends a request. `target` is the path, which starts with `/`, with the query.
    pub(super) async fn send(
        &self,
        method: &str,
        target: &str,
        headers: &[(&'static str, String)],
        body: impl Into<SdkBody>,
    ) -> Sent {
        match request(method, target, headers, body.into()) {
            Ok(request) => self.operation.invoke(request).await,
            Err(error) => Err(SdkError::construction_failure(error)),
        }
    }
}

fn request(
    method: &str,
    target: &str,
    headers: &[(&'static str, String)],
    body: SdkBody,
) -> Result<HttpRequest, HttpError> {
    let length = body.content_length().filter(|length| *length > 0);
    let mut request = HttpRequest::new(body);
    request.set_method(method)?;
    request.set_uri(target)?;
    if let Some(length) = length {
        request.headers_mut().try_insert("content-length", length.to_string())?;
    }
    for (name, value) in headers {
        request.headers_mut().try_insert(*name, value.clone())?;
    }
    Ok(request)
}

/// Reads an answer. S3 reports errors of long operations with status 200.
fn read(response: &HttpResponse) -> Result<Answer, OrchestratorError<Refused>> {
    let body = String::from_utf8_lossy(response.body().bytes().unwrap_or_default()).into_owned();
    let answer = Answer { etag: response.headers().get("etag").map(str::to_owned), body };
    let root = Document::new(&answer.body).next_start_element();
    if response.status().is_success() && root.is_none_or(|root| root.local() != "Error") {
        return Ok(answer);
    }
    let mut error = answer.records("Error").into_iter().next().unwrap_or_default();
    let mut metadata = ErrorMetadata::builder();
    if let Some(code) = error.remove("Code") {
        metadata = metadata.code(code);
    }
    if let Some(message) = error.remove("Message") {
        metadata = metadata.message(message);
    }
    Err(OrchestratorError::operation(Refused(metadata.build())))
}

impl Answer {
    /// All elements with that name, at any depth.
    pub(super) fn records(&self, name: &str) -> Vec<Record> {
        let mut document = Document::new(&self.body);
        let mut records = Vec::new();
        while let Some(element) = document.next_start_element() {
            if element.local() == name {
                records.push(texts(document.scoped_to(element)));
            }
        }
        records
    }

    /// The only element with that name. Fails if the answer does not have it, for example because a
    /// proxy answered.
    pub(super) fn record(&self, name: &str, act: &str) -> Result<Record, Failure> {
        let record = self.records(name).into_iter().next();
        record
            .ok_or_else(|| failed(act, &format!("the response has no {name}, it is not from AWS")))
    }
}

/// The texts of an element's children. A child without its own text is skipped.
fn texts(mut element: ScopedDecoder<'_, '_>) -> Record {
    let mut texts = Record::new();
    while let Some(mut child) = element.next_tag() {
        let name = child.start_el().local().to_owned();
        if let Ok(text) = try_data(&mut child) {
            texts.insert(name, text.into_owned());
        }
    }
    texts
}

/// An XML element with a text.
pub(super) fn element(name: &str, text: &str) -> String {
    let mut xml = String::new();
    XmlWriter::new(&mut xml).start_el(name).finish().data(text);
    xml
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use aws_smithy_runtime_api::http::StatusCode;

    use super::*;

    fn answered(status: u16, body: &'static str) -> Result<Answer, OrchestratorError<Refused>> {
        read(&HttpResponse::new(StatusCode::try_from(status).unwrap(), body.into()))
    }

    #[test]
    fn records_have_the_texts_of_their_children() {
        let body = r#"<?xml version="1.0"?><ListBucketResult xmlns="http://s3">
            <IsTruncated>true</IsTruncated><Contents><Key>a&amp;b</Key><Owner><ID>1</ID></Owner>
            <ETag>&quot;x&quot;</ETag></Contents><Contents><Key/></Contents></ListBucketResult>"#;
        let answer = answered(200, body).unwrap();
        let contents = answer.records("Contents");
        assert_eq!((contents.len(), contents[0].len()), (2, 2));
        assert_eq!((&*contents[0]["Key"], &*contents[0]["ETag"]), ("a&b", "\"x\""));
        assert_eq!(answer.record("ListBucketResult", "list").unwrap()["IsTruncated"], "true");
        let missing = answer.record("DeleteResult", "delete x").unwrap_err();
        assert_eq!(missing.code(), 4);
    }

    #[test]
    fn errors_of_both_services_have_code_and_message() {
        let wrapped = "<ErrorResponse><Error><Type>Sender</Type><Code>C</Code><Message>m</Message>\
                       </Error><RequestId>1</RequestId></ErrorResponse>";
        let plain = "<Error><Code>C</Code><Message>m</Message></Error>";
        for (status, body) in [(403, wrapped), (404, plain), (200, plain)] {
            let error = answered(status, body).unwrap_err();
            let refused = error.as_operation_error().unwrap();
            assert_eq!((refused.code(), refused.message()), (Some("C"), Some("m")), "{status}");
        }
        for body in ["", "<html>Bad gateway", "upstream"] {
            let error = answered(502, body).unwrap_err();
            assert_eq!(error.as_operation_error().unwrap().code(), None, "{body}");
        }
        assert!(
            answered(200, "<DeleteResult><Error><Code>C</Code></Error></DeleteResult>").is_ok()
        );
        assert!(answered(204, "").is_ok());
    }

    #[test]
    fn text_of_an_element_is_escaped() {
        assert_eq!(element("Key", "a<b>&\"c"), "<Key>a&lt;b&gt;&amp;&quot;c</Key>");
    }
}
