//! Disturbances of providers: rejections, deletions by hand, restarts, slow clouds, names that
//! other accounts own, missing capacity, and machines that stop.

use serde_json::json;

use super::machines::stops_when_interrupted;
use super::{External, Provider, is_ready, registry};
use crate::core::World;
use crossplane::json::set;
use crossplane::names::CREATE_PENDING;

impl Provider {
    /// Makes the cloud reject the resource in `slot` with this message.
    pub fn fail(&mut self, slot: impl Into<String>, message: impl Into<String>) {
        self.failing.insert(slot.into(), message.into());
    }

    /// Makes the cloud accept the resource in `slot` again, with capacity for it.
    pub fn mend(&mut self, slot: &str) {
        self.failing.remove(slot);
        self.exhausted.remove(slot);
    }

    /// The external resource of a slot, for changes as in the cloud's console. Only resources of
    /// upjet providers have one.
    pub fn external_mut(&mut self, slot: &str) -> Option<&mut External> {
        self.clouds.get_mut(slot)
    }

    /// Deletes the resource of a slot outside of its provider. The provider notices at its next
    /// observation.
    pub fn vanish(&mut self, slot: &str) {
        self.clouds.vanish(slot);
        self.work.remove(slot);
    }

    /// The names of external resources without an object.
    pub fn leaked(&self) -> &[String] {
        self.clouds.leaked()
    }

    /// Deletes the provider configs of this name.
    pub fn remove_config(&mut self, name: impl Into<String>) {
        self.missing_configs.insert(name.into());
    }

    /// Deletes the namespace of the resources. That first deletes the usages of provider configs in
    /// the namespace, and forbids to create them again, so no provider connects for a resource of
    /// the namespaced API.
    pub fn delete_namespace(&mut self) {
        self.is_namespace_deleted = true;
    }

    /// Restarts the upjet providers, which forget running operations. A resource with a known name
    /// is found at the next observation. If the cloud assigns the name, a second resource is
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
    /// the provider recorded a result. The provider then waits until the annotation is removed.
    pub fn interrupt(&mut self, world: &mut World, slot: &str) {
        let Some(mut object) = world.resources().get(slot).cloned() else { return };
        self.clouds.abandon(slot, &registry::for_object(&object), &object, world);
        self.work.remove(slot);
        let now = json!(world.now().to_string());
        set(&mut object, &["metadata", "annotations", CREATE_PENDING], now);
        world.resources_mut().insert(slot.to_owned(), object);
    }

    /// Makes the creation of the resource in `slot` exceed the timeout of its provider, if the
    /// provider works in the background.
    pub fn stall(&mut self, slot: impl Into<String>) {
        self.stalled.insert(slot.into());
    }

    /// Gives a bucket name to another account.
    pub fn occupy(&mut self, name: impl Into<String>) {
        self.clouds.occupy(name.into());
    }

    /// The number of updates that the provider of the resource in `slot` has sent.
    pub fn updates(&self, slot: &str) -> u32 {
        self.clouds.updates(slot)
    }

    /// From here on the cloud has no capacity to create or start the machine of a slot, until
    /// [`Provider::mend`].
    pub fn exhaust(&mut self, slot: impl Into<String>) {
        self.exhausted.insert(slot.into());
    }

    /// Lets the machine of a slot power itself off, as a `shutdown` in it does. By
    /// `instanceInitiatedShutdownBehavior` that stops or terminates it.
    pub fn power_off(&mut self, slot: &str) {
        let Some(external) = self.clouds.get_mut(slot) else { return };
        if external.parameters["instanceInitiatedShutdownBehavior"] == "terminate" {
            self.vanish(slot);
        } else if let Some(machine) = &mut external.machine {
            machine.stop_at_once(false);
        }
    }

    /// Lets AWS interrupt the spot machine of a slot. By its options that stops or terminates it.
    pub fn reclaim(&mut self, slot: &str) {
        let Some(external) = self.clouds.get_mut(slot) else { return };
        if !stops_when_interrupted(&external.parameters) {
            self.vanish(slot);
        } else if let Some(machine) = &mut external.machine {
            machine.stop_at_once(true);
        }
    }

    /// Lets AWS start the spot machine again that it interrupted.
    pub fn resume(&mut self, slot: &str) {
        let machine = self.clouds.get_mut(slot).and_then(|external| external.machine.as_mut());
        if let Some(machine) = machine.filter(|machine| machine.is_interrupted) {
            machine.is_interrupted = false;
            machine.start();
        }
    }
}
