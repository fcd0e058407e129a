//! Listens with or without TLS, with time limits for clients, until the portal stops.

mod timeouts;

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
use super::limits::Limits;
use super::middleware;
use super::stream_limits::Streams;
use crate::Failure;
use timeouts::Timed;

/// The maximum size of a request's head, in bytes.
const LARGEST: usize = 64 * 1024;

/// The maximum number of bytes of bodies that an HTTP/2 connection holds before a handler reads them.
const UNREAD: u32 = 64 * 1024;

/// A bound address.
pub(super) struct Listener {
    bound: TcpListener,
    address: SocketAddr,
    tls: Option<RustlsConfig>,
}

impl Listener {
    /// Binds the address, and reads the certificate.
    pub(super) async fn bind(config: &Config) -> Result<Self, Failure> {
        let taken = |error| {
            Failure::Usage(format!(
                "--listen: found {}; could not listen on it: {error}",
                config.listen
            ))
        };
        let bound = TcpListener::bind(config.listen).map_err(taken)?;
        bound.set_nonblocking(true).map_err(taken)?;
        let address = bound.local_addr().map_err(taken)?;
        let tls = match &config.tls {
            Some(tls) => Some(certificate(tls).await?),
            None => None,
        };
        Ok(Self { bound, address, tls })
    }

    /// The bound address.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL of the portal on this machine.
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

    /// Serves until `stop` completes. Then streams are notified, and requests may end.
    pub(super) async fn serve(
        self,
        portal: Portal,
        stop: impl Future<Output = ()> + Send + 'static,
    ) -> Result<(), Failure> {
        let limits = portal.limits;
        let service =
            middleware::router(&portal).into_make_service_with_connect_info::<SocketAddr>();
        let handle = Handle::new();
        let streams = Arc::clone(&portal.streams);
        let stopping = tokio::spawn(stopping(stop, handle.clone(), streams, limits.shutdown));
        let files = take_files();
        tracing::info!(address = %self.address, url = %portal.public_url, files, "listening");
        let ended = if let Some(tls) = self.tls {
            let renewing =
                tokio::spawn(renew(tls.clone(), Arc::clone(&portal.config), limits.certificate));
            let mut server = axum_server::from_tcp_rustls(self.bound, tls)?
                .handle(handle)
                .map(|acceptor| Timed { acceptor, limits });
            limit(server.http_builder(), &limits);
            let ended = server.serve(service).await;
            renewing.abort();
            ended
        } else {
            let mut server = axum_server::from_tcp(self.bound)?
                .handle(handle)
                .map(|acceptor| Timed { acceptor, limits });
            limit(server.http_builder(), &limits);
            server.serve(service).await
        };
        stopping.abort();
        ended?;
        // The server no longer tracks WebSockets as connections, so their final messages are
        // awaited here.
        if timeout(limits.shutdown, portal.streams.closed()).await.is_err() {
            tracing::warn!("some streams did not end in time");
        }
        tracing::info!("stopped");
        Ok(())
    }
}

/// Raises the limit of open files to the process's maximum, and returns it. Each connection needs
/// one. On many nodes, the initial limit is 1,024.
fn take_files() -> Option<u64> {
    let limit = getrlimit(Resource::Nofile);
    let most = Rlimit { current: limit.maximum, maximum: limit.maximum };
    match setrlimit(Resource::Nofile, most) {
        Ok(()) => limit.maximum,
        Err(error) => {
            tracing::warn!(%error, "could not raise the limit of open files");
            limit.current
        }
    }
}

/// Limits the duration and the size of a request's head.
fn limit(builder: &mut Builder<TokioExecutor>, limits: &Limits) {
    let head = limits.request_head;
    builder.http1().timer(TokioTimer::new()).header_read_timeout(head).max_buf_size(LARGEST);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(head)
        .max_concurrent_streams(256)
        .initial_stream_window_size(UNREAD)
        .initial_connection_window_size(UNREAD)
        .max_header_list_size(64 * 1024);
}

/// Waits for SIGTERM or SIGINT.
pub(super) async fn signalled() {
    let (Ok(mut terminate), Ok(mut interrupt)) =
        (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
    else {
        tracing::warn!(
            "could not handle signals: at its end, the portal does not notify its streams"
        );
        return std::future::pending().await;
    };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}

async fn stopping(
    stop: impl Future<Output = ()>,
    handle: Handle<SocketAddr>,
    streams: Arc<Streams>,
    shutdown: Duration,
) {
    stop.await;
    tracing::info!(connections = handle.connection_count(), "stopping");
    streams.stop();
    handle.graceful_shutdown(Some(shutdown));
}

async fn certificate(tls: &Tls) -> Result<RustlsConfig, Failure> {
    RustlsConfig::from_pem_file(&tls.cert, &tls.key).await.map_err(|error| {
        let (cert, key) = (tls.cert.display(), tls.key.display());
        Failure::Usage(format!(
            "--tls-cert: found {cert}, with the key {key}; allowed: a certificate and its key as \
             PEM: {error}"
        ))
    })
}

/// Rereads the certificate periodically, because renewals replace the file.
async fn renew(rustls: RustlsConfig, config: Arc<Config>, period: Duration) {
    let Some(tls) = &config.tls else { return };
    loop {
        tokio::time::sleep(period).await;
        if let Err(error) = rustls.reload_from_pem_file(&tls.cert, &tls.key).await {
            tracing::warn!(%error, "could not reload the certificate: the portal keeps the previous certificate");
        }
    }
}
