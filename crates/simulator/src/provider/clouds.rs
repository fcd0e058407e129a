//! The external resources in the clouds of upjet providers, and operations on them after creation.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::kind_behaviour::{Context, KindBehaviour};
use super::machines::{Machine, Power, Role};
use super::rules::{self, differs};
use super::writes::{
    EXTERNAL_NAME, as_identified, finish, identify, late_initialise, may_update, wanted,
};
use super::{State, is_ready, set_condition};
use crate::core::World;
use ::crossplane::json::{at, overlay, set, text};

/// An external resource in its cloud.
#[derive(Clone, Debug, PartialEq)]
pub struct External {
    /// Its name in the cloud, once its provider knows it.
    pub name: String,
    /// `spec.forProvider` without references, and the fields that the cloud chose.
    pub parameters: Value,
    /// The state that the cloud reports, for example `CREATE_FAILED`, if it is not the usual one.
    pub state: Option<String>,
    /// The power of a machine.
    pub machine: Option<Machine>,
}

/// How long Cloud SQL reserves the name of a deleted server.
const RESERVED: SignedDuration = SignedDuration::from_hours(7 * 24);

/// The clouds' resources by slot.
#[derive(Clone, Debug, Default)]
pub(super) struct Clouds {
    externals: BTreeMap<String, External>,
    /// Slots with resources that were deleted outside of their providers and do not exist again
    /// yet.
    vanished: BTreeSet<String>,
    /// The slots in `vanished` that their providers have not observed yet.
    unnoticed: BTreeSet<String>,
    /// The number of former resources of each slot. A cloud never assigns an ID twice.
    former: BTreeMap<String, u32>,
    /// When providers found that the resources of slots were deleted.
    gone: BTreeMap<String, Timestamp>,
    /// The number of updates that each slot's provider has sent.
    updates: BTreeMap<String, u32>,
    /// Slots with a provider that follows a change, and does not look until the change ends.
    changing: BTreeSet<String>,
    /// Slots that count as created without a look, because their server is stopped.
    presumed: BTreeSet<String>,
    /// The names of buckets in other accounts.
    foreign: BTreeSet<String>,
    /// The names of resources without an object.
    leaked: Vec<String>,
}

impl Clouds {
    /// Forgets slots that have been removed.
    pub(super) fn retain(&mut self, is_filled: impl Fn(&str) -> bool) {
        self.externals.retain(|slot, _| is_filled(slot));
        self.vanished.retain(|slot| is_filled(slot));
        self.unnoticed.retain(|slot| is_filled(slot));
        self.changing.retain(|slot| is_filled(slot));
        self.presumed.retain(|slot| is_filled(slot));
    }

    pub(super) fn has(&self, slot: &str) -> bool {
        self.externals.contains_key(slot)
    }

    pub(super) fn get_mut(&mut self, slot: &str) -> Option<&mut External> {
        self.externals.get_mut(slot)
    }

    /// Records that the resource of a slot exists, with the fields that its cloud chose.
    pub(super) fn put(
        &mut self,
        slot: &str,
        behaviour: &KindBehaviour,
        object: &Value,
        world: &World,
    ) {
        self.vanished.remove(slot);
        if behaviour.mirrors {
            let parameters = completed(behaviour, object, world);
            let machine = (behaviour.role == Role::Machine).then(|| Machine::observed(object));
            let name = text(object, &EXTERNAL_NAME).unwrap_or_default().to_owned();
            let external = External { name, parameters, state: None, machine };
            self.externals.insert(slot.to_owned(), external);
        }
    }

    /// Forgets the resource of a slot.
    pub(super) fn forget(&mut self, slot: &str) {
        self.externals.remove(slot);
        self.changing.remove(slot);
    }

    /// Whether the resource of a slot was deleted without its provider, and is not there again.
    pub(super) fn is_gone(&self, slot: &str) -> bool {
        self.vanished.contains(slot)
    }

    /// The slot of the machine with an id.
    pub(super) fn machine(&self, id: &str) -> Option<&str> {
        let mut machines = self.externals.iter().filter(|(_, external)| external.machine.is_some());
        machines.find(|(_, external)| external.name == id).map(|(slot, _)| slot.as_str())
    }

    /// The power of the machine in a slot.
    pub(super) fn power(&self, slot: &str) -> Option<Power> {
        Some(self.externals.get(slot)?.machine.as_ref()?.power)
    }

    /// Begins to start or stop the machine in a slot.
    pub(super) fn turn(
        &mut self,
        slot: &str,
        to: Power,
        no_capacity: Option<&str>,
    ) -> Result<(), String> {
        match self.externals.get_mut(slot) {
            Some(External { name, parameters, machine: Some(machine), .. }) => {
                machine.turn(to, name, parameters, no_capacity)
            }
            _ => Ok(()),
        }
    }

    /// Ends the starts and stops of machines that were begun.
    pub(super) fn settle_machines(&mut self) {
        let machines = self.externals.values_mut().filter_map(|external| external.machine.as_mut());
        machines.for_each(Machine::settle);
    }

    /// Begins a change that takes its time. Meanwhile the provider shows the state before.
    pub(super) fn begin_change(
        &mut self,
        slot: &str,
        behaviour: &KindBehaviour,
        object: &mut Value,
    ) {
        self.show(slot, behaviour, object);
        self.changing.insert(slot.to_owned());
        self.count_update(slot);
    }

    /// Ends the change of a slot's resource, and says whether there was one.
    pub(super) fn end_change(&mut self, slot: &str) -> bool {
        self.changing.remove(slot)
    }

    pub(super) fn is_changing(&self, slot: &str) -> bool {
        self.changing.contains(slot)
    }

    /// Whether a change is in progress. The change ends without another call.
    pub(super) fn is_at_work(&self) -> bool {
        let mut machines = self.externals.values().filter_map(|external| external.machine.as_ref());
        !self.changing.is_empty() || machines.any(Machine::is_turning)
    }

    pub(super) fn vanish(&mut self, slot: &str) {
        self.forget(slot);
        self.vanished.insert(slot.to_owned());
        self.unnoticed.insert(slot.to_owned());
        *self.former.entry(slot.to_owned()).or_default() += 1;
    }

    /// Completes a creation that its provider no longer follows. A resource with a known name is
    /// found at the next observation. A resource with a cloud-assigned name is leaked.
    pub(super) fn abandon(
        &mut self,
        slot: &str,
        behaviour: &KindBehaviour,
        object: &Value,
        world: &World,
    ) {
        if behaviour.assigns_names() {
            let identity = self.identity(slot, object);
            let name = as_identified(identity, &mut object.clone(), |object| {
                behaviour.id.for_object(object)
            });
            self.leaked.push(name);
            *self.former.entry(slot.to_owned()).or_default() += 1;
        } else {
            self.keep(slot, behaviour, object, world);
        }
    }

    /// Completes a creation that exceeded its provider's timeout. The provider knows the resource.
    pub(super) fn keep(
        &mut self,
        slot: &str,
        behaviour: &KindBehaviour,
        object: &Value,
        world: &World,
    ) {
        self.put(slot, behaviour, object, world);
        let left = behaviour.rules.intermediate.and_then(|left| left(&wanted(object)));
        let name = text(object, &EXTERNAL_NAME).unwrap_or_default();
        self.leaked.extend(left.map(|left| format!("{name}/{left}")));
    }

    /// Moves a leaked resource to the slot of an object that names it, if there is one.
    pub(super) fn import(
        &mut self,
        slot: &str,
        behaviour: &KindBehaviour,
        object: &Value,
        world: &World,
    ) {
        let name = text(object, &EXTERNAL_NAME);
        if let Some(at) = self.leaked.iter().position(|leaked| Some(leaked.as_str()) == name) {
            self.leaked.remove(at);
            self.put(slot, behaviour, object, world);
        }
    }

    pub(super) fn leaked(&self) -> &[String] {
        &self.leaked
    }

    /// Gives a bucket name to another account.
    pub(super) fn occupy(&mut self, name: String) {
        self.foreign.insert(name);
    }

    pub(super) fn count_update(&mut self, slot: &str) {
        *self.updates.entry(slot.to_owned()).or_default() += 1;
    }

    pub(super) fn updates(&self, slot: &str) -> u32 {
        self.updates.get(slot).copied().unwrap_or_default()
    }

    /// The base for the IDs and addresses of a slot's resource. `None` if they are derived from the
    /// object's UID.
    pub(super) fn identity(&self, slot: &str, object: &Value) -> Option<String> {
        let former = self.former.get(slot)?;
        let uid = text(object, &["metadata", "uid"]).unwrap_or(slot);
        Some(format!("{uid} after {former}"))
    }

    /// Observes whether the resource of a slot exists. A ready one that was never seen was created
    /// earlier. A vanished one is created again from the current spec.
    pub(super) fn notice(
        &mut self,
        slot: &str,
        behaviour: &KindBehaviour,
        object: &mut Value,
        world: &World,
    ) {
        if self.unnoticed.remove(slot) {
            self.gone.insert(slot.to_owned(), world.now());
            if behaviour.assigns_names()
                && let Some(annotations) = object.pointer_mut("/metadata/annotations")
                && let Some(annotations) = annotations.as_object_mut()
            {
                annotations.remove(EXTERNAL_NAME[2]);
            }
            lose(object, world);
        } else if self.presumed.contains(slot) {
            if !self.is_whole_stopped(behaviour, object, world) {
                self.presumed.remove(slot);
                lose(object, world);
            }
        } else if behaviour.mirrors && is_ready(object) && !self.has(slot) {
            self.put(slot, behaviour, object, world);
        }
    }

    /// Whether a resource counts as created without a look, because its server is stopped.
    pub(super) fn presume(
        &mut self,
        slot: &str,
        behaviour: &KindBehaviour,
        object: &Value,
        world: &World,
    ) -> bool {
        let is_presumed = !self.has(slot) && self.is_whole_stopped(behaviour, object, world);
        if is_presumed {
            self.presumed.insert(slot.to_owned());
        }
        is_presumed
    }

    /// Reads the resource. The error is the provider's message. Another account may own the name.
    /// Some kinds become unreadable when the resource that they belong to is deleted.
    pub(super) fn read(
        &self,
        slot: &str,
        behaviour: &KindBehaviour,
        object: &Value,
        world: &World,
    ) -> Result<(), String> {
        let name = text(object, &EXTERNAL_NAME).unwrap_or_default();
        let foreign =
            behaviour.rules.foreign.filter(|_| !self.has(slot) && self.foreign.contains(name));
        let unreadable =
            || Some((behaviour.rules.unreadable?, self.gone_whole(behaviour, object, world)?));
        match foreign.map(|refusal| (refusal, name)).or_else(unreadable) {
            Some((refusal, name)) => Err(rules::words(behaviour.facts, refusal, name)),
            None => Ok(()),
        }
    }

    /// The name of the resource that this one belongs to, if that was deleted outside of its
    /// provider.
    fn gone_whole<'o>(
        &self,
        behaviour: &KindBehaviour,
        object: &'o Value,
        world: &World,
    ) -> Option<&'o str> {
        let whole = text(object, &["spec", "forProvider", behaviour.rules.part_of?])?;
        self.vanished.contains(whole_slot(behaviour, object, world)?).then_some(whole)
    }

    /// Whether the database server that the resource belongs to is stopped.
    fn is_whole_stopped(&self, behaviour: &KindBehaviour, object: &Value, world: &World) -> bool {
        let server = behaviour
            .rules
            .refused_while_stopped
            .and_then(|_| whole_slot(behaviour, object, world))
            .and_then(|slot| self.externals.get(slot));
        let policy =
            server.and_then(|one| text(&one.parameters, &["settings", "activationPolicy"]));
        policy.is_some_and(|policy| policy != "ALWAYS")
    }

    /// The reason why the resource cannot be created, if any.
    pub(super) fn forbids_creation(
        &self,
        slot: &str,
        behaviour: &KindBehaviour,
        object: &Value,
        now: Timestamp,
    ) -> Option<String> {
        let is_reserved = |gone: &Timestamp| now.duration_since(*gone) < RESERVED;
        let name = text(object, &EXTERNAL_NAME).unwrap_or_default();
        let reserved =
            behaviour.rules.reserved.filter(|_| self.gone.get(slot).is_some_and(is_reserved));
        reserved
            .map(|refusal| rules::words(behaviour.facts, refusal, name))
            .or_else(|| behaviour.rules.forbids_creation(behaviour.facts, &wanted(object)))
    }

    /// Updates the resource of a slot to its object's spec, if they differ. First, fields that the
    /// cloud chose or changed are copied to the spec. `no_capacity` is the cloud's error if it cannot
    /// start the machine again.
    pub(super) fn update(
        &mut self,
        slot: &str,
        behaviour: &KindBehaviour,
        object: &mut Value,
        world: &World,
        no_capacity: Option<&str>,
    ) -> State {
        let Some(external) = self.externals.get_mut(slot) else { return State::Creating };
        let mut late = json!({});
        for field in behaviour.facts.iter().flat_map(|facts| facts.copied()) {
            let found = external.parameters.get(field).filter(|value| !is_zero(value));
            if let Some(value) = found {
                set(&mut late, &[field], value.clone());
            }
        }
        late_initialise(behaviour, object, &late);
        identify(behaviour, object);
        text(object, &EXTERNAL_NAME).unwrap_or_default().clone_into(&mut external.name);
        let wanted = wanted(object);
        if !differs(&external.parameters, &wanted) || !may_update(object) {
            return State::Ready;
        }
        if let Some(why) =
            behaviour.rules.forbids_change(behaviour.facts, &external.parameters, &wanted)
        {
            return State::Failed(why);
        }
        let is_slow = behaviour.rules.is_slow(&external.parameters, &wanted);
        let refusal = behaviour.rules.refused_while_stopped;
        if let Some(why) = refusal.filter(|_| self.is_whole_stopped(behaviour, object, world)) {
            return State::Failed(why.to_owned());
        }
        if is_slow {
            self.begin_change(slot, behaviour, object);
        } else {
            self.count_update(slot);
        }
        let Some(external) = self.externals.get_mut(slot) else { return State::Creating };
        let machine = external.machine.as_mut().map(|machine| (machine, external.name.as_str()));
        match behaviour.rules.change(&mut external.parameters, machine, &wanted, no_capacity) {
            Ok(()) => State::Ready,
            Err(why) => {
                self.end_change(slot);
                State::Failed(why)
            }
        }
    }

    /// Copies the actual resource of a slot to `status.atProvider`, regardless of its object's
    /// spec.
    pub(super) fn show(&self, slot: &str, behaviour: &KindBehaviour, object: &mut Value) {
        let Some(external) = self.externals.get(slot) else { return };
        let mut seen = at(object, &["status", "atProvider"]).cloned().unwrap_or_default();
        overlay(&mut seen, &external.parameters);
        if let (Some(state), Some(field)) = (&external.state, behaviour.rules.state) {
            seen[field] = json!(state);
        }
        if let Some(machine) = external.machine.as_ref().filter(|_| external.state.is_none()) {
            machine.show(&mut seen);
        }
        set(object, &["status", "atProvider"], seen);
    }
}

/// The parameters of a created resource: the object's spec and the fields that the cloud chooses.
pub(super) fn completed(behaviour: &KindBehaviour, object: &Value, world: &World) -> Value {
    let mut made = object.clone();
    finish(behaviour, &mut made, world, &mut world.clone());
    let mut known = wanted(&made);
    let late = behaviour.late_values(&Context::new(&made, world));
    for (field, value) in late.as_object().into_iter().flatten() {
        if known[field].is_null() {
            known[field] = value.clone();
        }
    }
    for field in behaviour.rules.computed {
        if known[field].is_null() {
            known[field] = made["status"]["atProvider"][field].clone();
        }
    }
    known
}

/// Shows that a resource is not there.
fn lose(object: &mut Value, world: &World) {
    set(object, &["status", "atProvider"], json!({}));
    set_condition(object, &world.now().to_string(), "Ready", "False", "Creating", "");
}

/// The slot of the resource that this one belongs to.
fn whole_slot<'w>(behaviour: &KindBehaviour, object: &Value, world: &'w World) -> Option<&'w str> {
    let field = behaviour.rules.part_of?;
    let whole = text(object, &["spec", "forProvider", field])?;
    let reference = behaviour.references.iter().find(|reference| reference.field == field)?;
    let mut all = world.resources().iter();
    let (slot, _) = all.find(|(_, one)| {
        one["kind"] == reference.target && text(one, &EXTERNAL_NAME) == Some(whole)
    })?;
    Some(slot)
}

/// Whether Terraform treats a value as unset.
fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(true) => false,
    }
}
