//! The portal's rights: to read composed resources, to use its own ConfigMaps, and to act as the
//! listed users and groups.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use function_paved_road::apis::Flavour;
use serde_json::{Value, json};

use super::helm::NAMESPACE;
use super::{Case, same};
use crate::package::rbac;

pub fn check(case: &Case) -> Result<()> {
    bound(case)?;
    let is_impersonation = |role: &&Value| {
        role["metadata"]["name"].as_str().is_some_and(|name| name.ends_with(":impersonation"))
    };
    let reads =
        case.objects.all("ClusterRole").find(|role| !is_impersonation(role)).context("no role")?;
    let (found, expected) = (single(&reads["rules"])?, expected(case)?);
    let differing: Vec<_> = found.symmetric_difference(&expected).collect();
    ensure!(
        differing.is_empty(),
        "the role differs from the rights for composed resources: {differing:?}"
    );
    let own = json!([
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "create", "patch"]},
        {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["paved-portal-revoked"], "verbs": ["list", "watch"]},
    ]);
    same("the rights to its own ConfigMaps", &case.objects.one("Role")?["rules"], &own)?;
    let acts = case.objects.all("ClusterRole").find(is_impersonation);
    let rules = acts.map_or(&Value::Null, |role| &role["rules"]);
    same("the rules of impersonation", rules, &impersonation(case))
}

/// The rights as single entries: group, resource, verb.
fn single(rules: &Value) -> Result<BTreeSet<[String; 3]>> {
    let list = |rule: &Value, key: &str| {
        let texts = rule[key].as_array().into_iter().flatten().filter_map(Value::as_str);
        texts.map(str::to_owned).collect::<Vec<_>>()
    };
    let mut all = BTreeSet::new();
    for rule in rules.as_array().context("no rules")? {
        ensure!(
            rule["resourceNames"].is_null() && rule["nonResourceURLs"].is_null(),
            "unexpected rule: {rule}"
        );
        for group in list(rule, "apiGroups") {
            for resource in list(rule, "resources") {
                let verbs = list(rule, "verbs").into_iter();
                all.extend(verbs.map(|verb| [group.clone(), resource.clone(), verb]));
            }
        }
    }
    Ok(all)
}

fn expected(case: &Case) -> Result<BTreeSet<[String; 3]>> {
    let mut groups = super::platform::groups(&case.values)?;
    for flavour in Flavour::ALL {
        let others = case.value(&format!("/otherGroups/{flavour}")).as_array();
        let others = others.into_iter().flatten().filter_map(Value::as_str);
        groups.extend(others.map(|group| (flavour, group.to_owned())));
    }
    single(&json!(rbac::portal(&groups)?))
}

/// The expected rules, by name. Without listed names, there is no role.
fn impersonation(case: &Case) -> Value {
    let rules: Vec<_> = ["users", "groups"]
        .iter()
        .filter_map(|resource| {
            let names = case.value(&format!("/portal/impersonation/{resource}"));
            let rule = json!({"apiGroups": [""], "resources": [resource], "resourceNames": names, "verbs": ["impersonate"]});
            names.as_array().is_some_and(|names| !names.is_empty()).then_some(rule)
        })
        .collect();
    if rules.is_empty() { Value::Null } else { json!(rules) }
}

/// Each role is bound only to the service account of the pods.
fn bound(case: &Case) -> Result<()> {
    let account = &case.objects.one("ServiceAccount")?["metadata"]["name"];
    same("the pods' account", &case.pod()?["spec"]["serviceAccountName"], account)?;
    let subjects = json!([{"kind": "ServiceAccount", "name": account, "namespace": NAMESPACE}]);
    for kind in ["ClusterRole", "Role"] {
        let binding = format!("{kind}Binding");
        let bindings: Vec<_> = case.objects.all(&binding).collect();
        ensure!(bindings.len() == case.objects.all(kind).count(), "a {kind} is not bound");
        for (binding, role) in bindings.iter().zip(case.objects.all(kind)) {
            same("the subjects", &binding["subjects"], &subjects)?;
            let name = &role["metadata"]["name"];
            let reference =
                json!({"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name});
            same("the role reference", &binding["roleRef"], &reference)?;
        }
    }
    Ok(())
}
