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
use serde_json::{Map, Value};

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
        ("POST", "/api/environments/") => Some("Failed to create environment."),
        ("POST", "/api/v1/operator/stockpools") => Some("Failed to create stock pool."),
        _ => None,
    }
}
