//! Creating, changing and deleting environments.

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use kube::api::{DynamicObject, Patch, PatchParams};
use paved_client::action::Verb;
use paved_client::cluster::{Kind, is_denied};
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::{IntoParams, ToSchema};

use super::environments::{EnvironmentDetail, EnvironmentPath, Environments};
use super::write::{self, WriteParams, WriteRequest, Writer};
use crate::action::Action;
use crate::answer::Answer;
use crate::bodies::Body;
use crate::extract::{Path, Query, location};
use crate::identity::Person;
use crate::owner::{ANNOTATION, LABEL};
use crate::problem::{Conflicts, ErrorResponses, NotFound, Problem, UnprocessableEntity};
use crate::signed_in::SignedIn;

/// The manifest of an environment.
#[derive(ToSchema)]
#[allow(dead_code)]
#[schema(as = Document, example = json!({"kind": "StockPool", "metadata": {"name": "render"}, "spec": {"specName": "g1.1", "replicas": 2}}))]
pub(crate) struct Document {
    /// Optional if the kind is unique.
    #[schema(rename = "apiVersion")]
    api_version: Option<String>,
    kind: String,
    /// The name, and optionally namespace, labels and annotations. An update needs the
    /// resourceVersion.
    #[schema(value_type = Object)]
    metadata: Value,
    #[schema(value_type = Object)]
    spec: Value,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct DeleteParams {
    /// The uid of the object: another object of the same name is not deleted.
    uid: Option<String>,
}

/// Create an environment.
#[utoipa::path(post, path = "/api/v1/environments", operation_id = "createEnvironment", tag = "environments", params(WriteParams), request_body = Document,
    responses((status = 201, description = "Created.", body = EnvironmentDetail), (status = 200, description = "The object would be created.", body = EnvironmentDetail), ErrorResponses, UnprocessableEntity, Conflicts))]
pub(crate) async fn create(
    State(writer): State<Writer>,
    SignedIn(person): SignedIn,
    Query(params): Query<WriteParams>,
    body: Body,
) -> Result<Response, Problem> {
    let body = body.read(&person).await?;
    let draft = WriteRequest::from_document(&writer, &person, body.value, None).await?;
    let object = draft.create(&writer.environments, &person, params).await?;
    let whole = writer.environments.whole(&draft.kind, object);
    if params.dry_run {
        return Ok(Answer(whole).into_response());
    }
    let kind = format!("{}.{}", draft.kind.resource.plural, draft.kind.resource.group);
    let location = location(&["environments", &draft.namespace, &kind, &draft.name])?;
    Ok((StatusCode::CREATED, [(header::LOCATION, location)], Answer(whole)).into_response())
}

/// Replace an environment.
#[utoipa::path(put, path = "/api/v1/environments/{namespace}/{kind}/{name}", operation_id = "replaceEnvironment", tag = "environments", params(EnvironmentPath, WriteParams),
    request_body = Document, responses((status = 200, description = "Changed.", body = EnvironmentDetail), ErrorResponses, NotFound, UnprocessableEntity, Conflicts))]
pub(crate) async fn replace(
    State(writer): State<Writer>,
    SignedIn(person): SignedIn,
    Path(place): Path<EnvironmentPath>,
    Query(params): Query<WriteParams>,
    body: Body,
) -> Result<Answer<EnvironmentDetail>, Problem> {
    let (kind, namespace, name) = place.read(&writer.environments.catalog)?;
    let place = (&kind, namespace, name);
    writer.environments.access.check_write(&person, "update", place).await?;
    let body = body.read(&person).await?;
    let (before, draft) = drafted(&writer, &person, place, body.value).await?;
    let object = draft.replace(&writer.environments, &person, &before, params).await?;
    Ok(Answer(writer.environments.whole(&kind, object)))
}

/// The object at a place, and the draft of a document for it.
pub(crate) async fn drafted(
    writer: &Writer,
    person: &Person,
    (kind, namespace, name): (&Kind, &str, &str),
    mut document: Value,
) -> Result<(DynamicObject, WriteRequest), Problem> {
    // The path identifies the object. A different name in the body is a mistake.
    for (field, value) in [("namespace", namespace), ("name", name)] {
        let said = &document["metadata"][field];
        if !(said.is_null() || said == value) {
            return Err(Problem::field(
                &format!("metadata.{field}"),
                format!("found {said}; allowed: {value}, as in the path"),
            ));
        }
        if let Some(metadata) = document.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.insert(field.to_owned(), json!(value));
        }
    }
    let before = kind
        .api(&writer.environments.clients.for_person(person)?, Some(namespace))
        .get(name)
        .await?;
    let draft = WriteRequest::from_document(writer, person, document, Some(&before)).await?;
    if draft.kind != *kind {
        return Err(Problem::field(
            "kind",
            format!("found {}; allowed: {}, as in the path", draft.kind.name(), kind.name()),
        ));
    }
    Ok((before, draft))
}

/// Change fields of an environment (JSON merge patch).
#[utoipa::path(patch, path = "/api/v1/environments/{namespace}/{kind}/{name}", operation_id = "patchEnvironment", tag = "environments", params(EnvironmentPath, WriteParams),
    request_body(content = Object, description = "The changed fields of metadata (labels, annotations, resourceVersion) and spec; null removes a field.",
        content_type = "application/merge-patch+json", example = json!({"spec": {"replicas": 3}})),
    responses((status = 200, description = "Changed.", body = EnvironmentDetail), ErrorResponses, NotFound, UnprocessableEntity, Conflicts))]
pub(crate) async fn patch(
    State(writer): State<Writer>,
    SignedIn(person): SignedIn,
    Path(place): Path<EnvironmentPath>,
    Query(params): Query<WriteParams>,
    body: Body,
) -> Result<Answer<EnvironmentDetail>, Problem> {
    let (kind, namespace, name) = place.read(&writer.environments.catalog)?;
    let place = (&kind, namespace, name);
    writer.environments.access.check_write(&person, "patch", place).await?;
    let mut body = body.read::<Value>(&person).await?;
    let patch = &mut body.value;
    let Some(fields) = patch.as_object() else {
        return Err(Problem::field("body", "allowed: an object"));
    };
    if let Some(field) = fields
        .keys()
        .find(|field| !["apiVersion", "kind", "metadata", "spec"].contains(&field.as_str()))
    {
        return Err(Problem::field(field, "unknown field; allowed: metadata and spec"));
    }
    let api = kind.api(&writer.environments.clients.for_person(&person)?, Some(namespace));
    if let Some(spec) = patch.get("spec") {
        let binds = write::writes_binding(spec);
        match api.get(name).await {
            // The user may have the right to patch alone.
            Err(error) if is_denied(&error) && !binds => {}
            before => {
                let before = before?;
                if binds {
                    write::keeps_binding(spec, &before.data["spec"])?;
                }
                let draft = WriteRequest::patched(kind.clone(), &before, spec);
                draft.check(&writer.environments, &person, Some(&before), params).await?;
            }
        }
    }
    if let Some(metadata) = patch.get_mut("metadata")
        && let Some(named) = checked(metadata)?
        && api.get(name).await?.metadata.labels.unwrap_or_default().get(LABEL) != Some(&named)
    {
        let owner = writer.owner(&person, Some(&named)).await?;
        if let Some(metadata) = metadata.as_object_mut() {
            owner.mark(metadata);
        }
    }
    let dry_run = params.dry_run;
    let params = PatchParams {
        dry_run,
        field_manager: Some("paved-portal".to_owned()),
        ..PatchParams::default()
    };
    let patched = api.patch(name, &params, &Patch::Merge(&*patch)).await.map_err(Problem::from);
    if !dry_run {
        let action = Action { verb: Verb::Change, person: &person, kind: &kind, namespace, name };
        let clients = &writer.environments.clients;
        action.record(clients, &patched, |object| object.metadata.uid.clone());
    }
    Ok(Answer(writer.environments.whole(&kind, patched?)))
}

/// Checks a patch's metadata, and removes and returns the owner in it. Without an owner in the
/// patch, the environment keeps its owner.
fn checked(metadata: &mut Value) -> Result<Option<String>, Problem> {
    let metadata =
        metadata.as_object_mut().ok_or_else(|| Problem::field("metadata", "allowed: an object"))?;
    let allowed = ["labels", "annotations", "resourceVersion"];
    if let Some(field) = metadata.keys().find(|field| !allowed.contains(&field.as_str())) {
        return Err(Problem::field(
            &format!("metadata.{field}"),
            "unknown field; allowed: labels, annotations and resourceVersion",
        ));
    }
    for place in ["labels", "annotations"] {
        // A null would remove all labels or annotations, including the owner.
        if metadata.get(place).is_some_and(|entries| !entries.is_object()) {
            let message = "allowed: names with texts, or null to remove a name";
            return Err(Problem::field(&format!("metadata.{place}"), message));
        }
    }
    let mut take = |place: &str, key: &str| metadata.get_mut(place)?.as_object_mut()?.remove(key);
    let (named, _) = (take("labels", LABEL), take("annotations", ANNOTATION));
    match named {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(named)) => Ok(Some(named)),
        Some(_) => Err(Problem::field("metadata.labels.owner", "allowed: a text")),
    }
}

/// Delete an environment and its resources.
#[utoipa::path(delete, path = "/api/v1/environments/{namespace}/{kind}/{name}", operation_id = "deleteEnvironment", tag = "environments", params(EnvironmentPath, DeleteParams),
    responses((status = 202, description = "The object is being deleted."), ErrorResponses, NotFound, Conflicts))]
pub(crate) async fn delete(
    State(environments): State<Environments>,
    SignedIn(person): SignedIn,
    Path(place): Path<EnvironmentPath>,
    Query(params): Query<DeleteParams>,
) -> Result<StatusCode, Problem> {
    let (kind, namespace, name) = place.read(&environments.catalog)?;
    write::delete(&environments, &person, &kind, (namespace, name), params.uid).await?;
    Ok(StatusCode::ACCEPTED)
}
