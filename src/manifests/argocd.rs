//! Health checks for Argo CD, which has no rules for our kinds.

use serde_json::{Map, Value, json};

use crate::apis::{APIS, Flavour};

/// The script, in Argo CD's Lua. It is the same for all kinds.
const HEALTH: &str = include_str!("argocd/health.lua");

/// The ConfigMap of Argo CD, with a health check for each kind of an API group. Apply it
/// server-side, which preserves the other keys of the ConfigMap.
pub fn config_map(flavour: Flavour, group: &str) -> Value {
    let kinds = APIS.iter().flat_map(|api| {
        let info = api.info();
        match flavour {
            Flavour::Claims => vec![info.claim.kind, info.composite.kind],
            Flavour::Namespaced => vec![info.namespaced.kind],
        }
    });
    let check = |kind| (format!("resource.customizations.health.{group}_{kind}"), HEALTH.into());
    let data: Map<String, Value> = kinds.map(check).collect();
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
