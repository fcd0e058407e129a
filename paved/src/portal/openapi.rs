//! The API's description, made from the very list of routes that are served: what is served is described.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde_json::Value;
use utoipa::OpenApi;
use utoipa::openapi::OpenApi as Description;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::Portal;
use super::api::{changes, connection, environments, keys, kinds, me, preview, watch};
use super::health;
use super::shapes;
use super::sign_in;

/// What stands above the operations.
#[derive(OpenApi)]
#[openapi(info(
    title = "Paved Road",
    description = "Self-service environments: choose, see what it will be, watch it come up, connect.",
    license(name = "Apache-2.0")
))]
struct Head;

/// Every route, and the description of each.
pub(super) fn routes() -> (axum::Router<Arc<Portal>>, Description) {
    OpenApiRouter::with_openapi(Head::openapi())
        .routes(routes!(health::alive))
        .routes(routes!(health::ready))
        .routes(routes!(health::metrics))
        .routes(routes!(described))
        .routes(routes!(sign_in::begin))
        .routes(routes!(sign_in::finish))
        .routes(routes!(sign_in::sign_out))
        .routes(routes!(me::get))
        .routes(routes!(kinds::list))
        .routes(routes!(kinds::get))
        .routes(routes!(environments::list, changes::create))
        .routes(routes!(environments::get, changes::replace, changes::patch, changes::delete))
        .routes(routes!(connection::reveal))
        .routes(routes!(preview::preview))
        .routes(routes!(keys::get, keys::put))
        .routes(routes!(watch::watch))
        .routes(routes!(shapes::workspaces::list, shapes::workspaces::create))
        .routes(routes!(shapes::workspaces::delete))
        .routes(routes!(shapes::environments::create))
        .routes(routes!(shapes::status::status))
        .routes(routes!(shapes::stockpools::health))
        .routes(routes!(shapes::stockpools::list, shapes::stockpools::create))
        .routes(routes!(shapes::stockpools::job_of))
        .split_for_parts()
}

/// The description alone.
pub(super) fn description() -> Description {
    routes().1
}

/// This description.
#[utoipa::path(get, path = "/api/v1/openapi.json", tag = "operations",
    responses((status = 200, description = "OpenAPI.", body = Object)))]
async fn described(State(_): State<Arc<Portal>>) -> Json<Value> {
    Json(serde_json::to_value(description()).unwrap_or_default())
}
