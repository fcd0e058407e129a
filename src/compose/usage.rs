//! Usages: the order in which a composite's resources are deleted.

use serde_json::{Value, json};

use super::{Composition, Scope};
use crate::error::Error;
use crate::value::Object;

impl Composition<'_> {
    /// Keeps the resource in slot `of` until the one in slot `by` is gone, when the composite is deleted. Composed once both
    /// are asked for; both get a name, for a selector would take the first match.
    pub fn usage(&mut self, of: &str, by: &str) -> Result<(), Error> {
        let slot = format!("usage-{of}-by-{by}");
        if let (Some(of_end), Some(by_end)) = (self.end(of), self.end(by)) {
            let group = match self.xr.scope {
                Scope::LegacyCluster => "apiextensions.crossplane.io/v1beta1",
                Scope::Namespaced => "protection.crossplane.io/v1beta1",
            };
            let mut usage = Object::new();
            usage.insert("apiVersion".into(), group.into());
            usage.insert("kind".into(), "Usage".into());
            usage.insert("spec".into(), json!({"of": of_end, "by": by_end, "replayDeletion": true}));
            self.protected.insert(of.to_owned());
            return self.insert(&slot, usage, false);
        }
        if self.exists(&slot) {
            return Err(Error::Defect(format!("slot `{slot}` protects one that is no longer composed")));
        }
        self.wait(&slot, "Usage", format!("waits for {of} and {by}"), false);
        Ok(())
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
