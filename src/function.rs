//! RunFunction: find the API of the composite's kind, run it, return the response.

use function_proto::v1::{RunFunctionRequest, RunFunctionResponse};
use jiff::Timestamp;

use crate::apis::{self, AnyApi};
use crate::compose::Composition;
pub use crate::compose::PROVISIONED as CONDITION;
use crate::error::{Error, Malformed};
use crate::observe::{ApiFacts, Composite};
use crate::request::{Request, Response};
use crate::settings::{Common, Settings};
use crate::value::Object;

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

/// Fills the response, or asks for the EnvironmentConfig first.
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
    let common = settings.as_ref().map_or_else(
        |_| Common { schema_revision, ..Common::default() },
        |settings| settings.common.clone(),
    );
    let facts = facts(api, &xr);
    let observation = request.observe(facts, xr, &common, outside.now);
    let mut cx = Composition::new(&observation, outside.random);
    let status = compose(api, settings, &mut cx);
    // A rejection also asks. Crossplane then calls again when an object that was looked up changes.
    for (requirement, lookup) in cx.lookups() {
        response.ask(requirement, lookup);
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
    response.fill(cx.build(status, api.info().since_revision, wrong.as_ref()))
}

/// The facts about an API that the engine needs for an environment.
fn facts(api: &dyn AnyApi, xr: &Composite) -> ApiFacts {
    let called = match &xr.claim_type {
        Some((api_version, kind)) => apis::called(api_version, kind),
        None => apis::called(&xr.api_version, &xr.kind),
    };
    ApiFacts { name: api.info().name, called, first_slots: api.info().first_slots }
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

#[cfg(test)]
mod tests;
