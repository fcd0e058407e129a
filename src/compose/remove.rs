//! Removal of resources: a resource that exists is removed only by the name of its slot.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::health::{Health, State};
use super::{Composition, Scope, health, observed};
use crate::error::Error;
use crate::models::{self, kubernetes};
use crate::reason::Reason;
use crate::value::{Object, at, text};

impl Composition<'_> {
    /// Lets a resource that exists go, and the Usages by it: the only way in which one ever
    /// vanishes.
    ///
    /// # Errors
    /// A Usage protects the slot: its order would not hold in a living composite.
    pub fn remove(&mut self, slot: &str) -> Result<(), Error> {
        self.mark_removed(slot)?;
        self.remove_usages_by(slot);
        Ok(())
    }

    /// Lets a resource go, and keeps the Usages by it.
    fn mark_removed(&mut self, slot: &str) -> Result<(), Error> {
        if self.protected.contains(slot) || self.is_used(slot) {
            return Err(Error::Defect(format!(
                "slot `{slot}` is protected by a Usage and cannot be retired"
            )));
        }
        tracing::debug!(slot, "retired");
        self.removed.insert(slot.to_owned());
        Ok(())
    }

    /// Lets the Usages by a slot go, which needs nothing any more in order to be deleted.
    pub fn remove_usages_by(&mut self, slot: &str) {
        let usages = self.usages_by(slot);
        self.removed.extend(usages);
    }

    /// Retires every resource of ours whose slot begins with `prefix` and that this call does not
    /// ask for: for lists that the user may shorten.
    pub fn remove_rest(&mut self, prefix: &str) -> Result<(), Error> {
        let gone: Vec<String> = self
            .slots(prefix)
            .filter(|slot| !self.desired.contains_key(*slot))
            .map(str::to_owned)
            .collect();
        gone.iter().try_for_each(|slot| self.remove(slot))
    }

    /// Lets what the user no longer asks for go, step by step; [`is_gone`](Self::is_gone) says when
    /// nothing is left of it.
    ///
    /// What would be left behind in its cluster (`Orphan`) is made to be deleted once Usages keep
    /// what it `needs` for that, and all beneath, in case somebody deletes the whole environment
    /// meanwhile. These go after its provider has let go of it.
    pub fn remove_ordered<M: models::Managed>(
        &mut self,
        slot: &str,
        needs: &[&str],
    ) -> Result<(), Error> {
        self.removal_step::<M>(slot, needs, false)
    }

    /// The same for an object inside a cluster that we made, where somebody may hold its deletion
    /// up. Core forgets a resource as soon as nobody asks for it, so another one looks on until the
    /// object is gone from its cluster: slot `<slot>-leaving`.
    pub fn remove_ordered_inside(&mut self, slot: &str, needs: &[&str]) -> Result<(), Error> {
        let watch = format!("{slot}-leaving");
        let (exists, looks_on) = (self.exists(slot), self.exists(&watch));
        let whom = if exists { slot } else { watch.as_str() };
        let Some((config, object)) = self.observed.get(whom).and_then(identity) else {
            return self.remove_ordered::<kubernetes::Object>(slot, needs);
        };
        let missing = self.observed.get(&watch).is_some_and(is_missing);
        if !exists && missing && !self.is_being_deleted(slot) {
            self.remove(&watch)?;
            return self.remove_ordered::<kubernetes::Object>(slot, needs);
        }
        self.inside(config, &watch, object).observe().add()?;
        let message =
            self.observed.get(&watch).filter(|_| !missing).map_or(IS_LEAVING.into(), leaving);
        if let Some(plumbing) = self.desired.get_mut(&watch) {
            plumbing.counted = false;
            plumbing.health = Health::pending(State::Waiting, Reason::Deleting, message);
        }
        self.removal_step::<kubernetes::Object>(
            slot,
            needs,
            if exists { !looks_on } else { !missing },
        )
    }

    /// One step of a resource on its way out, or none where it has to `stay` as it is for another
    /// call.
    fn removal_step<M: models::Managed>(
        &mut self,
        slot: &str,
        needs: &[&str],
        stay: bool,
    ) -> Result<(), Error> {
        match self.observed.get(slot) {
            None if stay || self.is_being_deleted(slot) => self.retain_usages_by(slot),
            None => self.remove(slot),
            Some(running) => {
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

    /// Whether nothing is left of what was dismissed: neither it, nor who looks on, nor what keeps
    /// what it needs.
    pub fn is_gone(&self, slot: &str) -> bool {
        !self.exists(slot)
            && !self.exists(&format!("{slot}-leaving"))
            && self.usages_by(slot).is_empty()
    }

    /// Whether deleting the object in a slot deletes what it stands for: as it runs, or as this
    /// call asks for it.
    pub fn is_deleted_with(&self, slot: &str) -> bool {
        let running = self.observed.get(slot).map(|running| &running.object);
        let asked = self.desired.get(slot).map(|desired| &desired.object);
        running.into_iter().chain(asked).any(|object| !is_orphan(object, self.xr.scope))
    }

    /// The slots of the Usages of ours by a slot that were observed.
    pub(super) fn usages_by(&self, slot: &str) -> Vec<String> {
        let by = format!("-by-{slot}");
        self.slots("usage-").filter(|usage| usage.ends_with(&by)).map(str::to_owned).collect()
    }

    /// Whether Usages keep what a slot `needs` until its resource is gone: those by the slot are in
    /// force, and so is every Usage by what they keep, down to what needs nothing. Usages that this
    /// call has not asked for yet, and that were never there, are not known here: what is beneath
    /// is composed first.
    pub fn is_secured<'c>(&'c self, slot: &'c str, needs: &[&'c str]) -> bool {
        let mut seen = BTreeSet::new();
        let mut left: Vec<(&str, &str)> = needs.iter().map(|of| (*of, slot)).collect();
        while let Some((of, by)) = left.pop() {
            let usage = self.observed.get(&format!("usage-{of}-by-{by}"));
            if !usage.is_some_and(|usage| usage.health().ready) {
                return false;
            }
            // What was observed may be anything, and go round in a circle.
            if seen.insert(of) {
                left.extend(self.needs(of).map(|beneath| (beneath, of)));
            }
        }
        true
    }

    /// What the Usages of ours by a slot keep: those that were observed, that this call asks for,
    /// and that have to wait.
    fn needs(&self, slot: &str) -> impl Iterator<Item = &str> {
        let by = format!("-by-{slot}");
        let asked = self.desired.keys().chain(self.waiting.keys()).map(String::as_str);
        self.slots("usage-")
            .chain(asked)
            .filter_map(move |usage| usage.strip_prefix("usage-")?.strip_suffix(&by))
    }

    /// Whether a resource that nobody asks for any more is still on its way out, which core does
    /// not show us. A Usage by it does: Crossplane makes the user an owner of its Usages, and
    /// Kubernetes takes owners that are gone out of them.
    fn is_being_deleted(&self, slot: &str) -> bool {
        self.usages_by(slot)
            .iter()
            .filter_map(|usage| self.observed.get(usage))
            .any(|usage| is_owned(&usage.object))
    }

    /// Keeps the Usages by a slot as they are, but for those that this call asked for already.
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

    /// Ends what [`remove_ordered_inside`](Self::remove_ordered_inside) began: the object is wanted
    /// again.
    pub fn cancel_removal(&mut self, slot: &str) -> Result<(), Error> {
        self.remove(&format!("{slot}-leaving"))
    }

    /// Keeps what exists in a slot as it is, although the user no longer asks for it: something
    /// else has to go first.
    pub fn retain<M: models::Managed>(&mut self, slot: &str) -> Result<(), Error> {
        match self.observed.get(slot) {
            Some(running) => self.retain_with::<M>(slot, is_orphan(&running.object, self.xr.scope)),
            None => Ok(()),
        }
    }

    /// Asks for what runs: a model that wants nothing takes every value that is there.
    fn retain_with<M: models::Managed>(&mut self, slot: &str, orphan: bool) -> Result<(), Error> {
        let publishes = self.observed.get(slot).is_some_and(|running| {
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
        if publishes { kept.publishes() } else { kept }.add().map(|_| ())
    }

    /// Whether an observed Usage protects what was observed in a slot.
    fn is_used(&self, slot: &str) -> bool {
        let Some(resource) = self.observed.get(slot) else { return false };
        self.observed.values().any(|usage| {
            let of = |path: &[&str]| {
                at(&usage.object, &["spec", "of"])?.as_object().and_then(|of| text(of, path))
            };
            text(&usage.object, &["kind"]) == Some("Usage")
                && of(&["kind"]) == text(&resource.object, &["kind"])
                && of(&["resourceRef", "name"]).is_some_and(|name| resource.name() == Some(name))
        })
    }
}

/// The provider config by which a wrapped object is reached, and of the object what tells it from
/// others.
fn identity(wrapper: &observed::Resource) -> Option<(String, Value)> {
    let spec = at(&wrapper.object, &["spec"])?.as_object()?;
    let manifest = at(spec, &["forProvider", "manifest"])?.as_object()?;
    let part = |path: &[&str]| text(manifest, path);
    let mut object = json!({
        "apiVersion": part(&["apiVersion"])?, "kind": part(&["kind"])?,
        "metadata": {"name": part(&["metadata", "name"])?},
    });
    if let Some(namespace) = part(&["metadata", "namespace"]) {
        object["metadata"]["namespace"] = namespace.into();
    }
    Some((text(spec, &["providerConfigRef", "name"])?.to_owned(), object))
}

/// Whether somebody who only looks on sees nothing, in the words of Crossplane's runtime.
fn is_missing(watch: &observed::Resource) -> bool {
    let conditions = at(&watch.object, &["status", "conditions"]).and_then(Value::as_array);
    conditions.into_iter().flatten().any(|condition| {
        let says = |field: &str| condition[field].as_str().unwrap_or_default();
        (says("type"), says("status")) == ("Synced", "False")
            && says("message").contains("external resource does not exist")
    })
}

/// What is said of an object on its way out.
const IS_LEAVING: &str = "is being deleted";

/// The same with what somebody inside has to say of why it takes so long.
fn leaving(watch: &observed::Resource) -> String {
    let mut object = watch.object.clone();
    let inner = object
        .get_mut("status")
        .and_then(|status| status.pointer_mut("/atProvider/manifest/metadata"));
    if let Some(metadata) = inner.and_then(Value::as_object_mut) {
        metadata.remove("deletionTimestamp");
    }
    let health = health::from_object(&object);
    match health.state {
        State::Failed | State::Waiting => format!("{IS_LEAVING}: {}", health.message),
        State::Available | State::Creating => IS_LEAVING.to_owned(),
    }
}

/// Whether the user of a Usage is among its owners.
fn is_owned(usage: &Object) -> bool {
    let user = |path: &[&str]| text(usage, &[&["spec", "by"], path].concat());
    let Some((kind, name)) = user(&["kind"]).zip(user(&["resourceRef", "name"])) else {
        return false;
    };
    let owners = at(usage, &["metadata", "ownerReferences"]).and_then(Value::as_array);
    owners.into_iter().flatten().any(|owner| owner["kind"] == kind && owner["name"] == name)
}

/// Whether deleting a resource's object leaves what it stands for where it is.
pub(super) fn is_orphan(object: &Object, scope: Scope) -> bool {
    match scope {
        Scope::LegacyCluster => text(object, &["spec", "deletionPolicy"]) == Some("Orphan"),
        Scope::Namespaced => {
            let policies = at(object, &["spec", "managementPolicies"]).and_then(Value::as_array);
            policies.is_some_and(|all| !all.iter().any(|one| one == "*" || one == "Delete"))
        }
    }
}
