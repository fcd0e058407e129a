//! How one kind answers, piece by piece: for a provider that plays single resources of a real
//! cluster. Time, and the memory of what exists, are its own matter.

use serde_json::{Map, Value, json};

use super::kind_behaviour::{Context, KindBehaviour, Reference};
use super::writes::{self, finish, identify};
use super::{State, clouds, references, registry};
use crate::core::World;
use crossplane::json::{overlay, set, text};

pub use super::kind_behaviour::Operation;
pub use super::missing_config;
pub use super::rules::{Existing, differs};
pub use super::writes::wanted as parameters;

/// How a kind answers.
pub struct Model(KindBehaviour);

impl Model {
    /// The model of an object's kind; one that no table names is an ordinary managed resource.
    pub fn for_object(object: &Value) -> Self {
        Self(registry::for_object(object))
    }

    /// How many rounds the cloud takes to make one, at least 1.
    pub fn rounds(&self) -> u32 {
        self.0.rounds
    }

    /// Whether the provider works in the background, so that a refusal shows in LastAsyncOperation.
    pub fn is_asynchronous(&self) -> bool {
        self.0.asynchronous
    }

    /// Whether the cloud gives a name of its own, where others take the object's.
    pub fn assigns_names(&self) -> bool {
        self.0.assigns_names()
    }

    /// Whether the provider writes nothing to a resource whose provider config does not exist.
    pub fn is_silent_without_config(&self) -> bool {
        self.0.is_silent_without_config()
    }

    /// The name of the resource that `object` belongs to and is deleted with, such as the cluster
    /// of a node pool.
    pub fn whole<'o>(&self, object: &'o Value) -> Option<&'o str> {
        text(object, &["spec", "forProvider", self.0.rules.part_of?])
    }

    /// What a cloud makes of an object: what the object asks for, and what the cloud chooses.
    pub fn completed(&self, object: &Value, world: &World) -> Value {
        clouds::completed(&self.0, object, world)
    }

    /// Why a resource with these parameters cannot be created, in the cloud's words, if so.
    pub fn forbids_creation(&self, parameters: &Value) -> Option<String> {
        self.0.rules.forbids_creation(self.0.facts, parameters)
    }

    /// Why a resource with the parameters `there` cannot get those that are `wanted`, in the words
    /// of Terraform or the cloud, if so.
    pub fn forbids_change(&self, there: &Value, wanted: &Value) -> Option<String> {
        self.0.rules.forbids_change(self.0.facts, there, wanted)
    }

    /// The changes of `wanted` that take effect at once; others wait for a maintenance window.
    pub fn effective(&self, wanted: &Value) -> Value {
        self.0.rules.effective(wanted)
    }

    /// Why `external` cannot be deleted among `all` that exists, in the cloud's words, if so.
    pub fn forbids_deletion<'a>(
        &self,
        external: Existing<'_>,
        all: impl Iterator<Item = Existing<'a>>,
    ) -> Option<String> {
        self.0.rules.forbids_deletion(self.0.facts, external, all)
    }

    /// Tells that a change or a deletion was refused; `began` says whether the operation had begun.
    pub fn refuse(
        &self,
        object: &mut Value,
        now: &str,
        operation: Operation,
        why: &str,
        began: bool,
    ) {
        super::kind_behaviour::refuse(object, now, operation, why, began && self.0.asynchronous);
    }

    /// Shows the state that the cloud reports, where the kind has a field for it.
    pub fn report(&self, object: &mut Value, state: &str) {
        if let Some(field) = self.0.rules.state {
            set(object, &["status", "atProvider", field], json!(state));
        }
    }

    /// Fills what references and selectors stand for from the `world`'s resources, and looks
    /// whether what the resource reads is there. An error is what the provider says while it waits.
    pub fn prepare(&self, object: &mut Value, world: &World) -> Result<(), String> {
        (self.0.waits)(object, world)?;
        references::resolve(&self.0, object, world)
    }

    /// Gives the object the name that its resource is going to have, where the cloud does not
    /// assign it.
    pub fn name(&self, object: &mut Value) {
        writes::name(&self.0, object);
    }

    /// Gives the object the name it has in the cloud, once the resource exists. One that the cloud
    /// assigns follows from `metadata.uid`.
    pub fn identify(&self, object: &mut Value) {
        identify(&self.0, object);
    }

    /// Writes what the provider writes once the resource is made: `status.atProvider` and
    /// late-initialised fields into the object, connection details and generated passwords into the
    /// Secrets of the `world`.
    pub fn finish(&self, object: &mut Value, world: &mut World) {
        let before = world.clone();
        finish(&self.0, object, &before, world);
    }

    /// Tells the state in the object's conditions, dated by the `world`'s clock where they change.
    pub fn set_status(&self, object: &mut Value, state: &State, world: &World) {
        (self.0.set_status)(object, state, world, &self.0);
    }

    /// An object of this kind with a sample of every field that its provider writes of its own
    /// accord: what references fill, late initialisation, and `status.atProvider`.
    pub fn written(&self) -> Value {
        let world = World::new(json!({}));
        let nothing = json!({});
        let facts = Context::new(&nothing, &world);
        let mut params = self.0.late_values(&facts);
        for reference in self.0.references {
            overlay(&mut params, &filled(reference));
        }
        let mut seen = if self.0.mirrors { json!({"id": "x"}) } else { Value::Object(Map::new()) };
        overlay(&mut seen, &(self.0.at_provider)(&facts));
        json!({"spec": {"forProvider": params}, "status": {"atProvider": seen}})
    }
}

/// A sample of the fields that a reference fills.
fn filled(reference: &Reference) -> Value {
    let (name, value) = (json!({"name": "x"}), json!("x"));
    let mut fields = json!({});
    if reference.many {
        set(&mut fields, &[reference.field], json!([value]));
        set(&mut fields, &[&format!("{}Refs", reference.base)], json!([name]));
    } else {
        set(&mut fields, &[reference.field], value);
        set(&mut fields, &[&format!("{}Ref", reference.base)], name);
    }
    reference.within.map_or(fields.clone(), |list| json!({list: [fields]}))
}
