//! provider-kubernetes' Object. Its wrapped object exists in a cluster, and its readiness depends
//! on a policy.

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

/// Synced after its cluster accepts the manifest, and Ready according to its policy. The registry
/// adds [`create`].
pub(super) const OBJECT: KindBehaviour =
    KindBehaviour { watches: true, waits: await_cluster, set_status, ..DEFAULT };

/// Waits until its cluster is reachable, and has the manifest's namespace and kind.
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

/// Waits for the releases in its namespace. Any of them may create an observed object.
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

/// Creates the wrapped object in its cluster. Its own kind determines its status. `behaviour_of`
/// finds the behaviour of that kind.
pub(super) fn create(
    object: &mut Value,
    before: &World,
    world: &mut World,
    details: &mut ConnectionDetails,
    behaviour_of: fn(&Value) -> KindBehaviour,
) {
    let Some(mut inner) = at(object, &["spec", "forProvider", "manifest"]).cloned() else { return };
    if is_observe_only(object) && inner["kind"] == "Service" {
        // The manifest has only the Service's name. Only the addresses of load balancers are
        // observed.
        set(&mut inner, &["spec", "type"], json!("LoadBalancer"));
    }
    let last = at(object, &["status", "atProvider", "manifest"]).cloned();
    let is_new = identify(&mut inner, last.as_ref());
    let behaviour = behaviour_of(&inner);
    // The creation or change takes one round, and is observed in the next.
    let state = if is_new && behaviour.rounds > 1 { State::Creating } else { State::Ready };
    (behaviour.set_status)(&mut inner, &state, before, &behaviour);
    if inner["kind"] == "Secret" {
        world.put_secret(inner.clone());
    }
    set(object, &["status", "atProvider"], json!({"manifest": inner}));
    copy_details(object, before, details);
}

/// Sets the wrapped object's metadata as its cluster does, and its previous status. Returns whether
/// it has a new generation.
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

/// Whether `live` has all wanted values. Its cluster may have added more.
fn covers(live: &Value, wanted: &Value) -> bool {
    match (live, wanted) {
        (Value::Object(live), Value::Object(wanted)) => wanted
            .iter()
            .all(|(key, wanted)| live.get(key).is_some_and(|live| covers(live, wanted))),
        (_, Value::Null) => true,
        (live, wanted) => live == wanted,
    }
}

/// Copies the `spec.connectionDetails` of an Object or a Release from Secrets in the cluster.
pub(super) fn copy_details(object: &Value, world: &World, details: &mut ConnectionDetails) {
    let entries = at(object, &["spec", "connectionDetails"]).and_then(Value::as_array);
    for entry in entries.into_iter().flatten().filter(|entry| entry["kind"] == "Secret") {
        let part = |key| text(entry, &[key]).unwrap_or_default();
        let (own, release) = (
            text(object, &["metadata", "namespace"]),
            text(object, &["spec", "forProvider", "namespace"]),
        );
        // A namespaced Release reads only its own namespace. It ignores the entry's namespace.
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

/// Evaluates the readiness policy.
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

/// A value with signed integers, as in Kubernetes. Literals in CEL are signed, and do not equal
/// unsigned numbers.
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
