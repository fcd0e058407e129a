//! Explains conflicts about fields that other managers own, and their resolution.

use function_paved_road::error::FieldError;
use jiff::Timestamp;
use kube::api::DynamicObject;
use kube::core::Status;

use crate::Failure;
use crate::cluster::one_line;
use crate::environment::age;

/// Whether fields belong to other managers. The other type of conflict is a concurrent write.
pub(super) fn is_one(status: &Status) -> bool {
    status.code == 409 && causes(status).next().is_some()
}

fn causes(status: &Status) -> impl Iterator<Item = &kube::core::response::StatusCause> {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    causes.filter(|cause| cause.reason == "FieldManagerConflict")
}

/// An error with a line for each field and a line of advice.
pub(super) fn explain(what: &str, status: &Status, live: Option<&DynamicObject>) -> Failure {
    let mut violations: Vec<FieldError> = causes(status)
        .map(|cause| {
            let manager = cause.message.split('"').nth(1).unwrap_or("another manager");
            let since = live.map(|live| since(live, manager)).unwrap_or_default();
            FieldError {
                path: one_line(cause.field.trim_start_matches('.')),
                message: format!("is set by {}{since}", one_line(manager)),
            }
        })
        .collect();
    violations.push(FieldError {
        path: String::new(),
        message: "leave these fields out of the file, give them the same values, or take them over with --force-conflicts"
            .to_owned(),
    });
    Failure::Refused { what: what.to_owned(), violations }
}

/// The age of the manager's last write: `, 3h ago`.
fn since(live: &DynamicObject, manager: &str) -> String {
    let entries = live.metadata.managed_fields.iter().flatten();
    let own = entries.filter(|entry| entry.manager.as_deref() == Some(manager));
    let last = own.filter_map(|entry| entry.time.as_ref()).map(|time| time.0).max();
    last.map(|last| format!(", {} ago", age(Some(last), Timestamp::now()))).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    #[test]
    fn conflict_names_each_field_and_its_manager() {
        let status: Status = serde_json::from_value(json!({
            "code": 409, "reason": "Conflict", "message": "Apply failed with 1 conflict",
            "details": {"causes": [{
                "reason": "FieldManagerConflict",
                "message": "conflict with \"kubectl-client-side-apply\" using platform.acme.io/v1alpha1",
                "field": ".spec.parameters.diskGB"}]},
        }))
        .unwrap();
        assert!(is_one(&status));
        let Failure::Refused { violations, .. } = explain("a.yaml: X a", &status, None) else {
            panic!()
        };
        let lines: Vec<String> = violations.iter().map(ToString::to_string).collect();
        assert_eq!(lines[0], "spec.parameters.diskGB: is set by kubectl-client-side-apply");
        assert!(lines[1].contains("--force-conflicts"), "{lines:?}");
    }

    #[test]
    fn concurrent_writes_are_not_a_field_conflict() {
        let status = serde_json::from_value(
            json!({"code": 409, "reason": "Conflict", "message": "modified"}),
        )
        .unwrap();
        assert!(!is_one(&status));
    }
}
