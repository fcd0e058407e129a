//! Three HTTP APIs for existing clients: their messages, names and codes, for the same
//! environments.

pub(super) mod environments;
pub(super) mod status;
pub(super) mod stockpools;
pub(super) mod workspaces;

use axum::extract::{MatchedPath, Request};
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::IntoParams;

use super::api::write::WriteParams;
use super::live::Entry;
use super::problem::Problem;

/// A text in a body. An empty text counts as missing.
fn text<'b>(body: &'b Map<String, Value>, field: &str) -> Result<Option<&'b str>, Problem> {
    match body.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.trim()).filter(|text| !text.is_empty())),
        Some(_) => Err(Problem::field(field, "allowed: a text")),
    }
}

/// The query of a request that has no parameters. Unknown ones are rejected: a client would take
/// an ignored filter for an effective one.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NoParams {}

/// The query of a request that creates an environment.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct CreateParams {
    /// Create the object although the function would reject it, as a preview shows.
    #[serde(default)]
    #[param(required = false)]
    skip_check: bool,
}

impl From<CreateParams> for WriteParams {
    fn from(params: CreateParams) -> Self {
        Self { dry_run: false, skip_check: params.skip_check }
    }
}

/// The phase for older clients. An environment that works but cannot be changed at the moment is
/// still ready for them.
fn phase(entry: &Entry) -> String {
    let own =
        || entry.view.status.get("phase").and_then(Value::as_str).unwrap_or_default().to_owned();
    match entry.view.phase.as_str() {
        "" => "Pending".to_owned(),
        "OutOfSync" => own(),
        phase => phase.to_owned(),
    }
}

/// Why an environment waits or failed.
fn message(entry: &Entry) -> Option<String> {
    Some(entry.view.message.clone()).filter(|message| !message.is_empty())
}

/// Rejects unknown fields in a body.
fn only(body: &Map<String, Value>, known: &[&str]) -> Result<(), Problem> {
    match body.keys().find(|field| !known.contains(&field.as_str())) {
        Some(field) => {
            Err(Problem::field(field, format!("unknown field; allowed: {}", known.join(", "))))
        }
        None => Ok(()),
    }
}

/// Gives server errors the message and the status 500 that older clients expect.
pub(super) async fn failing(request: Request, next: Next) -> Response {
    let path = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
    let words = path.and_then(|path| failure(request.method(), path));
    let response = next.run(request).await;
    let Some(words) = words.filter(|_| response.status().is_server_error()) else {
        return response;
    };
    let problem = response.extensions().get::<Problem>().cloned();
    let problem = problem.unwrap_or_else(|| Problem::new(response.status(), "The portal failed."));
    problem.with_status(StatusCode::INTERNAL_SERVER_ERROR).called(words).into_response()
}

/// The message for older clients if an operation fails.
fn failure(method: &Method, path: &str) -> Option<&'static str> {
    match (method.as_str(), path) {
        ("POST", "/api/workspaces") => Some("Failed to create workspace."),
        ("GET", "/api/workspaces") => Some("Failed to list workspaces."),
        ("DELETE", "/api/workspaces/{name}") => Some("Failed to delete workspace."),
        ("POST", "/api/environments" | "/api/environments/") => {
            Some("Failed to create environment.")
        }
        ("POST", "/api/v1/operator/stockpools") => Some("Failed to create stock pool."),
        _ => None,
    }
}
