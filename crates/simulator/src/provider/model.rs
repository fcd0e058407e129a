//! The separate steps of one kind's behaviour, for a provider that simulates single resources in a
//! real cluster. That provider itself handles time and the store of existing resources.

use serde_json::{Map, Value, json};

use super::kind_behaviour::{Context, KindBehaviour, Reference};
use super::machines::Role;
use super::writes::{self, finish, identify};
use super::{State, clouds, references, registry, rules};
use crate::core::World;
use crossplane::json::{overlay, set, text};

pub use super::kind_behaviour::Operation;
pub use super::machines::{Machine, Power, terminated};
pub use super::rules::{Existing, differs};
pub use super::writes::wanted as parameters;
pub use super::{missing_config, untracked_usage};

/// The behaviour of a kind.
pub struct Model(KindBehaviour);

impl Model {
    /// The model of an object's kind. A kind without a table entry is an ordinary managed resource.
    pub fn for_object(object: &Value) -> Self {
        Self(registry::for_object(object))
    }

    /// The number of rounds for a creation in the cloud, at least 1.
    pub fn rounds(&self) -> u32 {
        self.0.rounds
    }

    /// Whether the provider works in the background, so that LastAsyncOperation reports a
    /// rejection.
    pub fn is_asynchronous(&self) -> bool {
        self.0.asynchronous
    }

    /// Whether the cloud assigns the resource's name. Otherwise the name is the object's.
    pub fn assigns_names(&self) -> bool {
        self.0.assigns_names()
    }

    /// Whether the provider does not report a missing provider config on a resource.
    pub fn is_silent_without_config(&self) -> bool {
        self.0.is_silent_without_config()
    }

    /// The name of the resource that `object` belongs to and is deleted with. For example, a node
    /// pool belongs to a cluster.
    pub fn whole<'o>(&self, object: &'o Value) -> Option<&'o str> {
        text(object, &["spec", "forProvider", self.0.rules.part_of?])
    }

    /// The cloud's error if a resource cannot be created before the resource `whole` that it belongs
    /// to.
    pub fn refused_without(&self, whole: &str) -> Option<String> {
        self.0.rules.refused_alone.map(|refusal| rules::words(self.0.facts, refusal, whole))
    }

    /// The parameters of a created resource: the object's spec and the fields that the cloud
    /// chooses.
    pub fn completed(&self, object: &Value, world: &World) -> Value {
        clouds::completed(&self.0, object, world)
    }

    /// The cloud's error if a resource with these parameters cannot be created.
    pub fn forbids_creation(&self, parameters: &Value) -> Option<String> {
        self.0.rules.forbids_creation(self.0.facts, parameters)
    }

    /// The error of Terraform or the cloud if a resource with the parameters `there` cannot be
    /// changed to `wanted`.
    pub fn forbids_change(&self, there: &Value, wanted: &Value) -> Option<String> {
        self.0.rules.forbids_change(self.0.facts, there, wanted)
    }

    /// The changes in `wanted` that take effect immediately. Others wait for a maintenance window.
    pub fn effective(&self, wanted: &Value) -> Value {
        self.0.rules.effective(wanted)
    }

    /// Makes the changes of `there` that take effect at once; others wait for a maintenance window.
    /// A machine, with its id, is stopped and started for some of them. `no_capacity` has the
    /// cloud's words if it cannot start. Changes before the error are made.
    pub fn change(
        &self,
        there: &mut Value,
        machine: Option<(&mut Machine, &str)>,
        wanted: &Value,
        no_capacity: Option<&str>,
    ) -> Result<(), String> {
        self.0.rules.change(there, machine, wanted, no_capacity)
    }

    /// A new machine, if the kind is one.
    pub fn machine(&self) -> Option<Machine> {
        (self.0.role == Role::Machine).then_some(Machine::NEW)
    }

    /// The id of the machine that `object` starts or stops, if its kind does that, and the wanted
    /// power.
    pub fn switched<'o>(&self, object: &'o Value) -> Option<(&'o str, Option<Power>)> {
        let parameter = |field| text(object, &["spec", "forProvider", field]);
        (self.0.role == Role::Switch).then(|| {
            let id = parameter("instanceId").unwrap_or_default();
            (id, parameter("state").and_then(Power::named))
        })
    }

    /// The cloud's error if `external` cannot be deleted while the resources in `all` exist.
    pub fn forbids_deletion<'a>(
        &self,
        external: Existing<'_>,
        all: impl Iterator<Item = Existing<'a>>,
    ) -> Option<String> {
        self.0.rules.forbids_deletion(self.0.facts, external, all)
    }

    /// Reports a rejected change or deletion. `began` says whether the operation had begun.
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

    /// Writes the state that the cloud reports, if the kind has a field for it.
    pub fn report(&self, object: &mut Value, state: &str) {
        if let Some(field) = self.0.rules.state {
            set(object, &["status", "atProvider", field], json!(state));
        }
    }

    /// Resolves references and selectors with the `world`'s resources, and checks other
    /// prerequisites. The error is the provider's message while it waits.
    pub fn prepare(&self, object: &mut Value, world: &World) -> Result<(), String> {
        (self.0.waits)(object, world)?;
        references::resolve(&self.0, object, world)
    }

    /// Sets the name of the object's future resource, unless the cloud assigns it.
    pub fn name(&self, object: &mut Value) {
        writes::name(&self.0, object);
    }

    /// Sets the name of the object's existing resource. A cloud-assigned name is derived from
    /// `metadata.uid`.
    pub fn identify(&self, object: &mut Value) {
        identify(&self.0, object);
    }

    /// Writes the results of a creation: `status.atProvider` and late-initialized fields to the
    /// object, connection details and generated passwords to the Secrets of the `world`.
    pub fn finish(&self, object: &mut Value, world: &mut World) {
        let before = world.clone();
        finish(&self.0, object, &before, world);
    }

    /// Writes the state to the object's conditions. Changed conditions get the time of the
    /// `world`'s clock.
    pub fn set_status(&self, object: &mut Value, state: &State, world: &World) {
        (self.0.set_status)(object, state, world, &self.0);
    }

    /// A sample of all fields that the provider itself writes to an object of this kind:
    /// references, late initialization and `status.atProvider`.
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

/// A sample of the fields that a reference sets.
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
