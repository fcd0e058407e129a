//! Requests to the provider, with limits on time and size, and without redirects.

use std::pin::Pin;
use std::time::Duration;

use http::{Request, Response, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use openidconnect::AsyncHttpClient;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Map, Value};
use tokio::time::timeout;
use url::Url;

use crate::Failure;

/// The maximum length of a response, in bytes.
const LARGEST: usize = 1 << 20;

/// A client of the provider.
pub(super) struct HttpClient {
    client: Client<HttpsConnector<HttpConnector>, Full<bytes::Bytes>>,
    /// The timeout of a response.
    patience: Duration,
}

/// An error below the HTTP layer.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("no response within {} s", .0.as_secs())]
    Late(Duration),
    #[error("no response: {0}")]
    Connection(#[from] hyper_util::client::legacy::Error),
    #[error("a response that ends early, or is larger than {LARGEST} bytes")]
    Body,
}

impl<'c> AsyncHttpClient<'c> for HttpClient {
    type Error = Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Vec<u8>>, Error>> + Send + 'c>>;

    fn call(&'c self, request: Request<Vec<u8>>) -> Self::Future {
        Box::pin(self.send(request))
    }
}

impl HttpClient {
    /// A client that trusts the system's certificates, and the certificates in `ca`.
    pub(super) fn new(ca: Option<&[u8]>, patience: Duration) -> Result<Self, Failure> {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        for certificate in CertificateDer::pem_slice_iter(ca.unwrap_or_default()) {
            let added = certificate.map_err(|error| error.to_string());
            let added = added.and_then(|one| roots.add(one).map_err(|error| error.to_string()));
            added.map_err(|error| {
                Failure::Usage(format!(
                    "--oidc-ca-file: found no certificate; allowed: certificates as PEM: {error}"
                ))
            })?;
        }
        let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        // The configuration allows plain HTTP only for a provider on loopback.
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(config)
            .https_or_http()
            .enable_http1()
            .build();
        Ok(Self { client: Client::builder(TokioExecutor::new()).build(connector), patience })
    }

    /// Sends a request.
    pub(super) async fn send(&self, request: Request<Vec<u8>>) -> Result<Response<Vec<u8>>, Error> {
        let request = request.map(|body| Full::new(bytes::Bytes::from(body)));
        let answer = async {
            let (parts, body) = self.client.request(request).await?.into_parts();
            let body = Limited::new(body, LARGEST).collect().await.map_err(|_| Error::Body)?;
            Ok(Response::from_parts(parts, body.to_bytes().to_vec()))
        };
        timeout(self.patience, answer).await.map_err(|_| Error::Late(self.patience))?
    }

    /// The provider's claims about the user with this access token.
    pub(super) async fn user_info(
        &self,
        endpoint: &Url,
        token: &str,
    ) -> Option<Map<String, Value>> {
        let request = Request::get(endpoint.as_str())
            .header(header::AUTHORIZATION, format!("Bearer {token}"))
            .header(header::ACCEPT, "application/json")
            .body(Vec::new())
            .ok()?;
        let answer = self.send(request).await.ok().filter(|answer| answer.status().is_success())?;
        serde_json::from_slice(answer.body()).ok()
    }
}
