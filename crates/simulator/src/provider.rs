//! How the providers, and the cluster itself, answer: round after round each resource comes closer to Ready.
//!
//! A kind's manner says how it behaves; one that no table names is an ordinary managed resource, ready after one
//! round. Nothing is random: ids, addresses and passwords follow from a resource's identity.

mod addons;
mod aws;
mod azure;
mod builtin;
mod clusters;
mod crossplane;
mod gcp;
mod helm;
mod manner;
pub mod model;
mod object;
mod references;
mod registry;
mod sql;

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::core::{ConnectionDetails, World, connection_secret, secret_ref};
use ::crossplane::conditions::{find as condition, is_true, set as set_condition};
use ::crossplane::json::{at, overlay, remove, set, text};
use ::crossplane::names;
use manner::{Facts, Id, Manner};

/// How fast the clouds are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pace {
    /// What can become ready does so at once.
    Instant,
    /// Each kind takes its rounds.
    #[default]
    Rounds,
}

/// What a resource came to in a round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// Ready.
    Ready,
    /// Being made; it takes its time.
    Creating,
    /// Waiting for something else: an unresolved reference, a secret, a connection.
    Waiting(String),
    /// Refused by the cloud.
    Failed(String),
}

/// A resource that a round changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The resource's slot.
    pub slot: String,
    /// What it came to.
    pub state: State,
}

/// The providers of all kinds together.
#[derive(Clone, Debug, Default)]
pub struct Provider {
    pace: Pace,
    failing: BTreeMap<String, String>,
    /// How many rounds each slot has been worked on without waiting.
    ages: BTreeMap<String, u32>,
}

impl Provider {
    /// Providers of a pace.
    pub fn new(pace: Pace) -> Self {
        Self { pace, ..Self::default() }
    }

    /// From here on the cloud refuses the resource in `slot` with this message.
    pub fn fail(&mut self, slot: impl Into<String>, message: impl Into<String>) {
        self.failing.insert(slot.into(), message.into());
    }

    /// The cloud takes the resource in `slot` again.
    pub fn mend(&mut self, slot: &str) {
        self.failing.remove(slot);
    }

    /// Answers once for every composed resource and says which of them changed. At the instant pace, what waits for
    /// another resource gets it within the same answer.
    pub fn answer(&mut self, world: &mut World) -> Vec<Change> {
        self.ages.retain(|slot, _| world.resources().contains_key(slot));
        let mut changes = BTreeMap::new();
        loop {
            let round = self.round(world);
            let done = round.is_empty() || self.pace == Pace::Rounds;
            changes.extend(round);
            if done {
                return changes.into_iter().map(|(slot, state)| Change { slot, state }).collect();
            }
        }
    }

    /// Whether a cloud has begun something that it will finish by itself: the next answer can differ although nothing else changed.
    pub fn is_at_work(&self, world: &World) -> bool {
        self.ages.iter().any(|(slot, age)| {
            let object = world.resources().get(slot).filter(|object| !is_ready(object));
            object
                .is_some_and(|object| !self.failing.contains_key(slot) && *age < registry::of(object).rounds)
        })
    }

    fn round(&mut self, world: &mut World) -> BTreeMap<String, State> {
        let before = world.clone();
        let mut changes = BTreeMap::new();
        for slot in before.resources().keys() {
            let state = self.work(slot, &before, world);
            if world.resources().get(slot).map(unlabelled) != before.resources().get(slot).map(unlabelled) {
                changes.insert(slot.clone(), state);
            }
        }
        changes
    }

    /// Works on one resource: of the others it sees what they were when the round began.
    fn work(&mut self, slot: &str, before: &World, world: &mut World) -> State {
        let Some(mut object) = world.resources().get(slot).cloned() else { return State::Creating };
        let manner = registry::of(&object);
        let state = self.state(slot, &manner, &mut object, before);
        if state == State::Ready {
            finish(&manner, &mut object, before, world);
        }
        (manner.tell)(&mut object, &state, before, &manner);
        // An Object is made before what it holds is ready.
        let made_not_ready =
            state == State::Ready && condition(&object, "Ready").is_some() && !is_ready(&object);
        world.resources_mut().insert(slot.to_owned(), object);
        if made_not_ready { State::Creating } else { state }
    }

    fn state(&mut self, slot: &str, manner: &Manner, object: &mut Value, world: &World) -> State {
        if let Some(message) = self.failing.get(slot) {
            return State::Failed(message.clone());
        }
        let there = clusters::track_config(object)
            .and_then(|()| clusters::await_secret_namespace(object, world))
            .and_then(|()| (manner.waits)(object, world))
            .and_then(|()| references::resolve(manner, object, world));
        if let Err(why) = there {
            return State::Waiting(why);
        }
        identify(manner, object);
        let age = self.ages.entry(slot.to_owned()).or_insert(0);
        *age += 1;
        let instant = self.pace == Pace::Instant;
        if *age >= manner.rounds || instant || is_ready(object) { State::Ready } else { State::Creating }
    }
}

/// An object without its labels: those that a Usage leaves on what it protects are no answer.
fn unlabelled(object: &Value) -> Value {
    let mut object = object.clone();
    remove(&mut object, &["metadata", "labels"]);
    object
}

/// Gives the object the name it has in the cloud.
fn identify(manner: &Manner, object: &mut Value) {
    const EXTERNAL_NAME: [&str; 3] = ["metadata", "annotations", names::EXTERNAL_NAME];
    if matches!(manner.id, Id::None) {
        return;
    }
    let named = text(object, &EXTERNAL_NAME);
    let stays = match manner.id {
        Id::Replaced(prefix) => named.is_some_and(|name| name.starts_with(prefix)),
        _ => named.is_some(),
    };
    if !stays {
        let name = manner.id.of(object);
        set(object, &EXTERNAL_NAME, json!(name));
    }
    if manner.mirrors && at(object, &["status", "atProvider", "id"]).is_none() {
        let external = text(object, &EXTERNAL_NAME).unwrap_or_default().to_owned();
        set(object, &["status", "atProvider", "id"], json!(external));
    }
}

/// What a provider writes once the resource is made: its status, late-initialised fields, connection details.
fn finish(manner: &Manner, object: &mut Value, before: &World, world: &mut World) {
    let facts = Facts::new(object, before);
    let (late, seen, details) =
        ((manner.late)(&facts), (manner.at_provider)(&facts), (manner.connection)(&facts));
    if !matches!(manner.id, Id::None) {
        late_initialise(object, &late);
        let mut at_provider = if manner.mirrors { mirrored(object) } else { json!({}) };
        overlay(&mut at_provider, at(object, &["status", "atProvider"]).unwrap_or(&json!({})));
        overlay(&mut at_provider, &seen);
        set(object, &["status", "atProvider"], at_provider);
    }
    let mut details = details;
    (manner.effects)(object, before, world, &mut details);
    write_secret(object, &details, world);
}

/// `spec.forProvider` without references.
fn mirrored(object: &Value) -> Value {
    let mut fields =
        at(object, &["spec", "forProvider"]).and_then(Value::as_object).cloned().unwrap_or_default();
    fields.retain(|field, _| !["Ref", "Refs", "Selector"].iter().any(|end| field.ends_with(end)));
    Value::Object(fields)
}

fn late_initialise(object: &mut Value, late: &Value) {
    let policies = at(object, &["spec", "managementPolicies"]).and_then(Value::as_array);
    let allowed = policies.is_none_or(|all| all.iter().any(|one| one == "*" || one == "LateInitialize"));
    for (field, value) in late.as_object().filter(|_| allowed).into_iter().flatten() {
        if at(object, &["spec", "forProvider", field]).is_none() {
            set(object, &["spec", "forProvider", field], value.clone());
        }
    }
}

/// Connection details go where the resource says; keys are added to what is there.
fn write_secret(object: &Value, details: &ConnectionDetails, world: &mut World) {
    let Some((namespace, name)) = secret_ref(object) else { return };
    let mut all = world.secret_data(&namespace, &name);
    all.extend(details.clone());
    world.put_secret(connection_secret(&namespace, &name, &all));
}

/// Whether a resource's Ready condition is True.
fn is_ready(object: &Value) -> bool {
    is_true(object, "Ready")
}

/// A kubeconfig without credentials.
fn kubeconfig(server: &str) -> String {
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "default",
        "clusters": [{"name": "default", "cluster": {"server": server, "certificate-authority-data": "Y2E="}}],
        "contexts": [{"name": "default", "context": {"cluster": "default", "user": "default"}}],
        "users": [{"name": "default", "user": {}}],
    })
    .to_string()
}
