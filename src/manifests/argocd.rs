//! Health checks for Argo CD, which has no rules for our kinds, and its tracking method.

use serde_json::{Map, Value, json};

use crate::apis::{APIS, Flavour};

/// The script, in Argo CD's Lua. It is the same for all kinds.
const HEALTH: &str = include_str!("argocd/health.lua");

/// The ConfigMap of Argo CD, with a health check for each kind of an API group. Apply it
/// server-side, which preserves the other keys of the ConfigMap. Argo CD tracks its objects by an
/// annotation: Crossplane copies a label from a claim to its composite, which Argo CD would prune.
pub fn config_map(flavour: Flavour, group: &str) -> Value {
    let kinds = APIS.iter().flat_map(|api| {
        let info = api.info();
        match flavour {
            Flavour::Claims => vec![info.claim.kind, info.composite.kind],
            Flavour::Namespaced => vec![info.namespaced.kind],
        }
    });
    let check = |kind| (format!("resource.customizations.health.{group}_{kind}"), HEALTH.into());
    let mut data: Map<String, Value> = kinds.map(check).collect();
    data.insert("application.resourceTrackingMethod".to_owned(), "annotation".into());
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "argocd-cm",
            "namespace": "argocd",
            "labels": {"app.kubernetes.io/part-of": "argocd"},
        },
        "data": data,
    })
}
