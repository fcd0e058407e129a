//! How the providers, and the cluster itself, answer: round after round each resource comes closer
//! to Ready.
//!
//! A kind's manner says how it behaves; one that no table names is an ordinary managed resource,
//! ready after one round. Nothing is random: ids, addresses and passwords follow from a resource's
//! identity.

mod aws;
mod azure;
mod behaviour;
mod builtin;
mod clouds;
mod clusters;
mod crossplane;
mod disturbances;
mod gcp;
mod helm;
mod helm_charts;
mod kind_behaviour;
pub mod model;
mod object;
mod references;
mod registry;
mod rules;
mod sql;
mod time;
mod writes;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::core::World;
use ::crossplane::conditions::{find as condition, is_true, set as set_condition};
use ::crossplane::json::{remove, text};
use clouds::Clouds;
use kind_behaviour::{Id, KindBehaviour};
use time::{Look, RESULT_UNKNOWN, Work, is_result_unknown};
use writes::{as_identified, finish, name, write_secret};

pub use clouds::External;

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
    /// Slots for which the clouds take longer than providers wait.
    stalled: BTreeSet<String>,
    /// How long each slot has been worked on without waiting.
    work: BTreeMap<String, Work>,
    /// The last look at each slot, if the providers poll.
    looks: Option<BTreeMap<String, Look>>,
    /// What exists in the clouds.
    clouds: Clouds,
    /// The names of provider configs that do not exist.
    missing_configs: BTreeSet<String>,
}

impl Provider {
    /// Providers of a pace.
    pub fn new(pace: Pace) -> Self {
        Self { pace, ..Self::default() }
    }

    /// Has the providers look at a ready resource every ten minutes, and after a change of its
    /// labels, annotations or spec. Otherwise they look at all resources in each answer.
    pub fn polling(mut self) -> Self {
        self.looks = Some(BTreeMap::new());
        self
    }

    /// Answers once for every composed resource and says which of them changed. At the instant
    /// pace, what waits for another resource gets it within the same answer.
    pub fn answer(&mut self, world: &mut World) -> Vec<Change> {
        self.work.retain(|slot, _| world.resources().contains_key(slot));
        self.clouds.retain(|slot| world.resources().contains_key(slot));
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

    /// Whether a cloud has begun something that it will finish by itself: the next answer can
    /// differ although nothing else changed.
    pub fn is_at_work(&self, world: &World) -> bool {
        self.work.iter().any(|(slot, work)| {
            let object = world.resources().get(slot).filter(|object| !is_ready(object));
            object.is_some_and(|object| {
                !self.failing.contains_key(slot)
                    && work.rounds < registry::for_object(object).rounds
            })
        })
    }

    fn round(&mut self, world: &mut World) -> BTreeMap<String, State> {
        let before = world.clone();
        let mut changes = BTreeMap::new();
        for slot in before.resources().keys() {
            let state = self.work(slot, &before, world);
            if world.resources().get(slot).map(unlabelled)
                != before.resources().get(slot).map(unlabelled)
            {
                changes.insert(slot.clone(), state);
            }
        }
        changes
    }

    /// Works on one resource: of the others it sees what they were when the round began.
    fn work(&mut self, slot: &str, before: &World, world: &mut World) -> State {
        let Some(mut object) = world.resources().get(slot).cloned() else { return State::Creating };
        let behaviour = registry::for_object(&object);
        if behaviour.is_silent_without_config() && self.lacks_config(&behaviour, &object) {
            return State::Creating;
        }
        if self.is_between_looks(slot, &behaviour, &object, before.now()) {
            return State::Ready;
        }
        let identity = self.clouds.identity(slot, &object);
        let state = as_identified(identity, &mut object, |object| {
            let state = self.state(slot, &behaviour, object, before);
            match state {
                State::Ready => {
                    finish(&behaviour, object, before, world);
                    self.clouds.show(slot, &behaviour, object);
                }
                // The Secret is there, empty, before the resource is.
                State::Creating if behaviour.mirrors => {
                    write_secret(object, &BTreeMap::new(), world);
                }
                _ => {}
            }
            state
        });
        (behaviour.set_status)(&mut object, &state, before, &behaviour);
        // An Object is made before what it holds is ready.
        let made_not_ready =
            state == State::Ready && condition(&object, "Ready").is_some() && !is_ready(&object);
        if let Some(looks) = &mut self.looks {
            looks.insert(slot.to_owned(), Look::new(&object, before.now()));
        }
        world.resources_mut().insert(slot.to_owned(), object);
        if made_not_ready { State::Creating } else { state }
    }

    fn state(
        &mut self,
        slot: &str,
        behaviour: &KindBehaviour,
        object: &mut Value,
        world: &World,
    ) -> State {
        self.clouds.notice(slot, behaviour, object, world);
        if is_result_unknown(object) {
            set_condition(object, &world.now().to_string(), "Ready", "False", "Creating", "");
            return State::Waiting(RESULT_UNKNOWN.to_owned());
        }
        if let Some(message) = self.failing.get(slot) {
            return State::Failed(message.clone());
        }
        let there = self
            .find_config(behaviour, object)
            .and_then(|()| clusters::track_config(object))
            .and_then(|()| clusters::await_secret_namespace(object, world))
            .and_then(|()| (behaviour.waits)(object, world))
            .and_then(|()| references::resolve(behaviour, object, world))
            .and_then(|()| self.clouds.read(slot, behaviour, object, world));
        if let Err(why) = there {
            return State::Waiting(why);
        }
        name(behaviour, object);
        self.clouds.import(slot, behaviour, object, world);
        if self.clouds.has(slot) {
            return self.clouds.update(slot, behaviour, object);
        }
        if let Some(why) = self.clouds.forbids_creation(slot, behaviour, object, world.now()) {
            return State::Failed(why);
        }
        if behaviour.rules.restless && is_ready(object) {
            self.clouds.count_update(slot);
        }
        self.create(slot, behaviour, object, world)
    }

    /// Whether a resource names a provider config that was deleted; one that names none means
    /// `default`.
    fn lacks_config(&self, behaviour: &KindBehaviour, object: &Value) -> bool {
        let name = text(object, &["spec", "providerConfigRef", "name"]).unwrap_or("default");
        !matches!(behaviour.id, Id::None) && self.missing_configs.contains(name)
    }

    fn find_config(&self, behaviour: &KindBehaviour, object: &Value) -> Result<(), String> {
        if !self.lacks_config(behaviour, object) {
            return Ok(());
        }
        let named = |field| text(object, &["spec", "providerConfigRef", field]);
        let kind = named("kind").unwrap_or("ProviderConfig");
        Err(missing_config(kind, named("name").unwrap_or("default")))
    }
}

/// What a provider says of a provider config that does not exist, where it is not silent.
pub fn missing_config(kind: &str, name: &str) -> String {
    format!("connect failed: cannot get referenced ProviderConfig: {kind} {name:?} not found")
}

/// An object without its labels: those that a Usage leaves on what it protects are no answer.
fn unlabelled(object: &Value) -> Value {
    let mut object = object.clone();
    remove(&mut object, &["metadata", "labels"]);
    object
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
