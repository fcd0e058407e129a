//! Usages that protect an environment. Users of a namespace can set Crossplane's label
//! `crossplane.io/in-use` themselves, but they cannot create a Usage.

use crossplane::api_version;
use kube::api::{DynamicObject, ListParams};
use paved_client::cluster::{Cluster, Reference, Served};
use paved_client::names::IN_USE;
use serde_json::{Value, json};

/// The kinds of Usages: of Crossplane 2, and of Crossplane 1. The function composes the first two.
pub(crate) const KINDS: [(&str, &str); 4] = [
    ("protection.crossplane.io/v1beta1", "Usage"),
    ("apiextensions.crossplane.io/v1beta1", "Usage"),
    ("protection.crossplane.io/v1beta1", "ClusterUsage"),
    ("apiextensions.crossplane.io/v1alpha1", "Usage"),
];

/// How many Usages are read at once. A cluster can have several for each environment.
const PAGE: u32 = 500;

/// Whether Crossplane marks an object as used. Usages are then worth a look.
pub(crate) fn is_marked(object: &DynamicObject) -> bool {
    let labels = object.metadata.labels.as_ref();
    labels.and_then(|all| all.get(IN_USE)).is_some_and(|value| value == "true")
}

/// Whether a Usage protects an object.
pub(crate) async fn protect(
    cluster: &Cluster,
    served: &Served,
    object: &DynamicObject,
) -> kube::Result<bool> {
    for (api_version, kind) in KINDS {
        let any = json!({"apiVersion": api_version, "kind": kind, "name": "any"});
        let Some(any) = Reference::from_value(&any) else { continue };
        let Some(api) = served.find(&cluster.client, &any, None).await? else { continue };
        let mut params = ListParams::default().limit(PAGE);
        loop {
            let page = api.list(&params).await?;
            if page.items.iter().any(|usage| is_of(usage, object)) {
                return Ok(true);
            }
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => params = params.continue_token(&token),
                None => break,
            }
        }
    }
    Ok(false)
}

/// Whether a Usage is of an object. Crossplane writes the name for a selector.
fn is_of(usage: &DynamicObject, object: &DynamicObject) -> bool {
    let of = &usage.data["spec"]["of"];
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let Some(types) = &object.types else { return true };
    let reference = &of["resourceRef"];
    let is_here = match &object.metadata.namespace {
        None => true,
        Some(namespace) => {
            let named = text(&reference["namespace"]).or(usage.metadata.namespace.clone());
            named.is_none_or(|named| named == *namespace)
        }
    };
    is_here
        && of["kind"] == types.kind.as_str()
        && of["apiVersion"].as_str().map(api_version::group)
            == Some(api_version::group(&types.api_version))
        && text(&reference["name"]) == object.metadata.name
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn object(value: Value) -> DynamicObject {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn usage_protects_only_the_object_that_it_names() {
        let claim = object(json!({"apiVersion": "a.org/v1alpha1", "kind": "Claim",
            "metadata": {"name": "ada", "namespace": "team"}}));
        let usage = |namespace: &str, of: Value| {
            let kind = json!({"apiVersion": KINDS[0].0, "kind": "Usage",
                "metadata": {"name": "x", "namespace": namespace}, "spec": {"of": of}});
            object(kind)
        };
        let of = |name: &str| json!({"apiVersion": "a.org/v1", "kind": "Claim", "resourceRef": {"name": name}});
        assert!(is_of(&usage("team", of("ada")), &claim));
        assert!(!is_of(&usage("team", of("bob")), &claim));
        assert!(!is_of(&usage("other", of("ada")), &claim));
        let mut elsewhere = of("ada");
        elsewhere["resourceRef"]["namespace"] = json!("team");
        assert!(is_of(&usage("other", elsewhere.clone()), &claim));
        elsewhere["kind"] = json!("Other");
        assert!(!is_of(&usage("other", elsewhere), &claim));
    }
}
