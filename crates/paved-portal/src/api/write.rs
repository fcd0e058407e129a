//! Writes environments with the user's own rights.

use crossplane::json::merge_patch;
use crossplane::spec::WRITTEN;
use kube::api::{DeleteParams, DynamicObject, PostParams, Preconditions, PropagationPolicy};
use paved_client::action::Verb;
use paved_client::cluster::Kind;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use utoipa::IntoParams;

use super::check::{Write, check};
use super::environments::Environments;
use crate::action::Action;
use crate::extract::name;
use crate::identity::{Naming, Person};
use crate::kinds::{SECRET, connection_keys};
use crate::live::{Entry, Key};
use crate::namespace::Namespaces;
use crate::owner::{self, ANNOTATION, LABEL, Owner};
use crate::problem::Problem;
use crate::request::{BODY, REQUEST};

/// The metadata that a user may set. All other metadata belongs to the cluster.
const METADATA: [&str; 5] = ["name", "namespace", "labels", "annotations", "resourceVersion"];

/// Metadata of other writers that a replacement would remove. Without its finalizers, a deleted
/// environment vanishes at once, and its resources stay.
const KEPT: [&str; 3] = ["finalizers", "ownerReferences", "generateName"];

/// The API server's answer to an outdated document.
const STALE: &str = "the object has been modified. Read its latest version, and apply your \
                     changes to it.";

/// How an environment is written.
#[derive(Clone, Copy, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct WriteParams {
    /// Only check whether the object would be accepted.
    #[serde(default)]
    #[param(required = false)]
    pub(crate) dry_run: bool,
    /// Write the object although the function would reject it, as a preview shows.
    #[serde(default)]
    #[param(required = false)]
    pub(crate) skip_check: bool,
}

/// Creates and changes environments.
#[derive(Clone)]
pub(crate) struct Writer {
    pub(crate) environments: Environments,
    pub(crate) namespaces: Namespaces,
    pub(crate) naming: Naming,
}

impl Writer {
    /// The namespace of a new environment: the chosen one, or the first with the right to create.
    pub(crate) async fn namespace(
        &self,
        person: &Person,
        kind: &Kind,
        chosen: Option<&str>,
    ) -> Result<String, Problem> {
        self.namespaces.choose(&self.environments.access, person, kind, chosen).await
    }

    /// The owner that a request names: the user, or another one that the user may act for.
    pub(crate) async fn named(
        &self,
        person: &Person,
        name: Option<&str>,
    ) -> Result<Owner, Problem> {
        owner::named(&self.naming, &self.environments.access, person, name).await
    }

    /// The owner of the environment. The label's value is also accepted, because it is in a
    /// document that the user has read before.
    pub(crate) async fn owner(
        &self,
        person: &Person,
        named: Option<&str>,
    ) -> Result<Owner, Problem> {
        let own = person.owner();
        match named {
            Some(named) if named == own.label() => Ok(own),
            named => self.named(person, named).await,
        }
    }
}

/// The document of an environment.
pub(crate) struct WriteRequest {
    pub(crate) kind: Kind,
    pub(crate) namespace: String,
    pub(crate) name: String,
    /// The whole object, without apiVersion and kind.
    pub(crate) object: Map<String, Value>,
}

impl WriteRequest {
    /// Reads a document that a user wrote. The owner is the user, or another one that the user may
    /// act for. If the document names no owner, a change keeps the owner of `before`. A change also
    /// keeps the metadata of other writers.
    pub(crate) async fn from_document(
        writer: &Writer,
        person: &Person,
        document: Value,
        before: Option<&DynamicObject>,
    ) -> Result<Self, Problem> {
        let kind = writer.environments.catalog.seen().for_document(&document)?;
        let Value::Object(mut document) = document else {
            return Err(Problem::field("body", "allowed: an object"));
        };
        let metadata = document.remove("metadata").unwrap_or_else(|| json!({}));
        let mut metadata = checked(metadata, before)?;
        let text = |key: &str| metadata.get(key).and_then(Value::as_str).map(str::to_owned);
        let name = text("name").ok_or_else(|| Problem::field("metadata.name", "required"))?;
        name_fits(&name)?;
        let namespace = text("namespace");
        let namespace = writer.namespace(person, &kind, namespace.as_deref()).await?;
        let version = text("resourceVersion");
        let named =
            metadata.get("labels").and_then(|labels| labels[LABEL].as_str()).map(str::to_owned);
        match before.and_then(|before| kept(before, named.as_deref())) {
            Some([label, login]) => {
                keep(&mut metadata, "labels", LABEL, label);
                keep(&mut metadata, "annotations", ANNOTATION, login);
            }
            None => writer.owner(person, named.as_deref()).await?.mark(&mut metadata),
        }
        if let Some(before) = before {
            requested(&mut metadata, before);
        }
        metadata.insert("namespace".to_owned(), json!(namespace));
        let mut object = Map::new();
        object.insert("metadata".to_owned(), Value::Object(metadata));
        let mut spec = document.remove("spec").unwrap_or_else(|| json!({}));
        match before {
            Some(before) => {
                rebind(&mut spec, &before.data["spec"]);
                if let Err(problem) = is_bound_as_before(&spec, &before.data["spec"]) {
                    // Crossplane may have bound the environment after the document was read.
                    let is_stale = version.is_some() && version != before.metadata.resource_version;
                    return Err(if is_stale { Problem::conflict(STALE) } else { problem });
                }
            }
            None => unbind(&mut spec),
        }
        name_secret(&kind, &name, &mut spec, before);
        object.insert("spec".to_owned(), spec);
        // The function writes the status. A status in the document has no meaning.
        let known = ["apiVersion", "kind", "status"];
        if let Some(field) = document.keys().find(|field| !known.contains(&field.as_str())) {
            return Err(Problem::field(field, "unknown field; allowed: metadata and spec"));
        }
        Ok(Self { kind, namespace, name, object })
    }

    /// A new claim with this owner and spec.
    pub(crate) fn new(
        kind: Kind,
        namespace: String,
        name: String,
        owner: &Owner,
        mut spec: Value,
    ) -> Self {
        name_secret(&kind, &name, &mut spec, None);
        let mut metadata = Map::new();
        metadata.insert("name".to_owned(), json!(name));
        metadata.insert("namespace".to_owned(), json!(namespace));
        owner.mark(&mut metadata);
        let mut object = Map::new();
        object.insert("metadata".to_owned(), Value::Object(metadata));
        object.insert("spec".to_owned(), spec);
        Self { kind, namespace, name, object }
    }

    /// An existing environment with a merge patch of its spec.
    pub(crate) fn patched(kind: Kind, before: &DynamicObject, patch: &Value) -> Self {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let (namespace, name) = (text(&before.metadata.namespace), text(&before.metadata.name));
        let mut spec = before.data["spec"].clone();
        merge_patch(&mut spec, patch.clone());
        let mut object = Map::new();
        object.insert("metadata".to_owned(), json!({"name": name, "namespace": namespace}));
        object.insert("spec".to_owned(), spec);
        Self { kind, namespace, name, object }
    }

    /// Adds a label or an annotation.
    pub(crate) fn note(&mut self, place: &str, key: &str, value: &str) {
        if let Some(metadata) = self.object.get_mut("metadata").and_then(Value::as_object_mut) {
            set(metadata, place, key, value);
        }
    }

    /// The document for the API server.
    pub(crate) fn document(&self) -> Value {
        let mut object = self.object.clone();
        object.insert("apiVersion".to_owned(), json!(self.kind.resource.api_version));
        object.insert("kind".to_owned(), json!(self.kind.name()));
        Value::Object(object)
    }

    fn dynamic(&self) -> Result<DynamicObject, Problem> {
        serde_json::from_value(self.document())
            .map_err(|error| Problem::field("metadata", error.to_string()))
    }

    fn key(&self) -> Key {
        Key {
            kind: self.kind.full_name(),
            namespace: self.namespace.clone(),
            name: self.name.clone(),
        }
    }

    /// Checks the document before the API server gets it. `before` is the existing environment.
    pub(crate) async fn check(
        &self,
        environments: &Environments,
        person: &Person,
        before: Option<&DynamicObject>,
        params: WriteParams,
    ) -> Result<(), Problem> {
        let (kind, namespace) = (&self.kind, self.namespace.as_str());
        let skip = params.skip_check;
        check(environments, person, Write { kind, namespace, after: self.document(), before, skip })
            .await
    }

    /// Creates the environment, and records the action.
    pub(crate) async fn create(
        &self,
        environments: &Environments,
        person: &Person,
        params: WriteParams,
    ) -> Result<DynamicObject, Problem> {
        let created = self.created(environments, person, params).await;
        if !params.dry_run {
            let action = self.action(Verb::Create, person);
            action.record(&environments.clients, &created, |object| object.metadata.uid.clone());
        }
        created
    }

    fn action<'a>(&'a self, verb: Verb, person: &'a Person) -> Action<'a> {
        let Self { kind, namespace, name, .. } = self;
        Action { verb, person, kind, namespace, name }
    }

    async fn created(
        &self,
        environments: &Environments,
        person: &Person,
        params: WriteParams,
    ) -> Result<DynamicObject, Problem> {
        self.check(environments, person, None, params).await?;
        let dry_run = params.dry_run;
        let params = PostParams { dry_run, field_manager: Some("paved-portal".to_owned()) };
        let api = self.kind.api(&environments.clients.for_person(person)?, Some(&self.namespace));
        let object = api.create(&params, &self.dynamic()?).await?;
        if !dry_run {
            let uid = object.metadata.uid.clone().unwrap_or_default();
            environments
                .live
                .seen(&self.key(), environments.limits.own_write, |entry| {
                    entry.is_some_and(|entry| entry.view.uid == uid)
                })
                .await;
        }
        Ok(object)
    }

    /// Replaces the environment, if it is still in the state that the user has seen. Records the
    /// action.
    pub(crate) async fn replace(
        &self,
        environments: &Environments,
        person: &Person,
        before: &DynamicObject,
        params: WriteParams,
    ) -> Result<DynamicObject, Problem> {
        let replaced = self.replaced(environments, person, before, params).await;
        if !params.dry_run {
            let action = self.action(Verb::Change, person);
            action.record(&environments.clients, &replaced, |object| object.metadata.uid.clone());
        }
        replaced
    }

    async fn replaced(
        &self,
        environments: &Environments,
        person: &Person,
        before: &DynamicObject,
        params: WriteParams,
    ) -> Result<DynamicObject, Problem> {
        if self.object["metadata"]["resourceVersion"].as_str().is_none_or(str::is_empty) {
            let message = "required: the version that you have read, so that no other change is \
                           lost";
            return Err(Problem::field("metadata.resourceVersion", message));
        }
        self.check(environments, person, Some(before), params).await?;
        let dry_run = params.dry_run;
        let params = PostParams { dry_run, field_manager: Some("paved-portal".to_owned()) };
        let api = self.kind.api(&environments.clients.for_person(person)?, Some(&self.namespace));
        Ok(api.replace(&self.name, &params, &self.dynamic()?).await?)
    }
}

/// Keeps label and annotation of the owner. Without them the environment stays without an owner.
fn kept<'o>(before: &'o DynamicObject, named: Option<&str>) -> Option<[Option<&'o String>; 2]> {
    let label = before.metadata.labels.as_ref().and_then(|all| all.get(LABEL));
    let login = before.metadata.annotations.as_ref().and_then(|all| all.get(ANNOTATION));
    named.is_none_or(|named| label.is_some_and(|label| label == named)).then_some([label, login])
}

/// Removes the fields that Crossplane has written into the spec of another environment. A new
/// environment has its own resources.
fn unbind(spec: &mut Value) {
    for (group, field) in BINDINGS {
        if let Some(place) = spec.pointer_mut(group).and_then(Value::as_object_mut) {
            place.remove(field);
        }
    }
}

/// Adds Crossplane's fields of the spec that the document lacks. Without them, Crossplane would
/// treat the claim as new, and create all resources again.
fn rebind(spec: &mut Value, before: &Value) {
    for group in ["", "/crossplane"] {
        let Some(before) = before.pointer(group).and_then(Value::as_object) else { continue };
        let bound = before.iter().filter(|(field, _)| WRITTEN.contains(&field.as_str()));
        for (field, value) in bound {
            let place = if group.is_empty() { Some(&mut *spec) } else { below(spec, &group[1..]) };
            if let Some(place) = place.and_then(Value::as_object_mut) {
                place.entry(field.as_str()).or_insert_with(|| value.clone());
            }
        }
    }
}

/// The fields of a spec that bind a claim to its composite, and a composite to its resources. Each
/// has the JSON pointer of its group, and its name.
const BINDINGS: [(&str, &str); 3] =
    [("", "resourceRef"), ("", "resourceRefs"), ("/crossplane", "resourceRefs")];

/// Rejects a change of the bindings. A claim with the name of another composite takes over that
/// composite, and a composite deletes the resources that it names. Only Crossplane writes these
/// fields.
fn is_bound_as_before(spec: &Value, before: &Value) -> Result<(), Problem> {
    for (group, field) in BINDINGS {
        let path = format!("{group}/{field}");
        if spec.pointer(&path).unwrap_or(&Value::Null)
            != before.pointer(&path).unwrap_or(&Value::Null)
        {
            let message = "only Crossplane may change this field. Leave the field out, or keep \
                           its current \
                 value.";
            return Err(Problem::field(&format!("spec{}", path.replace('/', ".")), message));
        }
    }
    Ok(())
}

/// Rejects a merge patch that would change the bindings of `before`.
pub(crate) fn keeps_binding(patch: &Value, before: &Value) -> Result<(), Problem> {
    let mut after = before.clone();
    merge_patch(&mut after, patch.clone());
    is_bound_as_before(&after, before)
}

/// Whether a merge patch of a spec may write a binding.
pub(crate) fn writes_binding(patch: &Value) -> bool {
    let group = |(group, field): (&str, &'static str)| {
        group.strip_prefix('/').map_or(field, |_| "crossplane")
    };
    BINDINGS.into_iter().any(|binding| patch.get(group(binding)).is_some())
}

/// A group of a spec. Created if it is missing.
fn below<'s>(spec: &'s mut Value, group: &str) -> Option<&'s mut Value> {
    Some(spec.as_object_mut()?.entry(group).or_insert_with(|| json!({})))
}

/// The request that created the environment, if the document does not name one. A repeated request
/// gets the same environment.
fn requested(metadata: &mut Map<String, Value>, before: &DynamicObject) {
    let there = &before.metadata;
    for (place, key, before) in
        [("labels", REQUEST, &there.labels), ("annotations", BODY, &there.annotations)]
    {
        let said = metadata.get(place).is_some_and(|entries| entries.get(key).is_some());
        if let Some(value) = before.as_ref().and_then(|all| all.get(key)).filter(|_| !said) {
            set(metadata, place, key, value);
        }
    }
}

/// Sets the Secret for the connection details of a claim without one, so that its creator can
/// connect. The former name is kept. The default is derived from the name of the claim.
fn name_secret(kind: &Kind, name: &str, spec: &mut Value, before: Option<&DynamicObject>) {
    let Some(fields) = spec.as_object_mut().filter(|_| !connection_keys(kind).is_empty()) else {
        return;
    };
    let empty = |reference: &Value| {
        reference.is_null() || *reference == json!({}) || reference["name"] == ""
    };
    if fields.get(SECRET).is_none_or(empty) {
        let before =
            before.map(|before| &before.data["spec"][SECRET]).filter(|reference| !empty(reference));
        let reference = before.cloned().unwrap_or_else(|| json!({"name": format!("{name}-conn")}));
        fields.insert(SECRET.to_owned(), reference);
    }
}

fn set(metadata: &mut Map<String, Value>, place: &str, key: &str, value: &str) {
    let entries = metadata.entry(place).or_insert_with(|| json!({}));
    if let Some(entries) = entries.as_object_mut() {
        entries.insert(key.to_owned(), json!(value));
    }
}

/// Keeps a label or an annotation, independent of the document.
fn keep(metadata: &mut Map<String, Value>, place: &str, key: &str, before: Option<&String>) {
    if let Some(value) = before {
        set(metadata, place, key, value);
    } else if let Some(entries) = metadata.get_mut(place).and_then(Value::as_object_mut) {
        entries.remove(key);
    }
}

/// Deletes an environment, and records the action. With a `uid`, deletes only the object with this
/// UID.
pub(crate) async fn delete(
    environments: &Environments,
    person: &Person,
    kind: &Kind,
    (namespace, name): (&str, &str),
    uid: Option<String>,
) -> Result<(), Problem> {
    let deleted = deleted(environments, person, kind, (namespace, name), uid.clone()).await;
    let action = Action { verb: Verb::Delete, person, kind, namespace, name };
    action.record(&environments.clients, &deleted, |()| uid);
    deleted
}

async fn deleted(
    environments: &Environments,
    person: &Person,
    kind: &Kind,
    (namespace, name): (&str, &str),
    uid: Option<String>,
) -> Result<(), Problem> {
    let params = DeleteParams {
        // It stays until all its resources are deleted.
        propagation_policy: Some(PropagationPolicy::Foreground),
        preconditions: uid.map(|uid| Preconditions { uid: Some(uid), resource_version: None }),
        ..DeleteParams::default()
    };
    kind.api(&environments.clients.for_person(person)?, Some(namespace))
        .delete(name, &params)
        .await?;
    let key =
        Key { kind: kind.full_name(), namespace: namespace.to_owned(), name: name.to_owned() };
    let patience = environments.limits.own_write;
    environments.live.seen(&key, patience, |entry| entry.is_none_or(Entry::is_deleting)).await;
    Ok(())
}

/// Checks that a name is also valid in the clouds: at most 63 characters.
pub(crate) fn name_fits(text: &str) -> Result<(), Problem> {
    name("metadata.name", text)?;
    if text.len() > 63 {
        let message = format!("found {} characters; allowed: at most 63", text.len());
        return Err(Problem::field("metadata.name", message));
    }
    Ok(())
}

/// Metadata with only the user's fields, and the fields of other writers.
fn checked(metadata: Value, before: Option<&DynamicObject>) -> Result<Map<String, Value>, Problem> {
    // Fields of the API server are in a document that was read before.
    const IGNORED: [&str; 7] = [
        "uid",
        "generation",
        "creationTimestamp",
        "managedFields",
        "finalizers",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    ];
    let Value::Object(mut metadata) = metadata else {
        return Err(Problem::field("metadata", "allowed: an object"));
    };
    let is_ignored = |field: &str| {
        // A new environment has no version yet: the API server would fail because of one.
        IGNORED.contains(&field)
            || if before.is_some() { KEPT.contains(&field) } else { field == "resourceVersion" }
    };
    metadata.retain(|field, _| !is_ignored(field));
    if let Some(field) = metadata.keys().find(|field| !METADATA.contains(&field.as_str())) {
        let field = format!("metadata.{field}");
        return Err(Problem::field(
            &field,
            format!("unknown field; allowed: {}", METADATA.join(", ")),
        ));
    }
    for place in ["labels", "annotations"] {
        let texts = metadata.get(place).is_none_or(|entries| {
            entries.as_object().is_some_and(|entries| entries.values().all(Value::is_string))
        });
        if !texts {
            return Err(Problem::field(&format!("metadata.{place}"), "allowed: names with texts"));
        }
    }
    for text in ["name", "namespace", "resourceVersion"] {
        if metadata.get(text).is_some_and(|value| !value.is_string()) {
            return Err(Problem::field(&format!("metadata.{text}"), "allowed: a text"));
        }
    }
    let before = before.map(|before| serde_json::to_value(&before.metadata).unwrap_or_default());
    for field in KEPT {
        if let Some(value) = before.as_ref().and_then(|before| before.get(field)) {
            metadata.insert(field.to_owned(), value.clone());
        }
    }
    Ok(metadata)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_limited_to_allowed_fields() {
        for (metadata, fits) in [
            (json!({"name": "a", "labels": {"b": "c"}, "uid": "u", "managedFields": []}), true),
            (json!({"name": "a", "ownerReferences": []}), false),
            (json!({"name": 3}), false),
            (json!({"name": "a", "labels": []}), false),
            (json!({"name": "a", "labels": {"owner": 3}}), false),
            (json!([]), false),
        ] {
            assert_eq!(checked(metadata.clone(), None).is_ok(), fits, "{metadata}");
        }
    }
}
