//! `object` and `inside`: Kubernetes objects in Crossplane's cluster and in clusters that an
//! environment composes. The provider configs of the environment's clusters are here too.

use serde_json::{Value, json};

use super::namespace::NAME_IS_FREE;
use super::{Absent, Composer, drift, preserve};
use crate::diagnosis::{Cause, Code};
use crate::error::Error;
use crate::models::{CHOICE_PREFIX, Scope, kubernetes};
use crate::observe::{Choice, Health};
use crate::value::{Object, put, text};

/// A Kubernetes object that [`Manifest::add`] adds to the composition.
#[must_use = "nothing is composed before `add`"]
pub struct Manifest<'c, 'r> {
    composition: &'c mut Composer<'r>,
    slot: String,
    object: Object,
    config: Option<String>,
    updatable: Vec<&'static str>,
    choices: Vec<Choice>,
    orphan: bool,
    observe: bool,
    public: bool,
    needs: Option<String>,
}

impl<'r> Composer<'r> {
    /// Begins a Kubernetes object in Crossplane's cluster. The namespaced API composes native
    /// objects in the composite's namespace, and wraps other objects in a provider-kubernetes
    /// Object. The claims API wraps all objects, because its composites cannot own namespaced
    /// objects.
    ///
    /// Once it was observed, its fields keep their observed values. Exceptions are the fields of
    /// [`updatable`](Manifest::updatable) and [`resolved_from`](Manifest::resolved_from).
    pub fn object(&mut self, slot: impl Into<String>, object: Value) -> Manifest<'_, 'r> {
        self.manifest(slot.into(), object, None)
    }

    /// Begins a Kubernetes object in a cluster that the environment composes, through the provider
    /// config `config`. The object is always wrapped.
    pub fn inside(
        &mut self,
        config: impl Into<String>,
        slot: impl Into<String>,
        object: Value,
    ) -> Manifest<'_, 'r> {
        self.manifest(slot.into(), object, Some(config.into()))
    }

    fn manifest(
        &mut self,
        slot: String,
        object: Value,
        config: Option<String>,
    ) -> Manifest<'_, 'r> {
        Manifest {
            composition: self,
            slot,
            object: match object {
                Value::Object(object) => object,
                _ => Object::new(),
            },
            config,
            updatable: Vec::new(),
            choices: Vec::new(),
            orphan: false,
            observe: false,
            public: false,
            needs: None,
        }
    }

    /// A provider config in `slot`. It has no condition, and is ready once the Secret that it reads
    /// was observed. It does not count in `status.progress`.
    pub fn provider_config(
        &mut self,
        slot: &str,
        object: Value,
        secret: bool,
    ) -> Result<(), Error> {
        let Value::Object(object) = object else {
            return Err(Error::Defect(format!("slot `{slot}` has no object")));
        };
        self.insert(slot, object, false)?;
        let exists = self.exists(slot);
        if let Some(desired) = self.desired.get_mut(slot).filter(|_| exists) {
            desired.health = if secret {
                Health::available()
            } else {
                Health {
                    cause: Some(Cause::new(Code::WaitsForSecret, [])),
                    ..Health::waiting_for("the Secret that it reads")
                }
            };
        }
        Ok(())
    }
}

impl Manifest<'_, '_> {
    /// Updatable fields, by their paths. They follow the claim at every call. An entry of a list is
    /// selected by its `name`: `spec.template.spec.containers.web.image`.
    pub fn updatable(mut self, paths: &[&'static str]) -> Self {
        self.updatable.extend(paths);
        self
    }

    /// Resolved fields, looked up from a user's choice through a table that Settings or a later
    /// release may change.
    pub fn resolved_from(
        mut self,
        name: &'static str,
        value: impl Into<String>,
        paths: &'static [&'static str],
    ) -> Self {
        self.choices.push((name, value.into(), paths));
        self
    }

    /// Whether the object stays when the environment is deleted. Only a wrapped object can stay.
    pub fn orphan(mut self, orphan: bool) -> Self {
        self.orphan = orphan;
        self
    }

    /// Only observes the object, through a wrapper. Another client creates the object.
    pub fn observe(mut self) -> Self {
        self.observe = true;
        self
    }

    /// The object is a Secret without secret values, because a provider reads a field only from a
    /// Secret. All readers of Objects may see it.
    pub fn public(mut self) -> Self {
        self.public = true;
        self
    }

    /// Delays the creation until `met`. An existing object stays. `what` describes the awaited
    /// object.
    pub fn needs(mut self, met: bool, what: impl Into<String>) -> Self {
        if !met && self.needs.is_none() {
            self.needs = Some(what.into());
        }
        self
    }

    /// Adds the object. [`Observation::seen`](crate::observe::Observation::seen) returns it as its
    /// cluster stores it.
    ///
    /// # Errors
    /// A Secret that would be wrapped and is not [`public`](Self::public), because all readers of
    /// Objects could read it. A value that is not a Kubernetes object.
    pub fn add(self) -> Result<(), Error> {
        if text(&self.object, &["kind"]).is_none() {
            return Err(Error::Defect(format!("slot `{}` has no object", self.slot)));
        }
        if self.is_wrapped() { self.add_wrapped() } else { self.add_native() }
    }

    fn is_wrapped(&self) -> bool {
        let xr = &self.composition.xr;
        let namespace = text(&self.object, &["metadata", "namespace"]);
        let elsewhere =
            namespace.is_some_and(|namespace| xr.namespace.as_deref() != Some(namespace));
        let cluster_wide = text(&self.object, &["kind"]) == Some("Namespace");
        xr.scope == Scope::LegacyCluster
            || self.config.is_some()
            || self.observe
            || elsewhere
            || cluster_wide
    }

    fn add_native(mut self) -> Result<(), Error> {
        let is_free = self.composition.is_name_free(&self.slot, &self.object)?;
        self = self.needs(is_free, NAME_IS_FREE);
        let running =
            self.composition.observation.resources.get(&self.slot).map(|resource| &resource.object);
        let updatable = self.updatable_now();
        let asked = drift::annotation(&self.object, &self.updatable, &self.choices);
        let mut losing = false;
        let mut object = match (running, self.needs) {
            (Some(running), _) => {
                let wanted = &self.object;
                losing = asked
                    .as_ref()
                    .is_some_and(|asked| drift::is_to_lose(wanted, running, &updatable, asked));
                preserve::native(wanted, running, &updatable)
            }
            (None, None) => self.object,
            (None, Some(awaited)) => {
                let kind = text(&self.object, &["kind"]).unwrap_or_default().to_owned();
                let mut object = self.object;
                annotate(&mut object, choices(self.choices));
                let absent = Absent { kind, awaited, counted: true, object };
                self.composition.wait(&self.slot, absent);
                return Ok(());
            }
        };
        annotate(&mut object, choices(self.choices).chain(asked));
        self.composition.insert(&self.slot, object, true)?;
        self.composition.unless(&self.slot, losing);
        Ok(())
    }

    fn add_wrapped(self) -> Result<(), Error> {
        if text(&self.object, &["kind"]) == Some("Secret") && !self.public {
            let message =
                format!("slot `{}` would show a Secret in a provider-kubernetes Object", self.slot);
            return Err(Error::Defect(message));
        }
        let kind = text(&self.object, &["kind"]).unwrap_or_default().to_owned();
        let readiness = readiness(&kind).filter(|_| !self.observe);
        let running =
            self.composition.running(&self.slot, &["manifest"]).and_then(Value::as_object);
        let manifest = match running {
            Some(running) => preserve::wrapped(&self.object, running, &self.updatable_now()),
            None => self.object,
        };
        let mut for_provider = Object::new();
        for_provider.insert("manifest".into(), Value::Object(manifest));
        let wrapper = kubernetes::Object::default();
        let mut wrapper =
            self.composition.managed(self.slot, wrapper).for_provider(for_provider).shown_as(kind);
        for (name, value, _) in self.choices {
            wrapper = wrapper.annotate(name, value);
        }
        if let Some(config) = self.config {
            wrapper = wrapper.provider_config(config);
        }
        if readiness.is_some() || self.observe {
            wrapper = wrapper.spec_field("watch", true);
        }
        if let Some(readiness) = readiness {
            wrapper = wrapper.spec_field("readiness", readiness);
        }
        if let Some(what) = self.needs {
            wrapper = wrapper.needs(false, what);
        }
        if self.observe {
            wrapper = wrapper.observe_only();
        }
        wrapper.orphan(self.orphan).put()
    }

    /// The paths of updatable fields, and of resolved fields with a changed choice.
    fn updatable_now(&self) -> Vec<&'static str> {
        let chosen = self.composition.chosen_anew(&self.slot, &self.choices);
        self.updatable.iter().copied().chain(chosen).collect()
    }
}

/// The annotations that note choices.
fn choices(choices: Vec<Choice>) -> impl Iterator<Item = (String, String)> {
    choices.into_iter().map(|(name, value, _)| (format!("{CHOICE_PREFIX}{name}"), value))
}

fn annotate(object: &mut Object, annotations: impl Iterator<Item = (String, String)>) {
    for (key, value) in annotations {
        put(object, &["metadata", "annotations", &key], Some(value.into()));
    }
}

/// The readiness check of provider-kubernetes, for kinds that are not ready as soon as they exist.
/// A query must be boolean even if fields are missing. A query with an error is silently false.
fn readiness(kind: &str) -> Option<Value> {
    const DEPLOYMENT: &str = "has(object.status) && has(object.status.observedGeneration) && \
        object.status.observedGeneration >= object.metadata.generation && \
        (!has(object.status.replicas) || object.status.replicas <= object.spec.replicas) && (object.spec.replicas == 0 || \
        (has(object.status.updatedReplicas) && object.status.updatedReplicas >= object.spec.replicas && \
        has(object.status.availableReplicas) && object.status.availableReplicas >= object.spec.replicas))";
    const APPLICATION: &str = "has(object.status) && has(object.status.health) && has(object.status.sync) && \
        object.status.health.status == 'Healthy' && object.status.sync.status == 'Synced'";
    match kind {
        "Deployment" => Some(json!({"policy": "DeriveFromCelQuery", "celQuery": DEPLOYMENT})),
        "Application" => Some(json!({"policy": "DeriveFromCelQuery", "celQuery": APPLICATION})),
        "KnativeServing" => Some(json!({"policy": "DeriveFromObject"})),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
