//! Usages: the deletion order of a composite's resources.

use serde_json::{Value, json};

use super::{Absent, Composer};
use crate::error::Error;
use crate::models::Scope;
use crate::value::Object;

impl Composer<'_> {
    /// Blocks the deletion of the resource in slot `of` until the resource in slot `by` is deleted,
    /// when the composite is deleted. The Usage is composed once both resources are desired. Both
    /// get names, because a selector would use the first match. An existing Usage is preserved
    /// while one of its resources waits, for example after a person deleted that resource.
    pub fn usage(&mut self, of: &str, by: &str) -> Result<(), Error> {
        let slot = slot_of(of, by);
        let ends = (self.end(of), self.end(by));
        let spec = if let (Some(of), Some(by)) = ends {
            json!({"of": of, "by": by, "replayDeletion": true})
        } else if let Some(spec) = self.running_usage(&slot) {
            spec
        } else {
            let absent = Absent {
                kind: "Usage".to_owned(),
                awaited: format!("{of} and {by}"),
                counted: false,
                object: Object::new(),
            };
            self.wait(&slot, absent);
            return Ok(());
        };
        let group = match self.xr.scope {
            Scope::LegacyCluster => "apiextensions.crossplane.io/v1beta1",
            Scope::Namespaced => "protection.crossplane.io/v1beta1",
        };
        let mut usage = Object::new();
        usage.insert("apiVersion".into(), group.into());
        usage.insert("kind".into(), "Usage".into());
        usage.insert("spec".into(), spec);
        self.protected.insert(of.to_owned());
        self.insert(&slot, usage, false)
    }

    /// Preserves a Usage that an earlier release composed. New environments do not need it, because
    /// their resource in slot `by` is deleted with the resource in slot `of`.
    pub fn keep_usage(&mut self, of: &str, by: &str) -> Result<(), Error> {
        if self.has_usage(of, by) { self.usage(of, by) } else { Ok(()) }
    }

    /// Whether a Usage by `by` protects `of` in the running environment.
    pub fn has_usage(&self, of: &str, by: &str) -> bool {
        self.exists(&slot_of(of, by))
    }

    /// The fields of an observed Usage's spec that we set.
    fn running_usage(&self, slot: &str) -> Option<Value> {
        let spec =
            self.observation.resources.get(slot)?.object.get("spec").cloned().unwrap_or_default();
        Some(json!({"of": spec["of"], "by": spec["by"], "replayDeletion": true}))
    }

    fn end(&mut self, slot: &str) -> Option<Value> {
        let name = self.name_of(slot)?;
        let object = &self.desired.get(slot)?.object;
        Some(json!({
            "apiVersion": object.get("apiVersion")?,
            "kind": object.get("kind")?,
            "resourceRef": {"name": name},
        }))
    }
}

/// The slot of the Usage that protects `of` while `by` exists.
pub(super) fn slot_of(of: &str, by: &str) -> String {
    format!("usage-{of}-by-{by}")
}
