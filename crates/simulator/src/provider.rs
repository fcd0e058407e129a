//! Simulates the providers and the cluster. In each round, every resource comes closer to Ready.
//!
//! `KindBehaviour` describes a kind. A kind without one behaves like an ordinary managed
//! resource, ready after one round. All results are deterministic: IDs, addresses and passwords are
//! derived from a resource's identity.

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
mod machines;
pub mod model;
mod object;
mod references;
mod registry;
mod rules;
mod sql;
mod switches;
mod time;
mod writes;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::core::World;
use ::crossplane::api_version::group_of;
use ::crossplane::conditions::{find as condition, is_true, set as set_condition};
use ::crossplane::json::{remove, text};
use ::crossplane::names::PAUSED;
use clouds::Clouds;
use kind_behaviour::{Id, KindBehaviour};
use machines::Role;
use time::{Look, RESULT_UNKNOWN, Work, is_result_unknown};
use writes::{as_identified, finish, name, write_secret};

pub use clouds::External;
pub use machines::{Machine, Power};

/// The speed of the clouds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pace {
    /// Resources become ready as soon as they can.
    Instant,
    /// Each kind needs its number of rounds.
    #[default]
    Rounds,
}

/// The state of a resource after a round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// Ready.
    Ready,
    /// Being created, which takes time.
    Creating,
    /// Waiting for an unresolved reference, a Secret or a connection.
    Waiting(String),
    /// Rejected by the cloud.
    Failed(String),
}

/// A resource that changed in a round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The resource's slot.
    pub slot: String,
    /// Its state after the round.
    pub state: State,
}

/// The most rounds of one answer. Resources that undo each other's changes would never settle.
const LIMIT: usize = 100;

/// The providers of all kinds.
#[derive(Clone, Debug, Default)]
pub struct Provider {
    pace: Pace,
    failing: BTreeMap<String, String>,
    /// Slots with a creation that exceeds the providers' timeout.
    stalled: BTreeSet<String>,
    /// Slots of machines for which the clouds have no capacity.
    exhausted: BTreeSet<String>,
    /// The work on each slot, without the time spent waiting.
    work: BTreeMap<String, Work>,
    /// The last observation of each slot, if the providers poll.
    looks: Option<BTreeMap<String, Look>>,
    /// The external resources in the clouds.
    clouds: Clouds,
    /// The names of provider configs that do not exist.
    missing_configs: BTreeSet<String>,
    /// Whether the namespace of the resources is being deleted.
    is_namespace_deleted: bool,
}

impl Provider {
    /// Providers with this pace.
    pub fn new(pace: Pace) -> Self {
        Self { pace, ..Self::default() }
    }

    /// Makes the providers observe a ready resource only every ten minutes, and after a change of
    /// its labels, annotations or spec. Otherwise they observe all resources in each call of
    /// `answer`.
    pub fn polling(mut self) -> Self {
        self.looks = Some(BTreeMap::new());
        self
    }

    /// Works once on every composed resource and returns the changes. At the instant pace, a
    /// resource that waits for another is finished in the same call.
    pub fn answer(&mut self, world: &mut World) -> Vec<Change> {
        self.work.retain(|slot, _| world.resources().contains_key(slot));
        self.clouds.retain(|slot| world.resources().contains_key(slot));
        let mut changes = BTreeMap::new();
        for _ in 0..LIMIT {
            let round = self.round(world);
            let is_quiet = round.is_empty() && !self.clouds.is_at_work();
            let done = is_quiet || self.pace == Pace::Rounds;
            changes.extend(round);
            if done {
                break;
            }
        }
        changes.into_iter().map(|(slot, state)| Change { slot, state }).collect()
    }

    /// Whether a cloud is still creating a resource. The next answer may then differ without any
    /// other change.
    pub fn is_at_work(&self, world: &World) -> bool {
        self.clouds.is_at_work()
            || self.work.iter().any(|(slot, work)| {
                let object = world.resources().get(slot).filter(|object| !is_ready(object));
                object.is_some_and(|object| {
                    !self.failing.contains_key(slot)
                        && work.rounds < registry::for_object(object).rounds
                })
            })
    }

    fn round(&mut self, world: &mut World) -> BTreeMap<String, State> {
        let before = world.clone();
        self.clouds.settle_machines();
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

    /// Works on one resource. It sees the other resources in their state at the start of the round.
    fn work(&mut self, slot: &str, before: &World, world: &mut World) -> State {
        let Some(mut object) = world.resources().get(slot).cloned() else { return State::Creating };
        let behaviour = registry::for_object(&object);
        let has_changed = self.clouds.end_change(slot);
        if behaviour.is_silent_without_config() && self.lacks_config(&behaviour, &object) {
            return State::Creating;
        }
        if is_paused(&behaviour, &object) {
            let now = before.now().to_string();
            let why = "Reconciliation is paused via the pause annotation";
            set_condition(&mut object, &now, "Synced", "False", "ReconcilePaused", why);
            world.resources_mut().insert(slot.to_owned(), object);
            return State::Waiting(why.to_owned());
        }
        if !has_changed && self.is_between_looks(slot, &behaviour, &object, before.now()) {
            return State::Ready;
        }
        let identity = self.clouds.identity(slot, &object);
        let state = as_identified(identity, &mut object, |object| {
            let state = self.state(slot, &behaviour, object, before);
            match state {
                // Its provider follows a change.
                State::Ready if self.clouds.is_changing(slot) => {}
                State::Ready => {
                    finish(&behaviour, object, before, world);
                    self.clouds.show(slot, &behaviour, object);
                }
                // The Secret exists, empty, before the resource.
                State::Creating if behaviour.mirrors => {
                    write_secret(object, &BTreeMap::new(), world);
                }
                _ => {}
            }
            state
        });
        (behaviour.set_status)(&mut object, &state, before, &behaviour);
        // An Object is created before the wrapped object is ready.
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
            .and_then(|()| self.track_usage(behaviour, object))
            .and_then(|()| clusters::track_config(object))
            .and_then(|()| clusters::await_secret_namespace(object, world))
            .and_then(|()| (behaviour.waits)(object, world))
            .and_then(|()| references::resolve(behaviour, object, world))
            .and_then(|()| self.clouds.read(slot, behaviour, object, world));
        if let Err(why) = there {
            return State::Waiting(why);
        }
        name(behaviour, object);
        if behaviour.role == Role::Switch {
            return self.switch(slot, behaviour, object, world);
        }
        self.clouds.import(slot, behaviour, object, world);
        if self.clouds.has(slot) {
            let no_capacity = self.no_capacity(slot, behaviour, object, "StartInstances");
            return self.clouds.update(slot, behaviour, object, world, no_capacity.as_deref());
        }
        if self.clouds.presume(slot, behaviour, object, world) {
            return State::Ready;
        }
        if let Some(why) = self.no_capacity(slot, behaviour, object, "RunInstances") {
            return State::Failed(format!("creating EC2 Instance: {why}"));
        }
        if let Some(why) = self.clouds.forbids_creation(slot, behaviour, object, world.now()) {
            return State::Failed(why);
        }
        if behaviour.rules.restless && is_ready(object) {
            self.clouds.count_update(slot);
        }
        self.create(slot, behaviour, object, world)
    }

    /// Whether a resource names a deleted provider config. A resource without a reference uses
    /// `default`.
    fn lacks_config(&self, behaviour: &KindBehaviour, object: &Value) -> bool {
        let name = text(object, &["spec", "providerConfigRef", "name"]).unwrap_or("default");
        !matches!(behaviour.id, Id::None) && self.missing_configs.contains(name)
    }

    fn track_usage(&self, behaviour: &KindBehaviour, object: &Value) -> Result<(), String> {
        let is_namespaced = text(object, &["metadata", "namespace"]).is_some();
        if self.is_namespace_deleted && is_namespaced && !matches!(behaviour.id, Id::None) {
            return Err(untracked_usage(object));
        }
        Ok(())
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

/// The error of a provider that cannot record that a resource uses its provider config, because the
/// namespace of both is being deleted.
pub fn untracked_usage(object: &Value) -> String {
    let named = |field| text(object, &["metadata", field]).unwrap_or_default();
    let group = group_of(object);
    let family = group.strip_suffix(".upbound.io").and_then(|_| group.split_once('.'));
    let group = family.map_or(group, |(_, family)| family);
    format!(
        "connect failed: cannot track ProviderConfig usage: cannot apply ProviderConfigUsage: cannot \
         create object: providerconfigusages.{group} {:?} is forbidden: unable to create new content \
         in namespace {} because it is being terminated",
        named("uid"),
        named("namespace")
    )
}

/// The error for a missing provider config, from providers that report it.
pub fn missing_config(kind: &str, name: &str) -> String {
    format!("connect failed: cannot get referenced ProviderConfig: {kind} {name:?} not found")
}

/// An object without its labels. A Usage labels the resources that it protects, which is not a
/// change by a provider.
fn unlabelled(object: &Value) -> Value {
    let mut object = object.clone();
    remove(&mut object, &["metadata", "labels"]);
    object
}

/// Whether a managed resource has the annotation that pauses its provider.
fn is_paused(behaviour: &KindBehaviour, object: &Value) -> bool {
    !matches!(behaviour.id, Id::None)
        && text(object, &["metadata", "annotations", PAUSED]) == Some("true")
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
