//! Listening: plain or by TLS, with bounds on how long a client may take, until a signal comes.

mod line;

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use axum_server::Handle;
use axum_server::tls_rustls::RustlsConfig;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::timeout;
use url::Url;

use super::Portal;
use super::config::{Config, Tls};
use super::layers;
use super::streams::Streams;
use crate::Failure;
use line::Timed;

/// How long a client may take to send a request's head.
const HEAD: Duration = Duration::from_secs(10);

/// How long requests may go on after a signal.
const GRACE: Duration = Duration::from_secs(20);

/// How often the certificate's file is read again.
const RENEW: Duration = Duration::from_mins(1);

/// The largest head of a request, in bytes.
const LARGEST: usize = 64 * 1024;

/// An address that is listened on.
pub(super) struct Listener {
    bound: TcpListener,
    address: SocketAddr,
    tls: Option<RustlsConfig>,
}

impl Listener {
    /// Takes the address, and reads the certificate.
    pub(super) async fn bind(config: &Config) -> Result<Self, Failure> {
        let taken =
            |error| Failure::Usage(format!("--listen: found {}; it cannot be taken: {error}", config.listen));
        let bound = TcpListener::bind(config.listen).map_err(taken)?;
        bound.set_nonblocking(true).map_err(taken)?;
        let address = bound.local_addr().map_err(taken)?;
        let tls = match &config.tls {
            Some(tls) => Some(certificate(tls).await?),
            None => None,
        };
        Ok(Self { bound, address, tls })
    }

    /// How it is reached on this machine.
    pub(super) fn url(&self) -> Url {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        let host = if self.address.ip().is_unspecified() {
            format!("127.0.0.1:{}", self.address.port())
        } else {
            self.address.to_string()
        };
        let url = format!("{scheme}://{host}").parse();
        // An address is always a host.
        url.unwrap_or_else(|_| unreachable!("{scheme}://{host} is a URL"))
    }

    /// Serves until a signal comes; streams are told, and requests may end.
    pub(super) async fn serve(self, portal: Portal) -> Result<(), Failure> {
        let service = layers::router(&portal).into_make_service_with_connect_info::<SocketAddr>();
        let handle = Handle::new();
        let stopping = tokio::spawn(stop(handle.clone(), Arc::clone(&portal.streams)));
        let files = take_files();
        tracing::info!(address = %self.address, url = %portal.public_url, files, "listening");
        let ended = if let Some(tls) = self.tls {
            let renewing = tokio::spawn(renew(tls.clone(), Arc::clone(&portal.config)));
            let mut server = axum_server::from_tcp_rustls(self.bound, tls)?.handle(handle).map(Timed);
            patience(server.http_builder());
            let ended = server.serve(service).await;
            renewing.abort();
            ended
        } else {
            let mut server = axum_server::from_tcp(self.bound)?.handle(handle).map(Timed);
            patience(server.http_builder());
            server.serve(service).await
        };
        stopping.abort();
        ended?;
        // WebSockets are no connections of the server's any more: only here are their last words waited for.
        if timeout(GRACE, portal.streams.closed()).await.is_err() {
            tracing::warn!("some streams are cut off");
        }
        tracing::info!("stopped");
        Ok(())
    }
}

/// Takes as many open files as the process may have, and says how many: each line is one, and many a node begins with 1,024.
fn take_files() -> Option<u64> {
    let limit = getrlimit(Resource::Nofile);
    let most = Rlimit { current: limit.maximum, maximum: limit.maximum };
    match setrlimit(Resource::Nofile, most) {
        Ok(()) => limit.maximum,
        Err(error) => {
            tracing::warn!(%error, "no more files can be open than at the start");
            limit.current
        }
    }
}

/// How long clients may take, and how much they may send before they are heard.
fn patience(builder: &mut Builder<TokioExecutor>) {
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEAD).max_buf_size(LARGEST);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(HEAD)
        .max_concurrent_streams(256)
        .max_header_list_size(64 * 1024);
}

async fn stop(handle: Handle<SocketAddr>, streams: Arc<Streams>) {
    let (Ok(mut terminate), Ok(mut interrupt)) =
        (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
    else {
        tracing::warn!("signals cannot be heard: the portal stops without a word to its streams");
        return;
    };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    tracing::info!(connections = handle.connection_count(), "stopping");
    streams.stop();
    handle.graceful_shutdown(Some(GRACE));
}

async fn certificate(tls: &Tls) -> Result<RustlsConfig, Failure> {
    RustlsConfig::from_pem_file(&tls.cert, &tls.key).await.map_err(|error| {
        let (cert, key) = (tls.cert.display(), tls.key.display());
        Failure::Usage(format!("--tls-cert: found {cert}, with the key {key}; a certificate and its key as PEM are needed: {error}"))
    })
}

/// Reads the certificate again and again: whoever renews it writes the file.
async fn renew(rustls: RustlsConfig, config: Arc<Config>) {
    let Some(tls) = &config.tls else { return };
    loop {
        tokio::time::sleep(RENEW).await;
        if let Err(error) = rustls.reload_from_pem_file(&tls.cert, &tls.key).await {
            tracing::warn!(%error, "the certificate cannot be read again: the old one stays");
        }
    }
}
