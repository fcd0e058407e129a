//! Writes: create, replace, patch, apply, delete. All writes are validated as in an API server.

use axum::http::StatusCode;
use axum::response::Response;
use serde_json::{Value, json};

use super::admit::{admit, admit_deletion, prune};
use super::{Request, versioned};
use crate::Cluster;
use crate::answer::{Refused, respond};
use crate::fields::{self, Writer};
use crate::json::{add_finalizer, list, random, remove, seconds, text};
use crate::kinds::Kind;
use crate::store::{self, Changed, Key};

/// The finalizer that keeps an object until its dependents are deleted.
const FOREGROUND: &str = "foregroundDeletion";

/// Creates an object.
pub fn create(cluster: &Cluster, request: &Request<'_>, body: &[u8]) -> Result<Response, Refused> {
    let mut object = document(body)?;
    if !text(&object, "/metadata/resourceVersion").is_empty() {
        let message = "resourceVersion should not be set on objects to be created";
        return Err(Refused::new(500, "InternalError", message));
    }
    // The API server sets these itself.
    for field in ["uid", "creationTimestamp", "generation"] {
        remove(&mut object["metadata"], field);
    }
    if text(&object, "/metadata/name").is_empty()
        && !text(&object, "/metadata/generateName").is_empty()
    {
        object["metadata"]["name"] =
            json!(format!("{}{}", text(&object, "/metadata/generateName"), &random(3)[..5]));
    }
    let name = text(&object, "/metadata/name").to_owned();
    let key = request.kind.key(request.namespace, &name);
    known_namespace(cluster, &key)?;
    if name.is_empty() {
        return Err(Refused::new(
            422,
            "Invalid",
            "metadata.name: name or generateName is required",
        ));
    }
    if let Some(message) = cluster.faults.exceeded_quota(&name) {
        return Err(Refused::new(403, "Forbidden", message));
    }
    let made = write(cluster, request, &key, |before| {
        if before.is_some() {
            let message = format!("{} {name:?} already exists", request.kind.resource());
            return Err(Refused::new(409, "AlreadyExists", message));
        }
        let mut object = admit(cluster, request, &key, object, None)?;
        fields::note(None, &mut object, &Writer::updating(manager(request)), cluster.now());
        Ok(object)
    })?;
    Ok(respond(StatusCode::CREATED, &versioned(&made, request.kind)))
}

/// Replaces an object that the writer has read.
pub fn replace(cluster: &Cluster, request: &Request<'_>, body: &[u8]) -> Result<Response, Refused> {
    let object = document(body)?;
    update(cluster, request, |_| Ok(object))
}

/// Patches an object.
pub fn patch(
    cluster: &Cluster,
    request: &Request<'_>,
    media_type: &str,
    body: &[u8],
) -> Result<Response, Refused> {
    match media_type.split(';').next().unwrap_or_default().trim() {
        "application/apply-patch+yaml" => apply(cluster, request, body),
        "application/json-patch+json" => {
            let patch: json_patch::Patch =
                serde_json::from_slice(body).map_err(|error| unreadable(&error))?;
            update(cluster, request, |live| {
                let mut object = live.clone();
                json_patch::patch(&mut object, &patch).map_err(|error| unreadable(&error))?;
                Ok(object)
            })
        }
        // Our kinds have no lists that a strategic patch would merge.
        "application/merge-patch+json" | "application/strategic-merge-patch+json" => {
            let patch = document(body)?;
            update(cluster, request, |live| {
                let mut object = live.clone();
                json_patch::merge(&mut object, &patch);
                Ok(object)
            })
        }
        other => Err(Refused::new(
            415,
            "UnsupportedMediaType",
            format!("found {other:?}; apply, merge and JSON patches are allowed"),
        )),
    }
}

fn apply(cluster: &Cluster, request: &Request<'_>, body: &[u8]) -> Result<Response, Refused> {
    let mut intent: Value = serde_saphyr::from_slice(body).map_err(|error| unreadable(&error))?;
    let key = request.kind.key(request.namespace, request.name);
    known_namespace(cluster, &key)?;
    let asked = intent["metadata"]["resourceVersion"].clone();
    let writer = Writer::applying(manager(request));
    // Unknown fields are rejected before admission adds defaults that the writer does not own.
    prune(cluster, request, &mut intent)?;
    let mut is_new = false;
    let made = write(cluster, request, &key, |before| {
        is_new = before.is_none();
        let live = before.cloned().unwrap_or_else(|| {
            versioned(&json!({"metadata": {"name": request.name}}), request.kind)
        });
        if !same_version(&asked, &live) {
            return Err(Refused::outdated(request.kind, request.name));
        }
        if request.is_status {
            // Without managers: the status of an object has one writer here.
            let mut changed = live.clone();
            json_patch::merge(&mut changed["status"], &intent["status"]);
            return admit(cluster, request, &key, changed, before);
        }
        let merged =
            fields::apply(&live, &intent, &writer, request.query.is("force"), cluster.now())
                .map_err(|conflicts| Refused::conflicts(request.kind, request.name, &conflicts))?;
        let managed = merged["metadata"]["managedFields"].clone();
        let mut object = admit(cluster, request, &key, merged, before)?;
        object["metadata"]["managedFields"] = managed;
        Ok(object)
    })?;
    let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
    Ok(respond(status, &versioned(&made, request.kind)))
}

fn update(
    cluster: &Cluster,
    request: &Request<'_>,
    change: impl FnOnce(&Value) -> Result<Value, Refused>,
) -> Result<Response, Refused> {
    let key = request.kind.key(request.namespace, request.name);
    let made = write(cluster, request, &key, |before| {
        let before = before.ok_or_else(|| Refused::absent(request.kind, request.name))?;
        let object = change(before)?;
        if !same_version(&object["metadata"]["resourceVersion"], before) {
            return Err(Refused::outdated(request.kind, request.name));
        }
        let managers = object["metadata"]["managedFields"].clone();
        let mut object = admit(cluster, request, &key, object, Some(before))?;
        if managers.is_array() {
            object["metadata"]["managedFields"] = managers;
        }
        fields::note(Some(before), &mut object, &Writer::updating(manager(request)), cluster.now());
        Ok(object)
    })?;
    Ok(respond(StatusCode::OK, &versioned(&made, request.kind)))
}

/// Deletes an object. An object with finalizers is only marked, and is removed with its last
/// finalizer.
pub fn delete(cluster: &Cluster, request: &Request<'_>, body: &[u8]) -> Result<Response, Refused> {
    let options: Value = serde_json::from_slice(body).unwrap_or_default();
    let key = request.kind.key(request.namespace, request.name);
    let policy = [text(&options, "/propagationPolicy"), request.query.get("propagationPolicy")];
    let dry_run = is_dry_run(request) || !list(&options, "/dryRun").is_empty();
    // Before the change, because a policy may read another object of the store.
    let admitted = cluster
        .store
        .get(&key)
        .map_or(Ok(()), |before| admit_deletion(cluster, request, &key, &before));
    let deleted = cluster.store.change(&key, cluster.now(), |before| {
        let before = before.ok_or_else(|| Refused::absent(request.kind, request.name))?;
        for field in ["uid", "resourceVersion"] {
            let asked = &options["preconditions"][field];
            if !asked.is_null() && *asked != before["metadata"][field] {
                let found = &before["metadata"][field];
                let message =
                    format!("Precondition failed: {field}: asked for {asked}, found {found}");
                return Err(Refused::new(409, "Conflict", message));
            }
        }
        admitted?;
        let mut object = before.clone();
        if text(before, "/metadata/deletionTimestamp").is_empty() && !dry_run {
            if policy.contains(&"Foreground") && request.kind.foreground {
                add_finalizer(&mut object, FOREGROUND);
            }
            object["metadata"]["deletionTimestamp"] = json!(seconds(cluster.now()).to_string());
            object["metadata"]["deletionGracePeriodSeconds"] = json!(0);
        }
        Ok(Some(object))
    })?;
    let Some(Changed { object, .. }) = deleted else {
        return Err(Refused::absent(request.kind, request.name));
    };
    Ok(respond(StatusCode::OK, &versioned(&object, request.kind)))
}

/// Stores the result of `change`. A dry run only returns it.
fn write(
    cluster: &Cluster,
    request: &Request<'_>,
    key: &Key,
    change: impl FnOnce(Option<&Value>) -> Result<Value, Refused>,
) -> Result<Value, Refused> {
    let now = cluster.now();
    if is_dry_run(request) {
        let before = cluster.store.get(key);
        return Ok(store::kept(change(before.as_deref())?, before.as_deref(), now));
    }
    let changed = cluster.store.change(key, now, |before| change(before).map(Some))?;
    changed
        .map(|changed| Value::clone(&changed.object))
        .ok_or_else(|| Refused::absent(request.kind, &key.name))
}

fn is_dry_run(request: &Request<'_>) -> bool {
    request.query.get("dryRun") == "All"
}

fn manager<'r>(request: &'r Request<'_>) -> &'r str {
    Some(request.query.get("fieldManager")).filter(|name| !name.is_empty()).unwrap_or("unknown")
}

fn document(body: &[u8]) -> Result<Value, Refused> {
    let object: Value = serde_json::from_slice(body).map_err(|error| unreadable(&error))?;
    if object.is_object() { Ok(object) } else { Err(unreadable(&"the body must be an object")) }
}

fn unreadable(error: &dyn std::fmt::Display) -> Refused {
    Refused::new(400, "BadRequest", format!("the body cannot be read: {error}"))
}

/// Whether a write is based on the stored object. A write without a version always is. An API
/// server treats versions as numbers: `07` and `7` are equal.
fn same_version(asked: &Value, live: &Value) -> bool {
    let number = |version: &Value| version.as_str().and_then(|text| text.parse::<u64>().ok());
    let is_given = asked.as_str().is_some_and(|text| !text.is_empty());
    !is_given || number(asked) == number(&live["metadata"]["resourceVersion"])
}

/// Rejects an object in a namespace that does not exist. A cluster without any Namespace object
/// accepts all namespaces.
fn known_namespace(cluster: &Cluster, key: &Key) -> Result<(), Refused> {
    let namespace = |kind: &&Kind| kind.name == "Namespace";
    let Some(kind) =
        cluster.kinds.all().iter().find(namespace).filter(|_| !key.namespace.is_empty())
    else {
        return Ok(());
    };
    let (_, all) = cluster.store.list(&kind.resource(), None);
    let is_known = all.is_empty() || all.iter().any(|(one, _)| one.name == key.namespace);
    if is_known { Ok(()) } else { Err(Refused::absent(kind, &key.namespace)) }
}
