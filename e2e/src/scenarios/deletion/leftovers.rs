//! The objects that an environment could leave behind, of any kind, whether or not its composite
//! names them.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use crossplane::names::COMPOSITE;
use kube::core::ObjectMeta;
use serde_json::Value;

use crate::environment::Environment;
use crate::eventually::eventually;
use crate::objects::Objects;

/// The identifiers of an environment's objects.
pub(in crate::scenarios) struct Leftovers {
    composite: String,
    /// None for a claim's composite, because its name is unique.
    namespace: Option<String>,
    /// The uids of the environment, its composite and its resources.
    uids: BTreeSet<String>,
    /// The objects that provider-kubernetes creates for it in this cluster, by namespace and name.
    wrapped: BTreeSet<(Option<String>, String)>,
}

impl Leftovers {
    /// The traces of an environment that is not deleted yet.
    pub(super) async fn from_environment(environment: &Environment) -> Result<Self> {
        let (object, composite) = (environment.object().await?, environment.composite().await?);
        let composed = environment.composed().await?;
        let uid =
            |object: &Value| object["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
        let text = |key: &str| composite["metadata"][key].as_str().map(str::to_owned);
        Ok(Self {
            composite: text("name").context("a composite has no name")?,
            namespace: text("namespace"),
            uids: composed.iter().chain([&object, &composite]).map(uid).collect(),
            wrapped: composed.iter().filter_map(wrapped).collect(),
        })
    }

    /// Whether an object belongs to the environment, has an owner there, or has its name.
    fn lead_to(&self, meta: &ObjectMeta) -> bool {
        let owners = meta.owner_references.iter().flatten().map(|owner| &owner.uid);
        let label = meta
            .labels
            .iter()
            .flatten()
            .any(|(key, value)| key == COMPOSITE && *value == self.composite);
        let called = || {
            let names = [meta.name.as_deref(), meta.namespace.as_deref()];
            names.into_iter().flatten().any(|name| name.contains(&self.composite))
        };
        meta.uid.iter().chain(owners).any(|uid| self.uids.contains(uid))
            || self.holds(meta)
            || match &self.namespace {
                Some(_) => label && meta.namespace == self.namespace,
                None => label || called(),
            }
    }

    /// Whether provider-kubernetes created an object, or its namespace, for the environment.
    fn holds(&self, meta: &ObjectMeta) -> bool {
        let name = meta.name.clone().unwrap_or_default();
        let namespace = meta.namespace.iter().map(|namespace| (None, namespace.clone()));
        namespace.chain([(meta.namespace.clone(), name)]).any(|place| self.wrapped.contains(&place))
    }

    /// Waits until no object of any kind matches these traces. Kubernetes deletes dependents a
    /// moment later.
    pub(in crate::scenarios) async fn are_gone(all: &[Self], objects: &Objects) -> Result<()> {
        let mut left = BTreeSet::new();
        let gone = eventually("no object of the deleted environments is left", async || {
            left = objects
                .everything_that(|meta| all.iter().any(|traces| traces.lead_to(meta)))
                .await?;
            Ok(left.is_empty().then_some(()))
        });
        gone.await.with_context(|| format!("still there: {left:?}"))
    }
}

/// The object that an Object creates in this cluster, by namespace and name. Other provider configs
/// lead into clusters that environments created.
fn wrapped(part: &Value) -> Option<(Option<String>, String)> {
    let metadata = part.pointer("/spec/forProvider/manifest/metadata")?;
    let is_here = part["spec"]["providerConfigRef"]["name"] == "default";
    let name = metadata["name"].as_str().filter(|_| is_here)?;
    Some((metadata["namespace"].as_str().map(str::to_owned), name.to_owned()))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by it")]
    use serde_json::json;

    use super::*;

    #[test]
    fn trace_is_found_by_owner_label_and_name() {
        let claim = Leftovers {
            composite: "ada-x7k2p".to_owned(),
            namespace: None,
            uids: BTreeSet::from(["u-1".to_owned()]),
            wrapped: BTreeSet::new(),
        };
        let direct = Leftovers {
            composite: "ada".to_owned(),
            namespace: Some("team".to_owned()),
            uids: BTreeSet::from(["u-2".to_owned()]),
            wrapped: BTreeSet::new(),
        };
        let owner = |uid: &str| json!([{"apiVersion": "v1", "kind": "A", "name": "a", "uid": uid}]);
        for (meta, of_claim, of_direct) in [
            (json!({"name": "a", "uid": "u-1"}), true, false),
            (json!({"name": "a", "ownerReferences": owner("u-2")}), false, true),
            (json!({"name": "a", "labels": {COMPOSITE: "ada-x7k2p"}}), true, false),
            (json!({"name": "a", "namespace": "team", "labels": {COMPOSITE: "ada"}}), false, true),
            (
                json!({"name": "a", "namespace": "other", "labels": {COMPOSITE: "ada"}}),
                false,
                false,
            ),
            (json!({"name": "site-ada-x7k2p-files"}), true, false),
            (json!({"name": "a", "namespace": "team-ada-x7k2p"}), true, false),
            (json!({"name": "ada-conn", "namespace": "team"}), false, false),
        ] {
            let object: ObjectMeta = serde_json::from_value(meta.clone()).unwrap();
            assert_eq!(
                (claim.lead_to(&object), direct.lead_to(&object)),
                (of_claim, of_direct),
                "{meta}"
            );
        }
    }

    #[test]
    fn wrapped_object_is_found_with_its_content() {
        let object = |config: &str, metadata: Value| json!({"spec": {"forProvider": {"manifest": {"metadata": metadata}}, "providerConfigRef": {"name": config}}});
        let parts = [
            object("default", json!({"name": "team-vision-ada"})),
            object("default", json!({"name": "pool-ada", "namespace": "team"})),
            object("ada-kubernetes", json!({"name": "inside"})),
        ];
        let traces = Leftovers {
            composite: "ada".to_owned(),
            namespace: Some("team".to_owned()),
            uids: BTreeSet::new(),
            wrapped: parts.iter().filter_map(wrapped).collect(),
        };
        for (meta, is_found) in [
            (json!({"name": "team-vision-ada"}), true),
            (json!({"name": "a", "namespace": "team-vision-ada"}), true),
            (json!({"name": "pool-ada", "namespace": "team"}), true),
            (json!({"name": "pool-ada", "namespace": "other"}), false),
            (json!({"name": "inside"}), false),
        ] {
            let object: ObjectMeta = serde_json::from_value(meta.clone()).unwrap();
            assert_eq!(traces.lead_to(&object), is_found, "{meta}");
        }
    }
}
