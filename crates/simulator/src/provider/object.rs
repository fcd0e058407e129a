//! provider-kubernetes' Object: what it holds lives in a cluster, and its readiness follows a
//! policy.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use kube_cel::KubeCelExt;
use kube_cel::cel::{self, Context, Program};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::clusters::{await_config, await_kind, await_namespace, cluster, is_observe_only};
use super::kind_behaviour::{DEFAULT, KindBehaviour};
use super::{State, condition, set_condition};
use crate::core::{ConnectionDetails, World, naming};
use crossplane::json::{at, set, text};

/// Synced once its cluster takes the manifest; Ready as its policy says. The registry adds
/// [`create`].
pub(super) const OBJECT: KindBehaviour =
    KindBehaviour { watches: true, waits: await_cluster, set_status, ..DEFAULT };

/// Its cluster must be within reach, and know the manifest's namespace and kind.
fn await_cluster(object: &Value, world: &World) -> Result<(), String> {
    await_config(object, world)?;
    let manifest = at(object, &["spec", "forProvider", "manifest"]).unwrap_or(&Value::Null);
    await_kind(object, manifest, world)?;
    let Some(namespace) = text(manifest, &["metadata", "namespace"]) else { return Ok(()) };
    if is_observe_only(object) {
        return await_maker(object, namespace, world);
    }
    let there = await_namespace(namespace, cluster(object, world), world);
    there.map_err(|why| format!("create failed: cannot create object: {why}"))
}

/// What is only looked at was made by a release into its namespace, if there is one.
fn await_maker(object: &Value, namespace: &str, world: &World) -> Result<(), String> {
    let mut makers = world.resources().values().filter(|one| {
        let own = text(one, &["metadata", "namespace"]);
        one["kind"] == "Release"
            && text(one, &["spec", "forProvider", "namespace"]).or(own) == Some(namespace)
            && cluster(one, world) == cluster(object, world)
    });
    let why = "observe failed: external resource does not exist";
    makers.all(super::is_ready).then_some(()).ok_or_else(|| why.to_owned())
}

/// Puts the manifest into its cluster. It answers there as its kind does, at once where no policy
/// looks at it. `behaviour_of` finds the manner of that kind.
pub(super) fn create(
    object: &mut Value,
    before: &World,
    world: &mut World,
    details: &mut ConnectionDetails,
    behaviour_of: fn(&Value) -> KindBehaviour,
) {
    let Some(mut inner) = at(object, &["spec", "forProvider", "manifest"]).cloned() else { return };
    if is_observe_only(object) && inner["kind"] == "Service" {
        // The manifest only names it. Nobody looks at one that is not balanced.
        set(&mut inner, &["spec", "type"], json!("LoadBalancer"));
    }
    let last = at(object, &["status", "atProvider", "manifest"]).cloned();
    let is_new = identify(&mut inner, last.as_ref());
    let behaviour = behaviour_of(&inner);
    // It is made, or changed, in one round and seen as such in the next.
    let state = if is_new && behaviour.rounds > 1 { State::Creating } else { State::Ready };
    (behaviour.set_status)(&mut inner, &state, before, &behaviour);
    if inner["kind"] == "Secret" {
        world.put_secret(inner.clone());
    }
    set(object, &["status", "atProvider"], json!({"manifest": inner}));
    copy_details(object, before, details);
}

/// Gives what is wrapped the metadata that its cluster gives it, and the status that it had; says
/// whether this is a new generation of it.
fn identify(inner: &mut Value, last: Option<&Value>) -> bool {
    let generation = last.and_then(|last| at(last, &["metadata", "generation"])?.as_i64());
    let wanted = at(inner, &["spec"]).cloned().unwrap_or_default();
    let changed =
        last.is_none_or(|last| !covers(at(last, &["spec"]).unwrap_or(&Value::Null), &wanted));
    let next = generation.unwrap_or(0) + i64::from(changed);
    set(inner, &["metadata", "generation"], json!(next.max(1)));
    let uid = naming::uid(inner);
    set(inner, &["metadata", "uid"], json!(uid));
    if let Some(status) = last.and_then(|last| last.get("status")) {
        set(inner, &["status"], status.clone());
    }
    changed
}

/// Whether `live` has all that is wanted; its cluster may have added more.
fn covers(live: &Value, wanted: &Value) -> bool {
    match (live, wanted) {
        (Value::Object(live), Value::Object(wanted)) => wanted
            .iter()
            .all(|(key, wanted)| live.get(key).is_some_and(|live| covers(live, wanted))),
        (_, Value::Null) => true,
        (live, wanted) => live == wanted,
    }
}

/// `spec.connectionDetails` of an Object or a Release: fields of what lies in the cluster, Secrets
/// above all.
pub(super) fn copy_details(object: &Value, world: &World, details: &mut ConnectionDetails) {
    let entries = at(object, &["spec", "connectionDetails"]).and_then(Value::as_array);
    for entry in entries.into_iter().flatten().filter(|entry| entry["kind"] == "Secret") {
        let part = |key| text(entry, &[key]).unwrap_or_default();
        let (own, release) = (
            text(object, &["metadata", "namespace"]),
            text(object, &["spec", "forProvider", "namespace"]),
        );
        // A namespaced Release looks into its own namespace only, whatever the entry says.
        let named =
            text(entry, &["namespace"]).filter(|_| own.is_none() || object["kind"] != "Release");
        let namespace = named.or(release).or(own).unwrap_or_default();
        let key =
            part("fieldPath").trim_start_matches("data").trim_matches(['.', '[', ']', '\'', '"']);
        if let Some(value) = world.secret_data(namespace, part("name")).remove(key) {
            details.insert(part("toConnectionSecretKey").to_owned(), value);
        }
    }
}

fn set_status(object: &mut Value, state: &State, world: &World, managed: &KindBehaviour) {
    (DEFAULT.set_status)(object, state, world, managed);
    if *state == State::Ready && !is_ready(object) {
        let now = world.now().to_string();
        set_condition(object, &now, "Ready", "False", "Unavailable", "");
    }
}

/// What the readiness policy says.
fn is_ready(object: &Value) -> bool {
    let inner = at(object, &["status", "atProvider", "manifest"]).unwrap_or(&Value::Null);
    match text(object, &["spec", "readiness", "policy"]) {
        Some("DeriveFromObject") => {
            condition(inner, "Ready").is_some_and(|ready| ready["status"] == "True")
        }
        Some("AllTrue") => {
            let conditions = at(inner, &["status", "conditions"]).and_then(Value::as_array);
            conditions
                .is_some_and(|all| !all.is_empty() && all.iter().all(|one| one["status"] == "True"))
        }
        Some("DeriveFromCelQuery") => {
            let query = text(object, &["spec", "readiness", "celQuery"]).unwrap_or_default();
            holds(query, inner).unwrap_or(false)
        }
        _ => !inner.is_null(),
    }
}

fn holds(query: &str, inner: &Value) -> Option<bool> {
    let program = compiled(query)?;
    let mut context = Context::default().with_all();
    context.add_variable("object", Signed(inner)).ok()?;
    match program.execute(&context).ok()? {
        cel::Value::Bool(holds) => Some(holds),
        _ => None,
    }
}

/// A query, compiled once in each thread.
fn compiled(query: &str) -> Option<Rc<Program>> {
    thread_local! {
        static PROGRAMS: RefCell<BTreeMap<String, Option<Rc<Program>>>> = RefCell::default();
    }
    PROGRAMS.with_borrow_mut(|programs| {
        let compile = || Program::compile(query).ok().map(Rc::new);
        programs.entry(query.to_owned()).or_insert_with(compile).clone()
    })
}

/// A value whose whole numbers are signed, as Kubernetes has them: CEL's unsigned numbers equal no
/// literal.
struct Signed<'a>(&'a Value);

impl Serialize for Signed<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Object(fields) => {
                serializer.collect_map(fields.iter().map(|(key, value)| (key, Signed(value))))
            }
            Value::Array(items) => serializer.collect_seq(items.iter().map(Signed)),
            Value::Number(number) if number.is_i64() => {
                serializer.serialize_i64(number.as_i64().unwrap_or_default())
            }
            other => other.serialize(serializer),
        }
    }
}
