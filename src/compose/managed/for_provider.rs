//! The `forProvider` of a managed resource: preserved values, updatable fields and tags.

use serde_json::Value;

use super::super::{drift, is_orphan, preserve};
use super::Managed;
use crate::catalog::tags;
use crate::error::Error;
use crate::models;
use crate::value::{Object, at, put};

impl<M: models::Managed> Managed<'_, '_, M> {
    /// Whether this call changes fields that users may change, makes an orphan deletable, or
    /// follows a stop. The provider has not observed the change yet. Tags do not count, because
    /// they only inform people.
    pub(super) fn is_changing(&self, object: &Object) -> bool {
        let Some(running) = self.running() else { return false };
        let scope = self.composition.xr.scope;
        let was_orphan = is_orphan(&running.object, scope);
        if running.is_stopped() || was_orphan && !is_orphan(object, scope) {
            return true;
        }
        let fields = |object| at(object, &["spec", "forProvider"]).and_then(Value::as_object);
        let (Some(asked), Some(seen)) = (fields(object), fields(&running.object)) else {
            return false;
        };
        let chosen = self.composition.chosen_anew(&self.slot, &self.choices);
        let mut own =
            self.updatable.iter().copied().chain(chosen).filter(|path| !path.ends_with("tags"));
        own.any(|path| !drift::stands_in(asked, seen, path))
    }

    /// The fields of `forProvider`, as observed or as wanted.
    pub(super) fn resolve_for_provider(&self) -> Result<Object, Error> {
        let mut for_provider = self.preserved_or_wanted()?;
        for (path, value) in &self.chosen {
            let path: Vec<&str> = path.split('.').collect();
            if at(&for_provider, &path).is_none() {
                put(&mut for_provider, &path, Some(value.clone()));
            }
        }
        Ok(for_provider)
    }

    fn preserved_or_wanted(&self) -> Result<Object, Error> {
        let observed =
            self.running().and_then(|running| at(&running.object, &["spec", "forProvider"]));
        let updatable = self.updatable_now();
        if updatable.is_empty()
            && let Some(preserved) = observed.and_then(preserve::observed_fields::<M>)
        {
            return Ok(preserved);
        }
        let Ok(Value::Object(mut wanted)) = serde_json::to_value(&self.model) else {
            return Err(Error::Defect(format!(
                "the model in slot `{}` is not an object",
                self.slot
            )));
        };
        if let Some(path) = M::KIND.tags {
            if observed.is_none() {
                self.check_tags(&wanted, path)?;
            }
            self.add_tags(&mut wanted, path);
        }
        Ok(match observed {
            Some(observed) => preserve::for_provider::<M>(&wanted, observed, &updatable),
            None => wanted,
        })
    }

    /// The paths that do not keep their observed values: updatable fields, resolved fields with a
    /// changed choice, and tags. Without the EnvironmentConfig, which may have tags, tags keep
    /// their values.
    fn updatable_now(&self) -> Vec<&'static str> {
        let chosen = self.composition.chosen_anew(&self.slot, &self.choices);
        let all = self.updatable.iter().copied().chain(chosen).chain(M::KIND.tags);
        let is_tags =
            |path: &str| M::KIND.tags == Some(path) || path.rsplit('.').next() == Some("tags");
        let keeps_tags = self.composition.settings.config_not_found;
        all.filter(|path| !(keeps_tags && is_tags(path))).collect()
    }

    /// Rejects tags of Settings that the service would reject. For an existing resource, the
    /// provider reports the failure instead.
    fn check_tags(&self, wanted: &Object, path: &str) -> Result<(), Error> {
        let chosen = self.composition.settings.chosen_tags();
        let common = self.composition.tags(&M::KIND);
        let path: Vec<&str> = path.split('.').collect();
        let has = at(wanted, &path).and_then(Value::as_object).into_iter().flatten();
        let is_own = |(key, value): &(&String, &Value)| {
            common.get(*key).map(String::as_str) != value.as_str()
        };
        let own = has.filter(is_own).map(|(key, _)| key.as_str());
        let mut own: Vec<&str> = own.collect();
        if self.composition.is_attributed() {
            own.extend(tags::attribution(chosen).map(|key| -> &str { key }));
        }
        let wrong = tags::check(&M::KIND, chosen, &own);
        if wrong.is_empty() { Ok(()) } else { Err(Error::InvalidSettings(wrong)) }
    }

    /// Adds the tags that all APIs share. The API's own tags win.
    fn add_tags(&self, wanted: &mut Object, path: &str) {
        let path: Vec<&str> = path.split('.').collect();
        for (key, value) in self.composition.tags(&M::KIND) {
            let path: Vec<&str> = path.iter().copied().chain([key.as_str()]).collect();
            if at(wanted, &path).is_none() {
                put(wanted, &path, Some(value.into()));
            }
        }
    }
}
