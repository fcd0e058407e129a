//! The `grpc_server_*` series have the names, labels and help of function-sdk-go's and
//! function-sdk-rust's servers. One dashboard can serve all functions. As in those servers, only
//! unary calls are counted and every series starts at zero.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use function_sdk_rust::proto::v1::function_runner_service_server::SERVICE_NAME;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;
use tonic::Code;
use tonic::codegen::http::{HeaderMap, Request, Response};
use tonic::codegen::{Body as HttpBody, Bytes};
use tower::{Layer, Service};

/// RunFunction's path.
pub(crate) const RUN_FUNCTION: &str =
    "/apiextensions.fn.proto.v1.FunctionRunnerService/RunFunction";

const HEALTH: &str = "grpc.health.v1.Health";

/// The server's methods: type of call, service, method.
const METHODS: [Method; 5] = [
    Method { grpc_type: "unary", grpc_service: SERVICE_NAME, grpc_method: "RunFunction" },
    Method { grpc_type: "unary", grpc_service: HEALTH, grpc_method: "Check" },
    Method { grpc_type: "server_stream", grpc_service: HEALTH, grpc_method: "Watch" },
    Method {
        grpc_type: "bidi_stream",
        grpc_service: "grpc.reflection.v1.ServerReflection",
        grpc_method: "ServerReflectionInfo",
    },
    Method {
        grpc_type: "bidi_stream",
        grpc_service: "grpc.reflection.v1alpha.ServerReflection",
        grpc_method: "ServerReflectionInfo",
    },
];

/// The names of the codes in grpc-go, by number.
const CODES: [&str; 17] = [
    "OK",
    "Canceled",
    "Unknown",
    "InvalidArgument",
    "DeadlineExceeded",
    "NotFound",
    "AlreadyExists",
    "PermissionDenied",
    "ResourceExhausted",
    "FailedPrecondition",
    "Aborted",
    "OutOfRange",
    "Unimplemented",
    "Internal",
    "Unavailable",
    "DataLoss",
    "Unauthenticated",
];

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
#[allow(clippy::struct_field_names, reason = "these are the labels")]
struct Method {
    grpc_type: &'static str,
    grpc_service: &'static str,
    grpc_method: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Handled {
    #[prometheus(flatten)]
    method: Method,
    grpc_code: &'static str,
}

/// The four series.
#[derive(Default)]
pub(super) struct Calls {
    started: Family<Method, Counter>,
    handled: Family<Handled, Counter>,
    received: Family<Method, Counter>,
    sent: Family<Method, Counter>,
}

impl Calls {
    pub(super) fn new(registry: &mut Registry) -> Self {
        let calls = Self::default();
        // The encoder adds `_total` to the names and the full stop to the help.
        registry.register(
            "grpc_server_started",
            "Total number of RPCs started on the server",
            calls.started.clone(),
        );
        registry.register(
            "grpc_server_handled",
            "Total number of RPCs completed on the server, regardless of success or failure",
            calls.handled.clone(),
        );
        registry.register(
            "grpc_server_msg_received",
            "Total number of RPC stream messages received on the server",
            calls.received.clone(),
        );
        registry.register(
            "grpc_server_msg_sent",
            "Total number of gRPC stream messages sent by the server",
            calls.sent.clone(),
        );
        for method in METHODS {
            for family in [&calls.started, &calls.received, &calls.sent] {
                drop(family.get_or_create(&method));
            }
            for code in CODES {
                drop(calls.handled.get_or_create(&method.with(code)));
            }
        }
        calls
    }
}

impl Method {
    /// The unary method of a path. Streams are not counted.
    fn unary(path: &str) -> Option<Self> {
        match path {
            RUN_FUNCTION => Some(METHODS[0]),
            "/grpc.health.v1.Health/Check" => Some(METHODS[1]),
            _ => None,
        }
    }

    fn with(self, grpc_code: &'static str) -> Handled {
        Handled { method: self, grpc_code }
    }
}

/// One call. It is counted as handled once: when its status is known, or as canceled if it is
/// dropped before.
struct Call {
    method: Method,
    calls: Arc<Calls>,
    code: Code,
}

impl Call {
    fn start(method: Method, calls: Arc<Calls>) -> Self {
        calls.started.get_or_create(&method).inc();
        calls.received.get_or_create(&method).inc();
        Self { method, calls, code: Code::Cancelled }
    }

    fn end(mut self, code: Code) {
        self.code = code;
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        let name = CODES.get(self.code as usize).unwrap_or(&"Unknown");
        self.calls.handled.get_or_create(&self.method.with(name)).inc();
        if self.code == Code::Ok {
            self.calls.sent.get_or_create(&self.method).inc();
        }
    }
}

/// The status in headers or trailers.
fn status(headers: &HeaderMap) -> Option<Code> {
    Some(Code::from_bytes(headers.get("grpc-status")?.as_bytes()))
}

/// Counts the calls of the services that it wraps.
#[derive(Clone)]
pub(crate) struct CountCalls(pub(super) Arc<Calls>);

impl<S> Layer<S> for CountCalls {
    type Service = Counted<S>;

    fn layer(&self, inner: S) -> Counted<S> {
        Counted { inner, calls: self.0.clone() }
    }
}

/// A service with counted calls.
#[derive(Clone)]
pub(crate) struct Counted<S> {
    inner: S,
    calls: Arc<Calls>,
}

impl<S, Q, R> Service<Request<Q>> for Counted<S>
where
    S: Service<Request<Q>, Response = Response<R>, Future: Send + 'static>,
{
    type Response = Response<CountedBody<R>>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Q>) -> Self::Future {
        let mut call = Method::unary(request.uri().path())
            .map(|method| Call::start(method, self.calls.clone()));
        let response = self.inner.call(request);
        Box::pin(async move {
            let response = response.await?;
            // An answer without a message has its status in the headers.
            if let Some(code) = status(response.headers()) {
                call.take().into_iter().for_each(|call| call.end(code));
            }
            Ok(response.map(|inner| CountedBody { inner, call }))
        })
    }
}

/// A response with its status in the trailers.
pub(crate) struct CountedBody<B> {
    inner: B,
    call: Option<Call>,
}

impl<B: HttpBody<Data = Bytes> + Unpin> HttpBody for CountedBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, B::Error>>> {
        let this = self.get_mut();
        let frame = ready!(Pin::new(&mut this.inner).poll_frame(cx));
        let code = match &frame {
            Some(Ok(frame)) => {
                frame.trailers_ref().map(|trailers| status(trailers).unwrap_or(Code::Unknown))
            }
            // A broken or missing end carries no status.
            Some(Err(_)) | None => Some(Code::Unknown),
        };
        if let Some(code) = code {
            this.call.take().into_iter().for_each(|call| call.end(code));
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.inner.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_is_dropped_was_canceled() {
        let calls = Arc::new(Calls::new(&mut Registry::default()));
        let method = METHODS[0];
        let handled = |code| calls.handled.get_or_create(&method.with(code)).get();
        drop(Call::start(method, calls.clone()));
        Call::start(method, calls.clone()).end(Code::Ok);
        assert_eq!((handled("Canceled"), handled("OK")), (1, 1));
        assert_eq!(calls.started.get_or_create(&method).get(), 2);
        assert_eq!(calls.sent.get_or_create(&method).get(), 1);
    }

    #[test]
    fn streams_are_not_counted() {
        assert!(Method::unary("/grpc.health.v1.Health/Watch").is_none());
        assert!(
            Method::unary("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo").is_none()
        );
    }
}
