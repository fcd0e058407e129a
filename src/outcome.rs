//! The outcome of an answer, for logs and metrics. It never contains data of the request or of the
//! answer.

use function_proto::v1::{
    Condition, RunFunctionRequest, RunFunctionResponse, Severity, Status as State,
};
use prost_types::value::Kind;
use prost_types::{Struct, Value};
use tonic::Status;

use crate::function::CONDITION;

/// The outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// All composed resources are ready.
    Ready,
    /// The answer only asks for the EnvironmentConfig. Crossplane calls again at once.
    Asking,
    /// A resource does not exist yet or is not ready yet.
    Waiting,
    /// A composed resource has failed.
    Failed,
    /// A FATAL result. The claim or Settings must change.
    Fatal,
    /// A gRPC status instead of an answer, because the request was malformed.
    Invalid,
}

impl Outcome {
    /// The outcome of an answer: a FATAL result, else the condition `Provisioned`.
    pub(crate) fn from_answer(answer: &Result<RunFunctionResponse, Status>) -> Self {
        let Ok(response) = answer else { return Self::Invalid };
        if response.results.iter().any(|result| result.severity() == Severity::Fatal) {
            return Self::Fatal;
        }
        match provisioned(response) {
            Some(condition) if condition.status() == State::ConditionTrue => Self::Ready,
            Some(condition) if condition.reason == "Failed" => Self::Failed,
            None if response.requirements.is_some() => Self::Asking,
            _ => Self::Waiting,
        }
    }

    /// The word in logs and metrics.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Asking => "asking",
            Self::Waiting => "waiting",
            Self::Failed => "failed",
            Self::Fatal => "fatal",
            Self::Invalid => "invalid",
        }
    }
}

/// A word of detail: the reason of `Provisioned`, or the gRPC code.
pub(crate) fn reason(answer: &Result<RunFunctionResponse, Status>) -> &str {
    match answer {
        Ok(response) => provisioned(response).map_or("", |condition| &condition.reason),
        Err(status) => status.code().description(),
    }
}

fn provisioned(response: &RunFunctionResponse) -> Option<&Condition> {
    response.conditions.iter().find(|condition| condition.r#type == CONDITION)
}

/// The identity of the request's composite. A missing field is empty.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Subject {
    pub(crate) kind: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) uid: String,
}

impl Subject {
    pub(crate) fn from_request(request: &RunFunctionRequest) -> Self {
        let composite = request
            .observed
            .as_ref()
            .and_then(|observed| observed.composite.as_ref()?.resource.as_ref());
        let metadata = composite.and_then(|composite| {
            match composite.fields.get("metadata")?.kind.as_ref()? {
                Kind::StructValue(metadata) => Some(metadata),
                _ => None,
            }
        });
        Self {
            kind: text(composite, "kind"),
            namespace: text(metadata, "namespace"),
            name: text(metadata, "name"),
            uid: text(metadata, "uid"),
        }
    }
}

/// A string field, cut to the maximum length of a Kubernetes name to keep the log short.
fn text(object: Option<&Struct>, field: &str) -> String {
    const MAX_NAME_CHARS: usize = 253;
    match object.and_then(|object| object.fields.get(field)) {
        Some(Value { kind: Some(Kind::StringValue(text)) }) => {
            text.chars().take(MAX_NAME_CHARS).collect()
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use function_proto::v1::{Resource, Result as Told, State as World};

    fn answer(status: State, reason: &str, severity: Severity) -> RunFunctionResponse {
        let condition = Condition {
            r#type: CONDITION.into(),
            status: status.into(),
            reason: reason.into(),
            ..Condition::default()
        };
        let result = Told { severity: severity.into(), ..Told::default() };
        RunFunctionResponse {
            conditions: vec![condition],
            results: vec![result],
            ..RunFunctionResponse::default()
        }
    }

    #[test]
    fn condition_has_the_outcome_unless_the_result_is_fatal() {
        let outcome =
            |status, reason, severity| Outcome::from_answer(&Ok(answer(status, reason, severity)));
        assert_eq!(outcome(State::ConditionTrue, "Available", Severity::Normal), Outcome::Ready);
        assert_eq!(outcome(State::ConditionFalse, "Creating", Severity::Warning), Outcome::Waiting);
        assert_eq!(outcome(State::ConditionFalse, "Failed", Severity::Warning), Outcome::Failed);
        assert_eq!(outcome(State::ConditionTrue, "Available", Severity::Fatal), Outcome::Fatal);
        assert_eq!(Outcome::from_answer(&Ok(RunFunctionResponse::default())), Outcome::Waiting);
        assert_eq!(
            Outcome::from_answer(&Err(Status::invalid_argument("no request"))),
            Outcome::Invalid
        );
    }

    #[test]
    fn the_subject_is_the_composite_and_its_names_are_cut() {
        let object = |fields: Vec<(&str, Value)>| Struct {
            fields: fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect(),
        };
        let metadata = object(vec![("name", "é".repeat(300).into()), ("uid", 7.0.into())]);
        let composite = object(vec![
            ("kind", "StockPool".to_owned().into()),
            ("metadata", Value { kind: Some(Kind::StructValue(metadata)) }),
        ]);
        let composite = Resource { resource: Some(composite), ..Resource::default() };
        let observed = World { composite: Some(composite), ..World::default() };
        let subject = Subject::from_request(&RunFunctionRequest {
            observed: Some(observed),
            ..RunFunctionRequest::default()
        });
        assert_eq!(
            subject,
            Subject { kind: "StockPool".into(), name: "é".repeat(253), ..Subject::default() }
        );
    }
}
