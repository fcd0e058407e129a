//! Whether the portal lives, and whether it can answer.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::Portal;
use super::problem::{Problem, Refusals};

/// Whether the process lives.
#[utoipa::path(get, path = "/healthz", operation_id = "isAlive", tag = "operations",
    responses((status = 200, description = "It lives.", body = String, content_type = "text/plain")))]
pub(super) async fn alive() -> &'static str {
    "ok\n"
}

/// Whether requests can be answered: every kind has been seen whole, and the cluster is not out of reach.
#[utoipa::path(get, path = "/readyz", operation_id = "isReady", tag = "operations",
    responses((status = 200, description = "It is ready.", body = String, content_type = "text/plain"), Refusals))]
pub(super) async fn ready(State(portal): State<Arc<Portal>>) -> Result<&'static str, Problem> {
    let missing = portal.missing();
    if missing.is_empty() {
        return Ok("ok\n");
    }
    Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, format!("Missing: {}.", missing.join(", "))))
}

/// Figures for Prometheus, in OpenMetrics.
#[utoipa::path(get, path = "/metrics", operation_id = "getMetrics", tag = "operations",
    responses((status = 200, description = "Figures.", body = String, content_type = "application/openmetrics-text"), Refusals))]
pub(super) async fn metrics(State(portal): State<Arc<Portal>>) -> Result<Response, Problem> {
    let text = portal.metrics.text().map_err(|error| {
        tracing::error!(%error, "metrics cannot be written");
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "The figures cannot be written.")
    })?;
    let media_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, media_type)], text).into_response())
}
