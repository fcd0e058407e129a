//! The `spec` of a managed resource.

use serde_json::Value;

use super::Managed;
use crate::error::Error;
use crate::models::{self, Scope};
use crate::value::{Object, at};

impl<M: models::Managed> Managed<'_, '_, M> {
    pub(super) fn spec(&mut self) -> Result<Object, Error> {
        let for_provider = match self.for_provider.take() {
            Some(for_provider) => for_provider,
            None => self.resolve_for_provider()?,
        };
        let composition = &*self.composition;
        let xr = &composition.xr;
        let mut spec = Object::new();
        spec.insert("forProvider".into(), for_provider.into());
        spec.insert(
            "providerConfigRef".into(),
            self.preserved("providerConfigRef", &["name", "kind"], || {
                composition.config(M::KIND.provider, self.config.as_deref())
            }),
        );
        if self.publishes {
            let reference = || match &self.secret {
                Some(secret) => xr.reference_to(secret),
                None => xr.secret_reference(&xr.object_name(&self.slot)),
            };
            let reference =
                self.preserved("writeConnectionSecretToRef", &["name", "namespace"], reference);
            spec.insert("writeConnectionSecretToRef".into(), reference);
        }
        spec.extend(self.other_spec_fields());
        if self.orphan && xr.scope == Scope::LegacyCluster && !self.observe_only {
            spec.insert("deletionPolicy".into(), "Orphan".into());
        }
        if let Some(policies) = self.management_policies() {
            spec.insert("managementPolicies".into(), policies.into());
        }
        Ok(spec)
    }

    /// `spec.managementPolicies`. `None` leaves them to the API server, which fills in all
    /// policies, and to manual changes. In the claims API a policy without Delete would override
    /// `deletionPolicy`, so both agree.
    fn management_policies(&self) -> Option<Vec<&'static str>> {
        if self.observe_only {
            return Some(vec!["Observe"]);
        }
        let is_namespaced = self.composition.xr.scope == Scope::Namespaced;
        if M::KIND.late_initialized {
            let orphan = self.orphan && is_namespaced;
            return orphan.then(|| vec!["Observe", "Create", "Update", "LateInitialize"]);
        }
        let mut ours = vec!["Observe", "Create", "Update"];
        if !self.orphan {
            ours.push("Delete");
        }
        let running =
            self.running().and_then(|running| at(&running.object, &["spec", "managementPolicies"]));
        let is_known = |running: &Value| {
            *running == serde_json::json!(["*"]) || *running == serde_json::json!(ours)
        };
        running.is_none_or(is_known).then_some(ours)
    }

    /// The fields besides `forProvider`: the observed values, else the requested values.
    fn other_spec_fields(&self) -> Object {
        let Some(running) = self.running() else { return self.spec_fields.clone() };
        let kept = |field: &&str| {
            let value = at(&running.object, &["spec", field])?;
            Some(((*field).to_owned(), value.clone()))
        };
        M::KIND.spec_fields.iter().filter_map(kept).collect()
    }

    /// A preserved field of `spec`: the observed value of its `fields`, else a new value.
    fn preserved(&self, part: &str, fields: &[&str], make: impl FnOnce() -> Object) -> Value {
        let running =
            self.running().and_then(|running| at(&running.object, &["spec", part])?.as_object());
        let Some(running) = running else { return Value::Object(make()) };
        let kept = fields
            .iter()
            .filter_map(|field| Some(((*field).to_owned(), running.get(*field)?.clone())));
        Value::Object(kept.collect())
    }
}
