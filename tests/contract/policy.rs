//! The admission policies: only Crossplane writes the references between claims, composites and
//! composed resources.

use function_paved_road::apis::{APIS, Flavour};
use function_paved_road::manifests::namespaces;
use function_paved_road::manifests::policy::{CROSSPLANE, policies};
use k8s_schema::policy::{Write, rejections, rejections_with};
use serde_json::{Value, json};

/// The policies' rejections of a write by a user, in the claims API or the namespaced API.
fn judged(
    (flavour, resource): (Flavour, &str),
    user: &str,
    before: Option<&Value>,
    object: &Value,
) -> Vec<String> {
    let groups = Flavour::ALL.map(|flavour| (flavour, flavour.default_group()));
    let group = flavour.default_group();
    rejections(
        &policies(&groups, CROSSPLANE),
        Write { object: Some(object), before, group, resource, user },
    )
}

/// Every resource with a field that belongs to Crossplane, and that field.
fn guarded() -> Vec<((Flavour, &'static str), &'static str)> {
    let of = |api: &&'static dyn function_paved_road::apis::AnyApi| {
        let info = api.info();
        [
            ((Flavour::Claims, info.claim.plural), "/resourceRef"),
            ((Flavour::Claims, info.composite.plural), "/claimRef"),
            ((Flavour::Claims, info.composite.plural), "/resourceRefs"),
            ((Flavour::Namespaced, info.namespaced.plural), "/crossplane/resourceRefs"),
        ]
    };
    APIS.iter().flat_map(of).collect()
}

/// An object with these values in its spec.
fn object(values: &[(&str, Value)]) -> Value {
    let mut object = json!({"metadata": {"name": "innocent"}, "spec": {"parameters": {}}});
    for (path, value) in values {
        let path: Vec<&str> = path.split('/').skip(1).collect();
        let spec = &mut object["spec"];
        *path.iter().fold(spec, |here, key| &mut here[*key]) = value.clone();
    }
    object
}

#[test]
fn user_cannot_set_change_or_remove_a_reference() {
    let (mine, other) = (json!([{"name": "mine"}]), json!([{"name": "team-payments"}]));
    for (resource, path) in guarded() {
        let with = |value: &Value| object(&[(path, value.clone())]);
        let without = object(&[]);
        for (what, before, after) in [
            ("create with it", None, with(&other)),
            ("set", Some(&without), with(&other)),
            ("change", Some(&with(&mine)), with(&other)),
            ("empty", Some(&with(&mine)), with(&json!([]))),
            ("remove", Some(&with(&mine)), without.clone()),
        ] {
            let rejected = judged(resource, "ada", before, &after);
            let field = format!("spec{}", path.replace('/', "."));
            assert!(
                rejected.len() == 1
                    && rejected[0].starts_with(&format!("{field} is Crossplane's own")),
                "{what} {field} of {resource:?}: {rejected:?}"
            );
            let crossplane = judged(resource, CROSSPLANE, before, &after);
            assert_eq!(
                crossplane,
                Vec::<String>::new(),
                "Crossplane may {what} {field} of {resource:?}"
            );
        }
    }
}

#[test]
fn user_may_write_unguarded_fields() {
    for (resource, path) in guarded() {
        let bound = object(&[(path, json!([{"name": "mine"}]))]);
        let mut changed = bound.clone();
        changed["spec"]["parameters"]["size"] = json!("large");
        let selector = object(&[("/crossplane/compositionSelector", json!({}))]);
        for (before, after) in [
            (None, &object(&[])),
            (Some(&bound), &bound),
            (Some(&bound), &changed),
            (None, &selector),
        ] {
            assert_eq!(
                judged(resource, "ada", before, after),
                Vec::<String>::new(),
                "{resource:?} {path}"
            );
        }
    }
}

#[test]
fn user_cannot_write_a_status() {
    let with = |endpoint: &str| {
        let mut object = object(&[]);
        object["status"] = json!({"endpoint": endpoint, "phase": "Ready"});
        object
    };
    let (ours, forged, none) = (with("203.0.113.7"), with("evil.example"), object(&[]));
    let resources = guarded().into_iter().map(|(resource, _)| resource);
    for (flavour, plural) in resources {
        let status = format!("{plural}/status");
        let resource = (flavour, status.as_str());
        for after in [&forged, &none] {
            let rejected = judged(resource, "ada", Some(&ours), after);
            assert!(
                rejected.len() == 1 && rejected[0].starts_with("status is Crossplane's own"),
                "{resource:?}: {rejected:?}"
            );
            assert_eq!(judged(resource, CROSSPLANE, Some(&ours), after), Vec::<String>::new());
        }
        assert_eq!(judged(resource, "ada", Some(&ours), &ours), Vec::<String>::new());
        assert_eq!(judged((flavour, plural), "ada", Some(&ours), &ours), Vec::<String>::new());
    }
}

#[test]
fn given_account_of_crossplane_may_write_guarded_fields() {
    let group = Flavour::Claims.default_group();
    let own =
        policies(&[(Flavour::Claims, group)], "system:serviceaccount:upbound-system:crossplane");
    let object = object(&[("/resourceRef", json!({"name": "x"}))]);
    let rejected = |user: &str| {
        let resource = "environments";
        rejections(&own, Write { object: Some(&object), before: None, group, resource, user }).len()
    };
    assert_eq!(rejected("system:serviceaccount:upbound-system:crossplane"), 0);
    assert_eq!(rejected(CROSSPLANE), 1);
}

/// The refusals of the deletion of a namespace, with the controller's list of namespaces.
fn deletion_refusals(namespace: &Value, list: Option<&Value>) -> Vec<String> {
    let write = Write {
        object: None,
        before: Some(namespace),
        group: "",
        resource: "namespaces",
        user: "ada",
    };
    rejections_with(&namespaces::policy("paved-controller"), write, |reference| {
        assert_eq!((reference.api_version, reference.kind), ("v1", "ConfigMap"));
        let place = (reference.namespace, reference.name);
        assert_eq!(place, ("paved-controller", namespaces::NAME));
        list.map(|data| json!({"metadata": {"name": reference.name}, "data": data}))
    })
}

#[test]
fn namespace_with_environments_is_not_deleted() {
    let team = json!({"metadata": {"name": "team"}});
    let list = json!({"team": "StockPool/a, StockPool/b", "other": "StockPool/c"});
    assert_eq!(
        deletion_refusals(&team, Some(&list)),
        [
            "the namespace has environments, so its deletion would not end: StockPool/a, StockPool/b. \
          Run: paved delete --namespace team"
        ]
    );
    let none = [""; 0];
    for (namespace, list) in [
        (json!({"metadata": {"name": "empty"}}), Some(&list)),
        (team.clone(), Some(&json!({}))),
        (team.clone(), None),
        // Kubernetes deletes the namespace again after its contents.
        (
            json!({"metadata": {"name": "team", "deletionTimestamp": "2026-01-01T12:00:00Z"}}),
            Some(&list),
        ),
    ] {
        assert_eq!(deletion_refusals(&namespace, list), none, "{namespace} {list:?}");
    }
    let without_data =
        Write { object: None, before: Some(&team), group: "", resource: "namespaces", user: "ada" };
    let policy = namespaces::policy("paved-controller");
    let empty = json!({"metadata": {"name": namespaces::NAME}});
    assert_eq!(rejections_with(&policy, without_data, |_| Some(empty.clone())), none);
    let created = Write { object: Some(&team), before: None, ..without_data };
    assert_eq!(rejections_with(&policy, created, |_| Some(json!({"data": list}))), none);
    let other = Write { resource: "secrets", ..without_data };
    assert_eq!(rejections_with(&policy, other, |_| Some(json!({"data": list}))), none);
}

#[test]
fn binding_without_its_parameter_decides_by_its_action() {
    let mut policy = namespaces::policy("paved-controller");
    let team = json!({"metadata": {"name": "team"}});
    let write =
        Write { object: None, before: Some(&team), group: "", resource: "namespaces", user: "ada" };
    policy[1]["spec"]["paramRef"]["parameterNotFoundAction"] = json!("Deny");
    assert_eq!(rejections_with(&policy, write, |_| None).len(), 1);
    let found = json!({"data": {"team": "StockPool/a"}});
    assert_eq!(rejections_with(&policy[..1], write, |_| Some(found.clone())), [""; 0]);
}

/// The policy in the guide about lifetimes.
fn documented() -> Vec<Value> {
    let page = include_str!("../../docs/how-to/set-lifetimes.md");
    documented_as(page, "gpu-workspaces-end")
}

/// The policy with this name on a page.
fn documented_as(page: &str, name: &str) -> Vec<Value> {
    let mut blocks = page.split("```yaml\n").filter_map(|rest| rest.split("```").next());
    let is_it = |block: &&str| {
        block.contains("kind: ValidatingAdmissionPolicy")
            && block.contains(&format!("name: {name}"))
    };
    serde_saphyr::from_multiple(blocks.find(is_it).unwrap()).unwrap()
}

/// Marks that prevent a deletion by the controller.
const MARKS: [&str; 8] = [
    "crossplane.io/paused",
    "crossplane.io/in-use",
    "argocd.argoproj.io/tracking-id",
    "kustomize.toolkit.fluxcd.io/name",
    "objectset.rio.cattle.io/id",
    "configmanagement.gke.io/managed",
    "kapp.k14s.io/app",
    "app.kubernetes.io/instance",
];

/// The policies with these keys in the form of kube-cel 0.8, which escapes the keys of labels and
/// annotations. An API server does not: `findings/kube-cel-escapes-label-keys.sh`.
fn with_escaped_keys(policies: &[Value], keys: &[&str]) -> Vec<Value> {
    let text = serde_json::to_string(policies).unwrap();
    let escaped =
        |key: &str| key.replace('.', "__dot__").replace('/', "__slash__").replace('-', "__dash__");
    let text = keys.iter().fold(text, |text, key| text.replace(key, &escaped(key)));
    serde_json::from_str(&text).unwrap()
}

#[test]
fn documented_policy_forbids_every_mark_that_prevents_a_deletion() {
    let page = include_str!("../../docs/how-to/set-lifetimes.md");
    let policies = with_escaped_keys(&documented_as(page, "environments-without-marks"), &MARKS);
    let rejected = |metadata: Value, user: &str| {
        let object = json!({"metadata": metadata, "spec": {}});
        let (group, resource) = (Flavour::Claims.default_group(), "gpudevworkspaceclaims");
        let write = Write { object: Some(&object), before: None, group, resource, user };
        !rejections(&policies, write).is_empty()
    };
    for mark in MARKS {
        for place in ["labels", "annotations"] {
            let metadata = json!({"name": "ada", place: {mark: "x"}});
            assert!(rejected(metadata.clone(), "ada"), "{place} {mark}");
            assert!(!rejected(metadata, CROSSPLANE), "{place} {mark}");
        }
    }
    let other = json!({"name": "ada", "labels": {"team": "vision"}, "annotations": {"a": "b"}});
    assert!(!rejected(other, "ada"));
    assert!(!rejected(json!({"name": "ada"}), "ada"));
}

#[test]
fn documented_policy_rejects_only_new_violations() {
    let policies = documented();
    let claim = |ttl: Option<&str>, machine: &str| {
        let mut object = object(&[("/parameters/instanceType", json!(machine))]);
        if let Some(ttl) = ttl {
            object["spec"]["lifecycle"] = json!({"ttl": ttl});
        }
        object
    };
    let rejected = |before: Option<&Value>, object: &Value| -> Vec<String> {
        let (group, resource) = (Flavour::Claims.default_group(), "gpudevworkspaceclaims");
        let messages = rejections(
            &policies,
            Write { object: Some(object), before, group, resource, user: CROSSPLANE },
        );
        messages.iter().map(|message| message.split(':').next().unwrap().to_owned()).collect()
    };
    let (ttl, machine) = ("spec.lifecycle.ttl", "spec.parameters.instanceType");
    let (good, old) = (claim(Some("8h"), "g5.xlarge"), claim(None, "p4d.24xlarge"));
    let never = claim(Some("never"), "g5.xlarge");

    for (before, after, expected) in [
        (None, &good, &[][..]),
        (None, &old, &[ttl, machine]),
        (None, &never, &[ttl]),
        (Some(&good), &never, &[ttl]),
        (Some(&good), &claim(None, "g5.xlarge"), &[ttl]),
        (Some(&good), &claim(Some("4h"), "p4d.24xlarge"), &[machine]),
        (Some(&old), &claim(Some("8h"), "p4d.24xlarge"), &[]),
        (Some(&old), &claim(None, "g5.xlarge"), &[]),
        (Some(&old), &claim(None, "p5.48xlarge"), &[machine]),
    ] {
        assert_eq!(rejected(before, after), expected, "{before:?} becomes {after}");
    }

    // Writes of `paved`, the controller and Crossplane to a claim from before the policy.
    for (path, value) in [
        (["metadata", "annotations"], json!({"paved-road.fn.crossplane.io/stopped-at": "x"})),
        (["metadata", "finalizers"], json!([])),
        (["spec", "resourceRef"], json!({"name": "demo-1f53a"})),
        (["spec", "lifecycle"], json!({"power": "Stopped"})),
    ] {
        let mut after = old.clone();
        crossplane::json::set(&mut after, &path, value);
        assert_eq!(rejected(Some(&old), &after), [""; 0], "{path:?}");
    }
    let mut deleted = old.clone();
    deleted["metadata"]["deletionTimestamp"] = json!("2026-01-01T12:00:00Z");
    assert_eq!(rejected(Some(&good), &deleted), [""; 0]);
}
