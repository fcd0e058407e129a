//! Copies an environment's resources to the API.

use std::collections::BTreeSet;

use fake_kube::store::Key;
use jiff::Timestamp;
use serde_json::Value;
use simulator::core::World;

use super::Around;

/// The copied objects of one environment.
#[derive(Default)]
pub struct Publisher {
    parts: BTreeSet<Key>,
    secrets: BTreeSet<Key>,
}

impl Publisher {
    /// Copies every resource, and every Secret that a provider or Crossplane has written. Deletes
    /// the copies of removed resources.
    pub fn show(&mut self, world: &World, around: &Around, now: Timestamp) {
        let parts: BTreeSet<Key> =
            world.resources().values().filter_map(|one| put(one, around, now)).collect();
        for gone in self.parts.difference(&parts) {
            around.store.put(gone, now, |_| None);
        }
        self.parts = parts;
        self.secrets.extend(world.secrets().filter_map(|one| put(one, around, now)));
    }

    /// Deletes all copies.
    pub fn clear(&mut self, around: &Around, now: Timestamp) {
        for key in
            std::mem::take(&mut self.parts).into_iter().chain(std::mem::take(&mut self.secrets))
        {
            around.store.put(&key, now, |_| None);
        }
    }
}

/// Copies an object, and returns its key.
fn put(object: &Value, around: &Around, now: Timestamp) -> Option<Key> {
    let metadata = &object["metadata"];
    let namespace = metadata["namespace"].as_str().unwrap_or_default();
    let key = around.kinds.for_object(object)?.key(namespace, metadata["name"].as_str()?);
    around.store.put(&key, now, |_| Some(object.clone()));
    Some(key)
}
