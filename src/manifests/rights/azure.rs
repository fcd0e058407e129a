//! Role definitions for `az role definition create --role-definition FILE`.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{Part, parts};
use crate::catalog::rights::azure::{RIGHTS, Scope};
use crate::models::Provider;

/// The platform team replaces this with the id of its subscription.
const SUBSCRIPTION: &str = "SUBSCRIPTION_ID";

pub(super) fn documents(settings: &Value) -> Vec<(String, Value)> {
    let aks = |field: &str| settings["environment"]["aks"][field].as_str();
    let group = aks("resourceGroupName").unwrap_or("RESOURCE_GROUP");
    let group = format!("/subscriptions/{SUBSCRIPTION}/resourceGroups/{group}");
    let mut all = Vec::new();
    for part in parts(Provider::Azure) {
        let title = format!("Paved Road {}", part.file());
        let provider = role(&title, "The Azure provider", &actions(part, Scope::Group), &group);
        all.push((part.file(), provider));
        if let Some(identity) = aks("identity") {
            let title = format!("{title} identity");
            let user = "The Azure provider, to give clusters their identity";
            let identity = role(&title, user, &actions(part, Scope::Identity), identity);
            all.push((format!("{}-identity", part.file()), identity));
        }
    }
    all
}

fn actions(part: &Part, scope: Scope) -> BTreeSet<&'static str> {
    RIGHTS
        .iter()
        .filter(|rights| part.kinds.contains(&rights.kind))
        .flat_map(|rights| rights.grants)
        .filter(|grant| grant.scope == scope)
        .flat_map(|grant| grant.actions.iter().copied())
        .collect()
}

fn role(title: &str, user: &str, actions: &BTreeSet<&str>, scope: &str) -> Value {
    json!({
        "Name": title,
        "IsCustom": true,
        "Description": format!("{user}. Written by `paved platform --cloud-rights`."),
        "Actions": actions,
        "NotActions": [],
        "DataActions": [],
        "NotDataActions": [],
        "AssignableScopes": [scope],
    })
}
