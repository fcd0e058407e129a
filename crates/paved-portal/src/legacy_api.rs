//! Three HTTP shapes that clients know from before: their words, names and codes, on the same
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

/// A text of a body; empty is none.
fn text<'b>(body: &'b Map<String, Value>, field: &str) -> Result<Option<&'b str>, Problem> {
    match body.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.trim()).filter(|text| !text.is_empty())),
        Some(_) => Err(Problem::field(field, "allowed: a text")),
    }
}

/// The phase as older clients know it: what was ready, and cannot be changed for the moment, still
/// is to them.
fn phase(entry: &Entry) -> String {
    let own =
        || entry.view.status.get("phase").and_then(Value::as_str).unwrap_or_default().to_owned();
    match entry.view.phase.as_str() {
        "" => "Pending".to_owned(),
        "OutOfSync" => own(),
        phase => phase.to_owned(),
    }
}

/// Only these fields stand in a body.
fn only(body: &Map<String, Value>, known: &[&str]) -> Result<(), Problem> {
    match body.keys().find(|field| !known.contains(&field.as_str())) {
        Some(field) => {
            Err(Problem::field(field, format!("unknown field; allowed: {}", known.join(", "))))
        }
        None => Ok(()),
    }
}

/// What goes wrong on our side, wherever it does, keeps the words that older clients expect, and
/// the status 500 that they know.
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

/// What older clients are told of an operation that fails.
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
