//! TLS with the certificates that Crossplane creates. Only clients with a certificate of its
//! authority are served.
//!
//! tonic's own TLS has no limit of open handshakes, so clients without a certificate could use up the
//! memory. Here a new handshake closes the oldest one at the limit.

use std::io::{self, ErrorKind::InvalidData};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use http_server::{Newest, accept};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};
use tokio_rustls::server::TlsStream;
use tonic::codegen::tokio_stream::wrappers::ReceiverStream;

use super::Error;

/// The maximum number of handshakes at once.
const HANDSHAKES: usize = 256;

/// The time limit of a handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// The protocol of gRPC.
const HTTP2: &[u8] = b"h2";

/// Reads `tls.crt`, `tls.key` and `ca.crt`.
///
/// # Errors
/// A file is missing or not PEM, or the key is not that of the certificate.
pub(super) fn acceptor(directory: &Path) -> Result<TlsAcceptor, Error> {
    let file = |name| File { path: directory.join(name) };
    let mut authorities = RootCertStore::empty();
    authorities.add_parsable_certificates(file("ca.crt").certificates()?);
    let unusable = |source: &dyn std::error::Error| Error::Certificates {
        directory: directory.to_owned(),
        source: io::Error::new(InvalidData, source.to_string()),
    };
    let verifier = WebPkiClientVerifier::builder(authorities.into());
    let verifier = verifier.build().map_err(|error| unusable(&error))?;
    let mut config = ServerConfig::builder()
        .with_client_cert_verifier(verifier)
        .with_single_cert(file("tls.crt").certificates()?, file("tls.key").key()?)
        .map_err(|error| unusable(&error))?;
    config.alpn_protocols.push(HTTP2.to_owned());
    Ok(Arc::new(config).into())
}

/// A file with PEM blocks.
struct File {
    path: std::path::PathBuf,
}

impl File {
    fn read(&self) -> Result<Vec<u8>, Error> {
        std::fs::read(&self.path).map_err(|source| self.unreadable(source))
    }

    fn certificates(&self) -> Result<Vec<CertificateDer<'static>>, Error> {
        let pem = self.read()?;
        let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
        let certificates = certificates.map_err(|error| self.invalid(&error))?;
        if certificates.is_empty() {
            return Err(self.unreadable(io::Error::new(InvalidData, "it has no certificate")));
        }
        Ok(certificates)
    }

    fn key(&self) -> Result<PrivateKeyDer<'static>, Error> {
        PrivateKeyDer::from_pem_slice(&self.read()?).map_err(|error| self.invalid(&error))
    }

    fn invalid(&self, error: &dyn std::error::Error) -> Error {
        self.unreadable(io::Error::new(InvalidData, error.to_string()))
    }

    fn unreadable(&self, source: io::Error) -> Error {
        Error::ReadCertificate { path: self.path.clone(), source }
    }
}

/// The connections whose clients have shown a certificate of the authority.
pub(super) fn connections(
    listener: TcpListener,
    acceptor: TlsAcceptor,
) -> ReceiverStream<io::Result<TlsStream<TcpStream>>> {
    let (sender, receiver) = mpsc::channel(HANDSHAKES);
    tokio::spawn(async move {
        let mut handshakes = Newest::new(HANDSHAKES);
        loop {
            let stream = tokio::select! {
                stream = accept(&listener) => stream,
                // The server stops.
                () = sender.closed() => return,
            };
            let (acceptor, sender) = (acceptor.clone(), sender.clone());
            handshakes.spawn(async move {
                // A connection without this option only answers later.
                let _ = stream.set_nodelay(true);
                match timeout(HANDSHAKE, acceptor.accept(stream)).await {
                    Ok(Ok(stream)) => {
                        let _ = sender.send(Ok(stream)).await;
                    }
                    Ok(Err(error)) => tracing::debug!(%error, "a TLS handshake failed"),
                    Err(_) => tracing::debug!("a TLS handshake took too long"),
                }
            });
        }
    });
    ReceiverStream::new(receiver)
}
