//! RunFunction: wait for a permit, read, decode, compose, encode.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::Bytes;
use function_proto::v1::RunFunctionRequest;
use function_sdk_rust::proto::v1::function_runner_service_server::SERVICE_NAME;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tonic::body::Body;
use tonic::codegen::http;
use tonic::server::{Grpc, NamedService};
use tonic::{Request, Response, Status};
use tower::{Service, service_fn};

use super::codec::Raw;
use super::decode::decode;
use super::{BODY_PATIENCE, Function};
use crate::metrics::{Metrics, RUN_FUNCTION};
use crate::outcome::{Outcome, Subject, reason};
use crate::wire;

/// Requests from this size on, in bytes, are processed outside the threads that serve connections.
/// A request of 4 MiB takes tens of milliseconds, and a pod with one CPU must answer its probes
/// meanwhile.
const LARGE: usize = 256 * 1024;

/// The FunctionRunnerService.
pub(super) struct FunctionService<F>(Arc<Inner<F>>);

struct Inner<F> {
    function: F,
    permits: Arc<Semaphore>,
    max_message: usize,
    metrics: Arc<Metrics>,
}

impl<F: Function> FunctionService<F> {
    pub(super) fn new(
        function: F,
        permits: usize,
        max_message: usize,
        metrics: Arc<Metrics>,
    ) -> Self {
        Self(Arc::new(Inner {
            function,
            permits: Arc::new(Semaphore::new(permits)),
            max_message,
            metrics,
        }))
    }
}

impl<F> Clone for FunctionService<F> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<F> NamedService for FunctionService<F> {
    const NAME: &'static str = SERVICE_NAME;
}

impl<F: Function> Service<http::Request<Body>> for FunctionService<F> {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let inner = self.0.clone();
        Box::pin(async move {
            Ok(match request.uri().path() {
                RUN_FUNCTION => inner.serve(request).await,
                path => Status::unimplemented(format!("{path}: no such method")).into_http(),
            })
        })
    }
}

impl<F: Function> Inner<F> {
    async fn serve(self: Arc<Self>, request: http::Request<Body>) -> http::Response<Body> {
        let Ok(permit) = self.permit().await else {
            return Status::unavailable("shutting down").into_http();
        };
        let mut grpc = Grpc::new(Raw).apply_max_message_size_config(Some(self.max_message), None);
        let arrived = Notify::new();
        let method = service_fn(|message: Request<Bytes>| {
            arrived.notify_one();
            self.clone().answer_under(permit.clone(), message.into_inner())
        });
        tokio::select! {
            response = grpc.unary(method, request) => response,
            () = stalled(&arrived) => Status::deadline_exceeded("the request did not arrive in time").into_http(),
        }
    }

    async fn permit(&self) -> Result<Arc<OwnedSemaphorePermit>, tokio::sync::AcquireError> {
        let _waiting = self.metrics.waiting();
        self.permits.clone().acquire_owned().await.map(Arc::new)
    }

    /// Moves the permit to the work. A caller that hangs up does not stop work that has begun.
    async fn answer_under(
        self: Arc<Self>,
        permit: Arc<OwnedSemaphorePermit>,
        message: Bytes,
    ) -> Result<Response<Bytes>, Status> {
        if message.len() < LARGE {
            return self.answer(message).map(Response::new);
        }
        let work = move || {
            let _permit = permit;
            self.answer(message).map(Response::new)
        };
        let done = tokio::task::spawn_blocking(work).await;
        done.unwrap_or_else(|_| Err(Status::internal("composing was cancelled")))
    }

    fn answer(&self, message: Bytes) -> Result<Bytes, Status> {
        let started = Instant::now();
        let (subject, answer) = match decode(message) {
            Ok(request) => {
                let subject = Subject::from_request(&request);
                let answer = self.compose(&subject, request);
                (subject, answer)
            }
            Err(error) => (
                Subject::default(),
                Err(Status::invalid_argument(format!(
                    "the body is not a RunFunctionRequest: {error}"
                ))),
            ),
        };
        let outcome = Outcome::from_answer(&answer);
        self.metrics.answered(&subject.kind, outcome);
        let reason = reason(&answer).to_owned();
        let bytes = answer.map(|response| wire::encode(&response));
        let Subject { kind, namespace, name, uid } = subject;
        let (outcome, seconds) = (outcome.as_str(), started.elapsed().as_secs_f64());
        tracing::info!(kind, namespace, name, uid, outcome, reason, seconds, "request answered");
        bytes
    }

    /// Runs the function. Its traces at debug level carry the composite's identity.
    fn compose(
        &self,
        subject: &Subject,
        request: RunFunctionRequest,
    ) -> Result<function_proto::v1::RunFunctionResponse, Status> {
        let Subject { kind, namespace, name, uid } = subject;
        let _span = tracing::debug_span!("compose", kind, namespace, name, uid).entered();
        let started = Instant::now();
        let answer = (self.function)(request);
        self.metrics.composed(kind, started.elapsed());
        answer
    }
}

/// Completes if a request does not arrive in time. Once the request has arrived, it never
/// completes.
async fn stalled(arrived: &Notify) {
    if tokio::time::timeout(BODY_PATIENCE, arrived.notified()).await.is_ok() {
        std::future::pending::<()>().await;
    }
}
