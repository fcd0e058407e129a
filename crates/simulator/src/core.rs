//! Crossplane core's part around a function, as core 2.3.4 plays it.
//!
//! A [`World`] is what core knows of one composite resource: the XR, its composed resources, their
//! secrets, and what a function may require. [`World::run`] runs a function as core would,
//! [`World::apply`] applies its answer, and [`rendered`] is what `crossplane composition render -x
//! -r` prints of it.

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

/// What core knows of one composite resource.
#[derive(Clone, Debug)]
pub struct World {
    /// The composite resource as core holds it.
    composite: Value,
    /// The composite resource as it was handed in, before core touched it.
    given: Value,
    scope: Scope,
    /// Composed resources by slot.
    resources: BTreeMap<String, Value>,
    /// What was applied last, by slot: the fields that are ours.
    applied: BTreeMap<String, Value>,
    /// Secrets that no slot holds, by namespace and name.
    secrets: BTreeMap<(String, String), Value>,
    /// What a function may require: EnvironmentConfigs, Namespaces.
    others: Vec<Value>,
    /// The step that runs the function, for results.
    step: String,
    /// The keys that the XRD lets out of the connection details; none means all.
    connection_keys: Vec<String>,
    /// Whether core has told that it selected the Composition.
    announced: bool,
    now: Timestamp,
}

/// Connection details, by key.
pub type ConnectionDetails = BTreeMap<String, Vec<u8>>;

impl World {
    /// A world where nothing but the composite resource exists. One without a uid gets the one that
    /// `composition render` gives it, one without an observed composition stays so until
    /// [`World::select`].
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

    /// A world from files: the XR, and the documents beside it. A document with the annotation
    /// `crossplane.io/composition-resource-name` is a composed resource; a Secret without it
    /// belongs to whatever names it in `writeConnectionSecretToRef`; anything else may be required
    /// by a function.
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

    /// Takes what core takes from the Composition: the reference to it, the name of its first step,
    /// and where XRs' connection secrets go.
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

    /// Takes what core takes from the XRD: the scope, and the keys it lets out of the connection
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

    /// Says which step of the Composition runs the function, where it is not the first.
    pub fn running(mut self, step: &str) -> Self {
        step.clone_into(&mut self.step);
        self
    }

    /// Adds documents that a function may require: EnvironmentConfigs, Namespaces that exist.
    pub fn with_others(mut self, documents: impl IntoIterator<Item = Value>) -> Self {
        self.others.extend(documents);
        self
    }

    /// Sets the time that conditions and creation timestamps carry from here on.
    pub fn set_now(&mut self, now: Timestamp) {
        self.now = now;
    }

    /// The time that conditions and creation timestamps carry.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// The composite resource as core holds it.
    pub fn composite(&self) -> &Value {
        &self.composite
    }

    /// The composite resource, to change what a user changes: its spec, labels and annotations.
    pub fn composite_mut(&mut self) -> &mut Value {
        &mut self.composite
    }

    /// The shape of the composite resource.
    pub fn scope(&self) -> Scope {
        self.scope
    }

    /// Composed resources by slot.
    pub fn resources(&self) -> &BTreeMap<String, Value> {
        &self.resources
    }

    /// Composed resources by slot, to play what happens to them.
    pub fn resources_mut(&mut self) -> &mut BTreeMap<String, Value> {
        &mut self.resources
    }

    /// A Secret, composed or written by anyone else.
    pub fn secret(&self, namespace: &str, name: &str) -> Option<&Value> {
        let composed = self.resources.values().find(|resource| {
            is_secret(resource)
                && text(resource, &["metadata", "namespace"]) == Some(namespace)
                && text(resource, &["metadata", "name"]) == Some(name)
        });
        composed.or_else(|| self.secrets.get(&(namespace.to_owned(), name.to_owned())))
    }

    /// The data of a Secret, decoded; what is no base64 counts as it stands.
    pub fn secret_data(&self, namespace: &str, name: &str) -> ConnectionDetails {
        self.secret(namespace, name).map(decoded).unwrap_or_default()
    }

    /// Secrets that are not composed: connection details above all.
    pub fn secrets(&self) -> impl Iterator<Item = &Value> {
        self.secrets.values()
    }

    /// Adds or replaces a Secret that is not composed.
    pub fn put_secret(&mut self, secret: Value) {
        let part = |key| text(&secret, &["metadata", key]).unwrap_or_default().to_owned();
        self.secrets.insert((part("namespace"), part("name")), secret);
    }

    /// The connection details that core finds for an owner of `spec.writeConnectionSecretToRef`.
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

    /// Gives the composite what core gives it before anything else: a uid and the label that names
    /// its resources.
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

    /// Writes one of core's own fields in the XR's spec.
    fn set_machinery(&mut self, field: &str, value: Value) {
        let path: Vec<&str> = self.machinery().iter().copied().chain([field]).collect();
        set(&mut self.composite, &path, value);
    }

    fn refer_to_resources(&mut self) {
        let refs = compose::references(self.resources.values(), self.namespace().is_some());
        self.set_machinery("resourceRefs", refs);
    }
}

/// The slot that a document fills in its XR.
pub(crate) fn slot_of(document: &Value) -> Option<&str> {
    text(document, &["metadata", "annotations", SLOT])
}

/// Where a resource's connection secret is: namespaced resources write it to their own namespace.
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
