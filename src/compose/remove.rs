//! Removal of resources: a resource that exists is removed only by the name of its slot.

mod inside;

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Composer, usage};
use crate::error::Error;
use crate::models::{self, Scope};
use crate::observe::{Health, Resource};
use crate::value::{Object, at, put, text};

impl Composer<'_> {
    /// Removes an existing resource, and the Usages by it. No resource is removed in another way.
    ///
    /// # Errors
    /// A Usage protects the slot. The removal would violate its deletion order.
    pub fn remove(&mut self, slot: &str) -> Result<(), Error> {
        self.mark_removed(slot)?;
        self.remove_usages_by(slot);
        Ok(())
    }

    /// Removes a resource, and keeps the Usages by it.
    fn mark_removed(&mut self, slot: &str) -> Result<(), Error> {
        if self.protected.contains(slot) || self.is_used(slot) {
            return Err(Error::Defect(format!(
                "slot `{slot}` is protected by a Usage and cannot be removed"
            )));
        }
        tracing::debug!(slot, "removed");
        self.removed.insert(slot.to_owned());
        Ok(())
    }

    /// Removes an existing Usage of the resource in slot `of`, which the deletion of the resource
    /// in slot `by` no longer needs.
    pub fn remove_usage(&mut self, of: &str, by: &str) {
        self.removed.extend(self.has_usage(of, by).then(|| usage::slot_of(of, by)));
    }

    /// Removes the Usages by a slot that no longer needs other resources for its deletion.
    pub fn remove_usages_by(&mut self, slot: &str) {
        let usages = self.usages_by(slot);
        self.removed.extend(usages);
    }

    /// Removes our resources in slots with `prefix` that this call does not compose. For lists that
    /// users may shorten.
    pub fn remove_rest(&mut self, prefix: &str) -> Result<(), Error> {
        let gone: Vec<String> = self
            .slots(prefix)
            .filter(|slot| !self.desired.contains_key(*slot))
            .map(str::to_owned)
            .collect();
        gone.iter().try_for_each(|slot| self.remove(slot))
    }

    /// Removes a resource that the user no longer wants, in order. This takes several calls, until
    /// [`is_gone`](Self::is_gone) is true.
    ///
    /// An orphan would stay in its cluster, so it is first made deletable. This waits until Usages
    /// protect the resources that its deletion `needs`, and all resources beneath. A user may
    /// delete the whole environment meanwhile. The needed resources are removed after its provider
    /// has finished.
    pub fn remove_ordered<M: models::Managed>(
        &mut self,
        slot: &str,
        needs: &[&str],
    ) -> Result<(), Error> {
        self.removal_step::<M>(slot, needs, false)
    }

    /// One step of a removal in order. With `stay`, the resource is preserved for another call.
    fn removal_step<M: models::Managed>(
        &mut self,
        slot: &str,
        needs: &[&str],
        stay: bool,
    ) -> Result<(), Error> {
        match self.observation.resources.get(slot) {
            None if stay || self.is_being_deleted(slot) => self.retain_usages_by(slot),
            None => self.remove(slot),
            Some(running) => {
                // Only a running cluster can delete its content.
                let stay = stay || self.stop.is_some() || running.is_stopped();
                let needs: Vec<&str> = needs.iter().copied().filter(|of| self.exists(of)).collect();
                let (orphan, secured) =
                    (is_orphan(&running.object, self.xr.scope), self.is_secured(slot, &needs));
                if !stay && !orphan && secured {
                    self.mark_removed(slot)?;
                } else {
                    self.retain_with::<M>(slot, orphan && !secured)?;
                    needs.iter().try_for_each(|of| self.usage(of, slot))?;
                }
                self.retain_usages_by(slot)
            }
        }
    }

    /// Whether a removal in order is complete: the resource, its observing resource and its Usages
    /// are gone.
    pub fn is_gone(&self, slot: &str) -> bool {
        !self.exists(slot)
            && !self.exists(&format!("{slot}-leaving"))
            && self.usages_by(slot).is_empty()
    }

    /// Whether the observed or the desired state of a slot's object deletes the resource in the
    /// cloud together with the object.
    pub fn is_deleted_with(&self, slot: &str) -> bool {
        let running = self.observation.resources.get(slot).map(|running| &running.object);
        let asked = self.desired.get(slot).map(|desired| &desired.object);
        running.into_iter().chain(asked).any(|object| !is_orphan(object, self.xr.scope))
    }

    /// Whether Usages protect the resources that a slot `needs` until its own resource is gone. The
    /// Usages by the slot must be in force, and likewise the Usages by all resources beneath. A
    /// Usage that this call has not composed yet, and that never existed, is unknown here. Compose
    /// the resources beneath first.
    pub fn is_secured<'c>(&'c self, slot: &'c str, needs: &[&'c str]) -> bool {
        let mut seen = BTreeSet::new();
        let mut left: Vec<(&str, &str)> = needs.iter().map(|of| (*of, slot)).collect();
        while let Some((of, by)) = left.pop() {
            let usage = self.observation.resources.get(&format!("usage-{of}-by-{by}"));
            if !usage.is_some_and(|usage| usage.health().ready) {
                return false;
            }
            // Observed Usages may be arbitrary, even circular.
            if seen.insert(of) {
                left.extend(self.needs(of).map(|beneath| (beneath, of)));
            }
        }
        true
    }

    /// The slots that our Usages by a slot protect. These are the observed Usages, the Usages of
    /// this call, and the waiting Usages.
    fn needs(&self, slot: &str) -> impl Iterator<Item = &str> {
        let by = format!("-by-{slot}");
        let asked = self.desired.keys().chain(self.waiting.keys()).map(String::as_str);
        self.slots("usage-")
            .chain(asked)
            .filter_map(move |usage| usage.strip_prefix("usage-")?.strip_suffix(&by))
    }

    /// Whether a resource that is no longer desired is still being deleted. Crossplane does not
    /// send it to us, but a Usage by it shows it. Crossplane makes the resource an owner of the
    /// Usage, and Kubernetes removes deleted owners from the Usage.
    fn is_being_deleted(&self, slot: &str) -> bool {
        self.usages_by(slot)
            .iter()
            .filter_map(|usage| self.observation.resources.get(usage))
            .any(|usage| is_owned(&usage.object))
    }

    /// Preserves the Usages by a slot, except Usages that this call already composed.
    fn retain_usages_by(&mut self, slot: &str) -> Result<(), Error> {
        for usage in self.usages_by(slot) {
            let of = usage
                .strip_prefix("usage-")
                .and_then(|rest| rest.strip_suffix(&format!("-by-{slot}")));
            let Some(of) = of.filter(|_| !self.desired.contains_key(&usage)) else { continue };
            self.usage(of, slot)?;
            if self.desired.contains_key(slot) {
                continue;
            }
            if let Some(kept) = self.desired.get_mut(&usage) {
                kept.health = Health::waiting_for(&format!("{slot} to be deleted"));
            }
        }
        Ok(())
    }

    /// Preserves an existing resource that the user no longer wants, because another resource has
    /// to be removed first. The environment is not ready until then.
    pub fn retain<M: models::Managed>(&mut self, slot: &str) -> Result<(), Error> {
        let Some(running) = self.observation.resources.get(slot) else { return Ok(()) };
        self.retain_with::<M>(slot, is_orphan(&running.object, self.xr.scope))?;
        if let Some(kept) = self.desired.get_mut(slot) {
            kept.counted = false;
            kept.health = Health::waiting_for("the resources that need it to be deleted");
        }
        Ok(())
    }

    /// Composes the observed state. An empty model accepts all observed values.
    fn retain_with<M: models::Managed>(&mut self, slot: &str, orphan: bool) -> Result<(), Error> {
        let publishes = self.observation.resources.get(slot).is_some_and(|running| {
            at(&running.object, &["spec", "writeConnectionSecretToRef"]).is_some()
        });
        let empty: M = serde_json::from_value(serde_json::json!({})).map_err(|error| {
            Error::Defect(format!("the model in slot `{slot}` requires a field: {error}"))
        })?;
        let name = self.external_name(slot);
        let mut kept = self.managed(slot, empty).orphan(orphan);
        if let Some(name) = name {
            kept = kept.external_name(name);
        }
        if publishes { kept.publishes() } else { kept }.add()?;
        let notes = self.observation.resources.get(slot).map(Resource::choices).unwrap_or_default();
        if let Some(kept) = self.desired.get_mut(slot) {
            for (key, value) in notes {
                put(&mut kept.object, &["metadata", "annotations", &key], Some(value));
            }
        }
        Ok(())
    }

    /// Whether an observed Usage protects the observed resource in a slot.
    fn is_used(&self, slot: &str) -> bool {
        let Some(resource) = self.observation.resources.get(slot) else { return false };
        self.observation.resources.values().any(|usage| {
            let of = |path: &[&str]| {
                at(&usage.object, &["spec", "of"])?.as_object().and_then(|of| text(of, path))
            };
            text(&usage.object, &["kind"]) == Some("Usage")
                && of(&["kind"]) == text(&resource.object, &["kind"])
                && of(&["resourceRef", "name"]).is_some_and(|name| resource.name() == Some(name))
        })
    }
}

/// Whether the using resource of a Usage is among the Usage's owners.
fn is_owned(usage: &Object) -> bool {
    let user = |path: &[&str]| text(usage, &[&["spec", "by"], path].concat());
    let Some((kind, name)) = user(&["kind"]).zip(user(&["resourceRef", "name"])) else {
        return false;
    };
    let owners = at(usage, &["metadata", "ownerReferences"]).and_then(Value::as_array);
    owners.into_iter().flatten().any(|owner| owner["kind"] == kind && owner["name"] == name)
}

/// Whether the resource in the cloud stays when its object is deleted.
pub(crate) fn is_orphan(object: &Object, scope: Scope) -> bool {
    match scope {
        Scope::LegacyCluster => text(object, &["spec", "deletionPolicy"]) == Some("Orphan"),
        Scope::Namespaced => {
            let policies = at(object, &["spec", "managementPolicies"]).and_then(Value::as_array);
            policies.is_some_and(|all| !all.iter().any(|one| one == "*" || one == "Delete"))
        }
    }
}
