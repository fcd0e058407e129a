//! provider-kubernetes' Object: what it holds lives in a cluster, and its readiness follows a policy.

use kube_cel::KubeCelExt;
use kube_cel::cel::{self, Context, Program};
use serde_json::{Value, json};

use super::manner::{self, MANAGED, Manner};
use super::{State, condition, set_condition};
use crate::core::{ConnectionDetails, World};
use crate::value::{at, set, text};

/// Synced once its cluster takes the manifest; Ready as its policy says.
pub(super) const OBJECT: Manner = Manner { waits: await_config, effects: create, tell, ..MANAGED };

/// A provider config that is composed beside the resource must have its secret before anything goes through it.
pub(super) fn await_config(object: &Value, world: &World) -> Result<(), String> {
    let Some(name) = text(object, &["spec", "providerConfigRef", "name"]) else { return Ok(()) };
    let group = |one: &Value| {
        text(one, &["apiVersion"])
            .and_then(|version| version.split_once('/'))
            .map(|(group, _)| group.to_owned())
    };
    let config = world.resources().values().find(|one| {
        text(one, &["kind"]).is_some_and(|kind| kind.ends_with("ProviderConfig"))
            && text(one, &["metadata", "name"]) == Some(name)
            && group(one) == group(object)
    });
    let Some(reference) = config.and_then(|config| at(config, &["spec", "credentials", "secretRef"])) else {
        return Ok(());
    };
    let part = |key| text(reference, &[key]).unwrap_or_default();
    let found = world.secret_data(part("namespace"), part("name"));
    let missing = !found.contains_key(part("key"));
    if missing {
        return Err(format!(
            "cannot get credentials of provider config {name:?}: secrets {:?} not found",
            part("name")
        ));
    }
    Ok(())
}

/// Puts the manifest into its cluster. It answers there as its kind does, at once where no policy looks at it.
fn create(object: &mut Value, before: &World, world: &mut World, details: &mut ConnectionDetails) {
    let Some(mut inner) = at(object, &["spec", "forProvider", "manifest"]).cloned() else { return };
    let last = at(object, &["status", "atProvider", "manifest"]).cloned();
    if let Some(status) = last.as_ref().and_then(|last| last.get("status")) {
        set(&mut inner, &["status"], status.clone());
    }
    set(&mut inner, &["metadata", "generation"], json!(1));
    let manner = manner::of(&inner);
    // It is made in one round and seen as made in the next.
    let state = if last.is_some() || manner.rounds == 1 { State::Ready } else { State::Creating };
    (manner.tell)(&mut inner, &state, before, &manner);
    if inner["kind"] == "Secret" {
        world.put_secret(inner.clone());
    }
    set(object, &["status", "atProvider"], json!({"manifest": inner}));
    copy_details(object, before, details);
}

/// `spec.connectionDetails` of an Object or a Release: fields of what lies in the cluster, Secrets above all.
pub(super) fn copy_details(object: &Value, world: &World, details: &mut ConnectionDetails) {
    let entries = at(object, &["spec", "connectionDetails"]).and_then(Value::as_array);
    for entry in entries.into_iter().flatten().filter(|entry| entry["kind"] == "Secret") {
        let part = |key| text(entry, &[key]).unwrap_or_default();
        let (own, release) =
            (text(object, &["metadata", "namespace"]), text(object, &["spec", "forProvider", "namespace"]));
        // A namespaced Release looks into its own namespace only, whatever the entry says.
        let named = text(entry, &["namespace"]).filter(|_| own.is_none() || object["kind"] != "Release");
        let namespace = named.or(release).or(own).unwrap_or_default();
        let key = part("fieldPath").trim_start_matches("data").trim_matches(['.', '[', ']', '\'', '"']);
        if let Some(value) = world.secret_data(namespace, part("name")).remove(key) {
            details.insert(part("toConnectionSecretKey").to_owned(), value);
        }
    }
}

fn tell(object: &mut Value, state: &State, world: &World, managed: &Manner) {
    (MANAGED.tell)(object, state, world, managed);
    if *state == State::Ready && !is_ready(object) {
        let now = world.now().to_string();
        set_condition(object, &now, "Ready", "False", "Unavailable", "");
    }
}

/// What the readiness policy says.
fn is_ready(object: &Value) -> bool {
    let inner = at(object, &["status", "atProvider", "manifest"]).unwrap_or(&Value::Null);
    match text(object, &["spec", "readiness", "policy"]) {
        Some("DeriveFromObject") => condition(inner, "Ready").is_some_and(|ready| ready["status"] == "True"),
        Some("AllTrue") => {
            let conditions = at(inner, &["status", "conditions"]).and_then(Value::as_array);
            conditions.is_some_and(|all| !all.is_empty() && all.iter().all(|one| one["status"] == "True"))
        }
        Some("DeriveFromCelQuery") => {
            let query = text(object, &["spec", "readiness", "celQuery"]).unwrap_or_default();
            holds(query, inner).unwrap_or(false)
        }
        _ => !inner.is_null(),
    }
}

fn holds(query: &str, inner: &Value) -> Option<bool> {
    let program = Program::compile(query).ok()?;
    let mut context = Context::default().with_all();
    context.add_variable("object", inner).ok()?;
    match program.execute(&context).ok()? {
        cel::Value::Bool(holds) => Some(holds),
        _ => None,
    }
}
