//! Requests to the receiver of notifications: within a time, and never redirected.

use std::error::Error;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode, Uri, header};
use http_body_util::Full;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rustls::{ClientConfig, RootCertStore};
use tokio::time::timeout;

/// Sends events.
pub(super) struct HttpClient {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    /// Time for an answer.
    patience: Duration,
}

/// The result of a request. Texts never have the URL.
pub(super) enum Sent {
    Accepted,
    /// Another try would have the same result.
    Rejected(String),
    Failed(String),
}

impl HttpClient {
    /// Trusts the system's certificates.
    pub fn new(patience: Duration) -> Self {
        // Several crates bring a provider of their own: this one is meant.
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(config)
            .https_or_http()
            .enable_http1()
            .build();
        Self { client: Client::builder(TokioExecutor::new()).build(connector), patience }
    }

    /// Sends a body.
    pub async fn post(&self, url: &Uri, media_type: &'static str, body: Bytes) -> Sent {
        let request = Request::post(url.clone())
            .header(header::CONTENT_TYPE, media_type)
            .body(Full::new(body));
        let request = match request {
            Ok(request) => request,
            Err(error) => return Sent::Rejected(error.to_string()),
        };
        match timeout(self.patience, self.client.request(request)).await {
            Ok(Ok(answer)) => judge(answer.status()),
            Ok(Err(error)) => {
                let cause = error.source().map_or(String::new(), |cause| format!(": {cause}"));
                Sent::Failed(format!("no answer{cause}"))
            }
            Err(_) => Sent::Failed(format!("no answer within {} s", self.patience.as_secs())),
        }
    }
}

fn judge(status: StatusCode) -> Sent {
    let told = || format!("status {}", status.as_u16());
    match status {
        _ if status.is_success() => Sent::Accepted,
        StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS => Sent::Failed(told()),
        _ if status.is_server_error() => Sent::Failed(told()),
        _ => Sent::Rejected(told()),
    }
}
