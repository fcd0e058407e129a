//! Writes the response.

use std::time::Duration;

use function_proto::v1::{
    Condition as ResponseCondition, Ready, Resource, ResponseMeta, Result as FunctionResult,
    RunFunctionRequest, RunFunctionResponse, Severity, State, Status as ConditionStatus, Target,
};
use serde_json::Value;

use super::ask::knows_required_resources;
use crate::error::Error;
use crate::reason::Reason;
use crate::settings::SettingsFrom;
use crate::status::{Answer, Condition, PROVISIONED, STALLED, undecided};
use crate::value::{self, Object};

/// The response to a request. It begins with the context and the desired state of earlier steps.
pub struct Response {
    pub(super) message: RunFunctionResponse,
    pub(super) knows_required_resources: bool,
    /// The stored conditions that a rejection repeats.
    undecided: Vec<Condition>,
}

impl Response {
    pub(super) fn new(request: &mut RunFunctionRequest, xr: &Object) -> Self {
        let knows_required_resources = knows_required_resources(request);
        let meta = request.meta.as_mut();
        let tag = meta.map(|meta| std::mem::take(&mut meta.tag)).unwrap_or_default();
        let message = RunFunctionResponse {
            meta: Some(ResponseMeta { tag, ttl: Some(ttl(Duration::from_mins(1))) }),
            desired: Some(request.desired.take().unwrap_or_default()),
            context: request.context.take(),
            ..RunFunctionResponse::default()
        };
        Self { message, knows_required_resources, undecided: undecided(xr) }
    }

    /// The message to Crossplane.
    pub fn into_message(self) -> RunFunctionResponse {
        self.message
    }

    /// Warns the platform team of an EnvironmentConfig that does not exist. The claim's owner
    /// cannot create it.
    pub(super) fn warn_of_missing_settings(&mut self, from: &SettingsFrom) {
        let effect = if from.optional {
            "only the input of the step applies. Create it, or remove settingsFrom"
        } else {
            "new environments are rejected. Environments that exist keep their values, and only \
             the input of the step applies to them. Create it, or remove settingsFrom"
        };
        let message = format!("EnvironmentConfig {} was not found, so {effect}", from.name);
        self.message.results.push(FunctionResult {
            target: Some(Target::Composite.into()),
            ..result(Severity::Warning, Reason::SettingsNotFound.to_string(), message)
        });
    }

    /// Adds an answer to the desired state of earlier steps.
    ///
    /// # Errors
    /// [`Error::SlotTaken`] if earlier steps use slots of the answer.
    pub fn fill(&mut self, answer: Answer) -> Result<(), Error> {
        let desired = self.message.desired.get_or_insert_default();
        leave_to_others(desired, &answer)?;
        let phase = answer.phase;
        tracing::debug!(?phase, conditions = ?answer.conditions, "answered");
        for (slot, (object, ready)) in answer.resources {
            let ready = if ready { Ready::True } else { Ready::False };
            let resource = Resource {
                resource: Some(value::structure(object)),
                ready: ready.into(),
                ..Resource::default()
            };
            desired.resources.insert(slot, resource);
        }
        fill_composite(desired, answer.status, answer.ready);
        let composite = desired.composite.get_or_insert_default();
        composite.connection_details.extend(answer.connection);
        if let Some(meta) = &mut self.message.meta {
            meta.ttl = Some(ttl(answer.requeue));
        }
        self.message.results.extend(answer.events.into_iter().map(|event| {
            let severity = if event.is_warning { Severity::Warning } else { Severity::Normal };
            result(severity, event.reason, event.message)
        }));
        self.message.conditions.extend(answer.conditions.into_iter().map(condition));
        Ok(())
    }

    /// Adds FATAL results, one for each wrong field. Crossplane then changes only the conditions.
    /// The environment is stalled at once, because it cannot progress before a person fixes the
    /// field.
    pub fn refuse(&mut self, error: &Error) {
        let sentence = crate::check::shown(&error.to_string());
        tracing::debug!(reason = %error.code(), sentence, "refused");
        let fatal = |message: &str| {
            let message = crate::check::shown(message);
            result(Severity::Fatal, error.code().to_string(), message)
        };
        match error.fields() {
            [] => self.message.results.push(fatal(&error.to_string())),
            fields => {
                self.message.results.extend(fields.iter().map(|field| fatal(&field.to_string())));
            }
        }
        let repeated = std::mem::take(&mut self.undecided).into_iter();
        let ours = [
            Condition::new(PROVISIONED, false, &error.code(), sentence.clone()),
            Condition::new(STALLED, true, &error.code(), sentence),
        ];
        self.message.conditions.extend(repeated.chain(ours).map(condition));
    }
}

/// Rejects slots that earlier steps use. The desired resources of earlier steps pass through
/// unchanged.
fn leave_to_others(earlier: &State, answer: &Answer) -> Result<(), Error> {
    let is_taken = |slot: &&String| earlier.resources.contains_key(*slot);
    let taken: Vec<String> = answer.resources.keys().filter(is_taken).cloned().collect();
    if taken.is_empty() { Ok(()) } else { Err(Error::SlotTaken(taken)) }
}

/// Sets the composite's status. `ready` is false while resources are not desired yet, because
/// Crossplane counts only desired resources.
fn fill_composite(desired: &mut State, status: Object, ready: bool) {
    let composite = desired.composite.get_or_insert_default();
    let mut object = value::take_object(composite);
    match object.get_mut("status") {
        Some(Value::Object(before)) => before.extend(status),
        _ => {
            object.insert("status".into(), Value::Object(status));
        }
    }
    composite.resource = Some(value::structure(object));
    if !ready {
        composite.ready = Ready::False.into();
    }
}

fn condition(condition: Condition) -> ResponseCondition {
    let status = if condition.is_true {
        ConditionStatus::ConditionTrue
    } else {
        ConditionStatus::ConditionFalse
    };
    ResponseCondition {
        r#type: condition.kind.to_owned(),
        status: status.into(),
        reason: condition.reason,
        message: Some(condition.message),
        target: Some(Target::CompositeAndClaim.into()),
    }
}

fn result(severity: Severity, reason: String, message: String) -> FunctionResult {
    FunctionResult {
        severity: severity.into(),
        message,
        reason: Some(reason),
        target: Some(Target::CompositeAndClaim.into()),
    }
}

fn ttl(duration: Duration) -> prost_types::Duration {
    prost_types::Duration {
        seconds: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        nanos: 0,
    }
}
