//! RunFunction: find the API of the composite's kind, run it, return the response.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use function_proto::v1::{
    Capability, Condition, Credentials, Ready, Resource, ResourceSelector, Resources, ResponseMeta,
    Result as FunctionResult, RunFunctionRequest, RunFunctionResponse, Severity, State,
    Status as ConditionStatus, Target, credentials::Source, resource_selector,
};
use jiff::Timestamp;
use prost_types::value::Kind;
use serde_json::Value;

use crate::apis::{self, AnyApi};
use crate::compose::{
    Composite, Composition, CompositionResult, EXPIRING, Expiring, Lookup, OUTDATED, OVER_BUDGET,
    Outdated, OverBudget, Phase, STALLED, Stalled,
};
use crate::error::{Error, Malformed};
use crate::reason::Reason;
use crate::settings::{Common, Settings};
use crate::value::{self, Object};

/// The condition that describes the environment's progress to the owner of a claim, in one
/// sentence.
pub const CONDITION: &str = "Provisioned";

/// The name of our requirement for the EnvironmentConfig that `settingsFrom` names.
pub const SETTINGS_REQUIREMENT: &str = "settings";

/// The name of the requirement in our namespaced Compositions for the EnvironmentConfig. Crossplane
/// then sends the EnvironmentConfig with the first request.
pub const SETTINGS_AT_FIRST: &str = "settings-at-first";

/// The inputs of composing besides the request: one clock reading and one source of randomness.
pub struct Outside<'a> {
    /// The time of this call. It dates changes in status.
    pub now: Timestamp,
    /// Fills a buffer with random bytes for passwords.
    pub random: &'a mut dyn FnMut(&mut [u8]),
}

/// Answers one request: a pure function of the request and `outside`.
///
/// # Errors
/// A malformed request, which has no observed composite or a composite without a kind. Mistakes of users and of the platform team become FATAL results in the response
/// instead.
pub fn run(
    request: RunFunctionRequest,
    outside: &mut Outside<'_>,
) -> Result<RunFunctionResponse, Malformed> {
    run_with(apis::find, request, outside)
}

/// Like [`run`], with other APIs than ours. `find` returns the API that serves a kind.
///
/// # Errors
/// As [`run`].
pub fn run_with(
    find: impl Fn(&str) -> Option<&'static dyn AnyApi>,
    mut request: RunFunctionRequest,
    outside: &mut Outside<'_>,
) -> Result<RunFunctionResponse, Malformed> {
    let mut observed = request.observed.take().unwrap_or_default();
    let Some(mut composite) =
        observed.composite.take().filter(|composite| composite.resource.is_some())
    else {
        return Err(Malformed("the request has no observed composite resource"));
    };
    let xr = value::take_object(&mut composite);
    let Some(kind) = value::text(&xr, &["kind"]).map(str::to_owned) else {
        return Err(Malformed("the observed composite resource has no kind"));
    };
    let mut response = forward(&mut request);
    let credentials = std::mem::take(&mut request.credentials);
    let kept = kept_conditions(&xr);
    let answered = match find(&kind) {
        None => {
            Err(Error::UnsupportedKind { found: crate::check::shown(&kind), known: apis::kinds() })
        }
        Some(api) => Composite::read(xr, composite.connection_details.into_iter().collect())
            .and_then(|xr| {
                let told = told_revision(&request);
                let settings = match settings(&mut request, &mut response) {
                    Ok(None) => return Ok(()),
                    Ok(Some(settings)) => Ok(settings),
                    Err(error) => Err(error),
                };
                let common = settings.as_ref().map_or_else(
                    |_| Common { schema_revision: told, ..Common::default() },
                    |settings| settings.common.clone(),
                );
                let found = found(&mut request);
                let mut cx = composition(api, xr, observed.resources, found, &common, outside);
                hide(credentials, &mut cx);
                let status = compose(api, settings, &mut cx);
                // A rejection also asks. Crossplane then calls again when an object that was looked
                // up changes.
                for (requirement, lookup) in cx.lookups() {
                    ask(&request, &mut response, requirement, selector(lookup));
                }
                let (status, wrong) = match status {
                    Ok(status) => (status, None),
                    Err(error) => {
                        cx.plan_for_rejection();
                        if !cx.stops_what_exists() {
                            return Err(error);
                        }
                        // An environment that has to stop does not wait until its spec is valid.
                        (cx.stand_still()?, Some(error))
                    }
                };
                let answer = cx.build(status, api.info().since_revision, wrong.as_ref());
                leave_to_others(&response, &answer)?;
                fill(&mut response, answer);
                Ok(())
            }),
    };
    if let Err(error) = answered {
        refuse(&mut response, &error, kept);
    }
    Ok(response)
}

/// Plans the lifecycle, and composes: the API's own status.
fn compose(
    api: &dyn AnyApi,
    settings: Result<Settings, Error>,
    cx: &mut Composition<'_>,
) -> Result<Object, Error> {
    let info = api.info();
    let lifecycle = settings
        .as_ref()
        .map_err(Clone::clone)
        .and_then(|settings| settings.lifecycle(info.settings));
    let defaults = Settings::default();
    let cannot_stop = api.cannot_stop(&cx.xr.spec, settings.as_ref().unwrap_or(&defaults));
    let planned = cx.plan(info.stoppable, cannot_stop, lifecycle.as_ref().ok());
    let settings = settings?;
    cx.admit(info.settings, &lifecycle?)?;
    let status = match (planned, api.compose(&settings, cx)) {
        // A user sees all wrong fields at once.
        (Err(Error::InvalidSpec(lifecycle)), Err(Error::InvalidSpec(fields))) => {
            return Err(Error::InvalidSpec([fields, lifecycle].concat()));
        }
        (planned, status) => planned.and(status)?,
    };
    cx.complete()?;
    Ok(status)
}

/// The schema revision that the step's input tells, although the input may be invalid.
fn told_revision(request: &RunFunctionRequest) -> Option<u32> {
    match request.input.as_ref()?.fields.get("schemaRevision")?.kind.as_ref()? {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
        Kind::NumberValue(revision) => Some(revision.clamp(1.0, 1e6) as u32),
        _ => None,
    }
}

/// The conditions of ours that a refusal does not decide on: Crossplane would make them Unknown.
fn kept_conditions(xr: &Object) -> Vec<Condition> {
    let conditions = value::at(xr, &["status", "conditions"]).and_then(Value::as_array);
    let is_ours =
        |one: &&Value| [EXPIRING, OVER_BUDGET, OUTDATED].iter().any(|kind| one["type"] == *kind);
    let ours = conditions.into_iter().flatten().filter(is_ours);
    let text = |one: &Value, field: &str| one[field].as_str().unwrap_or_default().to_owned();
    let kept = |one: &Value| {
        let status = match one["status"].as_str()? {
            "True" => ConditionStatus::ConditionTrue,
            "False" => ConditionStatus::ConditionFalse,
            _ => return None,
        };
        let kind = one["type"].as_str()?;
        Some(condition(kind, status, &text(one, "reason"), text(one, "message")))
    };
    ours.filter_map(kept).collect()
}

/// A response with the context and with the desired state of earlier steps.
fn forward(request: &mut RunFunctionRequest) -> RunFunctionResponse {
    let tag = request.meta.as_mut().map(|meta| std::mem::take(&mut meta.tag)).unwrap_or_default();
    RunFunctionResponse {
        meta: Some(ResponseMeta { tag, ttl: Some(ttl(Duration::from_mins(1))) }),
        desired: Some(request.desired.take().unwrap_or_default()),
        context: request.context.take(),
        ..RunFunctionResponse::default()
    }
}

/// The step's input, with the EnvironmentConfig that it names merged over it. `None` if the
/// EnvironmentConfig has to be requested first.
fn settings(
    request: &mut RunFunctionRequest,
    response: &mut RunFunctionResponse,
) -> Result<Option<Settings>, Error> {
    let sections = apis::sections();
    let body = request.input.take().map(value::object).unwrap_or_default();
    let mut input = Settings::read(body.clone(), &sections)?;
    let Some(from) = &input.common.settings_from else { return Ok(Some(input)) };
    let config = Lookup {
        api_version: "apiextensions.crossplane.io/v1beta1".to_owned(),
        kind: "EnvironmentConfig".to_owned(),
        namespace: None,
        name: from.name.clone(),
    };
    let at_first = request.required_resources.remove(SETTINGS_AT_FIRST);
    // The requirement of a Composition may name another object than its Settings.
    let at_first = at_first.filter(|found| found_name(found) == Some(&from.name));
    let found = at_first.or_else(|| {
        ask(request, response, SETTINGS_REQUIREMENT, selector(&config));
        answered(request)
    });
    let Some(found) = found else {
        tracing::debug!(name = from.name, "asks for the EnvironmentConfig");
        return Ok(None);
    };
    let Some(data) = environment_config(found) else {
        let effect = if from.optional {
            "only the input of the step applies. Create it, or remove settingsFrom"
        } else {
            "new environments are rejected. Environments that exist keep their values, and only \
             the input of the step applies to them. Create it, or remove settingsFrom"
        };
        let message = format!("EnvironmentConfig {} was not found, so {effect}", from.name);
        // For the platform team only: the claim's owner cannot fix it.
        let target = Some(Target::Composite.into());
        response.results.push(FunctionResult {
            target,
            ..result(Severity::Warning, &Reason::SettingsNotFound, message)
        });
        input.common.config_not_found = true;
        return Ok(Some(input));
    };
    let mut whole = body;
    crossplane::object::merge(&mut whole, data);
    Settings::read(whole, &sections).map(Some)
}

/// Asks Crossplane for objects. A Crossplane that sends no capabilities may be 1.20, which knows
/// only the older field.
fn ask(
    request: &RunFunctionRequest,
    response: &mut RunFunctionResponse,
    requirement: &str,
    selector: ResourceSelector,
) {
    let modern = request
        .meta
        .as_ref()
        .is_some_and(|meta| meta.capabilities().any(|c| c == Capability::RequiredResources));
    let requirements = response.requirements.get_or_insert_default();
    if !modern {
        requirements.extra_resources.insert(requirement.to_owned(), selector.clone());
    }
    requirements.resources.insert(requirement.to_owned(), selector);
}

fn selector(lookup: &Lookup) -> ResourceSelector {
    ResourceSelector {
        api_version: lookup.api_version.clone(),
        kind: lookup.kind.clone(),
        namespace: lookup.namespace.clone(),
        r#match: Some(resource_selector::Match::MatchName(lookup.name.clone())),
    }
}

/// The objects that Crossplane found for the requirements of earlier answers, by the requirement's
/// name.
fn found(request: &mut RunFunctionRequest) -> BTreeMap<String, Option<Object>> {
    let extra = std::mem::take(&mut request.extra_resources);
    let required = std::mem::take(&mut request.required_resources);
    let first = |resources: Resources| resources.items.into_iter().next();
    extra
        .into_iter()
        .chain(required)
        .map(|(name, resources)| {
            (name, first(resources).map(|mut one| value::take_object(&mut one)))
        })
        .collect()
}

fn answered(request: &mut RunFunctionRequest) -> Option<Resources> {
    let modern = request.required_resources.remove(SETTINGS_REQUIREMENT);
    modern.or_else(|| request.extra_resources.remove(SETTINGS_REQUIREMENT))
}

/// The name of the first object that was found.
fn found_name(found: &Resources) -> Option<&str> {
    let metadata = found.items.first()?.resource.as_ref()?.fields.get("metadata")?;
    let Kind::StructValue(metadata) = metadata.kind.as_ref()? else { return None };
    match metadata.fields.get("name")?.kind.as_ref()? {
        Kind::StringValue(name) => Some(name),
        _ => None,
    }
}

/// The `data` of the EnvironmentConfig. `None` if the EnvironmentConfig does not exist or has none.
fn environment_config(found: Resources) -> Option<Object> {
    let config = value::take_object(&mut found.items.into_iter().next()?);
    match config.into_iter().find(|(key, _)| key == "data")? {
        (_, Value::Object(data)) => Some(data),
        _ => None,
    }
}

/// A composition for a request, without composed resources.
fn composition<'r>(
    api: &dyn AnyApi,
    xr: Composite,
    observed: HashMap<String, Resource>,
    found: BTreeMap<String, Option<Object>>,
    settings: &'r Common,
    outside: &'r mut Outside<'_>,
) -> Composition<'r> {
    let observed = observed.into_iter().map(|(slot, mut resource)| {
        let object = value::take_object(&mut resource);
        (slot, object, resource.connection_details.into_iter().collect())
    });
    let called = match &xr.claim_type {
        Some((api_version, kind)) => apis::called(api_version, kind),
        None => apis::called(&xr.api_version, &xr.kind),
    };
    let mut composition = Composition::new(
        xr,
        api.info().name,
        settings,
        observed,
        outside.now,
        &mut *outside.random,
    )
    .with_first_slots(api.info().first_slots)
    .called(called);
    composition.take_found(found);
    composition
}

/// Makes the composition remove credentials from all its texts.
fn hide(credentials: HashMap<String, Credentials>, composition: &mut Composition<'_>) {
    for Credentials { source } in credentials.into_values() {
        let Some(Source::CredentialData(secret)) = source else { continue };
        secret.data.values().for_each(|value| composition.hide(value));
    }
}

/// Rejects slots that earlier steps use. The desired resources of earlier steps pass through
/// unchanged.
fn leave_to_others(
    response: &RunFunctionResponse,
    answer: &CompositionResult,
) -> Result<(), Error> {
    let Some(earlier) = &response.desired else { return Ok(()) };
    let taken: Vec<String> = answer
        .resources
        .keys()
        .filter(|slot| earlier.resources.contains_key(*slot))
        .cloned()
        .collect();
    if taken.is_empty() { Ok(()) } else { Err(Error::SlotTaken(taken)) }
}

/// Adds an answer to the desired state of earlier steps.
fn fill(response: &mut RunFunctionResponse, answer: CompositionResult) {
    tracing::debug!(phase = ?answer.phase, reason = %answer.reason, sentence = answer.message, "answered");
    let reason = answer.word();
    let desired = response.desired.get_or_insert_default();
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
    if let Some(meta) = &mut response.meta {
        meta.ttl = Some(ttl(answer.requeue));
    }
    if answer.changed {
        let is_wrong = answer.phase == Phase::Failed || answer.rejected.is_some();
        let severity = if is_wrong { Severity::Warning } else { Severity::Normal };
        response.results.push(result(severity, &reason, answer.message.clone()));
    }
    let is_reached =
        answer.rejected.is_none() && matches!(answer.reason, Reason::Available | Reason::Stopped);
    let status =
        if is_reached { ConditionStatus::ConditionTrue } else { ConditionStatus::ConditionFalse };
    response.conditions.push(condition(CONDITION, status, &reason, answer.message));
    if let Some(Stalled { status, reason, message }) = answer.stalled {
        let status =
            if status { ConditionStatus::ConditionTrue } else { ConditionStatus::ConditionFalse };
        response.conditions.push(condition(STALLED, status, &reason, message));
    }
    if let Some(Expiring { status, reason, message }) = answer.expiring {
        let status =
            if status { ConditionStatus::ConditionTrue } else { ConditionStatus::ConditionFalse };
        response.conditions.push(condition(EXPIRING, status, &reason, message));
    }
    if let Some(OverBudget { status, reason, message, is_news }) = answer.over_budget {
        if status && is_news {
            response.results.push(result(Severity::Warning, &reason, message.clone()));
        }
        let status =
            if status { ConditionStatus::ConditionTrue } else { ConditionStatus::ConditionFalse };
        response.conditions.push(condition(OVER_BUDGET, status, &reason, message));
    }
    if let Some(Outdated { status, reason, message, news }) = answer.outdated {
        let news = news.into_iter().map(|told| result(Severity::Warning, &reason, told));
        response.results.extend(news);
        let status =
            if status { ConditionStatus::ConditionTrue } else { ConditionStatus::ConditionFalse };
        response.conditions.push(condition(OUTDATED, status, &reason, message));
    }
    let warnings = answer.warnings.into_iter();
    response
        .results
        .extend(warnings.map(|(reason, told)| result(Severity::Warning, &reason, told)));
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

/// Adds FATAL results, one for each wrong field. Crossplane then changes only the conditions. The
/// environment is stalled at once, because it cannot progress before a person fixes the field.
fn refuse(response: &mut RunFunctionResponse, error: &Error, kept: Vec<Condition>) {
    let sentence = crate::check::shown(&error.to_string());
    tracing::debug!(reason = %error.code(), sentence, "refused");
    response.results.extend(results(Severity::Fatal, error));
    response.conditions.extend(kept);
    let reason = error.code();
    response.conditions.extend([
        condition(CONDITION, ConditionStatus::ConditionFalse, &reason, sentence.clone()),
        condition(STALLED, ConditionStatus::ConditionTrue, &reason, sentence),
    ]);
}

/// A result for each field that is wrong.
fn results(severity: Severity, error: &Error) -> Vec<FunctionResult> {
    let told = |message: String| result(severity, &error.code(), crate::check::shown(&message));
    match error.fields() {
        [] => vec![told(error.to_string())],
        fields => fields.iter().map(|field| told(field.to_string())).collect(),
    }
}

fn condition(
    kind: &str,
    status: ConditionStatus,
    reason: &impl ToString,
    message: String,
) -> Condition {
    Condition {
        r#type: kind.to_owned(),
        status: status.into(),
        reason: reason.to_string(),
        message: Some(message),
        target: Some(Target::CompositeAndClaim.into()),
    }
}

fn result(severity: Severity, reason: &impl ToString, message: String) -> FunctionResult {
    FunctionResult {
        severity: severity.into(),
        message,
        reason: Some(reason.to_string()),
        target: Some(Target::CompositeAndClaim.into()),
    }
}

fn ttl(duration: Duration) -> prost_types::Duration {
    prost_types::Duration {
        seconds: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        nanos: 0,
    }
}

#[cfg(test)]
mod tests;
