//! The clouds. Each resource takes some time, so resources become ready one after another.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use anyhow::{Context, Result};
use crossplane::conditions::{find, is_true};
use crossplane::json::overlay;
use fake_kube::json::text;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use simulator::core::World;
use simulator::provider::State;
use simulator::provider::model::{Machine, Model, parameters};

use crate::files;

/// The minimum seconds of the first round.
const FIRST: f64 = 1.0;

/// Seconds of each further round.
const ROUND: f64 = 3.0;

/// The maximum difference in seconds between equal resources.
const SPREAD: f64 = 3.0;

/// The clouds of one environment.
pub struct Cloud {
    /// The time at which the work on each slot began.
    begun: BTreeMap<String, Timestamp>,
    /// The machines by their ids.
    machines: BTreeMap<String, Machine>,
    pace: f64,
}

/// A quota of the account. Machines of the p family exceed it.
pub struct Quota {
    words: String,
}

impl Quota {
    /// A quota with the cloud's real error message, from the examples.
    pub fn load() -> Result<Self> {
        let documents = files::example("gpu-workspace/observed/failing.yaml")?;
        let refused = documents.iter().find_map(|one| {
            find(one, "LastAsyncOperation").filter(|told| told["status"] == "False")
        });
        let message = refused
            .map(|told| text(told, "/message"))
            .context("the example of a failing workspace has no rejected resource")?;
        Ok(Self { words: message.trim_start_matches("async create failed: ").to_owned() })
    }

    fn refuses(&self, object: &Value) -> Option<String> {
        let is_machine =
            text(object, "/apiVersion").starts_with("ec2.") && object["kind"] == "Instance";
        let is_beyond = text(object, "/spec/forProvider/instanceType").starts_with('p');
        (is_machine && is_beyond && !is_true(object, "Ready")).then(|| self.words.clone())
    }
}

impl Cloud {
    /// Clouds without any resource.
    pub fn new(pace: f64) -> Self {
        Self { begun: BTreeMap::new(), machines: BTreeMap::new(), pace }
    }

    /// Works on every resource. Returns whether any resource has changed, or will change with time.
    pub fn work(&mut self, world: &mut World, quota: &Quota, now: Timestamp) -> bool {
        self.begun.retain(|slot, _| world.resources().contains_key(slot));
        let slots: Vec<String> = world.resources().keys().cloned().collect();
        let mut at_work = false;
        for slot in slots {
            let Some(mut object) = world.resources().get(&slot).cloned() else { continue };
            let model = Model::for_object(&object);
            let state = self.state(&slot, &mut object, &model, world, quota, now);
            if state == State::Ready {
                update(&model, &mut object);
                model.finish(&mut object, world);
                self.power(&model, &mut object);
            }
            model.set_status(&mut object, &state, world);
            at_work |= state == State::Creating || world.resources().get(&slot) != Some(&object);
            world.resources_mut().insert(slot, object);
        }
        at_work
    }

    /// Starts or stops a machine if the object asks for it, or shows the power of one.
    fn power(&mut self, model: &Model, object: &mut Value) {
        if let Some((id, Some(to))) = model.switched(object) {
            if let Some(machine) = self.machines.get_mut(id) {
                // Only a spot machine can refuse.
                let _ = machine.turn(to, id, &Value::Null, None);
                machine.settle();
            }
        } else if let Some(new) = model.machine() {
            let id = text(object, "/metadata/annotations/crossplane.io~1external-name").to_owned();
            let machine = self.machines.entry(id).or_insert(new);
            machine.show(&mut object["status"]["atProvider"]);
        }
    }

    fn state(
        &mut self,
        slot: &str,
        object: &mut Value,
        model: &Model,
        world: &World,
        quota: &Quota,
        now: Timestamp,
    ) -> State {
        if let Err(why) = model.prepare(object, world) {
            return State::Waiting(why);
        }
        let begun = *self.begun.entry(slot.to_owned()).or_insert(now);
        if now < begun + lasting(self.pace, slot, FIRST + ROUND * f64::from(model.rounds() - 1))
            && !is_true(object, "Ready")
        {
            if quota.refuses(object).is_none() {
                model.name(object);
            }
            return State::Creating;
        }
        if let Some(words) = quota.refuses(object) {
            return State::Failed(words);
        }
        model.identify(object);
        State::Ready
    }
}

/// Shows the changes of a cloud's resource that take effect at once.
fn update(model: &Model, object: &mut Value) {
    if !text(object, "/apiVersion").contains(".upbound.io/") {
        return;
    }
    let wanted = model.effective(&parameters(object));
    let Some(seen) = object["status"]["atProvider"].as_object_mut() else { return };
    for (field, value) in wanted.as_object().into_iter().flatten() {
        if let Some(shown) = seen.get_mut(field) {
            overlay(shown, value);
        }
    }
}

/// The duration of work in a slot: these seconds plus a part of `SPREAD` that depends on the slot.
pub fn lasting(pace: f64, slot: &str, seconds: f64) -> SignedDuration {
    let mut hash = DefaultHasher::new();
    slot.hash(&mut hash);
    let share = f64::from(u8::try_from(hash.finish() % 256).unwrap_or_default()) / 256.0;
    SignedDuration::try_from_secs_f64(pace * (seconds + SPREAD * share)).unwrap_or_default()
}
