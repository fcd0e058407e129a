//! Whether the portal lives, and whether it can answer.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::kinds::Catalog;
use super::live::Live;
use super::metrics::Metrics;
use super::problem::{Problem, Refusals};
use super::session::{Revoked, Sessions};

/// How long the API server may be away before requests are better sent to another replica: for all of them it restarts sooner.
const AWAY: Duration = Duration::from_mins(2);

/// The state of the watches and of the sessions.
#[derive(Clone)]
pub(super) struct Health {
    pub(super) live: Arc<Live>,
    pub(super) catalog: Arc<Catalog>,
    pub(super) sessions: Option<Arc<Sessions>>,
}

impl Health {
    /// What is missing, so that requests cannot be answered as they should.
    fn missing(&self) -> Vec<String> {
        let mut missing: Vec<String> =
            self.live.unsynced().into_iter().map(|kind| format!("the watch of {kind}")).collect();
        if !self.catalog.seen().is_known() {
            missing.push("the cluster's kinds".to_owned());
        } else if missing.is_empty() && self.live.seen_whole().is_err() {
            // Between two steps of the watch: it is ready when it answers.
            missing.push("a first look at what there is".to_owned());
        }
        if self.live.unseen() > AWAY {
            missing.push("the API server's watches".to_owned());
        }
        let unheard = |revoked: &Revoked| !revoked.is_known() || revoked.unheard() > AWAY;
        if self.sessions.as_ref().is_some_and(|sessions| unheard(&sessions.revoked)) {
            missing.push("the sessions that were ended".to_owned());
        }
        missing
    }
}

/// Whether the process lives.
#[utoipa::path(get, path = "/healthz", operation_id = "isAlive", tag = "operations",
    responses((status = 200, description = "It lives.", body = String, content_type = "text/plain")))]
pub(super) async fn alive() -> &'static str {
    "ok\n"
}

/// Whether requests can be answered: every kind has been seen whole, and the cluster is not out of reach.
#[utoipa::path(get, path = "/readyz", operation_id = "isReady", tag = "operations",
    responses((status = 200, description = "It is ready.", body = String, content_type = "text/plain"), Refusals))]
pub(super) async fn ready(State(health): State<Health>) -> Result<&'static str, Problem> {
    let missing = health.missing();
    if missing.is_empty() {
        return Ok("ok\n");
    }
    Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, format!("Missing: {}.", missing.join(", "))))
}

/// Figures for Prometheus, in OpenMetrics.
#[utoipa::path(get, path = "/metrics", operation_id = "getMetrics", tag = "operations",
    responses((status = 200, description = "Figures.", body = String, content_type = "application/openmetrics-text"), Refusals))]
pub(super) async fn metrics(State(metrics): State<Arc<Metrics>>) -> Result<Response, Problem> {
    let text = metrics.text().map_err(|error| {
        tracing::error!(%error, "metrics cannot be written");
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "The figures cannot be written.")
    })?;
    let media_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, media_type)], text).into_response())
}
