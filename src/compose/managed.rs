//! `managed`: a managed resource in its slot.

mod config;
mod for_provider;
mod spec;

use crossplane::names::EXTERNAL_NAME;
use serde_json::Value;

use super::look::{self, LOOK};
use super::{Absent, Composer};
use crate::error::Error;
use crate::models::helm::Release;
use crate::models::{self, CHOICE_PREFIX};
use crate::observe::{Choice, Observed, Resource, SecretName};
use crate::value::{Object, put};

/// A managed resource that [`Managed::add`] adds to the composition.
#[must_use = "nothing is composed before `add`"]
pub struct Managed<'c, 'r, M> {
    composition: &'c mut Composer<'r>,
    slot: String,
    model: M,
    external_name: Option<String>,
    updatable: Vec<&'static str>,
    choices: Vec<Choice>,
    chosen: Vec<(&'static str, Value)>,
    labels: Vec<(&'static str, &'static str)>,
    orphan: bool,
    observe_only: bool,
    publishes: bool,
    secret: Option<SecretName>,
    spec_fields: Object,
    shown_as: Option<String>,
    for_provider: Option<Object>,
    needs: Option<String>,
    config: Option<String>,
}

impl<'r> Composer<'r> {
    /// Begins a managed resource in `slot`. Once it was observed, its fields keep their observed
    /// values. Exceptions are the fields of [`updatable`](Managed::updatable) and
    /// [`resolved_from`](Managed::resolved_from), and the tags of Settings.
    pub fn managed<M: models::Managed>(
        &mut self,
        slot: impl Into<String>,
        model: M,
    ) -> Managed<'_, 'r, M> {
        Managed {
            composition: self,
            slot: slot.into(),
            model,
            external_name: None,
            updatable: Vec::new(),
            choices: Vec::new(),
            chosen: Vec::new(),
            labels: Vec::new(),
            orphan: false,
            observe_only: false,
            publishes: false,
            secret: None,
            spec_fields: Object::new(),
            shown_as: None,
            for_provider: None,
            needs: None,
            config: None,
        }
    }
}

impl<M: models::Managed> Managed<'_, '_, M> {
    /// Sets its name in the cloud, if the provider accepts one. An observed name never changes.
    pub fn external_name(mut self, name: impl Into<String>) -> Self {
        self.external_name = Some(name.into());
        self
    }

    /// Updatable fields, by their paths below `forProvider`. They follow the claim at every call.
    pub fn updatable(mut self, paths: &[&'static str]) -> Self {
        self.updatable.extend(paths);
        self
    }

    /// Resolved fields, looked up from a user's choice through a table that Settings or a later
    /// release may change. They are resolved again only if the choice differs from the choice
    /// recorded on the resource.
    pub fn resolved_from(
        mut self,
        name: &'static str,
        value: impl Into<String>,
        paths: &'static [&'static str],
    ) -> Self {
        self.choices.push((name, value.into(), paths));
        self
    }

    /// Records a user's choice on the resource, for
    /// [`Observation::noted`](crate::observe::Observation::noted).
    pub fn annotate(self, name: &'static str, value: impl Into<String>) -> Self {
        self.resolved_from(name, value, &[])
    }

    /// Adds a value that the cloud chose, by its path below `forProvider`, if the field is not set.
    /// The provider then creates the same resource if it has to create it again.
    pub fn chosen(mut self, path: &'static str, value: Option<impl Into<Value>>) -> Self {
        self.chosen.extend(value.map(|value| (path, value.into())));
        self
    }

    /// A label of the object, for selectors of its siblings.
    pub fn label(mut self, key: &'static str, value: &'static str) -> Self {
        self.labels.push((key, value));
        self
    }

    /// Sets the provider config to one that this environment composes, instead of the one in
    /// Settings.
    pub fn provider_config(mut self, config: impl Into<String>) -> Self {
        self.config = Some(config.into());
        self
    }

    /// Whether the resource stays in the cloud when the environment is deleted.
    pub fn orphan(mut self, orphan: bool) -> Self {
        self.orphan = orphan;
        self
    }

    /// The provider only observes the resource, and never creates, changes or deletes it.
    pub(super) fn observe_only(mut self) -> Self {
        self.observe_only = true;
        self
    }

    /// The provider writes its connection details to a Secret. Crossplane sends them to us from
    /// there.
    pub fn publishes(mut self) -> Self {
        self.publishes = true;
        self
    }

    /// Like [`publishes`](Self::publishes), to a named Secret that others read. In the namespaced
    /// API the Secret is in the composite's namespace.
    pub fn publishes_to(mut self, secret: SecretName) -> Self {
        self.secret = Some(secret);
        self.publishes()
    }

    /// A field of `spec` besides `forProvider`. The model's [`Kind`](models::Kind) lists these
    /// fields.
    pub fn spec_field(mut self, field: &'static str, value: impl Into<Value>) -> Self {
        self.spec_fields.insert(field.to_owned(), value.into());
        self
    }

    /// The final `forProvider`, with preserved values already in it.
    pub(super) fn for_provider(mut self, for_provider: Object) -> Self {
        self.for_provider = Some(for_provider);
        self
    }

    /// The kind that users see, if this is a wrapper.
    pub(super) fn shown_as(mut self, kind: String) -> Self {
        self.shown_as = Some(kind);
        self
    }

    /// Delays the creation until `met`. An existing resource stays. `what` describes the awaited
    /// object, for example `the password to be published`.
    pub fn needs(mut self, met: bool, what: impl Into<String>) -> Self {
        if !met && self.needs.is_none() {
            self.needs = Some(what.into());
        }
        self
    }

    /// Adds the resource, and returns its observed values.
    pub fn add(self) -> Result<Observed<M::Status>, Error> {
        let observed = Observed::read(self.composition.observation.resources.get(&self.slot));
        self.put()?;
        Ok(observed)
    }

    /// Adds the resource, without its observed values.
    pub(super) fn put(mut self) -> Result<(), Error> {
        if let Some(awaited) = self.needs.take_if(|_| !self.composition.exists(&self.slot)) {
            let mut object = self.head();
            let for_provider = match self.for_provider {
                Some(fields) => Value::from(fields),
                None => serde_json::to_value(&self.model).unwrap_or_default(),
            };
            put(&mut object, &["spec", "forProvider"], Some(for_provider));
            let kind = self.shown_as.unwrap_or_else(|| M::KIND.kind.to_owned());
            self.composition.wait(&self.slot, Absent { kind, awaited, counted: true, object });
            return Ok(());
        }
        let object = self.object()?;
        if self.is_changing(&object) {
            self.composition.changing.insert(self.slot.clone());
        }
        self.composition.insert(&self.slot, object, true)
    }

    fn object(&mut self) -> Result<Object, Error> {
        let mut object = self.head();
        object.insert("spec".into(), self.spec()?.into());
        Ok(object)
    }

    /// The object without its spec.
    fn head(&self) -> Object {
        let scope = self.composition.xr.scope;
        let mut object = Object::new();
        object.insert("apiVersion".into(), M::KIND.api_version(scope).into());
        object.insert("kind".into(), M::KIND.kind.into());
        for (key, value) in &self.labels {
            put(&mut object, &["metadata", "labels", key], Some((*value).into()));
        }
        for (key, value) in self.annotations() {
            put(&mut object, &["metadata", "annotations", &key], Some(value.into()));
        }
        object
    }

    fn annotations(&self) -> Vec<(String, String)> {
        let running = self.running();
        let name = match running {
            Some(running) => running
                .annotation(EXTERNAL_NAME)
                .map(str::to_owned)
                .filter(|_| self.external_name.is_some()),
            None => self.external_name.clone(),
        };
        let choices = self
            .choices
            .iter()
            .map(|(name, value, _)| (format!("{CHOICE_PREFIX}{name}"), value.clone()));
        let look = running
            .filter(|_| M::KIND == <Release as models::Managed>::KIND)
            .and_then(look::at_release);
        let name = name.map(|name| (EXTERNAL_NAME.to_owned(), name));
        let look = look.map(|revision| (LOOK.to_owned(), revision));
        name.into_iter().chain(choices).chain(look).collect()
    }

    fn running(&self) -> Option<&Resource> {
        self.composition.observation.resources.get(&self.slot)
    }
}
