//! Three HTTP shapes that clients know from before: their words, names and codes, on the same environments.

pub(super) mod environments;
pub(super) mod status;
pub(super) mod stockpools;
pub(super) mod workspaces;

use serde_json::{Map, Value};

use super::problem::Problem;

/// A text of a body; empty is none.
fn text<'b>(body: &'b Map<String, Value>, field: &str) -> Result<Option<&'b str>, Problem> {
    match body.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.trim()).filter(|text| !text.is_empty())),
        Some(_) => Err(Problem::field(field, "a text is needed")),
    }
}

/// Only these fields stand in a body.
fn only(body: &Map<String, Value>, known: &[&str]) -> Result<(), Problem> {
    match body.keys().find(|field| !known.contains(&field.as_str())) {
        Some(field) => Err(Problem::field(field, format!("is not known; {} are", known.join(", ")))),
        None => Ok(()),
    }
}

/// What goes wrong on our side keeps the words that older clients expect, and the status 500 that they know.
fn failed(error: &'static str) -> impl Fn(Problem) -> Problem {
    move |problem| {
        if problem.status().is_server_error() {
            problem.with_status(http::StatusCode::INTERNAL_SERVER_ERROR).called(error)
        } else {
            problem
        }
    }
}
