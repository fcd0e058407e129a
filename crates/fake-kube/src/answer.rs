//! JSON responses, and errors in Kubernetes' format.

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use k8s_schema::Violation;
use serde_json::{Value, json};

use crate::fields::Conflict;
use crate::kinds::Kind;

/// A JSON response.
pub fn respond(status: StatusCode, value: &Value) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], value.to_string()).into_response()
}

/// An error response.
#[derive(Debug)]
pub struct Refused {
    code: u16,
    reason: &'static str,
    /// The error in a sentence.
    pub message: String,
    details: Value,
}

impl Refused {
    /// An error with this code and reason.
    pub fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self { code, reason, message: message.into(), details: json!({}) }
    }

    /// The path does not exist.
    pub fn unknown(path: &str) -> Self {
        Self::new(
            404,
            "NotFound",
            format!("the server could not find the requested resource: {path}"),
        )
    }

    /// The object does not exist.
    pub fn absent(kind: &Kind, name: &str) -> Self {
        Self::new(404, "NotFound", format!("{} {name:?} not found", full(kind))).about(
            kind,
            name,
            &[],
        )
    }

    /// The user lacks the permission.
    pub fn forbidden(user: &str, verb: &str, kind: &Kind, namespace: &str, name: &str) -> Self {
        let place = if namespace.is_empty() {
            "at the cluster scope".to_owned()
        } else {
            format!("in the namespace {namespace:?}")
        };
        let subject = if name.is_empty() { full(kind) } else { format!("{} {name:?}", full(kind)) };
        let message = format!(
            "{subject} is forbidden: User {user:?} cannot {verb} resource {:?} in API group {:?} {place}",
            kind.plural, kind.group
        );
        Self::new(403, "Forbidden", message).about(kind, name, &[])
    }

    /// The object has changed since the writer read it.
    pub fn outdated(kind: &Kind, name: &str) -> Self {
        let message = format!(
            "Operation cannot be fulfilled on {} {name:?}: the object has been modified; please apply your changes to the latest version and try again",
            full(kind)
        );
        Self::new(409, "Conflict", message).about(kind, name, &[])
    }

    /// The version is older than the retained changes.
    pub fn expired(version: u64) -> Self {
        Self::new(410, "Expired", format!("too old resource version: {version}"))
    }

    /// The object violates its schema.
    pub fn invalid(kind: &Kind, name: &str, violations: &[Violation]) -> Self {
        let lines: Vec<String> = violations.iter().map(ToString::to_string).collect();
        let title = format!("{}.{}", kind.name, kind.group);
        let causes: Vec<Value> = violations
            .iter()
            .map(|one| json!({"reason": "FieldValueInvalid", "field": one.path, "message": one.message}))
            .collect();
        Self::new(422, "Invalid", format!("{title} {name:?} is invalid: {}", lines.join("; ")))
            .about(kind, name, &causes)
    }

    /// An admission policy rejects it.
    pub fn denied(kind: &Kind, name: &str, message: &str) -> Self {
        let message = format!(
            "{} {name:?} is forbidden: a ValidatingAdmissionPolicy denied request: {message}",
            full(kind)
        );
        Self::new(422, "Invalid", message).about(kind, name, &[])
    }

    /// Other field managers own the fields.
    pub fn conflicts(kind: &Kind, name: &str, conflicts: &[Conflict]) -> Self {
        let version = kind.api_version();
        let told = |one: &Conflict| format!("conflict with {:?} using {version}", one.manager);
        let causes: Vec<Value> = conflicts
            .iter()
            .map(|one| json!({"reason": "FieldManagerConflict", "field": one.field, "message": told(one)}))
            .collect();
        let lines: Vec<String> =
            conflicts.iter().map(|one| format!("{}: {}", told(one), one.field)).collect();
        let count = if lines.len() == 1 {
            "1 conflict".to_owned()
        } else {
            format!("{} conflicts", lines.len())
        };
        let message = format!("Apply failed with {count}: {}", lines.join("; "));
        Self::new(409, "Conflict", message).about(kind, name, &causes)
    }

    fn about(mut self, kind: &Kind, name: &str, causes: &[Value]) -> Self {
        self.details = json!({"name": name, "group": kind.group, "kind": kind.plural});
        if !causes.is_empty() {
            self.details["causes"] = json!(causes);
        }
        self
    }

    /// The `Status` object of the Kubernetes API.
    pub fn status(&self) -> Value {
        json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": self.code,
            "reason": self.reason, "message": self.message, "details": self.details})
    }
}

fn full(kind: &Kind) -> String {
    kind.resource().trim_end_matches('.').to_owned()
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        respond(StatusCode::from_u16(self.code).unwrap_or_default(), &self.status())
    }
}
