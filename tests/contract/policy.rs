//! The admission policies: only Crossplane writes the references between claims, composites and
//! composed resources.

use function_paved_road::apis::{APIS, Flavour};
use function_paved_road::manifests::policy::{CROSSPLANE, policies};
use k8s_schema::policy::{Write, rejections};
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
    rejections(&policies(&groups, CROSSPLANE), Write { object, before, group, resource, user })
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
fn given_account_of_crossplane_may_write_guarded_fields() {
    let group = Flavour::Claims.default_group();
    let own =
        policies(&[(Flavour::Claims, group)], "system:serviceaccount:upbound-system:crossplane");
    let object = object(&[("/resourceRef", json!({"name": "x"}))]);
    let rejected = |user: &str| {
        let resource = "environments";
        rejections(&own, Write { object: &object, before: None, group, resource, user }).len()
    };
    assert_eq!(rejected("system:serviceaccount:upbound-system:crossplane"), 0);
    assert_eq!(rejected(CROSSPLANE), 1);
}
