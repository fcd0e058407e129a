//! The admission policy on namespaces with environments of the namespaced API. Without it, users
//! can delete such a namespace, and the deletion never ends.

use std::collections::BTreeSet;

use function_paved_road::manifests::namespaces::{CHECK, NAME};
use kube::api::DynamicObject;
use serde_json::{Value, json};

use super::check::Check;
use super::objects::{first, is_ours, name};
use super::snapshot::{ClusterSnapshot, ListResult};

const WHAT: &str = "Deletion of namespaces";

/// The remediation without the policy.
const INSTALL: &str = "apply package/controller.yaml, or set controller.protectNamespaces in the \
                       chart. Until then, delete namespaces only with `paved delete --namespace`";

/// The remediation if the controller does not keep its list.
const RUN: &str = "check that the controller runs; see docs/how-to/offboard-a-team.md";

/// One line about the policy, its binding and its parameter.
pub(super) fn check(snapshot: &ClusterSnapshot) -> Option<Check> {
    let ListResult::All(definitions) = &snapshot.definitions else { return None };
    let is_namespaced = |one: &&DynamicObject| !one.data["spec"]["claimNames"].is_object();
    definitions.iter().filter(|one| is_ours(one)).find(is_namespaced)?;
    let (policies, bindings) = match (&snapshot.policies, &snapshot.bindings) {
        (ListResult::All(policies), ListResult::All(bindings)) => (policies, bindings),
        (ListResult::NoSuchKind, _) => {
            let found = "not protected: the API server has no ValidatingAdmissionPolicies, which Kubernetes \
                         1.30 and later have";
            return Some(Check::open(WHAT, found));
        }
        (ListResult::All(_), unread) | (unread, _) => return Some(unread.unread(WHAT)),
    };
    let ours: Vec<&DynamicObject> = policies.iter().filter(|one| protects(one)).collect();
    if ours.is_empty() {
        let found = "no policy refuses to delete a namespace with environments, and such a deletion \
                     never ends";
        // The controller is optional.
        return Some(Check::open(WHAT, format!("{found}; {INSTALL}")));
    }
    let mut parameters = bindings.iter().filter_map(|binding| {
        ours.iter().find_map(|policy| parameter(binding, policy)).map(str::to_owned)
    });
    let Some(namespace) = parameters.next() else {
        let found = format!("no binding enforces the policy {}", name(ours[0]));
        return Some(Check::bad(WHAT, found, INSTALL));
    };
    Some(listed(snapshot, &namespace))
}

/// Whether the ConfigMap in the controller's namespace lists the namespaces with environments.
fn listed(snapshot: &ClusterSnapshot, namespace: &str) -> Check {
    let config_map = format!("ConfigMap {namespace}/{NAME}");
    let found = match snapshot.protected.get(namespace) {
        Some(Some(ListResult::All(found))) => found.first(),
        Some(Some(ListResult::Hidden)) => {
            return Check::open(
                WHAT,
                format!("a policy is installed; you may not read {config_map}"),
            );
        }
        Some(Some(unread)) => return unread.unread(WHAT),
        None | Some(None) => None,
    };
    let Some(found) = found else {
        let found = format!("{config_map} does not exist, so the policy allows every deletion");
        return Check::bad(WHAT, found, RUN);
    };
    let listed: BTreeSet<&str> = match found.data["data"].as_object() {
        Some(data) => data.keys().map(String::as_str).collect(),
        None => BTreeSet::new(),
    };
    let mut used = BTreeSet::new();
    let mut is_whole = true;
    for kind in snapshot.environments.iter().filter(|kind| !kind.are_claims) {
        match &kind.objects {
            // The composites of claims have no namespace.
            ListResult::All(objects) => {
                used.extend(objects.iter().filter_map(|one| one.metadata.namespace.as_deref()));
            }
            ListResult::NoSuchKind => {}
            ListResult::Hidden | ListResult::Failed(_) => is_whole = false,
        }
    }
    let texts = |names: &mut dyn Iterator<Item = &&str>| -> Vec<String> {
        names.map(|name| (*name).to_owned()).collect()
    };
    let missing = texts(&mut used.difference(&listed));
    if !missing.is_empty() {
        let found = format!("{config_map} lacks {}, so they can be deleted", first(&missing));
        return Check::bad(WHAT, found, RUN);
    }
    let stale = texts(&mut listed.difference(&used));
    if is_whole && !stale.is_empty() {
        let found = format!("{config_map} has {} without environments", first(&stale));
        return Check::bad(WHAT, found, RUN);
    }
    Check::good(WHAT, "a policy refuses to delete namespaces with environments")
}

/// Whether a policy makes our check for every deletion of a namespace.
fn protects(policy: &DynamicObject) -> bool {
    let spec = &policy.data["spec"];
    let has = |list: &Value, wanted: &str| {
        list.as_array().is_some_and(|all| all.iter().any(|one| one == wanted || one == "*"))
    };
    let list = |value: &'_ Value| value.as_array().cloned().unwrap_or_default();
    let matches = list(&spec["matchConstraints"]["resourceRules"]).iter().any(|rule| {
        has(&rule["resources"], "namespaces")
            && has(&rule["apiGroups"], "")
            && has(&rule["operations"], "DELETE")
            && (rule["resourceNames"].is_null() || rule["resourceNames"] == json!([]))
    });
    matches
        && spec["failurePolicy"] != "Ignore"
        && list(&spec["validations"]).iter().any(|one| one["expression"] == CHECK)
}

/// The namespace of the ConfigMap with which a binding enforces a policy.
fn parameter<'b>(binding: &'b DynamicObject, policy: &DynamicObject) -> Option<&'b str> {
    let spec = &binding.data["spec"];
    let denies =
        spec["validationActions"].as_array().is_some_and(|all| all.iter().any(|one| one == "Deny"));
    let enforces = spec["policyName"] == name(policy)
        && denies
        && spec["matchResources"].is_null()
        && spec["paramRef"]["name"] == NAME;
    spec["paramRef"]["namespace"].as_str().filter(|_| enforces)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::collections::BTreeMap;

    use function_paved_road::manifests::namespaces::policy;
    use paved_client::samples::kinds;

    use super::*;
    use crate::doctor::checks::tests::{objects, snapshot};
    use crate::doctor::snapshot::{Environments, environment_kinds};
    use crate::style::Mark;

    /// A cluster with the policy, where namespace `team` has an environment.
    fn installed(documents: &[Value], config_map: Option<Value>) -> ClusterSnapshot {
        let of = |kind: &str| {
            let all = documents.iter().filter(|one| one["kind"] == kind).cloned();
            objects(&all.collect::<Vec<_>>())
        };
        let (resource, _) =
            environment_kinds(&kinds()).find(|(_, are_claims)| !are_claims).unwrap();
        let environment = json!({"metadata": {"name": "ada", "namespace": "team"}});
        let found = config_map.map(|one| objects(&[one]));
        ClusterSnapshot {
            policies: of("ValidatingAdmissionPolicy"),
            bindings: of("ValidatingAdmissionPolicyBinding"),
            protected: BTreeMap::from([("paved-controller".to_owned(), found)]),
            environments: vec![Environments {
                resource,
                are_claims: false,
                objects: objects(&[environment]),
            }],
            ..snapshot()
        }
    }

    fn config_map(data: &Value) -> Value {
        json!({"metadata": {"name": NAME}, "data": data})
    }

    fn outcome(snapshot: &ClusterSnapshot) -> (Mark, String) {
        let check = check(snapshot).unwrap();
        (check.mark, check.found)
    }

    #[test]
    fn absent_policy_is_named_with_its_repair() {
        let (mark, found) = outcome(&installed(&[], None));
        assert_eq!(mark, Mark::Busy);
        assert!(found.contains("package/controller.yaml"), "{found}");
        assert!(found.contains("paved delete --namespace"), "{found}");
    }

    #[test]
    fn policy_without_effect_is_red() {
        let whole = policy("paved-controller");
        let team = || Some(config_map(&json!({"team": "GpuDevWorkspace/ada"})));
        assert_eq!(outcome(&installed(&whole, team())).0, Mark::Good);
        let (mark, found) = outcome(&installed(&whole[..1], team()));
        assert_eq!((mark, found.starts_with("no binding enforces")), (Mark::Bad, true), "{found}");
        for (document, path, value) in [
            (0, "/spec/failurePolicy", "Ignore"),
            (0, "/spec/matchConstraints/resourceRules/0/operations/0", "UPDATE"),
            (0, "/spec/validations/0/expression", "true"),
            (1, "/spec/validationActions/0", "Audit"),
            (1, "/spec/policyName", "another"),
        ] {
            let mut broken = whole.clone();
            *broken[document].pointer_mut(path).unwrap() = json!(value);
            assert_ne!(outcome(&installed(&broken, team())).0, Mark::Good, "{path}");
        }
    }

    #[test]
    fn list_that_the_controller_does_not_keep_is_red() {
        let whole = policy("paved-controller");
        for (found, expected) in [
            (None, "does not exist"),
            (Some(config_map(&json!(null))), "lacks team"),
            (Some(config_map(&json!({"other": "x"}))), "lacks team"),
            (
                Some(config_map(&json!({"team": "x", "other": "x"}))),
                "has other without environments",
            ),
        ] {
            let (mark, text) = outcome(&installed(&whole, found));
            assert_eq!(mark, Mark::Bad, "{text}");
            assert!(text.contains(expected) && text.contains("controller runs"), "{text}");
        }
        let hidden = ClusterSnapshot {
            protected: BTreeMap::from([("paved-controller".to_owned(), Some(ListResult::Hidden))]),
            ..installed(&whole, None)
        };
        assert_eq!(outcome(&hidden).0, Mark::Busy);
    }

    #[test]
    fn claims_need_no_policy() {
        let definition = json!({"metadata": {"name": "x"}, "spec": {
            "claimNames": {"kind": "Environment", "categories": ["paved"]}, "names": {}}});
        let claims =
            ClusterSnapshot { definitions: objects(&[definition]), ..installed(&[], None) };
        assert_eq!(check(&claims), None);
    }
}
