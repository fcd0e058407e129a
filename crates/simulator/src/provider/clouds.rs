//! What exists in the clouds of upjet's providers, and what they do with it after its creation.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::manner::{Facts, Manner};
use super::rules::differs;
use super::writes::{EXTERNAL_NAME, finish, identify, late_initialise, wanted};
use super::{State, is_ready, set_condition};
use crate::core::World;
use ::crossplane::json::{at, overlay, set, text};

/// A resource in its cloud.
#[derive(Clone, Debug, PartialEq)]
pub struct External {
    /// What it is: `spec.forProvider` without references, and the fields that the cloud chose.
    pub parameters: Value,
    /// The state that the cloud reports, such as `CREATE_FAILED`, where it is not the usual one.
    pub state: Option<String>,
}

/// The clouds' resources by slot.
#[derive(Clone, Debug, Default)]
pub(super) struct Clouds {
    externals: BTreeMap<String, External>,
    /// Slots whose resources were deleted without their providers, until they are there again.
    vanished: BTreeSet<String>,
    /// Those of them that their providers have not looked at yet.
    unnoticed: BTreeSet<String>,
    /// How many resources of each slot were there before: a cloud never assigns an id twice.
    former: BTreeMap<String, u32>,
    leaked: Vec<String>,
}

impl Clouds {
    /// Forgets the slots that nothing fills any more.
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

    pub(super) fn put(&mut self, slot: &str, parameters: Value) {
        self.vanished.remove(slot);
        self.externals.insert(slot.to_owned(), External { parameters, state: None });
    }

    pub(super) fn vanish(&mut self, slot: &str) {
        self.externals.remove(slot);
        self.vanished.insert(slot.to_owned());
        self.unnoticed.insert(slot.to_owned());
        *self.former.entry(slot.to_owned()).or_default() += 1;
    }

    pub(super) fn leak(&mut self, slot: &str, name: String) {
        self.leaked.push(name);
        *self.former.entry(slot.to_owned()).or_default() += 1;
    }

    pub(super) fn leaked(&self) -> &[String] {
        &self.leaked
    }

    /// What the ids and addresses of a slot's resource follow from; nothing where they follow from
    /// the object's uid.
    pub(super) fn identity(&self, slot: &str, object: &Value) -> Option<String> {
        let former = self.former.get(slot)?;
        let uid = text(object, &["metadata", "uid"]).unwrap_or(slot);
        Some(format!("{uid} after {former}"))
    }

    /// Looks whether the resource of a slot is there. A ready one that was never seen was created
    /// before; one that vanished is created again, with all that its spec has by now.
    pub(super) fn notice(
        &mut self,
        slot: &str,
        manner: &Manner,
        object: &mut Value,
        world: &World,
    ) {
        if !manner.mirrors {
            return;
        }
        if self.unnoticed.remove(slot) {
            if manner.assigns_names()
                && let Some(annotations) = object.pointer_mut("/metadata/annotations")
                && let Some(annotations) = annotations.as_object_mut()
            {
                annotations.remove(EXTERNAL_NAME[2]);
            }
            set(object, &["status", "atProvider"], json!({}));
            set_condition(object, &world.now().to_string(), "Ready", "False", "Creating", "");
        } else if is_ready(object) && !self.has(slot) {
            self.put(slot, completed(manner, object, world));
        }
    }

    /// Reads the resource; an error is what the provider says where it cannot. Some cannot be read
    /// once the resource that they belong to is gone.
    pub(super) fn read(
        &self,
        manner: &Manner,
        object: &Value,
        world: &World,
    ) -> Result<(), String> {
        let hangs = manner.facts.and_then(|facts| facts.words("server gone"));
        let (Some(words), Some(field)) = (hangs, manner.rules.part_of) else { return Ok(()) };
        let whole = text(object, &["spec", "forProvider", field]);
        let is_gone = self
            .vanished
            .iter()
            .filter_map(|slot| world.resources().get(slot))
            .any(|one| whole.is_some() && text(one, &EXTERNAL_NAME) == whole);
        // The facts have a second form of the error in parentheses.
        let words = words.split(" (or ").next().unwrap_or(words);
        if is_gone && is_ready(object) { Err(words.to_owned()) } else { Ok(()) }
    }

    /// Why the resource cannot be created, if so.
    pub(super) fn forbids_creation(manner: &Manner, object: &Value) -> Option<String> {
        manner.rules.forbids_creation(manner.facts, &wanted(object))
    }

    /// Changes the resource of a slot to what its object asks for, if there is a difference. What
    /// the cloud chose or changed is copied into the spec first.
    pub(super) fn update(&mut self, slot: &str, manner: &Manner, object: &mut Value) -> State {
        let Some(external) = self.externals.get_mut(slot) else { return State::Creating };
        let mut late = json!({});
        for field in manner.facts.iter().flat_map(|facts| facts.copied()) {
            let found = external.parameters.get(field).filter(|value| !is_zero(value));
            if let Some(value) = found {
                set(&mut late, &[field], value.clone());
            }
        }
        late_initialise(manner, object, &late);
        identify(manner, object);
        let wanted = wanted(object);
        if !differs(&external.parameters, &wanted) || !may_update(object) {
            return State::Ready;
        }
        if let Some(why) = manner.rules.forbids_change(manner.facts, &external.parameters, &wanted)
        {
            return State::Failed(why);
        }
        for (field, value) in manner.rules.effective(&wanted).as_object().into_iter().flatten() {
            external.parameters[field] = value.clone();
        }
        State::Ready
    }

    /// Shows in `status.atProvider` what the resource of a slot is, whatever its object asks for.
    pub(super) fn show(&self, slot: &str, manner: &Manner, object: &mut Value) {
        let Some(external) = self.externals.get(slot) else { return };
        let mut seen = at(object, &["status", "atProvider"]).cloned().unwrap_or_default();
        overlay(&mut seen, &external.parameters);
        if let (Some(state), Some(field)) = (&external.state, manner.rules.state) {
            seen[field] = json!(state);
        }
        set(object, &["status", "atProvider"], seen);
    }
}

/// What a cloud makes of an object: what the object asks for, and what the cloud chooses.
pub(super) fn completed(manner: &Manner, object: &Value, world: &World) -> Value {
    let mut made = object.clone();
    finish(manner, &mut made, world, &mut world.clone());
    let mut known = wanted(&made);
    let late = manner.late_values(&Facts::new(&made, world));
    for (field, value) in late.as_object().into_iter().flatten() {
        if known[field].is_null() {
            known[field] = value.clone();
        }
    }
    for field in manner.rules.computed {
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

/// Whether Terraform takes a value for unset.
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
