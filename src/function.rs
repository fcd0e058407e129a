//! RunFunction: find the API of the composite's kind, run it, return the response.

use function_proto::v1::{RunFunctionRequest, RunFunctionResponse};
use jiff::Timestamp;

use crate::apis::{self, AnyApi};
use crate::compose::Composer;
use crate::error::{Error, Malformed};
use crate::observe::{ApiFacts, Composite};
use crate::plan::{Plan, Terms};
use crate::power::Composed;
use crate::request::{Request, Response};
use crate::settings::{Common, Settings};
use crate::status::Answer;
pub use crate::status::PROVISIONED as CONDITION;

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
/// A malformed request, which has no observed composite or a composite without a kind. Mistakes of
/// users and of the platform team become FATAL results in the response instead.
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
    request: RunFunctionRequest,
    outside: &mut Outside<'_>,
) -> Result<RunFunctionResponse, Malformed> {
    let (mut request, mut response) = Request::read(request)?;
    let answered = match find(request.kind()) {
        Some(api) => answer(api, &mut request, &mut response, outside),
        None => Err(Error::UnsupportedKind {
            found: crate::check::shown(request.kind()),
            known: apis::kinds(),
        }),
    };
    if let Err(error) = answered {
        response.refuse(&error);
    }
    Ok(response.into_message())
}

/// Fills the response, or asks for the EnvironmentConfig first. Each step makes its value from
/// those of earlier steps.
fn answer(
    api: &dyn AnyApi,
    request: &mut Request,
    response: &mut Response,
    outside: &mut Outside<'_>,
) -> Result<(), Error> {
    let xr = request.composite()?;
    let schema_revision = request.schema_revision();
    let Some(settings) = request.settings(&apis::sections(), response).transpose() else {
        return Ok(());
    };
    // Invalid Settings still tell the revision: an environment is stopped without them.
    let fallback = Common { schema_revision, ..Common::default() };
    let common = settings.as_ref().map_or(&fallback, |settings| &settings.common);
    let facts = facts(api, &xr);
    let observation = request.observe(facts, xr, common, outside.now);
    let plan = Plan::new(&observation, terms(api, &observation.xr, &settings));
    let draft = Composer::new(&observation, &plan, outside.random).draft(|cx| {
        let settings = settings.as_ref().map_err(Clone::clone)?;
        plan.admission()?;
        plan.checked(api.compose(settings, cx))
    });
    response.ask(draft.lookups());
    let composed = Composed::new(draft, plan)?;
    response.fill(Answer::new(composed, api.info().since_revision))
}

/// The facts about an API that the engine needs for an environment.
fn facts(api: &dyn AnyApi, xr: &Composite) -> ApiFacts {
    let called = match &xr.claim_type {
        Some((api_version, kind)) => apis::called(api_version, kind),
        None => apis::called(&xr.api_version, &xr.kind),
    };
    ApiFacts { name: api.info().name, called, first_slots: api.info().first_slots }
}

/// The part of an API in the plan.
fn terms(api: &dyn AnyApi, xr: &Composite, settings: &Result<Settings, Error>) -> Terms {
    let info = api.info();
    let lifecycle = match settings {
        Ok(settings) => settings.lifecycle(info.settings),
        Err(error) => Err(error.clone()),
    };
    let cannot_stop = match settings {
        Ok(settings) => api.cannot_stop(&xr.spec, settings),
        Err(_) => api.cannot_stop(&xr.spec, &Settings::default()),
    };
    Terms { section: info.settings, settings: lifecycle, stoppable: info.stoppable, cannot_stop }
}

#[cfg(test)]
mod tests;
