//! `…/extend`, `…/keep`, `…/stop` and `…/start`: requests about the lifecycle of an environment, with the
//! rights of the user.

use axum::extract::State;
use axum::http::StatusCode;
use function_paved_road::lifecycle::Span;
use jiff::Timestamp;
use kube::Client;
use paved_client::action::Verb;
use paved_client::cluster::Found;
use paved_client::lifecycle::{Change, Expiry, Refusal, Subject, clock_ahead};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::environments::{EnvironmentPath, Environments};
use crate::action::Action;
use crate::answer::Answer;
use crate::bodies::Body;
use crate::extract::Path;
use crate::identity::Person;
use crate::live::View;
use crate::problem::{Conflicts, ErrorResponses, NotFound, Problem, UnprocessableEntity};
use crate::signed_in::SignedIn;

/// A new expiry. Exactly one of the fields is required.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(example = json!({"for": "4h"}))]
pub(crate) struct Extension {
    /// Time from now to the expiry: a whole number with s, m, h, d or w.
    #[serde(rename = "for")]
    length: Option<String>,
    /// Time of the expiry (RFC 3339).
    until: Option<String>,
    /// Expire as late as Settings allow.
    maximum: Option<bool>,
}

/// A request without parameters: an empty object. JSON, because forms of other sites cannot send it.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Nothing {}

/// The effect of a request about the lifecycle.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Requested {
    /// The environment after the request. Crossplane updates its status later.
    environment: View,
    /// Whether the request changed the environment. It does not if the environment is already
    /// stopped, or expires later than the requested time.
    changed: bool,
    /// Time of the expiry in RFC 3339, after an extension.
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<String>,
    /// The maximum in Settings, for example 14d, if it shortened the extension.
    #[serde(skip_serializing_if = "Option::is_none")]
    capped_by: Option<String>,
    /// Whether the request starts a stopped environment.
    starts: bool,
    /// How far the portal's clock is ahead of the cluster's, if the request is ignored until then.
    #[serde(skip_serializing_if = "Option::is_none")]
    clock_ahead: Option<String>,
}

/// Extend the time to live of an environment.
///
/// The new time counts from now. Settings can limit it. An environment that is stopped because it
/// expired starts again.
#[utoipa::path(post, path = "/api/v1/environments/{namespace}/{kind}/{name}/extend", operation_id = "extendEnvironment", tag = "environments", params(EnvironmentPath),
    request_body = Extension, responses((status = 200, description = "The new expiry.", body = Requested), ErrorResponses, NotFound, UnprocessableEntity, Conflicts))]
pub(crate) async fn extend(
    State(environments): State<Environments>,
    SignedIn(person): SignedIn,
    Path(place): Path<EnvironmentPath>,
    body: Body,
) -> Result<Answer<Requested>, Problem> {
    let expiry = body.read::<Extension>(&person).await?.value.expiry()?;
    let request = Request::new(&environments, &person, &place).await?;
    let renewal =
        request.subject.renew(expiry).map_err(|refusal| request.refused(refusal, Verb::Extend))?;
    let starts = renewal.change.is_some() && request.subject.is_started_by_renewal();
    let requested = request.send(renewal.change, Verb::Extend).await?;
    Ok(Answer(Requested {
        expires_at: Some(renewal.expires_at.to_string()),
        capped_by: renewal.capped_by.map(|maximum| maximum.to_string()),
        starts,
        ..requested
    }))
}

/// Remove the time to live of an environment, so that it does not expire.
///
/// Settings with a maximum forbid this. An environment that is stopped because it expired starts
/// again.
#[utoipa::path(post, path = "/api/v1/environments/{namespace}/{kind}/{name}/keep", operation_id = "keepEnvironment", tag = "environments", params(EnvironmentPath),
    request_body = Nothing, responses((status = 200, description = "The environment has no time to live.", body = Requested), ErrorResponses, NotFound, UnprocessableEntity, Conflicts))]
pub(crate) async fn keep(
    State(environments): State<Environments>,
    SignedIn(person): SignedIn,
    Path(place): Path<EnvironmentPath>,
    body: Body,
) -> Result<Answer<Requested>, Problem> {
    let Nothing {} = body.read(&person).await?.value;
    let request = Request::new(&environments, &person, &place).await?;
    let change = request.subject.keep().map_err(|refusal| request.refused(refusal, Verb::Keep))?;
    let starts = change.is_some() && request.subject.is_started_by_renewal();
    let requested = request.send(change, Verb::Keep).await?;
    Ok(Answer(Requested { starts, clock_ahead: None, ..requested }))
}

/// Stop an environment, and keep disks and databases, but not an instance store.
#[utoipa::path(post, path = "/api/v1/environments/{namespace}/{kind}/{name}/stop", operation_id = "stopEnvironment", tag = "environments", params(EnvironmentPath),
    request_body = Nothing, responses((status = 200, description = "The environment stops, or is stopped already.", body = Requested), ErrorResponses, NotFound, UnprocessableEntity, Conflicts))]
pub(crate) async fn stop(
    State(environments): State<Environments>,
    SignedIn(person): SignedIn,
    Path(place): Path<EnvironmentPath>,
    body: Body,
) -> Result<Answer<Requested>, Problem> {
    let Nothing {} = body.read(&person).await?.value;
    let request = Request::new(&environments, &person, &place).await?;
    let change = request.subject.stop().map_err(|refusal| request.refused(refusal, Verb::Stop))?;
    Ok(Answer(request.send(change, Verb::Stop).await?))
}

/// Start a stopped environment.
///
/// A start also renews the environment by its time to live.
#[utoipa::path(post, path = "/api/v1/environments/{namespace}/{kind}/{name}/start", operation_id = "startEnvironment", tag = "environments", params(EnvironmentPath),
    request_body = Nothing, responses((status = 200, description = "The environment starts, or runs already.", body = Requested), ErrorResponses, NotFound, UnprocessableEntity, Conflicts))]
pub(crate) async fn start(
    State(environments): State<Environments>,
    SignedIn(person): SignedIn,
    Path(place): Path<EnvironmentPath>,
    body: Body,
) -> Result<Answer<Requested>, Problem> {
    let Nothing {} = body.read(&person).await?.value;
    let request = Request::new(&environments, &person, &place).await?;
    let change =
        request.subject.start().map_err(|refusal| request.refused(refusal, Verb::Start))?;
    let starts = !request.subject.is_running();
    let requested = request.send(Some(change), Verb::Start).await?;
    Ok(Answer(Requested { starts, ..requested }))
}

impl Extension {
    /// The expiry, if exactly one field names it.
    fn expiry(&self) -> Result<Expiry, Problem> {
        match (&self.length, &self.until, self.maximum.unwrap_or_default()) {
            (Some(length), None, false) => match length.parse() {
                Ok(span @ Span::For(..)) => Ok(Expiry::After(span)),
                _ => Err(Problem::field(
                    "for",
                    format!(
                        "found {length:?}; allowed: a whole number with a unit (s, m, h, d or w), \
                         for example 4h"
                    ),
                )),
            },
            (None, Some(until), false) => until.parse().map(Expiry::At).map_err(|_| {
                let message = format!(
                    "found {until:?}; allowed: a time (RFC 3339), for example 2026-11-25T18:00:00Z"
                );
                Problem::field("until", message)
            }),
            (None, None, true) => Ok(Expiry::Maximum),
            (length, until, maximum) => {
                let found =
                    [("for", length.is_some()), ("until", until.is_some()), ("maximum", maximum)];
                let found: Vec<&str> =
                    found.into_iter().filter(|(_, is_set)| *is_set).map(|(name, _)| name).collect();
                let found = if found.is_empty() { "none".to_owned() } else { found.join(" and ") };
                let message =
                    format!("found {found}; allowed: exactly one of for, until and maximum: true");
                Err(Problem::field("body", message))
            }
        }
    }
}

/// A request of a user about an environment.
struct Request<'r> {
    environments: &'r Environments,
    person: &'r Person,
    client: Client,
    subject: Subject,
    now: Timestamp,
}

impl<'r> Request<'r> {
    /// Reads the environment with the rights of the user.
    async fn new(
        environments: &'r Environments,
        person: &'r Person,
        place: &EnvironmentPath,
    ) -> Result<Self, Problem> {
        let (kind, namespace, name) = place.read(&environments.catalog)?;
        let client = environments.clients.for_person(person)?;
        let object = kind.api(&client, Some(namespace)).get(name).await?;
        let now = Timestamp::now();
        let subject = Subject::new(Found { kind, object, listed: None }, now);
        Ok(Self { environments, person, client, subject, now })
    }

    /// Records the action of the user and its result.
    fn record<T>(&self, verb: Verb, result: &Result<T, Problem>) {
        let environment = &self.subject.environment;
        let action = Action {
            verb,
            person: self.person,
            kind: self.subject.kind(),
            namespace: &environment.namespace,
            name: &environment.name,
        };
        action.record(&self.environments.clients, result, |_| Some(environment.uid.clone()));
    }

    /// Sends a change, if there is one.
    async fn send(self, change: Option<Change>, verb: Verb) -> Result<Requested, Problem> {
        let patched = match change {
            Some(change) => {
                let patched = self.subject.patch(&self.client, change).await;
                let patched = patched.map_err(Problem::from);
                self.record(verb, &patched);
                Some(patched?)
            }
            None => None,
        };
        let changed = patched.is_some();
        let Found { kind, object, .. } = self.subject.into_found();
        let object = patched.unwrap_or(object);
        let clock_ahead = clock_ahead(&object, self.now).filter(|_| changed);
        Ok(Requested {
            environment: self.environments.whole(&kind, object).view,
            changed,
            expires_at: None,
            capped_by: None,
            starts: false,
            clock_ahead,
        })
    }

    /// The problem of a request that would have no effect.
    fn refused(&self, refusal: Refusal, verb: Verb) -> Problem {
        let detail = format!("{} {refusal}", self.subject.environment.title());
        let (status, field, message) = explained(refusal);
        let problem = Problem::new(status, detail).at_field(field, message);
        self.record::<()>(verb, &Err(problem.clone()));
        problem
    }
}

/// The HTTP status for a refusal, its field, and the found and the allowed value.
fn explained(refusal: Refusal) -> (StatusCode, &'static str, String) {
    const PAUSED: &str = "metadata.annotations[crossplane.io/paused]";
    let (conflict, invalid) = (StatusCode::CONFLICT, StatusCode::UNPROCESSABLE_ENTITY);
    match refusal {
        Refusal::Deleting => (
            conflict,
            "metadata.deletionTimestamp",
            "found a deletion; allowed: an environment that is not being deleted".to_owned(),
        ),
        Refusal::PausedClaim | Refusal::PausedComposite => {
            (conflict, PAUSED, "found \"true\"; allowed: no such annotation".to_owned())
        }
        Refusal::NoLifecycle => (
            conflict,
            "status.lifecycle",
            "found nothing; allowed: a status of schema revision 3 or later".to_owned(),
        ),
        Refusal::NoTtl => (
            invalid,
            "spec.lifecycle.ttl",
            "found no time to live; allowed: a duration, for example 8h".to_owned(),
        ),
        Refusal::NoMaximum => (
            invalid,
            "maximum",
            "found true; allowed: false, because Settings have no maximum".to_owned(),
        ),
        Refusal::NotAhead(found) => {
            (invalid, "until", format!("found {found}; allowed: a time after now"))
        }
        Refusal::CannotStop(reason) => (
            invalid,
            "spec.lifecycle.power",
            format!("found Stopped; allowed: Running, because {reason}"),
        ),
        Refusal::Maximum(maximum) => {
            (invalid, "spec.lifecycle.ttl", format!("found never; allowed: at most {maximum}"))
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    fn read(body: &serde_json::Value) -> Result<Expiry, Problem> {
        serde_json::from_value::<Extension>(body.clone()).unwrap().expiry()
    }

    #[test]
    fn extension_names_one_expiry() {
        let span = "4h".parse().unwrap();
        let end = "2026-11-25T18:00:00Z";
        for (body, expiry) in [
            (json!({"for": "4h"}), Expiry::After(span)),
            (json!({"until": end}), Expiry::At(end.parse().unwrap())),
            (json!({"maximum": true}), Expiry::Maximum),
        ] {
            assert_eq!(read(&body).unwrap(), expiry, "{body}");
        }
    }

    #[test]
    fn invalid_extension_names_field_found_and_allowed_values() {
        for (body, told) in [
            (json!({"for": "8"}), "for: found \"8\"; allowed: a whole number with a unit"),
            (json!({"for": "-1h"}), "for: found \"-1h\"; allowed: "),
            (json!({"for": "0s"}), "for: found \"0s\"; allowed: "),
            (json!({"for": "never"}), "for: found \"never\"; allowed: "),
            (json!({"until": "tomorrow"}), "until: found \"tomorrow\"; allowed: a time (RFC 3339)"),
            (json!({}), "body: found none; allowed: exactly one"),
            (json!({"maximum": false}), "body: found none; allowed: exactly one"),
            (json!({"for": "1h", "maximum": true}), "body: found for and maximum; allowed: "),
        ] {
            let problem = read(&body).unwrap_err();
            assert_eq!(problem.status(), StatusCode::BAD_REQUEST);
            assert!(problem.detail().starts_with(told), "{}", problem.detail());
        }
    }
}
