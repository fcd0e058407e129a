//! `object`: a Kubernetes object in the cluster that Crossplane runs in. Native in the namespaced flavour; in the claims
//! flavour, whose composites cannot own what has a namespace, wrapped in a provider-kubernetes Object.

use serde_json::Value;

use super::{Composition, Observed, Scope};
use crate::error::Error;
use crate::models::kubernetes;
use crate::value::Object;

impl Composition<'_> {
    /// A Kubernetes object in `slot`. Gives back the object as the cluster has it.
    ///
    /// # Errors
    /// A Secret in the claims flavour: every reader of Objects would see it.
    pub fn object(&mut self, slot: &str, object: Object) -> Result<Observed<Value>, Error> {
        if self.xr.scope == Scope::Namespaced {
            let observed = self.observed.get(slot).map(|resource| Value::Object(resource.object.clone()));
            self.insert(slot, object, true)?;
            return Ok(Observed::of(observed));
        }
        if object.get("kind").and_then(Value::as_str) == Some("Secret") {
            return Err(Error::Defect(format!(
                "slot `{slot}` would show a Secret in a provider-kubernetes Object"
            )));
        }
        let wrapper = kubernetes::Object { manifest: Some(Value::Object(object)) };
        let observed = self.managed(slot, wrapper).live(&["manifest"]).add()?;
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
}
