//! Whether the portal is alive and ready.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::kinds::Catalog;
use super::limits::Limits;
use super::live::Live;
use super::metrics::Metrics;
use super::problem::{ErrorResponses, Problem};
use super::session::{Revoked, Sessions};

/// The state of the watches and of the sessions.
#[derive(Clone)]
pub(super) struct Health {
    pub(super) live: Arc<Live>,
    pub(super) catalog: Arc<Catalog>,
    pub(super) sessions: Option<Arc<Sessions>>,
    pub(super) limits: Limits,
}

impl Health {
    /// The components that are missing for complete responses.
    fn missing(&self) -> Vec<String> {
        let mut missing: Vec<String> =
            self.live.unsynced().into_iter().map(|kind| format!("the watch of {kind}")).collect();
        if !self.catalog.seen().is_known() {
            missing.push("the cluster's kinds".to_owned());
        } else if missing.is_empty() && self.live.seen_whole().is_err() {
            // The watch is between two steps. Requests fail until `seen_whole` succeeds.
            missing.push("a first list of all environments".to_owned());
        }
        let away = self.limits.interrupted_portal;
        if self.live.unseen() > away {
            missing.push("the API server's watches".to_owned());
        }
        let unheard = |revoked: &Revoked| !revoked.is_known() || revoked.unheard() > away;
        if self.sessions.as_ref().is_some_and(|sessions| unheard(&sessions.revoked)) {
            missing.push("the list of ended sessions".to_owned());
        }
        missing
    }
}

/// Returns 200 while the process runs.
#[utoipa::path(get, path = "/healthz", operation_id = "isAlive", tag = "operations",
    responses((status = 200, description = "The process runs.", body = String, content_type = "text/plain")))]
pub(super) async fn alive() -> &'static str {
    "ok\n"
}

/// Returns 200 when all kinds are loaded and the cluster is reachable.
#[utoipa::path(get, path = "/readyz", operation_id = "isReady", tag = "operations",
    responses((status = 200, description = "The portal is ready.", body = String, content_type = "text/plain"), ErrorResponses))]
pub(super) async fn ready(State(health): State<Health>) -> Result<&'static str, Problem> {
    let missing = health.missing();
    if missing.is_empty() {
        return Ok("ok\n");
    }
    Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, format!("Missing: {}.", missing.join(", "))))
}

/// Metrics for Prometheus, in OpenMetrics.
#[utoipa::path(get, path = "/metrics", operation_id = "getMetrics", tag = "operations",
    responses((status = 200, description = "The metrics.", body = String, content_type = "application/openmetrics-text"), ErrorResponses))]
pub(super) async fn metrics(State(metrics): State<Arc<Metrics>>) -> Result<Response, Problem> {
    let text = metrics.text().map_err(|error| {
        tracing::error!(%error, "could not write the metrics");
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "The metrics could not be written.")
    })?;
    let media_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, media_type)], text).into_response())
}
