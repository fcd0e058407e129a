//! What goes: nothing that exists vanishes but by name.

use serde_json::{Value, json};

use super::{Composition, Health, Scope, observed};
use crate::error::Error;
use crate::models::{self, kubernetes};
use crate::value::{at, text};

impl Composition<'_> {
    /// Lets a resource that exists go, and the Usages by it: the only way in which one ever vanishes.
    ///
    /// # Errors
    /// A Usage protects the slot: its order would not hold in a living composite.
    pub fn retire(&mut self, slot: &str) -> Result<(), Error> {
        if self.protected.contains(slot) || self.is_used(slot) {
            return Err(Error::Defect(format!(
                "slot `{slot}` is protected by a Usage and cannot be retired"
            )));
        }
        tracing::debug!(slot, "retired");
        self.retired.insert(slot.to_owned());
        let by = format!("-by-{slot}");
        let usages: Vec<String> =
            self.slots("usage-").filter(|usage| usage.ends_with(&by)).map(str::to_owned).collect();
        self.retired.extend(usages);
        Ok(())
    }

    /// Retires every resource of ours whose slot begins with `prefix` and that this call does not ask for: for lists
    /// that the user may shorten.
    pub fn retire_rest(&mut self, prefix: &str) -> Result<(), Error> {
        let gone: Vec<String> =
            self.slots(prefix).filter(|slot| !self.desired.contains_key(*slot)).map(str::to_owned).collect();
        gone.iter().try_for_each(|slot| self.retire(slot))
    }

    /// Lets what the user no longer asks for go, and says whether nothing is left of it. What would be left behind in its
    /// cluster (`Orphan`) is first made to be deleted, and retired once that was observed.
    pub fn dismiss<M: models::Managed>(&mut self, slot: &str) -> Result<bool, Error> {
        if self.observed.get(slot).is_some_and(|running| is_orphan(running, self.xr.scope)) {
            self.kept::<M>(slot, false)?;
            return Ok(false);
        }
        self.retire(slot)?;
        let by = format!("-by-{slot}");
        let left = self.exists(slot) || self.slots("usage-").any(|usage| usage.ends_with(&by));
        Ok(!left)
    }

    /// The same for an object inside a cluster that we made, where somebody may hold its deletion up. Core forgets a resource as
    /// soon as nobody asks for it, so another one looks on until the object is gone from its cluster: slot `<slot>-leaving`.
    pub fn dismiss_inside(&mut self, slot: &str) -> Result<bool, Error> {
        let watch = format!("{slot}-leaving");
        let looks_on = self.exists(&watch);
        let whom = if self.exists(slot) { slot } else { watch.as_str() };
        let Some((config, object)) = self.observed.get(whom).and_then(identity) else {
            return self.dismiss::<kubernetes::Object>(slot);
        };
        if looks_on && !self.exists(slot) && self.observed.get(&watch).is_some_and(is_missing) {
            self.retire(&watch)?;
            return Ok(true);
        }
        self.inside(config, &watch, object).observe().add()?;
        if let Some(plumbing) = self.desired.get_mut(&watch) {
            plumbing.counted = false;
            plumbing.health = Health::available();
        }
        if looks_on {
            self.dismiss::<kubernetes::Object>(slot)?;
        } else {
            self.kept::<kubernetes::Object>(slot, false)?;
        }
        Ok(false)
    }

    /// Ends what [`dismiss_inside`](Self::dismiss_inside) began: the object is wanted again.
    pub fn stay(&mut self, slot: &str) -> Result<(), Error> {
        self.retire(&format!("{slot}-leaving"))
    }

    /// Keeps what exists in a slot as it is, although the user no longer asks for it: something else has to go first.
    pub fn keep<M: models::Managed>(&mut self, slot: &str) -> Result<(), Error> {
        match self.observed.get(slot) {
            Some(running) => self.kept::<M>(slot, is_orphan(running, self.xr.scope)),
            None => Ok(()),
        }
    }

    /// Asks for what runs: a model that wants nothing takes every value that is there.
    fn kept<M: models::Managed>(&mut self, slot: &str, orphan: bool) -> Result<(), Error> {
        let publishes = self
            .observed
            .get(slot)
            .is_some_and(|running| at(&running.object, &["spec", "writeConnectionSecretToRef"]).is_some());
        let empty: M = serde_json::from_value(serde_json::json!({})).map_err(|error| {
            Error::Defect(format!("the model in slot `{slot}` requires a field: {error}"))
        })?;
        let kept = self.managed(slot, empty).orphan(orphan);
        if publishes { kept.publishes() } else { kept }.add().map(|_| ())
    }

    /// Whether an observed Usage protects what was observed in a slot.
    fn is_used(&self, slot: &str) -> bool {
        let Some(resource) = self.observed.get(slot) else { return false };
        self.observed.values().any(|usage| {
            let of =
                |path: &[&str]| at(&usage.object, &["spec", "of"])?.as_object().and_then(|of| text(of, path));
            text(&usage.object, &["kind"]) == Some("Usage")
                && of(&["kind"]) == text(&resource.object, &["kind"])
                && of(&["resourceRef", "name"]).is_some_and(|name| resource.name() == Some(name))
        })
    }
}

/// The provider config by which a wrapped object is reached, and of the object what tells it from others.
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

/// Whether deleting a resource's object leaves what it stands for where it is.
fn is_orphan(running: &observed::Resource, scope: Scope) -> bool {
    match scope {
        Scope::LegacyCluster => text(&running.object, &["spec", "deletionPolicy"]) == Some("Orphan"),
        Scope::Namespaced => {
            let policies = at(&running.object, &["spec", "managementPolicies"]).and_then(Value::as_array);
            policies.is_some_and(|all| !all.iter().any(|one| one == "*" || one == "Delete"))
        }
    }
}
