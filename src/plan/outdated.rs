//! Compositions of an older schema revision than the claim or the Settings need.
//!
//! A user may choose an older revision of a Composition. Its XRD cannot carry the status fields of
//! later revisions, so some fields and limits would have no effect. A new environment is rejected
//! if Settings have such a limit. An environment that exists continues, with a warning.

use serde_json::Value;

use super::Composition;
use super::condition::{Condition, Event, stored};
use crate::error::{Error, FieldError};
use crate::lifecycle::{LifecycleSettings, REQUESTS, SINCE};
use crate::reason::Reason;
use crate::settings::SCHEMA_REVISION;

/// The condition of an environment whose Composition is older than the claim or the Settings need.
pub const OUTDATED: &str = "OutdatedComposition";

impl Composition<'_> {
    /// Decides whether a new environment may be created. `key` is the API's section in Settings, and
    /// `lifecycle` the lifecycle in it.
    ///
    /// # Errors
    /// The environment is new. Its Settings do not exist or are invalid, or they have a limit that
    /// its Composition cannot carry.
    pub fn admit(&mut self, key: &str, lifecycle: &LifecycleSettings) -> Result<(), Error> {
        let mut refused = self.beyond_revision(key, lifecycle);
        if !self.is_new() {
            self.outdated.extend(refused);
            return Ok(());
        }
        let settings = self.settings;
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
        lifecycle.check(&format!("settings.{key}.lifecycle"), &mut fields);
        refused.extend(fields.refused());
        if refused.is_empty() { Ok(()) } else { Err(Error::InvalidSettings(refused)) }
    }

    /// The limits in Settings that the Composition's revision cannot carry, or that it does not
    /// reach.
    fn beyond_revision(&self, key: &str, lifecycle: &LifecycleSettings) -> Vec<FieldError> {
        if let Err(Error::InvalidSettings(wrong)) = self.settings.check_minimum() {
            return wrong;
        }
        let revision = self.settings.revision();
        let minimum = self.settings.minimum_schema_revision.filter(|least| *least > revision);
        let minimum = minimum.map(|least| FieldError {
            path: "settings.minimumSchemaRevision".to_owned(),
            message: format!(
                "found schemaRevision {revision} in {}; allowed: {least} or more. {}",
                self.composition_title(),
                self.remedy()
            ),
        });
        let limits = if revision < SINCE { self.limits(key, lifecycle) } else { Vec::new() };
        let explained = |path| self.without_effect(path);
        minimum.into_iter().chain(limits.into_iter().map(explained)).collect()
    }

    /// The limits in Settings that [`SINCE`] brought, by their paths.
    fn limits(&self, key: &str, lifecycle: &LifecycleSettings) -> Vec<String> {
        let set = serde_json::to_value(lifecycle).unwrap_or_default();
        let set = set.as_object().into_iter().flat_map(serde_json::Map::keys);
        let mut paths: Vec<String> =
            set.map(|field| format!("settings.{key}.lifecycle.{field}")).collect();
        let namespace = self.xr.user_namespace().unwrap_or_default();
        if self.settings.budget.of(namespace).is_some() {
            paths.push("settings.budget".to_owned());
        }
        paths
    }

    /// Notes the claim's fields and requests that the Composition's revision cannot carry. Requests
    /// about an environment with a note have their effect.
    pub(super) fn note_fields_without_effect(&mut self, has_note: bool) {
        let fields = self.xr.lifecycle.as_ref().and_then(Value::as_object).into_iter().flatten();
        let is_default =
            |field: &str, value: &Value| value.is_null() || field == "power" && value == "Running";
        let fields = fields
            .filter(|(field, value)| !is_default(field, value))
            .map(|(field, _)| format!("spec.lifecycle.{}", crate::check::shown(field)));
        let requests = REQUESTS.into_iter().filter(|name| self.xr.annotations.contains_key(*name));
        let requests = requests.filter(|_| !has_note).map(|name| format!("annotation {name}"));
        let errors: Vec<_> = fields.chain(requests).map(|path| self.without_effect(path)).collect();
        self.outdated.extend(errors);
    }

    fn without_effect(&self, path: String) -> FieldError {
        let revision = self.settings.revision();
        let message = format!(
            "has no effect, because {} has schemaRevision {revision}; allowed: {SINCE} or more. {}",
            self.composition_title(),
            self.remedy()
        );
        FieldError { path, message }
    }

    fn composition_title(&self) -> String {
        match &self.xr.composition {
            Some(name) => format!("Composition {}", crate::check::shown(name)),
            None => "the Composition".to_owned(),
        }
    }

    fn remedy(&self) -> String {
        format!(
            "Set spec.pipeline[].input.schemaRevision to {SCHEMA_REVISION} in {}, after the XRDs \
             of this release are installed",
            self.composition_title()
        )
    }

    /// The condition `OutdatedComposition`, if it has to be set or withdrawn. The events are the
    /// fields and limits without effect, if the message has changed.
    pub(super) fn outdated(&self) -> (Option<Condition>, Vec<Event>) {
        let stored = stored(&self.xr.status, OUTDATED);
        let all: Vec<String> = self.outdated.iter().map(ToString::to_string).collect();
        if all.is_empty() {
            let message = "the Composition carries all fields and limits".to_owned();
            let condition = Condition::new(OUTDATED, false, &Reason::UpToDate, message);
            return (stored.map(|_| condition), Vec::new());
        }
        let message = super::scrub::cut(&all.join("; also "));
        let is_known = stored.is_some_and(|stored| {
            stored["status"] == "True" && stored["message"] == message.as_str()
        });
        let news = all.into_iter().filter(|_| !is_known);
        let events = news.map(|field| Event::warning(&Reason::OldSchemaRevision, field)).collect();
        (Some(Condition::new(OUTDATED, true, &Reason::OldSchemaRevision, message)), events)
    }
}
