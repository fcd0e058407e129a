//! Usages: the order in which a composite's resources are deleted.

use serde_json::{Value, json};

use super::{Absent, Composition, Scope};
use crate::error::Error;
use crate::value::Object;

impl Composition<'_> {
    /// Keeps the resource in slot `of` until the one in slot `by` is gone, when the composite is
    /// deleted. Composed once both are asked for; both get a name, for a selector would take the
    /// first match. One that exists stays as it is while an end of it has to wait, as after
    /// somebody deleted that end by hand.
    pub fn usage(&mut self, of: &str, by: &str) -> Result<(), Error> {
        let slot = format!("usage-{of}-by-{by}");
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

    /// Our part of an observed Usage's spec.
    fn running_usage(&self, slot: &str) -> Option<Value> {
        let spec = self.observed.get(slot)?.object.get("spec").cloned().unwrap_or_default();
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
