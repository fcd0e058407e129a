//! Whether the portal lives, and whether it can answer.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::Portal;
use super::problem::{Problem, Refusals};

/// Returns 200 while the process runs.
#[utoipa::path(get, path = "/healthz", operation_id = "isAlive", tag = "operations",
    responses((status = 200, description = "The process runs.", body = String, content_type = "text/plain")))]
pub(super) async fn alive() -> &'static str {
    "ok\n"
}

/// Returns 200 when all kinds are loaded and the cluster is reachable.
#[utoipa::path(get, path = "/readyz", operation_id = "isReady", tag = "operations",
    responses((status = 200, description = "The portal is ready.", body = String, content_type = "text/plain"), Refusals))]
pub(super) async fn ready(State(portal): State<Arc<Portal>>) -> Result<&'static str, Problem> {
    let missing = portal.missing();
    if missing.is_empty() {
        return Ok("ok\n");
    }
    Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, format!("Missing: {}.", missing.join(", "))))
}

/// Metrics for Prometheus, in OpenMetrics.
#[utoipa::path(get, path = "/metrics", operation_id = "getMetrics", tag = "operations",
    responses((status = 200, description = "The metrics.", body = String, content_type = "application/openmetrics-text"), Refusals))]
pub(super) async fn metrics(State(portal): State<Arc<Portal>>) -> Result<Response, Problem> {
    let text = portal.metrics.text().map_err(|error| {
        tracing::error!(%error, "metrics cannot be written");
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "The metrics could not be written.")
    })?;
    let media_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, media_type)], text).into_response())
}
