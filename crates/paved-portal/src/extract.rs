//! Reads the parts of requests. Each error is a problem that names the field.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use paved_client::cluster::Segment;
use serde::de::DeserializeOwned;

use super::problem::Problem;

/// The query of the URL.
pub(super) struct Query<T>(pub(super) T);

/// The variable parts of a path.
pub(super) struct Path<T>(pub(super) T);

/// The part of serde's message about the expected value. The part about the found value comes
/// before it and could contain the same words, so the last occurrence counts.
fn without_value(message: &str) -> String {
    let names_value = message.starts_with("invalid ") || message.starts_with("unknown variant ");
    let expected = message.rsplit_once(", expected ").filter(|_| names_value);
    expected.map_or_else(|| message.to_owned(), |(_, expected)| format!("expected {expected}"))
}

/// Parses JSON. An error names the field.
pub(super) fn json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let (path, cause) = (error.path().to_string(), error.into_inner());
        // The found value may be a secret. The message has only the place and the allowed values.
        if cause.classify() != serde_json::error::Category::Data {
            let message =
                format!("is not valid JSON at line {}, column {}", cause.line(), cause.column());
            return Problem::field("body", message);
        }
        Problem::field(if path == "." { "body" } else { &path }, without_value(&cause.to_string()))
    })?;
    reader.end().map_err(|_| {
        Problem::field(
            "body",
            "has more than one JSON value; allowed: one \
             object",
        )
    })?;
    Ok(value)
}

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let read = axum::extract::Query::<T>::from_request_parts(parts, state).await;
        read.map(|axum::extract::Query(value)| Self(value))
            .map_err(|error| unreadable(&error.body_text()))
    }
}

/// The problem of a query. An unknown parameter is named as the field.
fn unreadable(message: &str) -> Problem {
    let message = message.strip_prefix("Failed to deserialize query string: ").unwrap_or(message);
    let unknown = message.split_once(": unknown field `");
    let Some((parameter, rest)) = unknown else { return Problem::field("query", message) };
    let known = rest.rsplit_once(", expected ").map_or("none", |(_, known)| known);
    let known = known.trim_start_matches("one of ").replace('`', "");
    Problem::field(parameter, format!("unknown query parameter; allowed: {known}"))
}

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for Path<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let read = axum::extract::Path::<T>::from_request_parts(parts, state).await;
        read.map(|axum::extract::Path(value)| Self(value))
            .map_err(|_| Problem::not_found("Page not found."))
    }
}

/// A path of the portal's API: these segments below `/api/v1/`.
pub(super) fn location(segments: &[&str]) -> Result<String, Problem> {
    let checked: Result<Vec<Segment>, _> =
        segments.iter().map(|text| Segment::parse(text)).collect();
    let checked = checked.map_err(|error| Problem::bad_request(error.to_string()))?;
    let texts: Vec<&str> = checked.iter().map(Segment::as_str).collect();
    Ok(format!("/api/v1/{}", texts.join("/")))
}

/// A valid Kubernetes name for a path. Any other text could reach another path of the API server.
pub(super) fn name<'t>(field: &str, text: &'t str) -> Result<&'t str, Problem> {
    let edge = |letter: Option<char>| {
        letter.is_some_and(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit())
    };
    let inner = |letter: char| {
        letter.is_ascii_lowercase() || letter.is_ascii_digit() || "-.".contains(letter)
    };
    let fits = edge(text.chars().next()) && edge(text.chars().last()) && text.len() <= 253;
    if fits && text.chars().all(inner) && !text.contains("..") {
        return Ok(text);
    }
    let message = format!("found {text:?}; allowed: lowercase letters, digits, hyphens and dots");
    Err(Problem::field(field, message))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn name_cannot_escape_its_path_segment() {
        for text in ["a", "ada-1", "a.b"] {
            assert!(name("name", text).is_ok(), "{text}");
        }
        for text in [
            "",
            "..",
            "a/b",
            "../secrets/x",
            "a?watch=1",
            "a%2fb",
            "A",
            "-a",
            "a-",
            "a..b",
            "a\n",
            "a#b",
        ] {
            assert!(name("name", text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_mistake_in_a_body_names_the_field_and_shows_no_value() {
        #[derive(Debug, serde::Deserialize)]
        #[allow(dead_code)]
        struct Body {
            replicas: u32,
        }
        for found in
            [r#"{"hunter2": 1}"#, r#""hunter2""#, r#"", expected hunter2""#, "[\"hunter2\"]"]
        {
            let told = json::<Body>(format!("{{\"replicas\": {found}}}").as_bytes()).unwrap_err();
            let detail = told.detail();
            assert!(
                detail.starts_with("replicas: expected u32") && !detail.contains("hunter2"),
                "{detail}"
            );
        }
        for broken in [&b"{"[..], b"{bad", b"{\"replicas\": x"] {
            let detail = json::<Body>(broken).unwrap_err().detail().to_owned();
            assert!(detail.starts_with("body: is not valid JSON at line 1, column "), "{detail}");
        }
        assert!(json::<Body>(b"{\"replicas\": 1} x").is_err());
    }
}
