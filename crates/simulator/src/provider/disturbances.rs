//! Disturbances of providers: refusals, deletions by hand, restarts, slow clouds, and names that
//! others have.

use serde_json::json;

use super::{External, Provider, is_ready, registry};
use crate::core::World;
use crossplane::json::set;
use crossplane::names::CREATE_PENDING;

impl Provider {
    /// From here on the cloud refuses the resource in `slot` with this message.
    pub fn fail(&mut self, slot: impl Into<String>, message: impl Into<String>) {
        self.failing.insert(slot.into(), message.into());
    }

    /// The cloud takes the resource in `slot` again.
    pub fn mend(&mut self, slot: &str) {
        self.failing.remove(slot);
    }

    /// The cloud's resource of a slot, to change it as its console would. Resources of providers
    /// that are not upjet's have none.
    pub fn external_mut(&mut self, slot: &str) -> Option<&mut External> {
        self.clouds.get_mut(slot)
    }

    /// Deletes the resource of a slot outside of its provider. The provider notices at its next
    /// look.
    pub fn vanish(&mut self, slot: &str) {
        self.clouds.vanish(slot);
        self.work.remove(slot);
    }

    /// The names of cloud resources that no object knows any more.
    pub fn leaked(&self) -> &[String] {
        self.clouds.leaked()
    }

    /// Deletes the provider configs of this name.
    pub fn remove_config(&mut self, name: impl Into<String>) {
        self.missing_configs.insert(name.into());
    }

    /// Restarts the upjet providers, which forget the operations that run. A resource that is found
    /// by its name is there at the next look. Where the cloud assigns the name, a second one is
    /// created.
    pub fn restart(&mut self, world: &World) {
        for (slot, object) in world.resources() {
            let behaviour = registry::for_object(object);
            let is_making = self.work.contains_key(slot) && !is_ready(object);
            if is_making && behaviour.mirrors && !self.clouds.has(slot) {
                self.clouds.abandon(slot, &behaviour, object, world);
                self.work.remove(slot);
            }
        }
    }

    /// Kills the provider of the resource in `slot` after the cloud began to create it, and before
    /// the provider noted a result. The provider then waits until the annotation is removed.
    pub fn interrupt(&mut self, world: &mut World, slot: &str) {
        let Some(mut object) = world.resources().get(slot).cloned() else { return };
        self.clouds.abandon(slot, &registry::for_object(&object), &object, world);
        self.work.remove(slot);
        let now = json!(world.now().to_string());
        set(&mut object, &["metadata", "annotations", CREATE_PENDING], now);
        world.resources_mut().insert(slot.to_owned(), object);
    }

    /// From here on the cloud takes longer to create the resource in `slot` than its provider
    /// follows the operation, if the provider works in the background.
    pub fn stall(&mut self, slot: impl Into<String>) {
        self.stalled.insert(slot.into());
    }

    /// Gives a bucket of this name to another account.
    pub fn occupy(&mut self, name: impl Into<String>) {
        self.clouds.occupy(name.into());
    }

    /// How many updates the provider of the resource in `slot` has sent.
    pub fn updates(&self, slot: &str) -> u32 {
        self.clouds.updates(slot)
    }
}
