//! `managed`: a managed resource in its slot.

use crossplane::api_version;
use crossplane::names::EXTERNAL_NAME;
use serde_json::Value;

use super::look::{self, LOOK};
use super::remove::is_orphan;
use super::{Absent, Composer, drift, preserve};
use crate::catalog::tags;
use crate::error::Error;
use crate::models::helm::Release;
use crate::models::{self, CHOICE_PREFIX, Provider, Scope};
use crate::observe::{Choice, Observed, Resource, SecretName};
use crate::settings::ProviderConfigs;
use crate::value::{Object, at, put, text};

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

impl Composer<'_> {
    /// The provider config of a new resource: the requested one, else the one of existing
    /// resources, else the one of Settings.
    fn config(&self, provider: Provider, asked: Option<&str>) -> Object {
        let configs = &self.settings.provider_configs;
        match asked {
            Some(name) => ProviderConfigs::composed(name, self.xr.scope),
            None => self.sibling_config(provider).unwrap_or_else(|| {
                configs.reference(provider, self.xr.scope, self.xr.user_namespace())
            }),
        }
    }

    /// The provider config of existing resources in the same cloud or cluster, because an
    /// environment never spans two accounts. Resources that use a provider config of the
    /// environment itself are elsewhere.
    fn sibling_config(&self, provider: Provider) -> Option<Object> {
        let composed = |name: &str| {
            self.observation.resources.values().any(|resource| {
                text(&resource.object, &["kind"]) == Some("ProviderConfig")
                    && resource.name() == Some(name)
            })
        };
        let (family, domain) = provider.group();
        let of_family = |api_version: &str| {
            api_version::group(api_version)
                .strip_suffix(domain)
                .is_some_and(|group| group.split('.').any(|label| label == family))
        };
        self.observation
            .resources
            .values()
            .filter(|resource| {
                resource.is_ours() && text(&resource.object, &["apiVersion"]).is_some_and(of_family)
            })
            .find_map(|resource| {
                let running = at(&resource.object, &["spec", "providerConfigRef"])?.as_object()?;
                text(running, &["name"]).filter(|name| !composed(name))?;
                let ours =
                    running.iter().filter(|(key, _)| ["name", "kind"].contains(&key.as_str()));
                Some(ours.map(|(key, value)| (key.clone(), value.clone())).collect())
            })
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

    /// Records a user's choice on the resource, for [`Composer::noted`].
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

    /// Whether this call changes fields that users may change, makes an orphan deletable, or
    /// follows a stop. The provider has not observed the change yet. Tags do not count, because
    /// they only inform people.
    fn is_changing(&self, object: &Object) -> bool {
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

    fn spec(&mut self) -> Result<Object, Error> {
        let for_provider = match self.for_provider.take() {
            Some(for_provider) => for_provider,
            None => self.resolve_for_provider()?,
        };
        let composition = &*self.composition;
        let xr = &composition.xr;
        let mut spec = Object::new();
        spec.insert("forProvider".into(), for_provider.into());
        spec.insert(
            "providerConfigRef".into(),
            self.preserved("providerConfigRef", &["name", "kind"], || {
                composition.config(M::KIND.provider, self.config.as_deref())
            }),
        );
        if self.publishes {
            let reference = || match &self.secret {
                Some(secret) => xr.reference_to(secret),
                None => xr.secret_reference(&xr.object_name(&self.slot)),
            };
            let reference =
                self.preserved("writeConnectionSecretToRef", &["name", "namespace"], reference);
            spec.insert("writeConnectionSecretToRef".into(), reference);
        }
        spec.extend(self.other_spec_fields());
        if self.orphan && xr.scope == Scope::LegacyCluster && !self.observe_only {
            spec.insert("deletionPolicy".into(), "Orphan".into());
        }
        if let Some(policies) = self.management_policies() {
            spec.insert("managementPolicies".into(), policies.into());
        }
        Ok(spec)
    }

    /// `spec.managementPolicies`. `None` leaves them to the API server, which fills in all
    /// policies, and to manual changes. In the claims API a policy without Delete would override
    /// `deletionPolicy`, so both agree.
    fn management_policies(&self) -> Option<Vec<&'static str>> {
        if self.observe_only {
            return Some(vec!["Observe"]);
        }
        let is_namespaced = self.composition.xr.scope == Scope::Namespaced;
        if M::KIND.late_initialized {
            let orphan = self.orphan && is_namespaced;
            return orphan.then(|| vec!["Observe", "Create", "Update", "LateInitialize"]);
        }
        let mut ours = vec!["Observe", "Create", "Update"];
        if !self.orphan {
            ours.push("Delete");
        }
        let running =
            self.running().and_then(|running| at(&running.object, &["spec", "managementPolicies"]));
        let is_known = |running: &Value| {
            *running == serde_json::json!(["*"]) || *running == serde_json::json!(ours)
        };
        running.is_none_or(is_known).then_some(ours)
    }

    /// The fields besides `forProvider`: the observed values, else the requested values.
    fn other_spec_fields(&self) -> Object {
        let Some(running) = self.running() else { return self.spec_fields.clone() };
        let kept = |field: &&str| {
            let value = at(&running.object, &["spec", field])?;
            Some(((*field).to_owned(), value.clone()))
        };
        M::KIND.spec_fields.iter().filter_map(kept).collect()
    }

    fn resolve_for_provider(&self) -> Result<Object, Error> {
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

    /// A preserved field of `spec`: the observed value of its `fields`, else a new value.
    fn preserved(&self, part: &str, fields: &[&str], make: impl FnOnce() -> Object) -> Value {
        let running =
            self.running().and_then(|running| at(&running.object, &["spec", part])?.as_object());
        let Some(running) = running else { return Value::Object(make()) };
        let kept = fields
            .iter()
            .filter_map(|field| Some(((*field).to_owned(), running.get(*field)?.clone())));
        Value::Object(kept.collect())
    }

    fn running(&self) -> Option<&Resource> {
        self.composition.observation.resources.get(&self.slot)
    }
}
