//! A managed resource during its reconciliation: its stored object, and its desired object.

use std::time::Duration;

use anyhow::Context as _;
use crossplane::conditions;
use crossplane::names::{CREATE_PENDING, CREATE_SUCCEEDED, EXTERNAL_NAME, PAUSED};
use jiff::Timestamp;
use kube::Api;
use kube::api::{DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};
use simulator::core::World;
use simulator::provider::State;
use simulator::provider::model::{Model, Operation};

use super::policy::Policies;
use super::schema::prune;
use super::{MANAGER, Trouble, written};

/// The finalizer of every managed resource.
pub const FINALIZER: &str = "finalizer.managedresource.crossplane.io";

/// A managed resource during its reconciliation. [`Resource::save`] and [`Resource::save_status`]
/// write changes of `object` to the API server, and write only if there are changes.
pub struct Resource {
    /// The desired object.
    pub object: Value,
    /// The model of its kind.
    pub model: Model,
    /// The other resources of its composite, and the Secrets that it names.
    pub world: World,
    stored: Value,
    schema: Value,
    api: Api<DynamicObject>,
}

impl Resource {
    /// A resource with its current object. `schema` is the schema of the CRD. Fields outside the
    /// schema are removed before each write.
    pub fn new(object: Value, world: World, schema: Value, api: Api<DynamicObject>) -> Self {
        Self {
            model: Model::for_object(&object),
            stored: object.clone(),
            object,
            world,
            schema,
            api,
        }
    }

    /// The text at a JSON pointer, or an empty text.
    pub fn text(&self, pointer: &str) -> &str {
        text(&self.object, pointer)
    }

    /// The object's name.
    pub fn name(&self) -> &str {
        self.text("/metadata/name")
    }

    /// The object's uid.
    pub fn uid(&self) -> &str {
        self.text("/metadata/uid")
    }

    /// The name in the cloud. Empty before it has one.
    pub fn external_name(&self) -> &str {
        self.annotation(EXTERNAL_NAME)
    }

    /// An annotation, or an empty text.
    pub fn annotation(&self, key: &str) -> &str {
        self.object["metadata"]["annotations"][key].as_str().unwrap_or_default()
    }

    /// Sets an annotation.
    pub fn annotate(&mut self, key: &str, value: &str) {
        self.object["metadata"]["annotations"][key] = json!(value);
    }

    /// Sets the name in the cloud.
    pub fn name_externally(&mut self, name: &str) {
        if self.external_name() != name {
            self.annotate(EXTERNAL_NAME, name);
        }
    }

    /// Removes the name that the cloud assigned, and the observed state.
    pub fn forget(&mut self) {
        if let Some(annotations) = self.object["metadata"]["annotations"].as_object_mut() {
            annotations.remove(EXTERNAL_NAME);
        }
        self.object["status"]["atProvider"] = json!({});
    }

    /// Fills absent fields of `spec.forProvider`, if the object allows it.
    pub fn initialise_late<const N: usize>(&mut self, fields: [(&str, Value); N]) {
        if !Policies::from_object(&self.object).late {
            return;
        }
        for (field, value) in fields {
            let there = &mut self.object["spec"]["forProvider"][field];
            if there.is_null() {
                *there = value;
            }
        }
    }

    /// Whether the object waits for its finalizers.
    pub fn is_deleted(&self) -> bool {
        self.object["metadata"]["deletionTimestamp"].is_string()
    }

    /// Whether its owner paused the resource.
    pub fn is_paused(&self) -> bool {
        self.annotation(PAUSED) == "true"
    }

    /// Records that the creation of the external resource is about to begin.
    pub fn note_pending(&mut self) {
        let (pending, succeeded) =
            (self.annotation(CREATE_PENDING), self.annotation(CREATE_SUCCEEDED));
        // Times with the same zone and precision sort like texts.
        if pending <= succeeded {
            self.annotate(CREATE_PENDING, &now());
        }
    }

    /// When the creation of the external resource began.
    pub fn create_began(&self) -> &str {
        self.annotation(CREATE_PENDING)
    }

    /// Records that the external resource was created, or that its creation began.
    pub fn note_succeeded(&mut self) {
        self.annotate(CREATE_SUCCEEDED, &now());
    }

    /// Adds the finalizer.
    pub fn add_finalizer(&mut self) {
        let finalizers = &mut self.object["metadata"]["finalizers"];
        match finalizers.as_array_mut() {
            Some(all) if all.iter().any(|one| one == FINALIZER) => {}
            Some(all) => all.push(json!(FINALIZER)),
            None => *finalizers = json!([FINALIZER]),
        }
    }

    /// Removes the finalizer, so that the object is deleted.
    pub async fn release(&mut self) -> Result<(), Trouble> {
        if let Some(all) = self.object["metadata"]["finalizers"].as_array_mut() {
            all.retain(|one| one != FINALIZER);
        }
        self.save().await
    }

    /// Writes the state that the cloud reports, in the kind's field for it.
    pub fn report(&mut self, state: &str) {
        self.model.report(&mut self.object, state);
    }

    /// Reports that a change or a deletion was refused. `began` says whether the operation had
    /// begun.
    pub fn refuse(&mut self, operation: Operation, why: &str, began: bool) {
        self.model.refuse(&mut self.object, &now(), operation, why, began);
    }

    /// Reports the resource's state.
    pub fn tell(&mut self, state: &State) {
        self.model.set_status(&mut self.object, state, &self.world);
    }

    /// Sets one condition.
    pub fn condition(&mut self, kind: &str, status: &str, reason: &str, message: &str) {
        conditions::set(&mut self.object, &now(), kind, status, reason, message);
    }

    /// Writes metadata and spec if they changed. The object keeps its unsaved status.
    pub async fn save(&mut self) -> Result<(), Trouble> {
        let mut wanted = prune(&self.object, &self.schema);
        if let Some(fields) = wanted.as_object_mut() {
            fields.remove("status");
        }
        if same(&wanted, &self.stored, &["metadata", "spec"]) {
            return Ok(());
        }
        let object = decode(&wanted)?;
        let saved = self.api.replace(self.name(), &written(), &object).await;
        self.accept(saved)
    }

    /// Writes the annotations, even if another client has changed the object's metadata since it
    /// was read. A creation whose note or credentials are lost cannot be repeated, so the real
    /// providers retry this write after a conflict too.
    pub async fn save_annotations(&mut self) -> Result<(), Trouble> {
        let change = json!({"metadata": {"annotations": self.object["metadata"]["annotations"]}});
        let by = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
        let saved = self.api.patch(self.name(), &by, &Patch::Merge(&change)).await?;
        // A newer spec must be reconciled first.
        if saved.metadata.generation == self.stored["metadata"]["generation"].as_i64() {
            self.object["metadata"]["labels"] = json!(saved.metadata.labels);
            self.accept(Ok(saved))?;
        }
        Ok(())
    }

    /// Writes the status if it changed.
    pub async fn save_status(&mut self) -> Result<(), Trouble> {
        self.date_conditions();
        let wanted = prune(&self.object, &self.schema);
        if same(&wanted, &self.stored, &["status"]) {
            return Ok(());
        }
        let object = decode(&wanted)?;
        let saved = self.api.replace_status(self.name(), &written(), &object).await;
        self.accept(saved)
    }

    /// Sets the generation of the conditions. A condition that returns to its stored status keeps
    /// its time.
    fn date_conditions(&mut self) {
        let generation = self.object["metadata"]["generation"].clone();
        let stored = self.stored["status"]["conditions"].as_array().cloned().unwrap_or_default();
        for condition in self.object["status"]["conditions"].as_array_mut().into_iter().flatten() {
            if ["Synced", "Ready"].iter().any(|told| condition["type"] == *told) {
                condition["observedGeneration"] = generation.clone();
            }
            let before = stored.iter().find(|one| one["type"] == condition["type"]);
            if let Some(before) = before.filter(|before| before["status"] == condition["status"]) {
                condition["lastTransitionTime"] = before["lastTransitionTime"].clone();
            }
        }
    }

    /// Continues with the object that the API server stored.
    fn accept(&mut self, saved: kube::Result<DynamicObject>) -> Result<(), Trouble> {
        let saved = serde_json::to_value(saved?).context("encoding an object as JSON")?;
        self.object["metadata"]["resourceVersion"] = saved["metadata"]["resourceVersion"].clone();
        self.object["metadata"]["managedFields"] = saved["metadata"]["managedFields"].clone();
        self.object["metadata"]["generation"] = saved["metadata"]["generation"].clone();
        self.stored = saved;
        Ok(())
    }
}

/// The text at a JSON pointer, or an empty text.
pub fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The time as Kubernetes writes it, in whole seconds.
pub fn now() -> String {
    seconds(Timestamp::now()).to_string()
}

/// A time without its fraction of a second.
pub fn seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

/// The remaining time until then, if any.
pub fn until(then: Timestamp) -> Option<Duration> {
    Duration::try_from(then.duration_since(Timestamp::now())).ok().filter(|left| !left.is_zero())
}

fn same(one: &Value, other: &Value, parts: &[&str]) -> bool {
    parts.iter().all(|part| {
        one.get(part).unwrap_or(&Value::Null) == other.get(part).unwrap_or(&Value::Null)
    })
}

fn decode(object: &Value) -> Result<DynamicObject, Trouble> {
    Ok(serde_json::from_value(object.clone()).context("decoding a Kubernetes object")?)
}
