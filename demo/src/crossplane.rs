//! A fake Crossplane with fake providers. It creates and deletes environments, one resource at a
//! time.

mod claim;
mod cloud;
mod deletion;
mod environment;
mod publish;

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Result;
use fake_kube::Cluster;
use fake_kube::json::text;
use fake_kube::kinds::Kinds;
use fake_kube::store::{Key, Store};
use jiff::Timestamp;
use serde_json::Value;

use crate::recipes::{Recipe, Recipes};
use cloud::Quota;
use environment::Environment;

/// Crossplane, with all providers.
pub struct Crossplane {
    around: Around,
    /// By the UID of the object that users applied.
    environments: BTreeMap<String, Environment>,
}

/// Data shared by all environments.
struct Around {
    store: Arc<Store>,
    kinds: Arc<Kinds>,
    recipes: Arc<Recipes>,
    quota: Quota,
    /// The factor for all durations.
    pace: f64,
}

impl Crossplane {
    /// A Crossplane that has not seen any object yet.
    pub fn new(cluster: &Cluster, recipes: &Arc<Recipes>, pace: f64) -> Result<Self> {
        let (store, kinds) = (Arc::clone(&cluster.store), Arc::clone(&cluster.kinds));
        let recipes = Arc::clone(recipes);
        let around = Around { store, kinds, recipes, quota: Quota::load()?, pace };
        Ok(Self { around, environments: BTreeMap::new() })
    }

    /// Advances every environment to this time.
    pub fn tick(&mut self, now: Timestamp) {
        let roots = self.roots();
        let known: Vec<&str> =
            roots.iter().map(|(_, _, object)| text(object, "/metadata/uid")).collect();
        self.environments.retain(|uid, _| known.contains(&uid.as_str()));
        for (recipe, key, object) in &roots {
            self.step(*recipe, key, object, now);
        }
    }

    /// Advances one environment to this time. Returns whether it will continue automatically.
    pub fn tick_one(&mut self, key: &Key, now: Timestamp) -> bool {
        let found = self.roots().into_iter().find(|(_, found, _)| found == key);
        found.is_some_and(|(recipe, key, object)| self.step(recipe, &key, &object, now))
    }

    fn step(&mut self, recipe: usize, key: &Key, object: &Value, now: Timestamp) -> bool {
        let uid = text(object, "/metadata/uid").to_owned();
        let environment =
            self.environments.entry(uid).or_insert_with(|| Environment::new(recipe, key.clone()));
        environment.step(object, &self.around, now)
    }

    /// The applied objects, each with its recipe and key.
    fn roots(&self) -> Vec<(usize, Key, Arc<Value>)> {
        let of = |(index, recipe): (usize, &Recipe)| {
            let (_, found) = self.around.store.list(&recipe.kind.resource(), None);
            found.into_iter().map(move |(key, object)| (index, key, object))
        };
        self.around.recipes.all.iter().enumerate().flat_map(of).collect()
    }
}
