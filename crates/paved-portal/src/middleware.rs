//! The layers of every request: its ID, its log line, the check of its origin, and the headers of
//! its response.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::extract::{DefaultBodyLimit, MatchedPath, Request, State};
use axum::handler::Handler as _;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::compression::CompressionLayer;
use tower_http::timeout::RequestBodyTimeoutLayer;
use tracing::Instrument as _;

use super::Portal;
use super::address::{PublicAddress, client, is_public};
use super::bodies::{LARGEST, content_length, too_large};
use super::config::Config;
use super::csrf::Origins;
use super::limits::Limits;
use super::metrics::Metrics;
use super::openapi;
use super::owner::unique;
use super::problem::Problem;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Headers of every response. Pages load only files of the portal, without inline scripts, and
/// appear in no frame.
const ALWAYS: [(HeaderName, &str); 6] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; \
         manifest-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// The whole portal.
pub(super) fn router(portal: &Portal) -> Router {
    openapi::routes()
        .0
        // Pages are compressed, and few other responses. Compression would delay the events of a
        // stream. A secret must not share a compressed response with a value of the request.
        .fallback(super::pages::serve.layer(CompressionLayer::new()))
        .method_not_allowed_fallback(async || StatusCode::METHOD_NOT_ALLOWED)
        .layer(from_fn_with_state((Arc::clone(&portal.origins), portal.limits), admit))
        .layer(DefaultBodyLimit::max(LARGEST))
        .layer(RequestBodyTimeoutLayer::new(portal.limits.body_pause))
        .layer(CatchPanicLayer::custom(|_| StatusCode::INTERNAL_SERVER_ERROR.into_response()))
        .layer(from_fn(super::legacy_api::failing))
        .layer(from_fn_with_state(
            (Arc::clone(&portal.config), Arc::clone(&portal.metrics)),
            finish,
        ))
        .with_state(portal.clone())
}

/// Lets a request pass, or rejects it with the reason.
async fn admit(
    State((origins, limits)): State<(Arc<Origins>, Limits)>,
    request: Request,
    next: Next,
) -> Response {
    if let Err(problem) = check(&origins, &request) {
        return problem.into_response();
    }
    let path = request.uri().path();
    // The time of these checks depends on the API server.
    if path == "/healthz" || path == "/metrics" {
        return next.run(request).await;
    }
    match tokio::time::timeout(limits.response, next.run(request)).await {
        Ok(response) => response,
        Err(_) => {
            Problem::new(StatusCode::GATEWAY_TIMEOUT, "The request timed out.").into_response()
        }
    }
}

fn check(origins: &Origins, request: &Request) -> Result<(), Problem> {
    let headers = request.headers();
    // No header of the request reaches the API server. The client gets an error instead of silence.
    if let Some(name) = headers.keys().find(|name| name.as_str().starts_with("impersonate-")) {
        return Err(Problem::bad_request(format!(
            "{name}: not allowed, because the portal acts with your own identity. Remove the \
             header."
        )));
    }
    if content_length(headers).is_some_and(|length| length > LARGEST) {
        return Err(too_large());
    }
    origins.check(request.method(), request.uri(), headers)
}

/// Gives a request its ID and its log line, and serializes problems.
async fn finish(
    State((config, metrics)): State<(Arc<Config>, Arc<Metrics>)>,
    mut request: Request,
    next: Next,
) -> Response {
    let began = Instant::now();
    let id = id(request.headers());
    if let Ok(value) = HeaderValue::from_str(&id) {
        request.headers_mut().insert(REQUEST_ID, value);
    }
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let client = client(&config.trusted_proxies, &request);
    if let Some(address) = client.filter(is_public) {
        request.extensions_mut().insert(PublicAddress(address));
    }
    let route = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    let reads_pages =
        method == Method::GET && path.starts_with("/auth/") && accepts_pages(request.headers());
    // Each log line of a request has its id, at any log level.
    let span = tracing::error_span!("request", request = id.as_str());
    let answer = next.run(request).instrument(span.clone()).await;
    let mut response = written(answer, &path, &id, reads_pages);
    for (name, value) in ALWAYS {
        response.headers_mut().entry(name).or_insert(HeaderValue::from_static(value));
    }
    if config.tls.is_some() {
        // Browsers use only HTTPS from then on, for a year.
        let a_year = HeaderValue::from_static("max-age=31536000");
        response.headers_mut().insert(header::STRICT_TRANSPORT_SECURITY, a_year);
    }
    let private = HeaderValue::from_static("no-store");
    response.headers_mut().entry(header::CACHE_CONTROL).or_insert(private);
    if let Ok(value) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(REQUEST_ID, value);
    }
    let status = response.status();
    let took = began.elapsed();
    let route = route.unwrap_or_else(|| "other".to_owned());
    metrics.answered(&method, &route, status, took);
    span.in_scope(|| told(&method, &path, status, took, client));
    response
}

fn told(method: &Method, path: &str, status: StatusCode, took: Duration, client: Option<IpAddr>) {
    let milliseconds = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    let client = client.map(|client| client.to_string()).unwrap_or_default();
    let status = status.as_u16();
    if matches!(path, "/healthz" | "/readyz" | "/metrics") {
        tracing::debug!(%method, path, status, milliseconds, client, "answered");
    } else {
        tracing::info!(%method, path, status, milliseconds, client, "answered");
    }
}

/// Whether the client is a navigating browser, not a program.
fn accepts_pages(headers: &HeaderMap) -> bool {
    let accepted = headers.get(header::ACCEPT).and_then(|accepted| accepted.to_str().ok());
    accepted.is_some_and(|accepted| accepted.contains("text/html"))
}

/// Serializes a problem, and converts an error of a library to a problem. A browser gets a page
/// instead, if pages exist.
fn written(response: Response, path: &str, id: &str, reads_pages: bool) -> Response {
    if let Some(problem) = response.extensions().get::<Problem>() {
        let problem = problem.clone().at(path, id);
        let page = reads_pages.then(|| super::pages::telling(&problem)).flatten();
        let mut answer = page.unwrap_or_else(|| problem.answer());
        for (name, value) in response.headers() {
            if *name == header::SET_COOKIE || *name == header::ALLOW {
                answer.headers_mut().append(name.clone(), value.clone());
            }
        }
        return answer;
    }
    let status = response.status();
    if !(status.is_client_error() || status.is_server_error()) || is_json(response.headers()) {
        return response;
    }
    let problem = match status {
        StatusCode::PAYLOAD_TOO_LARGE => too_large(),
        StatusCode::METHOD_NOT_ALLOWED => Problem::new(
            status,
            "This path does not allow the \
            method.",
        ),
        _ => Problem::new(status, status.canonical_reason().unwrap_or("Refused")),
    };
    let mut answer: Response<Body> = problem.at(path, id).answer();
    if let Some(allow) = response.headers().get(header::ALLOW) {
        answer.headers_mut().insert(header::ALLOW, allow.clone());
    }
    answer
}

fn is_json(headers: &HeaderMap) -> bool {
    let media_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    media_type.is_some_and(|media_type| media_type.contains("json"))
}

/// The ID of the request if it is safe in a log, otherwise a new one.
fn id(headers: &HeaderMap) -> String {
    let sent = headers.get(REQUEST_ID).and_then(|id| id.to_str().ok());
    let fits = |id: &&str| {
        (8..=64).contains(&id.len())
            && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    match sent.filter(fits) {
        Some(id) => id.to_owned(),
        None => unique(8).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn an_id_that_could_write_into_the_log_is_replaced() {
        let of = |id: &'static str| {
            id_of(&HeaderMap::from_iter([(REQUEST_ID, HeaderValue::from_static(id))]))
        };
        assert_eq!(of("0123456789abcdef"), "0123456789abcdef");
        for strange in ["short", "a b c d e f g h", "\"quoted-text\"", "{}{}{}{}{}"] {
            assert_ne!(of(strange), strange);
        }
    }

    fn id_of(headers: &HeaderMap) -> String {
        id(headers)
    }
}
