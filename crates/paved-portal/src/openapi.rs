//! The API's description, generated from the list of served routes, so that both always match.

use serde_json::Value;
use tower_http::compression::CompressionLayer;
use utoipa::openapi::OpenApi as Description;
use utoipa::openapi::SecurityRequirement;
use utoipa::openapi::security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::{Modify, OpenApi};
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouterExt as _};
use utoipa_axum::routes;

use super::Portal;
use super::answer::Answer;
use super::api::{
    budgets, changes, connection, environments, keys, kinds, lifecycle, me, preview, watch,
};
use super::health;
use super::legacy_api;
use super::problem::{FieldError, ProblemDetails};
use super::session::COOKIE;
use super::sign_in;

/// The general part of the description.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "Paved Road",
        description = "Self-service environments: choose one, preview it, follow its progress and connect.",
        license(name = "Apache-2.0", identifier = "Apache-2.0")
    ),
    tags(
        (name = "environments", description = "Environments of all kinds."),
        (name = "kinds", description = "The kinds that the cluster has."),
        (name = "keys", description = "SSH public keys."),
        (name = "me", description = "The current user."),
        (name = "sign-in", description = "Sign-in of browsers by an OpenID provider."),
        (name = "workspaces", description = "GPU workspaces, for existing clients."),
        (name = "application environments", description = "Application environments, for existing clients."),
        (name = "stock pools", description = "Stock pools, for existing clients."),
        (name = "operations", description = "For operators of the portal.")
    ),
    components(schemas(ProblemDetails, FieldError)),
    modifiers(&Credentials)
)]
struct Head;

/// The credentials of a user. A portal with `--auth none` requires none.
struct Credentials;

impl Modify for Credentials {
    fn modify(&self, description: &mut Description) {
        let bearer = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .description(Some("A Kubernetes token."))
            .build();
        let session = ApiKeyValue::with_description(
            COOKIE,
            "A browser session. Write requests need the header Origin or Sec-Fetch-Site of the \
             portal's pages.",
        );
        let components = description.components.get_or_insert_default();
        components.add_security_scheme("bearer", SecurityScheme::Http(bearer));
        components.add_security_scheme("session", SecurityScheme::ApiKey(ApiKey::Cookie(session)));
        let one = |name: &str| SecurityRequirement::new(name, Vec::<String>::new());
        description.security =
            Some(vec![one("bearer"), one("session"), SecurityRequirement::default()]);
    }
}

/// All routes, and their descriptions.
pub(super) fn routes() -> (axum::Router<Portal>, Description) {
    OpenApiRouter::with_openapi(Head::openapi())
        .routes(routes!(health::alive))
        .routes(routes!(health::ready))
        .routes(routes!(health::metrics))
        .routes(routes!(described))
        .routes(routes!(sign_in::begin))
        .routes(routes!(sign_in::finish))
        .routes(routes!(sign_in::sign_out))
        .routes(routes!(me::get))
        // Every form needs the schemas first. They contain no secrets, so compression is safe.
        .routes(routes!(kinds::list).layer(CompressionLayer::new()))
        .routes(routes!(kinds::get))
        .routes(routes!(environments::list, changes::create))
        .routes(routes!(environments::get, changes::replace, changes::patch, changes::delete))
        .routes(routes!(connection::reveal))
        .routes(routes!(lifecycle::extend))
        .routes(routes!(lifecycle::keep))
        .routes(routes!(lifecycle::stop))
        .routes(routes!(lifecycle::start))
        .routes(routes!(preview::preview))
        .routes(routes!(preview::change))
        .routes(routes!(budgets::list))
        .routes(routes!(keys::get, keys::put))
        .routes(routes!(watch::watch))
        .routes(routes!(legacy_api::workspaces::list, legacy_api::workspaces::create))
        .routes(routes!(legacy_api::workspaces::delete))
        .routes(routes!(legacy_api::environments::create))
        .routes(routes!(legacy_api::environments::create_without_slash))
        .routes(routes!(legacy_api::status::status))
        .routes(routes!(legacy_api::stockpools::health))
        .routes(routes!(legacy_api::stockpools::list, legacy_api::stockpools::create))
        .routes(routes!(legacy_api::stockpools::job_of))
        .split_for_parts()
}

/// The description only.
pub(super) fn description() -> Description {
    routes().1
}

/// This description.
#[utoipa::path(get, path = "/api/v1/openapi.json", operation_id = "getDescription", tag = "operations",
    responses((status = 200, description = "OpenAPI.", body = Object)))]
async fn described() -> Answer<Value> {
    Answer(serde_json::to_value(description()).unwrap_or_default())
}
