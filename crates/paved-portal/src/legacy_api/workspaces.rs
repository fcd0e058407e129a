//! GPU workspaces for existing clients: `/api/workspaces`.

use axum::extract::State;
use axum::http::StatusCode;
use kube::api::ListParams;
use paved_client::cluster::Kind;
use serde::Serialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::{CreateParams, NoParams, message, only, phase, text};
use crate::answer::Answer;
use crate::api::environments::Environments;
use crate::api::keys;
use crate::api::write::{self, WriteParams, WriteRequest, Writer};
use crate::bodies::Body;
use crate::extract::{Path, Query, name};
use crate::identity::Person;
use crate::kinds::Catalog;
use crate::live::Entry;
use crate::owner::{LABEL, Owner, unique};
use crate::problem::{Conflicts, ErrorResponses, NotFound, Problem, UnprocessableEntity};
use crate::signed_in::SignedIn;

/// The maximum length of the owner in a workspace's name.
const MAX_OWNER_IN_NAME_LEN: usize = 40;

/// The maximum length of a claim's owner.
const MAX_OWNER_LEN: usize = 128;

/// A new workspace.
#[derive(ToSchema)]
#[allow(dead_code)]
#[schema(rename_all = "camelCase", example = json!({"owner": "ada", "instanceType": "g4dn.xlarge"}))]
pub(crate) struct NewWorkspace {
    /// The owner: me, or another user if I may act for them.
    #[schema(min_length = 1)]
    owner: String,
    /// For example g4dn.xlarge.
    instance_type: Option<String>,
    /// For example 4.8.0.
    opencv_version: Option<String>,
}

/// A workspace.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Workspace {
    name: String,
    /// The login of the owner.
    owner: String,
    instance_type: Option<String>,
    status: Status,
    creation_timestamp: Option<String>,
}

/// The state.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = WorkspaceStatus)]
pub(crate) struct Status {
    /// The phase; Pending if unknown.
    phase: String,
    instance_id: Option<String>,
    public_ip: Option<String>,
    connection: Option<String>,
    /// Why the workspace waits or failed.
    message: Option<String>,
}

impl Workspace {
    fn from_entry(entry: &Entry) -> Self {
        let field =
            |name: &str| entry.view.status.get(name).and_then(Value::as_str).map(str::to_owned);
        let spec = |name: &str| entry.spec["parameters"][name].as_str().map(str::to_owned);
        Self {
            name: entry.key.name.clone(),
            owner: entry.view.owner.clone().unwrap_or_default(),
            instance_type: spec("instanceType"),
            status: Status {
                phase: phase(entry),
                instance_id: field("instanceId"),
                public_ip: field("publicIp"),
                connection: field("connection"),
                message: message(entry),
            },
            creation_timestamp: entry.view.created_at.clone(),
        }
    }
}

/// The cluster's kinds of workspaces, claims first.
fn kinds(catalog: &Catalog) -> Vec<Kind> {
    catalog.seen().workspaces()
}

/// Create a workspace.
#[utoipa::path(post, path = "/api/workspaces", operation_id = "createWorkspace", tag = "workspaces", params(CreateParams), request_body = NewWorkspace,
    responses((status = 202, description = "The workspace is being created: the object.", body = Object), ErrorResponses, UnprocessableEntity, Conflicts))]
pub(crate) async fn create(
    State(writer): State<Writer>,
    SignedIn(person): SignedIn,
    Query(params): Query<CreateParams>,
    body: Body,
) -> Result<(StatusCode, Answer<Value>), Problem> {
    let kind = kinds(&writer.environments.catalog).into_iter().next();
    let kind =
        kind.ok_or_else(|| Problem::not_found("This cluster has no kind for workspaces."))?;
    let namespace = writer.namespace(&person, &kind, None).await?;
    let body = body.read(&person).await?;
    let made = make(&writer, &person, (kind, namespace), &body.value, params.into()).await?;
    Ok((StatusCode::ACCEPTED, Answer(made)))
}

async fn make(
    writer: &Writer,
    person: &Person,
    (kind, namespace): (Kind, String),
    body: &Value,
    params: WriteParams,
) -> Result<Value, Problem> {
    let none = Map::new();
    let body = body.as_object().unwrap_or(&none);
    only(body, &["owner", "instanceType", "opencvVersion"])?;
    let named =
        text(body, "owner")?.ok_or_else(|| Problem::bad_request("Owner field is required."))?;
    let owner = writer.named(person, Some(named)).await?;
    let name = workspace_name(named)?;
    let mut parameters = Map::new();
    parameters.insert("owner".to_owned(), json!(parameter(&owner)));
    for field in ["instanceType", "opencvVersion"] {
        text(body, field)?
            .into_iter()
            .for_each(|value| drop(parameters.insert(field.to_owned(), json!(value))));
    }
    let keys = keys::find(&writer.environments.clients, &owner).await?;
    if !keys.is_empty() {
        parameters.insert("sshPublicKeys".to_owned(), json!(keys));
    }
    let draft = WriteRequest::new(kind, namespace, name, &owner, json!({"parameters": parameters}));
    let object = draft.create(&writer.environments, person, params).await?;
    Ok(paved_client::environment::tidy(&object))
}

/// The owner in a form that a claim accepts: the login, with dashes in place of characters that
/// logins do not have. Names of Kubernetes' own accounts contain such characters.
fn parameter(owner: &Owner) -> String {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || "._+@-".contains(letter);
    let text = owner.login.chars().map(|letter| if fits(letter) { letter } else { '-' });
    let text: String =
        text.skip_while(|letter| !letter.is_ascii_alphanumeric()).take(MAX_OWNER_LEN).collect();
    if text.is_empty() { owner.label() } else { text }
}

/// `ws-<owner's letters and digits>-<unique>`
fn workspace_name(owner: &str) -> Result<String, Problem> {
    let letters =
        owner.chars().filter(char::is_ascii_alphanumeric).map(|letter| letter.to_ascii_lowercase());
    let letters: String = letters.take(MAX_OWNER_IN_NAME_LEN).collect();
    if letters.is_empty() {
        return Err(Problem::field(
            "owner",
            format!("found {owner:?}; allowed: a text with letters or digits"),
        ));
    }
    Ok(format!("ws-{letters}-{}", unique(4)?))
}

/// The workspaces that I may read.
#[utoipa::path(get, path = "/api/workspaces", operation_id = "listWorkspaces", tag = "workspaces",
    responses((status = 200, description = "The list.", body = Vec<Workspace>), ErrorResponses))]
pub(crate) async fn list(
    State(environments): State<Environments>,
    SignedIn(person): SignedIn,
    Query(NoParams {}): Query<NoParams>,
) -> Result<Answer<Vec<Workspace>>, Problem> {
    let names: Vec<String> = kinds(&environments.catalog).iter().map(Kind::full_name).collect();
    let all = environments.visible(&person, |entry| names.contains(&entry.key.kind)).await?;
    Ok(Answer(all.iter().map(|entry| Workspace::from_entry(entry)).collect()))
}

/// Delete a workspace.
#[utoipa::path(delete, path = "/api/workspaces/{name}", operation_id = "deleteWorkspace", tag = "workspaces", params(("name" = String, Path, description = "The name.", example = "ws-ada-0123abcd")),
    responses((status = 204, description = "The object is being deleted."), ErrorResponses, NotFound, Conflicts))]
pub(crate) async fn delete(
    State(environments): State<Environments>,
    SignedIn(person): SignedIn,
    Path(asked): Path<String>,
    Query(NoParams {}): Query<NoParams>,
) -> Result<StatusCode, Problem> {
    remove(&environments, &person, &asked).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn remove(environments: &Environments, person: &Person, asked: &str) -> Result<(), Problem> {
    let absent = || Problem::not_found("Workspace not found.");
    name("name", asked).map_err(|_| absent())?;
    // Prefers the user's own workspace. Another user may have the same name in another namespace.
    let own = person.owner().label();
    let called = ListParams::default().fields(&format!("metadata.name={asked}"));
    let (mine, others): (Vec<_>, Vec<_>) = environments
        .find(person, &kinds(&environments.catalog), &called)
        .await?
        .into_iter()
        .partition(|(_, object)| {
            object.metadata.labels.as_ref().and_then(|labels| labels.get(LABEL)) == Some(&own)
        });
    let found = if mine.is_empty() { others } else { mine };
    let [(kind, object)] = found.as_slice() else {
        if found.is_empty() {
            return Err(absent());
        }
        return Err(Problem::conflict(
            "Several namespaces have a workspace of this name. Delete it under \
             /api/v1/environments.",
        ));
    };
    let place = (object.metadata.namespace.as_deref().unwrap_or_default(), asked);
    let deleted =
        write::delete(environments, person, kind, place, object.metadata.uid.clone()).await;
    deleted.map_err(
        |problem| if problem.status() == StatusCode::NOT_FOUND { absent() } else { problem },
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn claim_accepts_every_owner() {
        for (login, owner) in [
            ("ada.l+x@acme.io", "ada.l+x@acme.io"),
            ("system:serviceaccount:ci:builder", "system-serviceaccount-ci-builder"),
            ("äda", "da"),
        ] {
            assert_eq!(parameter(&Person::for_tests(login, &[]).owner()), owner);
        }
        let nameless = Person::for_tests("ä", &[]).owner();
        assert_eq!(parameter(&nameless), nameless.label());
        assert_eq!(
            parameter(&Person::for_tests(&"a".repeat(300), &[]).owner()).len(),
            MAX_OWNER_LEN
        );
    }

    #[test]
    fn name_has_the_letters_and_digits_of_the_owner() {
        let name = workspace_name("Ada.L@acme.io").unwrap();
        assert!(
            name.starts_with("ws-adalacmeio-") && name.len() == "ws-adalacmeio-".len() + 8,
            "{name}"
        );
        assert!(workspace_name(&"a".repeat(300)).unwrap().len() <= 58);
        assert!(workspace_name("@").is_err());
        assert_ne!(workspace_name("a").unwrap(), workspace_name("a").unwrap());
    }
}
