//! Health and metrics over HTTP.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::net::TcpListener;

use crate::Limits;
use crate::clock::Clock;
use crate::lease::Election;
use crate::metrics::Metrics;
use crate::store::Store;

const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The state for the answers.
#[derive(Clone)]
pub(crate) struct Health {
    pub store: Arc<Store>,
    pub election: Arc<Election>,
    pub metrics: Arc<Metrics>,
    pub clock: Clock,
    pub limits: Limits,
}

/// Serves until the task ends.
pub(crate) async fn serve(listener: TcpListener, health: Health) {
    if let Ok(address) = listener.local_addr() {
        listening(address);
    }
    let router = Router::new()
        .route("/healthz", get(|| async { "ok" }))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
        .with_state(health);
    http_server::serve(listener, router).await;
}

fn listening(address: SocketAddr) {
    tracing::info!(%address, "listening");
}

/// Ready: all kinds were listed, the Lease is known, and no watch is interrupted for long.
async fn ready(State(health): State<Health>) -> Response {
    let mut missing = health.store.missing(health.limits.interrupted);
    if !health.election.is_known().await {
        missing.push("the Lease".to_owned());
    }
    if missing.is_empty() {
        return "ok".into_response();
    }
    let told = format!("not ready: {}\n", missing.join(", "));
    (StatusCode::SERVICE_UNAVAILABLE, told).into_response()
}

async fn metrics(State(health): State<Health>) -> Response {
    health.metrics.count(&health.store, health.clock.now());
    match health.metrics.text() {
        Ok(text) => ([(header::CONTENT_TYPE, OPENMETRICS)], text).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}
