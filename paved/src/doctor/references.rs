//! The admission policies that protect Crossplane's own fields, and Crossplane's right to read
//! Namespaces. Without the policies, a user can take over another user's environment. Without the
//! right, Compositions that look up Namespaces compose no resources.

use function_paved_road::apis::Flavour;
use function_paved_road::manifests::policy::{Guarded, NOT_BY, exempts_restore};
use kube::api::DynamicObject;
use serde_json::{Value, json};

use super::check::Check;
use super::compositions::{self, UsedComposition};
use super::crossplane::is_available;
use super::objects::{is_ours, name};
use super::snapshot::{ClusterSnapshot, ListResult};

/// The checks of policies and rights, one line each.
pub(super) fn check(snapshot: &ClusterSnapshot) -> Vec<Check> {
    policies(snapshot).into_iter().chain(rights(snapshot)).collect()
}

/// One line with our resources that no policy protects.
fn policies(snapshot: &ClusterSnapshot) -> Option<Check> {
    const WHAT: &str = "Admission policies";
    const HELPS: &str = "apply package/policy.yaml, or the policy.yaml of your own group. Without \
                         it, a user can take over other users' environments";
    let ListResult::All(definitions) = &snapshot.definitions else { return None };
    let guarded: Vec<(String, Guarded)> =
        definitions.iter().filter(|one| is_ours(one)).flat_map(guarded).collect();
    if guarded.is_empty() {
        return None;
    }
    let (policies, bindings) = match (&snapshot.policies, &snapshot.bindings) {
        (ListResult::All(policies), ListResult::All(bindings)) => (policies, bindings),
        (ListResult::NoSuchKind, _) => {
            let found = "not available: the API server has no ValidatingAdmissionPolicies, which Kubernetes \
                         1.30 and later have";
            return Some(Check::open(WHAT, found));
        }
        (ListResult::All(_), unread) | (unread, _) => return Some(unread.unread(WHAT)),
    };
    let protects = |resource: &str, guarded: Guarded| {
        policies
            .iter()
            .any(|policy| covers(policy, resource, guarded) && is_bound(policy, bindings))
    };
    let stopped = |account: &String| {
        policies
            .iter()
            .find(|policy| is_bound(policy, bindings) && stops(policy, account, &guarded))
    };
    if let Some(account) = accounts(snapshot).iter().find(|account| stopped(account).is_some()) {
        let found = format!("block Crossplane, which runs as {account}, so no claim is bound");
        let helps =
            format!("generate policy.yaml with `--crossplane-user {account}`, and apply it");
        return Some(Check::bad(WHAT, found, &helps));
    }
    let open: Vec<&str> = guarded
        .iter()
        .filter(|(resource, guarded)| !protects(resource, *guarded))
        .map(|(resource, _)| resource.as_str())
        .collect();
    Some(match open.as_slice() {
        [] => Check::good(
            WHAT,
            "only Crossplane may bind claims and composites, and write their status",
        ),
        open => Check::bad(WHAT, format!("no policy protects {}", open.join(", ")), HELPS),
    })
}

/// The resources (`plural.group`) of an XRD that have fields of Crossplane.
fn guarded(definition: &DynamicObject) -> Vec<(String, Guarded)> {
    let spec = &definition.data["spec"];
    let claims = spec["claimNames"].is_object();
    let flavour = if claims { Flavour::Claims } else { Flavour::Namespaced };
    let group = spec["group"].as_str().unwrap_or_default();
    let of = |guarded: &Guarded| {
        let names = if guarded.is_of_claims() { "claimNames" } else { "names" };
        let plural = spec[names]["plural"].as_str()?;
        Some((format!("{plural}{}.{group}", guarded.subresource()), *guarded))
    };
    Guarded::for_flavour(flavour).iter().filter_map(of).collect()
}

/// Whether a policy checks the fields of a resource when it is created and updated.
fn covers(policy: &DynamicObject, resource: &str, guarded: Guarded) -> bool {
    let spec = &policy.data["spec"];
    let has = |list: &Value, wanted: &str| {
        list.as_array().is_some_and(|all| all.iter().any(|one| one == wanted || one == "*"))
    };
    let (plural, group) = resource.split_once('.').unwrap_or_default();
    let rules = spec["matchConstraints"]["resourceRules"].as_array();
    let matches = rules.into_iter().flatten().any(|rule| {
        let operations = &rule["operations"];
        has(&rule["resources"], plural)
            && has(&rule["apiGroups"], group)
            && has(&rule["apiVersions"], "*")
            && has(operations, "CREATE")
            && has(operations, "UPDATE")
            && is_empty(&rule["resourceNames"])
            && (rule["scope"].is_null() || rule["scope"] == "*")
    });
    let expressions: Vec<&Value> = spec["validations"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|one| &one["expression"])
        .collect();
    let is_whole = spec["failurePolicy"] != "Ignore"
        && ["excludeResourceRules", "namespaceSelector", "objectSelector"]
            .iter()
            .all(|part| is_empty(&spec["matchConstraints"][part]));
    is_whole
        && conditions(policy)
            .all(|condition| exempted(condition).is_some() || condition == exempts_restore())
        && matches
        && guarded.validations().iter().all(|wanted| expressions.contains(&&wanted["expression"]))
}

fn is_empty(value: &Value) -> bool {
    value.is_null() || *value == json!({}) || *value == json!([])
}

/// The expressions of a policy's match conditions. The policy does not check a request if one
/// condition is false.
fn conditions(policy: &DynamicObject) -> impl Iterator<Item = &str> {
    let conditions = policy.data["spec"]["matchConditions"].as_array();
    conditions.into_iter().flatten().map(|one| one["expression"].as_str().unwrap_or_default())
}

/// The user that a condition exempts, if it exempts exactly one user.
fn exempted(condition: &str) -> Option<&str> {
    let user = condition.strip_prefix(NOT_BY)?.trim_start().strip_prefix("!=")?.trim();
    let user = user.strip_prefix('\'')?.strip_suffix('\'')?;
    (!user.contains('\'')).then_some(user)
}

/// The users of Crossplane, from its Deployments with available pods.
fn accounts(snapshot: &ClusterSnapshot) -> Vec<String> {
    let ListResult::All(deployments) = &snapshot.crossplane else { return Vec::new() };
    let account = |deployment: &DynamicObject| {
        let namespace = deployment.metadata.namespace.as_deref()?;
        let name = deployment.data["spec"]["template"]["spec"]["serviceAccountName"].as_str()?;
        Some(format!("system:serviceaccount:{namespace}:{name}"))
    };
    deployments.iter().filter(|one| is_available(one)).filter_map(account).collect()
}

/// Whether one of our policies checks the writes of Crossplane, which uses this account.
fn stops(policy: &DynamicObject, account: &str, guarded: &[(String, Guarded)]) -> bool {
    let passes = conditions(policy).any(|condition| exempted(condition) == Some(account));
    !passes && guarded.iter().any(|(resource, guarded)| covers(policy, resource, *guarded))
}

/// Whether a binding enforces a policy for every object.
fn is_bound(policy: &DynamicObject, bindings: &[DynamicObject]) -> bool {
    bindings.iter().map(|binding| &binding.data["spec"]).any(|spec| {
        let denies = spec["validationActions"]
            .as_array()
            .is_some_and(|all| all.iter().any(|one| one == "Deny"));
        spec["policyName"] == name(policy) && denies && spec["matchResources"].is_null()
    })
}

/// Whether Crossplane may look up Namespaces, if a Composition lets it do so.
fn rights(snapshot: &ClusterSnapshot) -> Option<Check> {
    const WHAT: &str = "Crossplane's rights";
    compositions::all(snapshot).iter().find(|used| looks_up_namespaces(used))?;
    let ListResult::All(roles) = &snapshot.roles else { return Some(snapshot.roles.unread(WHAT)) };
    Some(if roles.iter().any(may_look_up_namespaces) {
        Check::good(WHAT, "may read Namespaces")
    } else {
        let found = "may not get, list and watch Namespaces, so virtual and unified environments \
                     cannot \
             be composed";
        Check::bad(WHAT, found, "apply package/rbac/crossplane.yaml")
    })
}

fn looks_up_namespaces(used: &UsedComposition<'_>) -> bool {
    match used.api.info().name {
        "virtual-environment" => true,
        "unified-environment" => used.flavour == Flavour::Claims,
        _ => false,
    }
}

fn may_look_up_namespaces(role: &DynamicObject) -> bool {
    let has = |list: &Value, wanted: &str| {
        list.as_array().is_some_and(|all| all.iter().any(|one| one == wanted || one == "*"))
    };
    let rules = role.data["rules"].as_array();
    rules.into_iter().flatten().any(|rule| {
        has(&rule["apiGroups"], "")
            && has(&rule["resources"], "namespaces")
            && rule["resourceNames"].is_null()
            && ["get", "list", "watch"].iter().all(|verb| has(&rule["verbs"], verb))
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use function_paved_road::manifests::policy::{CROSSPLANE, policies};

    use super::*;
    use crate::doctor::checks::tests::{objects, snapshot};
    use crate::style::Mark;

    const GROUP: &str = "dev.example.org";

    /// A cluster with the claims API of virtual environments and its Composition.
    fn claims() -> ClusterSnapshot {
        let definition = json!({"metadata": {"name": "x"}, "spec": {"group": GROUP,
            "names": {"kind": "XEnvironment", "plural": "xenvironments"},
            "claimNames": {"kind": "Environment", "plural": "environments", "categories": ["paved"]}}});
        let composition = json!({"metadata": {"name": "x"}, "spec": {
            "compositeTypeRef": {"apiVersion": format!("{GROUP}/v1alpha1"), "kind": "XEnvironment"},
            "pipeline": [{"functionRef": {"name": "fn"}, "input": {"kind": "Settings"}}]}});
        ClusterSnapshot {
            definitions: objects(&[definition]),
            compositions: objects(&[composition]),
            ..snapshot()
        }
    }

    fn installed(documents: &[Value]) -> ClusterSnapshot {
        let of = |kind: &str| {
            let all: Vec<Value> =
                documents.iter().filter(|one| one["kind"] == kind).cloned().collect();
            objects(&all)
        };
        ClusterSnapshot {
            policies: of("ValidatingAdmissionPolicy"),
            bindings: of("ValidatingAdmissionPolicyBinding"),
            ..claims()
        }
    }

    fn told(snapshot: &ClusterSnapshot) -> (Mark, String) {
        let check = super::policies(snapshot).unwrap();
        (check.mark, check.found)
    }

    #[test]
    fn policy_that_is_missing_or_not_in_force_is_red() {
        let whole = policies(&[(Flavour::Claims, GROUP)], CROSSPLANE);
        assert_eq!(told(&installed(&whole)).0, Mark::Good);
        let (mark, found) = told(&installed(&[]));
        assert_eq!(mark, Mark::Bad);
        assert!(
            found.contains("environments.dev.example.org, xenvironments.dev.example.org"),
            "{found}"
        );
        assert!(found.contains("package/policy.yaml"), "{found}");
        for (kind, spoil) in [
            ("ValidatingAdmissionPolicyBinding", "/spec/validationActions/0"),
            ("ValidatingAdmissionPolicyBinding", "/spec/policyName"),
            ("ValidatingAdmissionPolicy", "/spec/matchConstraints/resourceRules/0/operations/1"),
            ("ValidatingAdmissionPolicy", "/spec/matchConstraints/resourceRules/0/apiGroups/0"),
            ("ValidatingAdmissionPolicy", "/spec/validations/0/expression"),
        ] {
            let mut broken = whole.clone();
            let one = broken.iter_mut().find(|one| one["kind"] == kind).unwrap();
            *one.pointer_mut(spoil).unwrap() = json!("other");
            assert_eq!(told(&installed(&broken)).0, Mark::Bad, "{kind} {spoil}");
        }
        for (part, narrow) in [
            ("resourceNames", json!(["a"])),
            ("scope", json!("Cluster")),
            ("apiVersions", json!(["v1"])),
        ] {
            let mut broken = whole.clone();
            let one =
                broken.iter_mut().find(|one| one["kind"] == "ValidatingAdmissionPolicy").unwrap();
            one["spec"]["matchConstraints"]["resourceRules"][0][part] = narrow;
            assert_eq!(told(&installed(&broken)).0, Mark::Bad, "{part}");
        }
        for (part, weak) in [
            ("failurePolicy", json!("Ignore")),
            ("matchConstraints/objectSelector", json!({"matchLabels": {"a": "b"}})),
            ("matchConstraints/namespaceSelector", json!({"matchLabels": {"a": "b"}})),
            ("matchConstraints/excludeResourceRules", json!([{"resources": ["*"]}])),
            ("matchConditions", json!([{"expression": "!('dev' in request.userInfo.groups)"}])),
            ("matchConditions", json!([{"expression": "request.userInfo.username == 'ada'"}])),
        ] {
            let mut broken = whole.clone();
            let one =
                broken.iter_mut().find(|one| one["kind"] == "ValidatingAdmissionPolicy").unwrap();
            match part.split_once('/') {
                Some((group, field)) => one["spec"][group][field] = weak,
                None => one["spec"][part] = weak,
            }
            assert_eq!(told(&installed(&broken)).0, Mark::Bad, "{part}");
        }
        let hidden = ClusterSnapshot { policies: ListResult::Hidden, ..installed(&whole) };
        assert_eq!(told(&hidden).0, Mark::Busy);
        assert_eq!(
            told(&ClusterSnapshot { policies: ListResult::NoSuchKind, ..hidden }).0,
            Mark::Busy
        );
    }

    #[test]
    fn policy_that_stops_crossplane_is_red() {
        let deployment = |namespace: &str, pods: u32| {
            let account = json!({"serviceAccountName": "crossplane"});
            objects(&[json!({"metadata": {"name": "crossplane", "namespace": namespace},
                "spec": {"template": {"spec": account}}, "status": {"availableReplicas": pods}})])
        };
        let installed = |namespace: &str, pods: u32| ClusterSnapshot {
            crossplane: deployment(namespace, pods),
            ..installed(&policies(&[(Flavour::Claims, GROUP)], CROSSPLANE))
        };
        assert_eq!(told(&installed("crossplane-system", 1)).0, Mark::Good);
        let (mark, found) = told(&installed("upbound-system", 1));
        assert_eq!(mark, Mark::Bad);
        assert!(
            found.contains("runs as system:serviceaccount:upbound-system:crossplane"),
            "{found}"
        );
        assert_eq!(told(&installed("upbound-system", 0)).0, Mark::Good, "no pod is available");
    }

    #[test]
    fn missing_namespace_right_is_red_if_a_composition_needs_it() {
        let role = |verbs: Value| {
            objects(&[json!({"metadata": {"name": "x"},
                "rules": [{"apiGroups": [""], "resources": ["namespaces"], "verbs": verbs}]})])
        };
        let mark = |roles: ListResult| {
            rights(&ClusterSnapshot { roles, ..claims() }).map(|check| check.mark)
        };
        assert_eq!(mark(role(json!(["get", "list", "watch"]))), Some(Mark::Good));
        assert_eq!(mark(role(json!(["*"]))), Some(Mark::Good));
        assert_eq!(mark(role(json!(["get"]))), Some(Mark::Bad));
        assert_eq!(mark(objects(&[])), Some(Mark::Bad));
        assert_eq!(mark(ListResult::Hidden), Some(Mark::Busy));
        // A GPU workspace creates no namespace.
        assert_eq!(rights(&ClusterSnapshot { roles: objects(&[]), ..snapshot() }), None);
    }
}
