//! `object` and `inside`: Kubernetes objects, in the cluster that Crossplane runs in and in clusters that we made; and the
//! provider configs by which the latter are reached.

use serde_json::Value;

use super::health::{Health, State};
use super::{Composition, Observed, Scope};
use crate::error::Error;
use crate::models::kubernetes;
use crate::value::Object;

impl Composition<'_> {
    /// A Kubernetes object in the cluster that Crossplane runs in: native in the namespaced flavour, wrapped in a
    /// provider-kubernetes Object in the claims flavour, whose composites cannot own what has a namespace. Gives back the
    /// object as the cluster has it.
    ///
    /// # Errors
    /// A Secret in the claims flavour: every reader of Objects would see it.
    pub fn object(&mut self, slot: &str, object: Object) -> Result<Observed<Value>, Error> {
        if self.xr.scope == Scope::LegacyCluster {
            return self.wrapped(slot, object, None);
        }
        let observed = self.observed.get(slot).map(|resource| Value::Object(resource.object.clone()));
        self.insert(slot, object, true)?;
        Ok(Observed::of(observed))
    }

    /// A Kubernetes object in a cluster that we made, reached by the provider config `config`: always wrapped.
    ///
    /// # Errors
    /// A Secret: every reader of Objects would see it.
    pub fn inside(&mut self, config: &str, slot: &str, object: Object) -> Result<Observed<Value>, Error> {
        self.wrapped(slot, object, Some(config))
    }

    /// A provider config in `slot`. It has no condition: it is ready once the Secret that it reads was observed. It is
    /// plumbing, and does not count in `status.progress`.
    pub fn provider_config(&mut self, slot: &str, object: Object, secret: bool) -> Result<(), Error> {
        self.insert(slot, object, false)?;
        let exists = self.exists(slot);
        if let Some(desired) = self.desired.get_mut(slot).filter(|_| exists) {
            desired.health = if secret {
                Health::available()
            } else {
                Health::pending(State::Waiting, "Waiting", "waits for the Secret that it reads")
            };
        }
        Ok(())
    }

    fn wrapped(
        &mut self,
        slot: &str,
        object: Object,
        config: Option<&str>,
    ) -> Result<Observed<Value>, Error> {
        if object.get("kind").and_then(Value::as_str) == Some("Secret") {
            let message = format!("slot `{slot}` would show a Secret in a provider-kubernetes Object");
            return Err(Error::Defect(message));
        }
        let wrapper = kubernetes::Object { manifest: Some(Value::Object(object)) };
        let mut wrapper = self.managed(slot, wrapper).live(&["manifest"]);
        if let Some(config) = config {
            wrapper = wrapper.by(config);
        }
        let observed = wrapper.add()?;
        Ok(Observed::of(observed.get(|status| status.manifest.clone())))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::{Value, json};

    use crate::compose::{Answer, Composite, Composition};
    use crate::error::Error;
    use crate::settings::Common;
    use crate::value::Object;

    fn map(value: Value) -> Object {
        match value {
            Value::Object(map) => map,
            other => panic!("no object: {other}"),
        }
    }

    fn compose(xr: Value, observed: Option<Value>, object: Value) -> Result<Answer, Error> {
        let xr = Composite::read(map(xr), BTreeMap::new())?;
        let settings = Common::default();
        let observed = observed.map(|object| ("namespace".to_owned(), map(object), BTreeMap::new()));
        let mut random = |_: &mut [u8]| {};
        let mut cx =
            Composition::new(xr, "test", &settings, observed, jiff::Timestamp::UNIX_EPOCH, &mut random);
        cx.object("namespace", map(object))?;
        cx.finish(Object::new(), &[])
    }

    fn namespace(phase: &str) -> Value {
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}, "status": {"phase": phase}})
    }

    #[test]
    fn the_namespaced_flavour_composes_it_natively() -> Result<(), Error> {
        let xr = json!({"kind": "X", "metadata": {"name": "a", "namespace": "b"}});
        let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}});
        let answer = compose(xr, None, service)?;
        assert_eq!(answer.resources["namespace"].0["kind"], "Service");
        Ok(())
    }

    #[test]
    fn the_claims_flavour_wraps_it_and_looks_inside_for_readiness() -> Result<(), Error> {
        let xr = json!({"kind": "X", "metadata": {"name": "a"}});
        for (phase, ready) in [("Active", true), ("Terminating", false)] {
            let wrapper = json!({
                "apiVersion": "kubernetes.crossplane.io/v1alpha2",
                "kind": "Object",
                "status": {
                    "atProvider": {"manifest": namespace(phase)},
                    "conditions": [{"type": "Ready", "status": "True"}, {"type": "Synced", "status": "True"}],
                },
            });
            let answer = compose(xr.clone(), Some(wrapper), namespace(phase))?;
            let (object, is_ready) = &answer.resources["namespace"];
            assert_eq!(object["spec"]["forProvider"]["manifest"]["kind"], "Namespace");
            assert_eq!(*is_ready, ready, "{phase}");
            assert_eq!(answer.status["resources"][0]["kind"], "Namespace");
        }
        Ok(())
    }

    #[test]
    fn a_secret_is_never_wrapped() {
        let xr = json!({"kind": "X", "metadata": {"name": "a"}});
        let secret = json!({"apiVersion": "v1", "kind": "Secret"});
        assert!(matches!(compose(xr, None, secret), Err(Error::Defect(_))));
    }

    /// Composes with a composite whose slot `config` was observed.
    fn composed(
        namespaced: bool,
        verbs: impl FnOnce(&mut Composition<'_>) -> Result<(), Error>,
    ) -> Result<Answer, Error> {
        let mut xr = json!({"kind": "X", "metadata": {"name": "a"}});
        if namespaced {
            xr["metadata"]["namespace"] = json!("b");
        }
        let xr = Composite::read(map(xr), BTreeMap::new())?;
        let settings = Common::default();
        let config = [("config".to_owned(), map(json!({"kind": "ProviderConfig"})), BTreeMap::new())];
        let mut random = |_: &mut [u8]| {};
        let mut cx =
            Composition::new(xr, "test", &settings, config, jiff::Timestamp::UNIX_EPOCH, &mut random);
        verbs(&mut cx)?;
        cx.finish(Object::new(), &[])
    }

    #[test]
    fn what_is_inside_goes_through_the_config_that_we_made() -> Result<(), Error> {
        let reference = [json!({"name": "inner"}), json!({"name": "inner", "kind": "ProviderConfig"})];
        for (namespaced, reference) in [false, true].into_iter().zip(reference) {
            let answer = composed(namespaced, |cx| {
                cx.inside("inner", "namespace", map(namespace("Active"))).map(|_| ())
            })?;
            let object = &answer.resources["namespace"].0;
            assert_eq!(
                (&object["kind"], &object["spec"]["providerConfigRef"]),
                (&json!("Object"), &reference)
            );
        }
        Ok(())
    }

    #[test]
    fn a_provider_config_is_ready_once_its_secret_was_observed() -> Result<(), Error> {
        let config = || map(json!({"apiVersion": "helm.crossplane.io/v1beta1", "kind": "ProviderConfig"}));
        for secret in [true, false] {
            let answer = composed(false, |cx| cx.provider_config("config", config(), secret))?;
            assert_eq!(answer.resources["config"].1, secret);
            assert_eq!(answer.status["progress"], "0/0");
        }
        Ok(())
    }
}
