//! The gRPC server of a function. It follows Crossplane's function specification and has bounded
//! memory.
//!
//! # Why not the SDK's server
//! function-sdk-rust's server reads all its requests at once. It buffers their bodies side by side
//! before any function runs, and has no option to limit them. It also encodes maps in random order.
//! Our server keeps the SDK's flags, logging, protocol types and metric names, and changes two
//! things:
//! - Answers are bytes in one order ([`wire`](crate::wire)).
//! - At most N requests are processed at once.
//!
//! # The bound
//! A request waits for one of N permits *before* its body is read. The body of a waiting request
//! stays in HTTP/2's flow-control window (64 KiB a stream). Reading, decoding, composing and
//! encoding happen under the permit, so at most N bodies and N decoded messages exist. The output
//! is bytes. Health and reflection need no permit.
//!
//! A connection's window has room for the stream windows of all its streams. Waiting requests would
//! use up a smaller window. A request with a permit would then never get the rest of its body.
#![doc = include_str!("server/bound.md")]

mod codec;
mod decode;
mod service;
mod tls;

use std::io;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use function_proto::v1::{RunFunctionRequest, RunFunctionResponse};
use function_sdk_rust::proto::FILE_DESCRIPTOR_SET;
use function_sdk_rust::proto::v1::function_runner_service_server::SERVICE_NAME;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Notify, Semaphore};
use tokio_rustls::TlsAcceptor;
use tonic::Status;
use tonic::transport::Server as GrpcServer;
use tonic::transport::server::{Router, TcpIncoming};
use tower::layer::util::Stack;

use crate::apis::{self, AnyApi};
use crate::function::{self, Outside};
use crate::metrics::{CountCalls, Metrics};
use service::FunctionService;

/// A function to serve. It answers one request, and must not block for long.
pub trait Function:
    Fn(RunFunctionRequest) -> Result<RunFunctionResponse, Status> + Send + Sync + 'static
{
}

impl<F> Function for F where
    F: Fn(RunFunctionRequest) -> Result<RunFunctionResponse, Status> + Send + Sync + 'static
{
}

/// Default of `--max-recv-message-size`, in bytes: the largest request that is accepted. It is
/// gRPC's own default.
const MAX_MESSAGE: usize = 4 * 1024 * 1024;

/// Maximum number of open requests on one connection. Crossplane opens one connection and as many
/// streams as it has workers.
const MAX_STREAMS: u32 = 128;

/// Maximum number of bytes that can arrive of a body that the server does not read yet.
const STREAM_WINDOW: u32 = 64 * 1024;

/// Time limit for the arrival of a request that has a permit. A stalled caller must not keep its
/// permit.
const BODY_PATIENCE: Duration = Duration::from_secs(10);

/// Time limit for requests in flight after SIGTERM. Kubernetes waits 30 seconds.
const DRAIN_PATIENCE: Duration = Duration::from_secs(25);

/// Flags of the function: the flags of the SDK, and the flag of Paved Road.
#[derive(clap::Parser, Debug)]
#[command(name = "function", version, about = "Paved Road: a Crossplane composition function", long_about = None)]
pub struct Flags {
    /// Flags that Crossplane's function specification requires.
    #[command(flatten)]
    pub sdk: function_sdk_rust::Args,

    /// Maximum number of concurrent requests [default: the number of CPUs]. Other requests wait
    /// unread.
    #[arg(long, env = "MAX_CONCURRENT_REQUESTS")]
    pub max_concurrent_requests: Option<NonZeroUsize>,
}

/// The error that stops the server.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// `--address` or `--metrics-address` is not an address.
    #[error("{flag}: {found:?} is not an address; allowed: for example 0.0.0.0:9443")]
    Address {
        /// The flag's name.
        flag: &'static str,
        /// The value of the flag.
        found: String,
    },
    /// Neither `--tls-certs-dir` nor `--insecure` is set.
    #[error(
        "--tls-certs-dir: missing; allowed: the directory of tls.crt, tls.key and ca.crt. Use \
         --insecure to serve without TLS"
    )]
    NoCertificates,
    /// A certificate or a key could not be read.
    #[error("could not read {path}: {source}")]
    ReadCertificate {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The certificates or the key could not be used.
    #[error("could not use the certificates in {directory}: {source}")]
    Certificates {
        /// The directory.
        directory: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The server could not listen on the address.
    #[error("could not listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The cause.
        source: io::Error,
    },
    /// The server could not wait for signals.
    #[error("could not wait for signals: {0}")]
    Signal(#[source] io::Error),
    /// Serving failed.
    #[error("could not serve: {}", causes(.0))]
    Transport(#[from] tonic::transport::Error),
    /// Reflection could not be set up.
    #[error("could not set up reflection: {0}")]
    Reflection(#[from] tonic_reflection::server::Error),
}

/// A server that already listens. Calls wait until [`Server::serve`].
pub struct Server {
    router: Router<Stack<CountCalls, tower::layer::util::Identity>>,
    listener: TcpListener,
    /// None for a server without TLS.
    tls: Option<TlsAcceptor>,
    address: SocketAddr,
    metrics: Option<(TcpListener, Arc<Metrics>)>,
}

impl Server {
    /// Listens on the addresses of `flags`, to answer with `function`. Each kind of composite in
    /// `kinds` gets its own metric label. The other kinds share `other`.
    pub async fn bind(
        function: impl Function,
        kinds: Vec<&'static str>,
        flags: &Flags,
    ) -> Result<Self, Error> {
        let sdk = &flags.sdk;
        let tls = match (sdk.insecure, &sdk.tls_certs_dir) {
            (true, _) => None,
            (false, None) => return Err(Error::NoCertificates),
            (false, Some(directory)) => Some(tls::acceptor(directory)?),
        };
        let metrics = Arc::new(Metrics::new(kinds));
        let permits =
            flags.max_concurrent_requests.unwrap_or_else(cpus).get().min(Semaphore::MAX_PERMITS);
        let service = FunctionService::new(
            function,
            permits,
            sdk.max_recv_message_size.unwrap_or(MAX_MESSAGE),
            metrics.clone(),
        );
        let router = router(service, &metrics).await?;

        let listener = listen("--address", &sdk.address).await?;
        let address = local_address(&listener)?;
        tracing::info!(%address, insecure = sdk.insecure, permits, "serving FunctionRunnerService");
        let metrics = match sdk.metrics_address.as_str() {
            "" => None,
            found => listen_for_metrics(found).await?.map(|listener| (listener, metrics)),
        };
        Ok(Self { router, listener, tls, address, metrics })
    }

    /// The server's address. It has the actual port if the operating system chose the port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address of /metrics, if it is served.
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.metrics.as_ref().and_then(|(listener, _)| listener.local_addr().ok())
    }

    /// Serves until `stop`, then answers the requests in flight and returns. Calls that are still
    /// open 25 seconds later are cut off, for example a watch on the health service.
    pub async fn serve(self, stop: impl Future<Output = ()>) -> Result<(), Error> {
        let metrics = self.metrics.map(|(listener, metrics)| tokio::spawn(metrics.serve(listener)));
        let stopped = Notify::new();
        let stop = async {
            stop.await;
            tracing::info!("shutting down");
            stopped.notify_one();
        };
        let router = self.router;
        let serve = async {
            let Some(tls) = self.tls else {
                let incoming = TcpIncoming::from(self.listener).with_nodelay(Some(true));
                return router.serve_with_incoming_shutdown(incoming, stop).await;
            };
            let incoming = tls::connections(self.listener, tls);
            router.serve_with_incoming_shutdown(incoming, stop).await
        };
        let served = tokio::select! {
            served = serve => served.map_err(Error::from),
            () = async { stopped.notified().await; tokio::time::sleep(DRAIN_PATIENCE).await } => {
                tracing::warn!(seconds = DRAIN_PATIENCE.as_secs(), "stopping although some calls \
                    have not ended");
                Ok(())
            }
        };
        if let Some(metrics) = metrics {
            metrics.abort();
        }
        served
    }
}

/// Paved Road's own function, with the clock and the random source of this machine.
///
/// # Errors
/// `INVALID_ARGUMENT` for a malformed request, and `UNAVAILABLE` if the operating system returns no random
/// bytes. The passwords of that answer would not be random.
pub fn paved_road(request: RunFunctionRequest) -> Result<RunFunctionResponse, Status> {
    with_apis(apis::find, request)
}

/// Like [`paved_road`], with other APIs. `find` returns the API that serves a kind.
///
/// # Errors
/// The errors of [`paved_road`].
pub fn with_apis(
    find: impl Fn(&str) -> Option<&'static dyn AnyApi>,
    request: RunFunctionRequest,
) -> Result<RunFunctionResponse, Status> {
    let mut failed = None;
    let mut random = |buffer: &mut [u8]| {
        if let Err(error) = getrandom::fill(buffer) {
            failed = Some(error);
        }
    };
    let mut outside = Outside { now: jiff::Timestamp::now(), random: &mut random };
    let response = function::run_with(find, request, &mut outside);
    match failed {
        None => response.map_err(|malformed| Status::invalid_argument(malformed.to_string())),
        Some(error) => Err(Status::unavailable(format!(
            "the operating system returns no random bytes: {error}"
        ))),
    }
}

/// Completes at SIGTERM or SIGINT.
pub fn stop_signal() -> Result<impl Future<Output = ()>, Error> {
    let mut terminate = signal(SignalKind::terminate()).map_err(Error::Signal)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(Error::Signal)?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

async fn router<F: Function>(
    service: FunctionService<F>,
    metrics: &Metrics,
) -> Result<Router<Stack<CountCalls, tower::layer::util::Identity>>, Error> {
    let reflection = || {
        tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(FILE_DESCRIPTOR_SET)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
    };
    let (reporter, health) = tonic_health::server::health_reporter();
    for name in ["", SERVICE_NAME] {
        reporter.set_service_status(name, tonic_health::ServingStatus::Serving).await;
    }
    Ok(GrpcServer::builder()
        .max_concurrent_streams(MAX_STREAMS)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(MAX_STREAMS * STREAM_WINDOW)
        .layer(metrics.count_calls())
        .add_service(service)
        .add_service(health)
        .add_service(reflection().build_v1()?)
        .add_service(reflection().build_v1alpha()?))
}

async fn listen(flag: &'static str, found: &str) -> Result<TcpListener, Error> {
    // The Go SDK's shorthand for every interface.
    let full = if found.starts_with(':') { format!("0.0.0.0{found}") } else { found.to_owned() };
    let address = full.parse().map_err(|_| Error::Address { flag, found: found.to_owned() })?;
    TcpListener::bind(address).await.map_err(|source| Error::Listen { address, source })
}

/// Listens for metrics. Without a free port the function runs without metrics, but an invalid
/// address is an error.
async fn listen_for_metrics(found: &str) -> Result<Option<TcpListener>, Error> {
    match listen("--metrics-address", found).await {
        Ok(listener) => {
            tracing::info!(address = %local_address(&listener)?, "serving metrics");
            Ok(Some(listener))
        }
        Err(error @ Error::Listen { .. }) => {
            tracing::error!(%error, "cannot serve metrics");
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

fn local_address(listener: &TcpListener) -> Result<SocketAddr, Error> {
    let unknown = SocketAddr::from(([0, 0, 0, 0], 0));
    listener.local_addr().map_err(|source| Error::Listen { address: unknown, source })
}

fn cpus() -> NonZeroUsize {
    std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}

/// An error with its causes. tonic's own text is only "transport error".
fn causes(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
