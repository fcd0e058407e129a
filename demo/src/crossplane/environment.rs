//! One environment. The steps are in Crossplane's order.

use crossplane::spec::WRITTEN;
use fake_kube::json::{add_finalizer, remove, seconds, text};
use fake_kube::store::Key;
use function_paved_road::function::{Outside, run};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use simulator::core::{World, composite_from_claim};

use super::Around;
use super::claim;
use super::cloud::Cloud;
use super::deletion::Deletion;
use super::publish::Publisher;
use crate::recipes::Recipe;

/// The finalizer of a composite until its resources are deleted.
const FINALIZER: &str = "composite.apiextensions.crossplane.io";

/// An environment.
pub struct Environment {
    /// Its recipe.
    recipe: usize,
    /// The path of the object that users applied.
    root: Key,
    running: Option<Running>,
    /// The version of the object at which the environment came to rest.
    asleep: Option<Value>,
}

/// A started environment.
struct Running {
    world: World,
    cloud: Cloud,
    publisher: Publisher,
    deletion: Deletion,
    /// The path of the composite.
    composite: Key,
    /// The time at which the last answer of the function ends.
    calls_again: Option<Timestamp>,
}

impl Environment {
    /// An environment that is not started.
    pub fn new(recipe: usize, root: Key) -> Self {
        Self { recipe, root, running: None, asleep: None }
    }

    /// Whether Crossplane calls the function again without a change.
    fn is_due(&self, now: Timestamp) -> bool {
        let running = self.running.as_ref();
        running.and_then(|running| running.calls_again).is_some_and(|at| at <= now)
    }

    /// Plays all steps up to this time. Returns whether more steps follow.
    pub fn step(&mut self, object: &Value, around: &Around, now: Timestamp) -> bool {
        let version = &object["metadata"]["resourceVersion"];
        if self.asleep.as_ref() == Some(version) && !self.is_due(now) {
            return false;
        }
        let recipe = &around.recipes.all[self.recipe];
        let goes = !text(object, "/metadata/deletionTimestamp").is_empty();
        let Some(mut running) =
            self.running.take().or_else(|| Running::begin(recipe, &self.root, object, around, now))
        else {
            return false;
        };
        running.world.set_now(seconds(now));
        let goes_on = if goes {
            running.leave(recipe, &self.root, around, now)
        } else {
            running.follow(recipe, object, around);
            running.reconcile(recipe, &self.root, around, now)
        };
        // The step may have written the object. Then another step follows.
        let after = around
            .store
            .get(&self.root)
            .map(|object| object["metadata"]["resourceVersion"].clone());
        let rests = !goes_on && after.as_ref() == Some(version);
        self.asleep = after.filter(|_| rests);
        self.running = Some(running);
        !rests
    }
}

impl Running {
    /// Creates the composite of a claim, and selects the Composition.
    fn begin(
        recipe: &Recipe,
        root: &Key,
        object: &Value,
        around: &Around,
        now: Timestamp,
    ) -> Option<Self> {
        let composite = if recipe.is_claim() {
            let wanted = composite_from_claim(object, &recipe.xrd).ok()?;
            let key = recipe.composite.key("", text(&wanted, "/metadata/name"));
            around.store.put(&key, now, |there| Some(there.cloned().unwrap_or(wanted)))?;
            key
        } else {
            root.clone()
        };
        let made = around.store.get(&composite)?;
        let mut given = Value::clone(&made);
        for own in ["managedFields", "resourceVersion"] {
            remove(&mut given["metadata"], own);
        }
        // Objects that the function reads: Settings, and existing namespaces.
        let namespaces = around.store.list("namespaces.", None).1.into_iter();
        let namespaces = namespaces.map(|(_, namespace)| Value::clone(&namespace));
        let others = namespaces.chain([around.recipes.config.clone()]);
        let world = World::new(given)
            .defined_by(&recipe.xrd)
            .select(&recipe.composition)
            .with_others(others);
        let (cloud, publisher) = (Cloud::new(around.pace), Publisher::default());
        let deletion = Deletion::new(around.pace);
        Some(Self { world, cloud, publisher, deletion, composite, calls_again: None })
    }

    /// Copies the current spec of the user.
    fn follow(&mut self, recipe: &Recipe, object: &Value, around: &Around) {
        let wanted = if recipe.is_claim() {
            composite_from_claim(object, &recipe.xrd).unwrap_or_else(|_| object.clone())
        } else {
            object.clone()
        };
        let composite = self.world.composite_mut();
        let mut spec = wanted["spec"].clone();
        // Crossplane's own fields, in addition to the fields of the user.
        for field in WRITTEN.into_iter().chain(["writeConnectionSecretToRef", "crossplane"]) {
            if let Some(own) = composite["spec"].get(field) {
                spec[field] = own.clone();
            }
        }
        composite["spec"] = spec;
        for (field, entries) in wanted["metadata"].as_object().into_iter().flatten() {
            if ["labels", "annotations"].contains(&field.as_str()) {
                for (key, value) in entries.as_object().into_iter().flatten() {
                    composite["metadata"][field][key] = value.clone();
                }
            }
        }
        if let Some(stored) = around.store.get(&self.composite) {
            composite["metadata"]["generation"] = stored["metadata"]["generation"].clone();
        }
    }

    /// A reconcile: the function composes, the clouds work, and all objects get their status.
    /// Returns whether more steps follow.
    fn reconcile(&mut self, recipe: &Recipe, root: &Key, around: &Around, now: Timestamp) -> bool {
        let input = &recipe.composition["spec"]["pipeline"][0]["input"];
        let mut random = |bytes: &mut [u8]| {
            // Without random numbers passwords are weak, but their machines do not exist.
            let _ = getrandom::fill(bytes);
        };
        let mut outside = Outside { now: self.world.now(), random: &mut random };
        let composed = self.world.run(Some(input), |request| run(request, &mut outside));
        match composed {
            Ok(response) => {
                let ttl = response.meta.as_ref().and_then(|meta| meta.ttl.as_ref());
                let ttl = ttl.map(|ttl| SignedDuration::new(ttl.seconds, ttl.nanos));
                self.calls_again = ttl.and_then(|ttl| now.checked_add(ttl).ok());
                // The composite's conditions have the rejection.
                let _ = self.world.apply(&response);
            }
            Err(error) => {
                eprintln!("{} {}: the function has failed: {error}", root.resource, root.name);
            }
        }
        let at_work = self.cloud.work(&mut self.world, &around.quota, now);
        self.publisher.show(&self.world, around, now);
        self.tell(recipe, root, around, now) || at_work
    }

    /// Writes the composite and the claim. Returns whether something changed.
    fn tell(&self, recipe: &Recipe, root: &Key, around: &Around, now: Timestamp) -> bool {
        let composite = self.world.composite();
        let mut changed = false;
        let version = |key: &Key| {
            around.store.get(key).map(|object| object["metadata"]["resourceVersion"].clone())
        };
        let before = version(&self.composite);
        around.store.put(&self.composite, now, |there| {
            let mut object = there?.clone();
            add_finalizer(&mut object, FINALIZER);
            // The spec belongs to the user, and may have changed in the meantime.
            let own: &[&str] = if recipe.is_claim() {
                &["/spec", "/metadata/labels"]
            } else {
                &["/spec/crossplane"]
            };
            for place in own {
                put(&mut object, place, composite.pointer(place).cloned().unwrap_or_default());
            }
            object["status"] = composite["status"].clone();
            Some(object)
        });
        changed |= before != version(&self.composite);
        if recipe.is_claim() {
            let secret = claim::publish(&self.world, root, around, now);
            around
                .store
                .put(root, now, |there| Some(claim::told(there?, &self.world, secret, now)));
        }
        changed
    }

    /// Deletes the resources, then the composite, then the claim. Returns whether more steps
    /// follow.
    fn leave(&mut self, recipe: &Recipe, root: &Key, around: &Around, now: Timestamp) -> bool {
        let left = self.deletion.reconcile(&mut self.world, now);
        self.publisher.show(&self.world, around, now);
        let of_root = recipe.is_claim().then_some(root);
        for key in of_root.into_iter().chain([&self.composite]) {
            around.store.put(key, now, |there| Some(claim::deleting(there?, now)));
        }
        if left {
            return true;
        }
        self.publisher.clear(around, now);
        let release = |there: Option<&Value>| {
            let mut object = there?.clone();
            object["metadata"]["finalizers"] = json!([]);
            object["metadata"]["deletionTimestamp"] = json!(seconds(now).to_string());
            Some(object)
        };
        around.store.put(&self.composite, now, release);
        if recipe.is_claim() {
            claim::withdraw(root, around, now);
            around.store.put(root, now, release);
        }
        false
    }
}

/// Writes a value at a JSON pointer with an existing parent.
fn put(object: &mut Value, pointer: &str, new: Value) {
    let (parent, field) = pointer.rsplit_once('/').unwrap_or_default();
    if let Some(parent) = object.pointer_mut(parent) {
        parent[field] = new;
    }
}
