//! Namespaces of an environment's own, and objects in the user's namespace.

use super::*;
use crate::compose::{COMPOSITE_UID, Lookup};
use crate::diagnosis::Code;

const NAME: &str = "thing-abcde";

/// A composition and its lookups. `found` is empty until Crossplane has looked up the objects.
fn compose(
    test: &Test,
    found: &[Option<Value>],
) -> (Result<bool, Error>, Vec<String>, Result<Answer, Error>) {
    let (mut free, mut lookups) = (Ok(false), Vec::new());
    let requirement = || Lookup::namespace(NAME).requirement();
    let found = found.iter().map(|found| (requirement(), found.clone()));
    let answer = test.with_found(found).compose(|cx| {
        free = cx.own_namespace("namespace", NAME, false, json!({"team": "a"}));
        lookups = cx.lookups.keys().cloned().collect();
        free.clone().map(drop)
    });
    (free, lookups, answer)
}

fn since(revision: u32) -> Test {
    Test { settings: Common { schema_revision: Some(revision), ..Common::default() }, ..legacy() }
}

fn made_for(uid: &str) -> Value {
    json!({"kind": "Namespace", "metadata": {"name": NAME, "labels": {COMPOSITE_UID: uid}}})
}

#[test]
fn namespace_is_looked_up_before_it_is_composed() {
    let (free, lookups, answer) = compose(&since(2), &[]);
    assert_eq!((free, lookups), (Ok(false), vec![format!("Namespace/{NAME}")]));
    let answer = answer.ok().unwrap();
    assert!(answer.resources.is_empty(), "the namespace waits for the answer");
    let line = &answer.status["resources"][0];
    assert_eq!((&line["slot"], &line["reason"]), (&json!("namespace"), &json!("Waiting")));
}

#[test]
fn absent_namespace_is_composed_with_the_composites_uid() {
    for found in [None, Some(made_for("abcde123-0000"))] {
        let (free, lookups, answer) = compose(&since(2), &[found]);
        assert_eq!(free, Ok(true));
        assert_eq!(lookups.len(), 1, "Crossplane calls again until two answers match");
        let manifest =
            object(&answer.ok().unwrap(), "namespace")["spec"]["forProvider"]["manifest"].clone();
        let labels = json!({"team": "a", COMPOSITE_UID: "abcde123-0000"});
        assert_eq!(
            (&manifest["metadata"]["name"], &manifest["metadata"]["labels"]),
            (&json!(NAME), &labels)
        );
    }
}

#[test]
fn namespace_of_another_is_refused() {
    let unlabelled = json!({"kind": "Namespace", "metadata": {"name": NAME}});
    for found in [unlabelled, made_for("another"), made_for("")] {
        let (free, lookups, _) = compose(&since(2), &[Some(found)]);
        let taken = Error::NamespaceTaken(NAME.to_owned());
        assert_eq!(taken.code(), Code::NamespaceTaken);
        assert_eq!(free, Err(taken));
        assert_eq!(lookups.len(), 1, "Crossplane calls again once the namespace is deleted");
    }
}

#[test]
fn namespace_that_runs_is_not_looked_up() {
    let running = json!({
        "apiVersion": "kubernetes.crossplane.io/v1alpha2", "kind": "Object", "metadata": {},
        "spec": {"forProvider": {"manifest": {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "old"}}}},
    });
    let (free, lookups, answer) = compose(&since(2).with("namespace", running), &[]);
    assert_eq!((free, lookups), (Ok(true), vec![]));
    let manifest =
        object(&answer.ok().unwrap(), "namespace")["spec"]["forProvider"]["manifest"].clone();
    assert_eq!(manifest["metadata"], json!({"name": "old"}));
}

/// A user may choose an older Composition.
#[test]
fn new_environment_of_an_older_composition_looks_up_its_namespace() {
    let (free, lookups, _) = compose(&since(1), &[]);
    assert_eq!((free, lookups), (Ok(false), vec![format!("Namespace/{NAME}")]));
}

/// Composes the Deployment `name` and the connection Secret in the user's namespace. Crossplane has
/// answered the lookups of `found`.
fn compose_in_the_users_namespace(
    test: &Test,
    name: &str,
    found: &[(&str, Option<Value>)],
) -> (Vec<String>, Result<Answer, Error>) {
    let mut lookups = Vec::new();
    let found = found.iter().map(|(name, found)| ((*name).to_owned(), found.clone()));
    let answer = test.with_found(found).compose(|cx| {
        cx.generated("password");
        let object =
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}});
        let added = cx.object("web", object).add();
        added.and_then(|()| cx.compose_connection_secret())?;
        lookups = cx.lookups.keys().cloned().collect();
        Ok(())
    });
    (lookups, answer)
}

fn owned_by(uid: &str, is_controller: bool) -> Value {
    json!({"metadata": {"ownerReferences": [{"uid": uid, "controller": is_controller}]}})
}

const DEPLOYMENT: &str = "Deployment/team/web";
const SECRET: &str = "Secret/team/thing-things";

#[test]
fn object_in_the_users_namespace_is_looked_up_before_it_is_composed() {
    let (lookups, answer) = compose_in_the_users_namespace(&namespaced(), "web", &[]);
    assert_eq!(lookups, [DEPLOYMENT, SECRET]);
    assert!(answer.unwrap().resources.is_empty(), "they wait for the answer");
    for found in [None, Some(owned_by("abcde123-0000", true))] {
        let both = [(DEPLOYMENT, found.clone()), (SECRET, found)];
        let (lookups, answer) = compose_in_the_users_namespace(&namespaced(), "web", &both);
        assert_eq!(lookups, [DEPLOYMENT, SECRET], "until two answers match");
        assert_eq!(answer.unwrap().resources.len(), 2);
    }
}

#[test]
fn object_of_another_owner_is_never_taken_over() {
    let foreign =
        [json!({"metadata": {}}), owned_by("another", true), owned_by("abcde123-0000", false)];
    for (taken, free) in [(DEPLOYMENT, SECRET), (SECRET, DEPLOYMENT)] {
        for found in &foreign {
            let found = [(taken, Some(found.clone())), (free, None)];
            let (_, answer) = compose_in_the_users_namespace(&namespaced(), "web", &found);
            let Err(error) = answer else { panic!("{taken} was taken over") };
            assert_eq!(error.code(), Code::ObjectExists);
            let [kind, namespace, name] = *taken.split('/').collect::<Vec<_>>() else { panic!() };
            let expected = format!("{kind} {name} exists in namespace {namespace}, and does not");
            assert!(error.to_string().starts_with(&expected), "{error}");
        }
    }
}

#[test]
fn object_that_runs_or_has_the_uid_in_its_name_is_not_looked_up() {
    let (lookups, answer) =
        compose_in_the_users_namespace(&namespaced(), "web-abcde", &[(SECRET, None)]);
    assert_eq!((lookups, answer.unwrap().resources.len()), (vec![SECRET.to_owned()], 2));
    let running = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {},
    });
    let test = namespaced().with("web", running);
    let (lookups, answer) = compose_in_the_users_namespace(&test, "web", &[(SECRET, None)]);
    assert_eq!((lookups, answer.unwrap().resources.len()), (vec![SECRET.to_owned()], 2));
    // The claims API wraps objects.
    let (lookups, _) = compose_in_the_users_namespace(&legacy(), "web", &[]);
    assert!(lookups.is_empty(), "{lookups:?}");
}
