//! The external resources in the clouds of upjet providers, and operations on them after creation.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::kind_behaviour::{Context, KindBehaviour};
use super::rules::{self, differs};
use super::writes::{EXTERNAL_NAME, as_identified, finish, identify, late_initialise, wanted};
use super::{State, is_ready, set_condition};
use crate::core::World;
use ::crossplane::json::{at, overlay, set, text};

/// An external resource in its cloud.
#[derive(Clone, Debug, PartialEq)]
pub struct External {
    /// `spec.forProvider` without references, and the fields that the cloud chose.
    pub parameters: Value,
    /// The state that the cloud reports, for example `CREATE_FAILED`, if it is not the usual one.
    pub state: Option<String>,
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
            self.externals.insert(slot.to_owned(), External { parameters, state: None });
        }
    }

    pub(super) fn vanish(&mut self, slot: &str) {
        self.externals.remove(slot);
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
            set(object, &["status", "atProvider"], json!({}));
            set_condition(object, &world.now().to_string(), "Ready", "False", "Creating", "");
        } else if behaviour.mirrors && is_ready(object) && !self.has(slot) {
            self.put(slot, behaviour, object, world);
        }
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
        let field = behaviour.rules.part_of?;
        let whole = text(object, &["spec", "forProvider", field])?;
        let reference = behaviour.references.iter().find(|reference| reference.field == field)?;
        let mut vanished = self.vanished.iter().filter_map(|slot| world.resources().get(slot));
        let is_whole = |one: &Value| {
            one["kind"] == reference.target && text(one, &EXTERNAL_NAME) == Some(whole)
        };
        vanished.any(is_whole).then_some(whole)
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
    /// cloud chose or changed are copied to the spec.
    pub(super) fn update(
        &mut self,
        slot: &str,
        behaviour: &KindBehaviour,
        object: &mut Value,
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
        let wanted = wanted(object);
        if !differs(&external.parameters, &wanted) || !may_update(object) {
            return State::Ready;
        }
        if let Some(why) =
            behaviour.rules.forbids_change(behaviour.facts, &external.parameters, &wanted)
        {
            return State::Failed(why);
        }
        *self.updates.entry(slot.to_owned()).or_default() += 1;
        for (field, value) in behaviour.rules.effective(&wanted).as_object().into_iter().flatten() {
            external.parameters[field] = value.clone();
        }
        State::Ready
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

fn may_update(object: &Value) -> bool {
    let policies = at(object, &["spec", "managementPolicies"]).and_then(Value::as_array);
    policies.is_none_or(|all| all.iter().any(|one| one == "*" || one == "Update"))
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
