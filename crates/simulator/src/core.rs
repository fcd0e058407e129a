//! Simulates Crossplane 2.3.4 around a function.
//!
//! A [`World`] is Crossplane's state of one composite resource: the XR, its composed resources,
//! their Secrets, and the resources that a function may require. [`World::run`] runs a function as
//! Crossplane would, and [`World::apply`] applies its response. [`rendered`] is the output of
//! `crossplane composition render -x -r` for the response.

mod apply;
mod claim;
mod compose;
pub(crate) mod naming;
mod render;
mod request;
mod ssa;
mod status;

use std::collections::BTreeMap;

use base64::Engine;
use crossplane::Scope;
use crossplane::json::{at, set, text};
use crossplane::names::{COMPOSITE, SLOT};
use jiff::Timestamp;
use serde_json::{Value, json};

pub use apply::Applied;
pub use claim::{ClaimError, composite_from_claim};
pub use compose::ComposeError;
pub use naming::uid;
pub use render::{Rendered, rendered};
pub use request::RunError;
pub use status::{Event, Severity};

/// Crossplane's state of one composite resource.
#[derive(Clone, Debug)]
pub struct World {
    /// The composite resource in its current state.
    composite: Value,
    /// The composite resource as passed to [`World::new`].
    given: Value,
    scope: Scope,
    /// Composed resources by slot.
    resources: BTreeMap<String, Value>,
    /// The last applied fields by slot. These fields are ours.
    applied: BTreeMap<String, Value>,
    /// Secrets outside of slots, by namespace and name.
    secrets: BTreeMap<(String, String), Value>,
    /// Documents that a function may require: EnvironmentConfigs, Namespaces.
    others: Vec<Value>,
    /// The step that runs the function, for results.
    step: String,
    /// The keys of connection details that the XRD allows. An empty list allows all.
    connection_keys: Vec<String>,
    /// Whether the event for the selected Composition was recorded.
    announced: bool,
    now: Timestamp,
}

/// Connection details, by key.
pub type ConnectionDetails = BTreeMap<String, Vec<u8>>;

impl World {
    /// A world with only the composite resource. A missing UID is set to the UID that `composition
    /// render` uses. A missing Composition reference remains missing until [`World::select`].
    pub fn new(composite: Value) -> Self {
        let scope = Scope::from_composite(&composite);
        let mut world = Self {
            given: composite.clone(),
            composite,
            scope,
            resources: BTreeMap::new(),
            applied: BTreeMap::new(),
            secrets: BTreeMap::new(),
            others: Vec::new(),
            step: "compose".to_owned(),
            connection_keys: Vec::new(),
            announced: false,
            now: Timestamp::constant(1_704_067_200, 0),
        };
        world.name_composite();
        world
    }

    /// A world from files: the XR and other documents. A document with the annotation
    /// `crossplane.io/composition-resource-name` is a composed resource. A Secret without it
    /// belongs to the object that names it in `writeConnectionSecretToRef`. A function may require
    /// any other document.
    pub fn from_documents(composite: Value, documents: impl IntoIterator<Item = Value>) -> Self {
        let mut world = Self::new(composite);
        for document in documents {
            if let Some(slot) = slot_of(&document) {
                world.resources.insert(slot.to_owned(), document);
            } else if is_secret(&document) {
                world.put_secret(document);
            } else {
                world.others.push(document);
            }
        }
        if !world.resources.is_empty() {
            world.refer_to_resources();
        }
        world
    }

    /// Applies the Composition as Crossplane does: the reference to it, the name of its first step,
    /// and the namespace of XRs' connection Secrets.
    pub fn select(mut self, composition: &Value) -> Self {
        let name = text(composition, &["metadata", "name"]).unwrap_or_default();
        self.set_machinery("compositionRef", json!({"name": name}));
        let step =
            at(composition, &["spec", "pipeline"]).and_then(|steps| text(steps.get(0)?, &["step"]));
        if let Some(step) = step {
            step.clone_into(&mut self.step);
        }
        let namespace = text(composition, &["spec", "writeConnectionSecretsToNamespace"]);
        let unset = at(&self.composite, &["spec", "writeConnectionSecretToRef"]).is_none();
        if let Some(namespace) = namespace.filter(|_| unset && self.scope == Scope::LegacyCluster) {
            let reference = json!({"name": self.uid(), "namespace": namespace});
            set(&mut self.composite, &["spec", "writeConnectionSecretToRef"], reference);
        }
        self
    }

    /// Applies the XRD as Crossplane does: the scope, and the allowed keys of the connection
    /// details.
    pub fn defined_by(mut self, xrd: &Value) -> Self {
        self.scope = Scope::from_xrd(xrd);
        if !self.resources.is_empty() {
            self.refer_to_resources();
        }
        let keys = at(xrd, &["spec", "connectionSecretKeys"]).and_then(Value::as_array);
        self.connection_keys =
            keys.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
        self
    }

    /// Sets the name of the Composition's step that runs the function, if it is not the first.
    pub fn running(mut self, step: &str) -> Self {
        step.clone_into(&mut self.step);
        self
    }

    /// Adds documents that a function may require: EnvironmentConfigs, existing Namespaces.
    pub fn with_others(mut self, documents: impl IntoIterator<Item = Value>) -> Self {
        self.others.extend(documents);
        self
    }

    /// Sets the time for new conditions and creation timestamps.
    pub fn set_now(&mut self, now: Timestamp) {
        self.now = now;
    }

    /// The time for new conditions and creation timestamps.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// The composite resource in its current state.
    pub fn composite(&self) -> &Value {
        &self.composite
    }

    /// The composite resource, for changes by a user: its spec, labels and annotations.
    pub fn composite_mut(&mut self) -> &mut Value {
        &mut self.composite
    }

    /// The scope of the composite resource.
    pub fn scope(&self) -> Scope {
        self.scope
    }

    /// Composed resources by slot.
    pub fn resources(&self) -> &BTreeMap<String, Value> {
        &self.resources
    }

    /// Composed resources by slot, for simulating changes.
    pub fn resources_mut(&mut self) -> &mut BTreeMap<String, Value> {
        &mut self.resources
    }

    /// A Secret, composed or not.
    pub fn secret(&self, namespace: &str, name: &str) -> Option<&Value> {
        let composed = self.resources.values().find(|resource| {
            is_secret(resource)
                && text(resource, &["metadata", "namespace"]) == Some(namespace)
                && text(resource, &["metadata", "name"]) == Some(name)
        });
        composed.or_else(|| self.secrets.get(&(namespace.to_owned(), name.to_owned())))
    }

    /// The decoded data of a Secret. Text that is not base64 is used unchanged.
    pub fn secret_data(&self, namespace: &str, name: &str) -> ConnectionDetails {
        self.secret(namespace, name).map(decoded).unwrap_or_default()
    }

    /// Secrets that are not composed, mostly connection Secrets.
    pub fn secrets(&self) -> impl Iterator<Item = &Value> {
        self.secrets.values()
    }

    /// Adds or replaces a Secret that is not composed.
    pub fn put_secret(&mut self, secret: Value) {
        let part = |key| text(&secret, &["metadata", key]).unwrap_or_default().to_owned();
        self.secrets.insert((part("namespace"), part("name")), secret);
    }

    /// The connection details in the Secret of an object with `spec.writeConnectionSecretToRef`.
    pub fn connection_details(&self, owner: &Value) -> ConnectionDetails {
        secret_ref(owner)
            .map(|(namespace, name)| self.secret_data(&namespace, &name))
            .unwrap_or_default()
    }

    fn uid(&self) -> &str {
        text(&self.composite, &["metadata", "uid"]).unwrap_or_default()
    }

    fn namespace(&self) -> Option<&str> {
        text(&self.composite, &["metadata", "namespace"])
    }

    /// Sets the fields that Crossplane sets first: a UID and the label for the names of composed
    /// resources.
    fn name_composite(&mut self) {
        if self.uid().is_empty() {
            let uid = naming::uid(&self.composite);
            set(&mut self.composite, &["metadata", "uid"], json!(uid));
        }
        if text(&self.composite, &["metadata", "labels", COMPOSITE]).is_none() {
            let name = at(&self.composite, &["metadata", "name"]).cloned().unwrap_or_default();
            set(&mut self.composite, &["metadata", "labels", COMPOSITE], name);
        }
    }

    /// Sets one of Crossplane's own fields in the XR's spec.
    fn set_machinery(&mut self, field: &str, value: Value) {
        let path: Vec<&str> = self.machinery().iter().copied().chain([field]).collect();
        set(&mut self.composite, &path, value);
    }

    fn refer_to_resources(&mut self) {
        let refs = compose::references(self.resources.values(), self.namespace().is_some());
        self.set_machinery("resourceRefs", refs);
    }
}

/// The slot of a document in its XR.
pub(crate) fn slot_of(document: &Value) -> Option<&str> {
    text(document, &["metadata", "annotations", SLOT])
}

/// The namespace and name of a resource's connection Secret. Namespaced resources write it to their
/// own namespace.
pub(crate) fn secret_ref(owner: &Value) -> Option<(String, String)> {
    let reference = at(owner, &["spec", "writeConnectionSecretToRef"])?;
    let namespace =
        text(owner, &["metadata", "namespace"]).or_else(|| text(reference, &["namespace"]))?;
    Some((namespace.to_owned(), text(reference, &["name"])?.to_owned()))
}

fn is_secret(document: &Value) -> bool {
    document["apiVersion"] == "v1" && document["kind"] == "Secret"
}

fn decoded(secret: &Value) -> ConnectionDetails {
    let engine = base64::engine::general_purpose::STANDARD;
    let entries = |key: &str| secret.get(key).and_then(Value::as_object).into_iter().flatten();
    let data = entries("data").filter_map(|(key, value)| {
        let text = value.as_str()?;
        Some((key.clone(), engine.decode(text).unwrap_or_else(|_| text.as_bytes().to_vec())))
    });
    let plain = entries("stringData")
        .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.as_bytes().to_vec())));
    data.chain(plain).collect()
}

/// A connection Secret.
pub(crate) fn connection_secret(namespace: &str, name: &str, details: &ConnectionDetails) -> Value {
    let engine = base64::engine::general_purpose::STANDARD;
    let data: serde_json::Map<String, Value> =
        details.iter().map(|(key, value)| (key.clone(), json!(engine.encode(value)))).collect();
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": "connection.crossplane.io/v1alpha1",
        "metadata": {"name": name, "namespace": namespace}, "data": data,
    })
}
