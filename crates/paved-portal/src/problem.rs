//! Errors in the format for clients: problem details (RFC 9457), and the `error` field for older
//! clients.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::{IntoResponses, ToSchema};

use function_paved_road::patterns::plain;
use paved_client::cluster::invalid_name;

/// The maximum number of violations in a problem.
const TOLD: usize = 50;

/// The maximum length of a message about one field, in characters.
const MESSAGE: usize = 1_000;

/// The maximum length of a field's path, in characters.
const FIELD: usize = 200;

/// The maximum length of the detail, in characters. Without it, a request could cause a detail of
/// any length.
const DETAIL: usize = 16_000;

/// The media type of a problem.
pub(super) const MEDIA_TYPE: &str = "application/problem+json";

/// A problem. It is boxed because most responses have none.
#[derive(Clone, Debug, Serialize)]
#[serde(transparent)]
pub(super) struct Problem(Box<ProblemDetails>);

/// A problem as in RFC 9457.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Problem, example = json!({"type": "about:blank", "title": "Unprocessable Entity", "status": 422,
    "detail": "StockPool spare is rejected: spec.replicas: found -1; allowed: 0 or more",
    "instance": "/api/v1/preview", "requestId": "0123456789abcdef",
    "errors": [{"field": "spec.replicas", "message": "found -1; allowed: 0 or more"}],
    "error": "StockPool spare is rejected: spec.replicas: found -1; allowed: 0 or more"}))]
pub(super) struct ProblemDetails {
    /// Always `about:blank`. The status has the kind of problem.
    #[serde(rename = "type")]
    kind: &'static str,
    /// The status in words.
    title: String,
    /// The HTTP status.
    #[schema(value_type = u16, minimum = 400, maximum = 599)]
    #[serde(serialize_with = "code")]
    status: StatusCode,
    /// The error, in one sentence for people.
    detail: String,
    /// The API server's reason in one word, for example `AlreadyExists`.
    #[serde(skip_serializing_if = "String::is_empty")]
    reason: String,
    /// Path of the request.
    #[serde(skip_serializing_if = "String::is_empty")]
    instance: String,
    /// Id of the request, as in the portal's log.
    #[serde(skip_serializing_if = "String::is_empty")]
    request_id: String,
    /// The errors by field.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<FieldError>,
    /// The same sentence for older clients, which read this field.
    error: String,
    /// The error for older clients, which read this field.
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<String>,
}

/// An error of a field.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(super) struct FieldError {
    /// Path of the field, for example `spec.parameters.diskGB`.
    pub(super) field: String,
    /// The value that was found, and the allowed values.
    pub(super) message: String,
}

impl FieldError {
    /// An error of a field, truncated to the limits of a problem.
    pub(super) fn new(field: String, message: String) -> Self {
        Self { field: cut(field, FIELD), message: cut(message, MESSAGE) }
    }
}

impl std::fmt::Display for FieldError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.field.is_empty() {
            f.write_str(&self.message)
        } else {
            write!(f, "{}: {}", self.field, self.message)
        }
    }
}

/// Truncates a text.
fn cut(mut text: String, longest: usize) -> String {
    if let Some((end, _)) = text.char_indices().nth(longest) {
        text.truncate(end);
        text.push('…');
    }
    text
}

/// The possible errors of every operation that identifies the user or contacts the cluster.
/// Rejections by the API server keep their status.
#[derive(IntoResponses)]
#[allow(dead_code)]
pub(super) enum ErrorResponses {
    /// The request is invalid: `errors` has the fields.
    #[response(status = 400, content_type = "application/problem+json")]
    Wrong(ProblemDetails),
    /// Sign in, or send a Kubernetes token.
    #[response(status = 401, content_type = "application/problem+json")]
    Unknown(ProblemDetails),
    /// You have no permission, a quota is exhausted, or the request comes from another site.
    /// `detail` has the API server's message.
    #[response(status = 403, content_type = "application/problem+json")]
    Forbidden(ProblemDetails),
    /// Rejected: `detail` has the reason.
    #[response(status = "4XX", content_type = "application/problem+json")]
    Refused(ProblemDetails),
    /// The API server or the portal is unavailable.
    #[response(status = "5XX", content_type = "application/problem+json")]
    Failed(ProblemDetails),
}

/// The error if the named object does not exist.
#[derive(IntoResponses)]
#[allow(dead_code)]
pub(super) enum NotFound {
    /// No object has this name.
    #[response(status = 404, content_type = "application/problem+json")]
    NotFound(ProblemDetails),
}

/// The errors of an invalid body.
#[derive(IntoResponses)]
#[allow(dead_code)]
pub(super) enum UnprocessableEntity {
    /// The body is larger than 1 MiB.
    #[response(status = 413, content_type = "application/problem+json")]
    TooLarge(ProblemDetails),
    /// The media type of the body is not JSON.
    #[response(status = 415, content_type = "application/problem+json")]
    NoJson(ProblemDetails),
    /// The schema, the cluster or the function rejects the object: `errors` has the fields.
    #[response(status = 422, content_type = "application/problem+json")]
    Invalid(ProblemDetails),
}

/// The error if the existing object conflicts.
#[derive(IntoResponses)]
#[allow(dead_code)]
pub(super) enum Conflicts {
    /// The object already exists, or it has changed since you read it.
    #[response(status = 409, content_type = "application/problem+json")]
    Conflict(ProblemDetails),
}

/// The error if a user has too many streams.
#[derive(IntoResponses)]
#[allow(dead_code)]
pub(super) enum TooManyRequests {
    /// You have too many streams open.
    #[response(status = 429, content_type = "application/problem+json")]
    TooManyRequests(ProblemDetails),
}

// serde requires this signature.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn code<S: serde::Serializer>(status: &StatusCode, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u16(status.as_u16())
}

impl Problem {
    pub(super) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        let detail = cut(detail.into(), DETAIL);
        Self(Box::new(ProblemDetails {
            kind: "about:blank",
            title: status.canonical_reason().unwrap_or("Problem").to_owned(),
            status,
            error: detail.clone(),
            detail,
            reason: String::new(),
            instance: String::new(),
            request_id: String::new(),
            errors: Vec::new(),
            details: None,
        }))
    }

    pub(super) fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    pub(super) fn unauthorized(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, detail)
    }

    pub(super) fn forbidden(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, detail)
    }

    pub(super) fn not_found(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, detail)
    }

    pub(super) fn conflict(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, detail)
    }

    /// The API server does not respond.
    pub(super) fn silent() -> Self {
        Self::new(StatusCode::GATEWAY_TIMEOUT, "The Kubernetes API does not respond.")
    }

    /// An error of a field in the body.
    pub(super) fn field(field: &str, message: impl Into<String>) -> Self {
        let message = message.into();
        let mut problem = Self::bad_request(format!("{field}: {message}"));
        problem.0.errors.push(FieldError::new(field.to_owned(), message));
        problem
    }

    /// The errors of several fields, after an introduction. Only the first fields are listed.
    pub(super) fn refused(words: &str, mut errors: Vec<FieldError>) -> Self {
        let more = errors.len().saturating_sub(TOLD);
        errors.truncate(TOLD);
        let mut told: Vec<String> = errors.iter().map(ToString::to_string).collect();
        if more > 0 {
            told.push(format!("and at least {more} other errors"));
        }
        let mut problem =
            Self::new(StatusCode::UNPROCESSABLE_ENTITY, format!("{words}{}", told.join("; ")));
        errors.retain(|error| !error.field.is_empty());
        problem.0.errors = errors;
        problem
    }

    /// Names a field of the request or of the object.
    pub(super) fn at_field(mut self, field: &str, message: impl Into<String>) -> Self {
        self.0.errors.push(FieldError::new(field.to_owned(), message.into()));
        self
    }

    /// Sets the `error` text for older clients. The actual error is moved to `details`.
    pub(super) fn called(mut self, error: &str) -> Self {
        self.0.details = Some(std::mem::replace(&mut self.0.error, error.to_owned()));
        self
    }

    pub(super) fn status(&self) -> StatusCode {
        self.0.status
    }

    pub(super) fn detail(&self) -> &str {
        &self.0.detail
    }

    /// The same problem with another status.
    pub(super) fn with_status(mut self, status: StatusCode) -> Self {
        self.0.status = status;
        status.canonical_reason().unwrap_or("Problem").clone_into(&mut self.0.title);
        self
    }

    /// Adds the path and the ID of the request.
    pub(super) fn at(mut self, path: &str, request_id: &str) -> Self {
        path.clone_into(&mut self.0.instance);
        request_id.clone_into(&mut self.0.request_id);
        self
    }
}

impl From<kube::Error> for Problem {
    /// Passes on the API server's error in words. Errors below HTTP are only logged, because addresses are
    /// internal.
    fn from(error: kube::Error) -> Self {
        if let Some(message) = invalid_name(&error) {
            return Self::bad_request(message);
        }
        let kube::Error::Api(answer) = &error else {
            tracing::warn!(error = %root(&error), "the API server does not respond");
            return Self::new(StatusCode::BAD_GATEWAY, "The Kubernetes API does not respond.");
        };
        let status = match answer.code {
            code @ 400..=499 => StatusCode::from_u16(code).unwrap_or(StatusCode::BAD_REQUEST),
            503 => StatusCode::SERVICE_UNAVAILABLE,
            504 => StatusCode::GATEWAY_TIMEOUT,
            _ => StatusCode::BAD_GATEWAY,
        };
        let mut problem = Self::new(status, plain(&answer.message));
        problem.0.reason = cut(answer.reason.clone(), FIELD);
        let causes = answer.details.iter().flat_map(|details| &details.causes);
        problem.0.errors = causes
            .take(TOLD)
            .map(|cause| FieldError::new(cause.field.clone(), plain(&cause.message)))
            .collect();
        problem
    }
}

/// The innermost cause of an error.
fn root(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(below) = cause.source() {
        cause = below;
    }
    cause.to_string()
}

impl IntoResponse for Problem {
    /// A layer that knows the request writes the body.
    fn into_response(self) -> Response {
        let mut response = self.0.status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    #[test]
    fn api_server_errors_pass_through_with_their_fields() {
        let status = json!({"code": 422, "reason": "Invalid", "message": "is invalid", "details": {"causes": [
            {"field": "spec.replicas", "message": "must be positive"}]}});
        let error = kube::Error::Api(Box::new(serde_json::from_value(status).unwrap()));
        let told = serde_json::to_value(Problem::from(error)).unwrap();
        assert_eq!(
            told,
            json!({"type": "about:blank", "title": "Unprocessable Entity", "status": 422, "detail": "is invalid",
                "reason": "Invalid", "error": "is invalid", "errors": [{"field": "spec.replicas", "message": "must be positive"}]})
        );
    }

    #[test]
    fn pattern_of_the_api_server_is_told_in_words() {
        let message = "Invalid value: \"us\": spec.parameters.region in body should match \
                       '^[a-z]{2,4}(-[a-z]+)+-[0-9]$'";
        let status = json!({"code": 422, "message": format!("is invalid: {message}"),
            "details": {"causes": [{"field": "spec.parameters.region", "message": message}]}});
        let error = kube::Error::Api(Box::new(serde_json::from_value(status).unwrap()));
        let told = serde_json::to_value(Problem::from(error)).unwrap();
        let words = "Invalid value: \"us\": spec.parameters.region in body should be an AWS region, \
                     for example us-east-1";
        assert_eq!(told["errors"][0]["message"], words);
        assert_eq!(told["detail"], format!("is invalid: {words}"));
    }

    #[test]
    fn problem_with_many_long_violations_is_short() {
        let error = |number: usize| {
            FieldError::new(
                format!("spec.{number}{}", "x".repeat(10_000)),
                "is not known".repeat(1_000),
            )
        };
        let problem =
            Problem::refused("StockPool a is rejected: ", (0..10_000).map(error).collect());
        let answer = serde_json::to_vec(&problem).unwrap();
        assert!(answer.len() < 200_000, "{} bytes", answer.len());
        assert!(problem.0.errors.len() == TOLD && problem.detail().chars().count() <= DETAIL + 1);
        let status = json!({"code": 422, "message": "x".repeat(1 << 20), "details": {"causes":
            (0..1_000).map(|_| json!({"field": "a", "message": "b".repeat(10_000)})).collect::<Vec<_>>()}});
        let error = kube::Error::Api(Box::new(serde_json::from_value(status).unwrap()));
        assert!(serde_json::to_vec(&Problem::from(error)).unwrap().len() < 200_000);
    }

    #[test]
    fn connection_error_hides_the_address() {
        let refused = std::io::Error::other("10.0.0.1:6443 refused");
        let problem = Problem::from(kube::Error::Service(Box::new(refused)));
        assert_eq!(problem.status(), StatusCode::BAD_GATEWAY);
        assert!(!problem.detail().contains("10.0.0.1"));
    }

    #[test]
    fn older_clients_find_their_words() {
        let told =
            serde_json::to_value(Problem::conflict("it is there").called("Failed to create it."))
                .unwrap();
        assert_eq!(
            (&told["error"], &told["details"]),
            (&json!("Failed to create it."), &json!("it is there"))
        );
    }
}
