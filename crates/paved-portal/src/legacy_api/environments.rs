//! Application environments for existing clients: `/api/environments/`.

use axum::extract::State;
use axum::http::StatusCode;
use paved_client::cluster::Kind;
use serde::Serialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::{CreateParams, only, text};
use crate::answer::Answer;
use crate::api::write::{WriteParams, WriteRequest, Writer, name_fits};
use crate::bodies::Body;
use crate::extract::Query;
use crate::identity::Person;
use crate::kinds::{Catalog, api, is_claim};
use crate::owner::{Owner, hash, unique};
use crate::problem::{Conflicts, ErrorResponses, Problem, UnprocessableEntity};
use crate::request::REQUEST;
use crate::signed_in::SignedIn;
use crate::template::slug;

/// The claim's kind.
const KIND: &str = "ApplicationEnvironment";

/// A new environment.
#[derive(ToSchema)]
#[allow(dead_code)]
#[schema(rename_all = "camelCase", example = json!({"name": "shop", "nodeSize": "small"}))]
pub(crate) struct NewEnvironment {
    /// The first part of the name. The portal appends my name.
    #[schema(min_length = 1)]
    name: String,
    /// `small`, `medium` or `large`.
    #[schema(default = "small")]
    node_size: Option<String>,
    /// Another name of `nodeSize`.
    size: Option<String>,
}

/// An environment that is being created.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Creating {
    /// creating
    status: &'static str,
    /// `<name>-<user>`
    name: String,
    /// The request id in messages of the WebSocket and in the label `request-id`.
    request_id: String,
}

/// The cluster's kinds of application environments, claims first.
pub(super) fn kinds(catalog: &Catalog) -> Vec<Kind> {
    api(KIND).map(|api| catalog.seen().for_api(api)).unwrap_or_default()
}

/// Create an application environment.
#[utoipa::path(post, path = "/api/environments/", operation_id = "createApplicationEnvironment", tag = "application environments", params(CreateParams), request_body = NewEnvironment,
    responses((status = 202, description = "The environment is being created.", body = Creating), ErrorResponses, UnprocessableEntity, Conflicts))]
pub(crate) async fn create(
    State(writer): State<Writer>,
    SignedIn(person): SignedIn,
    Query(params): Query<CreateParams>,
    body: Body,
) -> Result<(StatusCode, Answer<Creating>), Problem> {
    let kind = kinds(&writer.environments.catalog).into_iter().next();
    let kind = kind.ok_or_else(|| {
        Problem::not_found("This cluster has no kind for application environments.")
    })?;
    let namespace = writer.namespace(&person, &kind, None).await?;
    let body = body.read(&person).await?;
    let made = make(&writer, &person, (kind, namespace), &body.value, params.into()).await?;
    Ok((StatusCode::ACCEPTED, Answer(made)))
}

/// Create an application environment.
///
/// The same as the path with a slash at its end.
#[utoipa::path(post, path = "/api/environments", operation_id = "createApplicationEnvironmentWithoutSlash", tag = "application environments", params(CreateParams), request_body = NewEnvironment,
    responses((status = 202, description = "The environment is being created.", body = Creating), ErrorResponses, UnprocessableEntity, Conflicts))]
pub(crate) async fn create_without_slash(
    writer: State<Writer>,
    person: SignedIn,
    params: Query<CreateParams>,
    body: Body,
) -> Result<(StatusCode, Answer<Creating>), Problem> {
    create(writer, person, params, body).await
}

async fn make(
    writer: &Writer,
    person: &Person,
    (kind, namespace): (Kind, String),
    body: &Value,
    params: WriteParams,
) -> Result<Creating, Problem> {
    let none = Map::new();
    let body = body.as_object().unwrap_or(&none);
    only(body, &["name", "nodeSize", "size"])?;
    let asked =
        text(body, "name")?.ok_or_else(|| Problem::bad_request("Environment name is required."))?;
    let size = node_size(body)?.unwrap_or("small");
    let owner = person.owner();
    let name = environment_name(asked, &owner)?;
    let request_id = unique(16)?;
    let selector = json!({"matchLabels": {"provider": "gcp"}});
    let parameters = json!({"nodeSize": size});
    let spec = if is_claim(&kind) {
        json!({"parameters": parameters, "compositionSelector": selector})
    } else {
        json!({"parameters": parameters, "crossplane": {"compositionSelector": selector}})
    };
    let mut draft = WriteRequest::new(kind, namespace, name.clone(), &owner, spec);
    draft.note("labels", REQUEST, &request_id);
    draft.create(&writer.environments, person, params).await?;
    Ok(Creating { status: "creating", name, request_id })
}

/// The size under its two names.
fn node_size(body: &Map<String, Value>) -> Result<Option<&str>, Problem> {
    match (text(body, "nodeSize")?, text(body, "size")?) {
        (Some(node_size), Some(size)) if node_size != size => {
            let message = format!(
                "found {size:?}, and nodeSize is {node_size:?}; allowed: one of the two fields, \
                 because they have the same meaning"
            );
            Err(Problem::field("size", message))
        }
        (node_size, size) => Ok(node_size.or(size)),
    }
}

/// `<name>-<user>`
fn environment_name(asked: &str, owner: &Owner) -> Result<String, Problem> {
    if slug(asked) != asked {
        let message = format!(
            "found {asked:?}; allowed: lowercase letters, digits and single hyphens \
                     between them"
        );
        return Err(Problem::field("name", message));
    }
    let user = slug(&owner.login);
    let user = if user.is_empty() { hash(&[&owner.hash()], 4) } else { user };
    let name = format!("{asked}-{user}");
    let too_long = |_| {
        let left = 62_usize.saturating_sub(user.len());
        Problem::field(
            "name",
            format!(
                "found {} characters; allowed: at most {left}, because your name is appended",
                asked.len()
            ),
        )
    };
    name_fits(&name).map_err(too_long)?;
    Ok(name)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn environment_name_ends_in_its_owner() {
        let name = |asked: &str, login: &str| {
            environment_name(asked, &Person::for_tests(login, &[]).owner())
        };
        assert_eq!(name("shop", "ada").unwrap(), "shop-ada");
        assert_eq!(name("shop", "Ada@acme.io").unwrap(), "shop-ada-acme-io");
        for asked in ["Shop", "shop/../x", "a--b", "-a", &"a".repeat(63)] {
            assert!(name(asked, "ada").is_err(), "{asked}");
        }
        assert!(name("shop", "ä").unwrap().len() > "shop-".len());
    }
}
