//! Compositions of an older schema revision than the claim or the Settings need.
//!
//! A user may choose an older revision of a Composition. Its XRD cannot carry the status fields of
//! later revisions, so some fields and limits would have no effect. A new environment is rejected
//! if Settings have such a limit. An environment that exists continues, with a warning.

use serde_json::Value;

use super::Plan;
use crate::error::{Error, FieldError};
use crate::lifecycle::{LifecycleSettings, REQUESTS, SINCE};
use crate::observe::Observation;
use crate::settings::SCHEMA_REVISION;

impl Plan {
    /// Decides whether a new environment may be created. `section` is the API's section in
    /// Settings, and `lifecycle` the lifecycle in it.
    ///
    /// # Errors
    /// The environment is new. Its Settings do not exist or are invalid, or they have a limit that
    /// its Composition cannot carry.
    pub(super) fn admit(
        &mut self,
        observation: &Observation<'_>,
        section: &str,
        lifecycle: &LifecycleSettings,
    ) -> Result<(), Error> {
        let mut refused = beyond_revision(observation, section, lifecycle);
        if !observation.is_new() {
            self.outdated.extend(refused);
            return Ok(());
        }
        let settings = observation.settings;
        if let Some(from) = settings.settings_from.as_ref().filter(|from| !from.optional)
            && settings.config_not_found
        {
            let message = format!(
                "found {}, an EnvironmentConfig that does not exist or has no data; new \
                 environments are rejected. Create it, or set settingsFrom.optional to true in the \
                 Composition if the platform has none",
                crate::check::quoted(&from.name)
            );
            return Err(Error::settings("settingsFrom.name", message));
        }
        let mut fields = crate::check::Fields::default();
        lifecycle.check(&format!("settings.{section}.lifecycle"), &mut fields);
        refused.extend(fields.refused());
        if refused.is_empty() { Ok(()) } else { Err(Error::InvalidSettings(refused)) }
    }

    /// Notes the claim's fields and requests that the Composition's revision cannot carry. Requests
    /// about an environment with a note have their effect.
    pub(super) fn note_fields_without_effect(
        &mut self,
        observation: &Observation<'_>,
        has_note: bool,
    ) {
        let xr = &observation.xr;
        let fields = xr.lifecycle.as_ref().and_then(Value::as_object).into_iter().flatten();
        let is_default =
            |field: &str, value: &Value| value.is_null() || field == "power" && value == "Running";
        let fields = fields
            .filter(|(field, value)| !is_default(field, value))
            .map(|(field, _)| format!("spec.lifecycle.{}", crate::check::shown(field)));
        let requests = REQUESTS.into_iter().filter(|name| xr.annotations.contains_key(*name));
        let requests = requests.filter(|_| !has_note).map(|name| format!("annotation {name}"));
        let errors: Vec<_> =
            fields.chain(requests).map(|path| without_effect(observation, path)).collect();
        self.outdated.extend(errors);
    }
}

/// The limits in Settings that the Composition's revision cannot carry, or that it does not
/// reach.
fn beyond_revision(
    observation: &Observation<'_>,
    section: &str,
    lifecycle: &LifecycleSettings,
) -> Vec<FieldError> {
    if let Err(Error::InvalidSettings(wrong)) = observation.settings.check_minimum() {
        return wrong;
    }
    let revision = observation.settings.revision();
    let minimum = observation.settings.minimum_schema_revision.filter(|least| *least > revision);
    let minimum = minimum.map(|least| FieldError {
        path: "settings.minimumSchemaRevision".to_owned(),
        message: format!(
            "found schemaRevision {revision} in {}; allowed: {least} or more. {}",
            composition_title(observation),
            remedy(observation)
        ),
    });
    let limits =
        if revision < SINCE { limits(observation, section, lifecycle) } else { Vec::new() };
    let explained = |path| without_effect(observation, path);
    minimum.into_iter().chain(limits.into_iter().map(explained)).collect()
}

/// The limits in Settings that [`SINCE`] brought, by their paths.
fn limits(
    observation: &Observation<'_>,
    section: &str,
    lifecycle: &LifecycleSettings,
) -> Vec<String> {
    let set = serde_json::to_value(lifecycle).unwrap_or_default();
    let set = set.as_object().into_iter().flat_map(serde_json::Map::keys);
    let mut paths: Vec<String> =
        set.map(|field| format!("settings.{section}.lifecycle.{field}")).collect();
    let namespace = observation.xr.user_namespace().unwrap_or_default();
    if observation.settings.budget.of(namespace).is_some() {
        paths.push("settings.budget".to_owned());
    }
    paths
}

/// The warning about a field or a limit that the Composition's revision cannot carry.
fn without_effect(observation: &Observation<'_>, path: String) -> FieldError {
    let revision = observation.settings.revision();
    let message = format!(
        "has no effect, because {} has schemaRevision {revision}; allowed: {SINCE} or more. {}",
        composition_title(observation),
        remedy(observation)
    );
    FieldError { path, message }
}

fn composition_title(observation: &Observation<'_>) -> String {
    match &observation.xr.composition {
        Some(name) => format!("Composition {}", crate::check::shown(name)),
        None => "the Composition".to_owned(),
    }
}

fn remedy(observation: &Observation<'_>) -> String {
    format!(
        "Set spec.pipeline[].input.schemaRevision to {SCHEMA_REVISION} in {}, after the XRDs \
         of this release are installed",
        composition_title(observation)
    )
}
