//! `…/connection`: connection details for users with the right to read the Secret. They are
//! returned only on request and never cached. Each request is logged.

use std::collections::BTreeMap;

use axum::extract::State;
use axum::http::StatusCode;
use k8s_openapi::api::core::v1::Secret;
use paved_client::cluster::{Api, Kind, Segment};
use paved_client::connection::secret_of;
use serde::Serialize;
use utoipa::ToSchema;

use super::environments::{EnvironmentPath, Environments};
use crate::AUDIT;
use crate::answer::Answer;
use crate::clients::Clients;
use crate::extract::Path;
use crate::identity::Person;
use crate::live::View;
use crate::problem::{ErrorResponses, NotFound, Problem};
use crate::signed_in::SignedIn;

/// An environment's connection details.
#[derive(Serialize, ToSchema)]
pub(crate) struct Connection {
    /// Name of the Secret.
    secret: String,
    /// The keys of the Secret and their values, as text.
    values: BTreeMap<String, String>,
}

/// The connection details of an environment.
///
/// A POST, so that a link on another site or a cache cannot request them.
#[utoipa::path(post, path = "/api/v1/environments/{namespace}/{kind}/{name}/connection", operation_id = "revealConnection", tag = "environments", params(EnvironmentPath),
    responses((status = 200, description = "The connection details.", body = Connection), ErrorResponses, NotFound))]
pub(crate) async fn reveal(
    State(environments): State<Environments>,
    SignedIn(person): SignedIn,
    Path(place): Path<EnvironmentPath>,
) -> Result<Answer<Connection>, Problem> {
    let (kind, namespace, name) = place.read(&environments.catalog)?;
    let answer = read(&environments.clients, &person, &kind, namespace, name).await;
    let outcome = match &answer {
        Ok(_) => "revealed",
        Err(problem) if problem.status() == StatusCode::NOT_FOUND => "absent",
        Err(_) => "refused",
    };
    // Logged at any log level.
    tracing::info!(
        target: AUDIT,
        audit = "connection",
        user = person.username(),
        kind = kind.full_name(),
        namespace,
        name,
        secret = answer.as_ref().ok().map(|details| details.secret.as_str()),
        outcome,
        "connection details were requested"
    );
    answer.map(Answer)
}

async fn read(
    clients: &Clients,
    person: &Person,
    kind: &Kind,
    namespace: &str,
    name: &str,
) -> Result<Connection, Problem> {
    let client = clients.for_person(person)?;
    let object = kind.api(&client, Some(namespace)).get(name).await?;
    let view = View::from_object(&object, &kind.resource.plural);
    let secret = secret_of(&object, kind.name(), &view.name).ok_or_else(|| {
        Problem::not_found(
            "This environment has no Secret for connection details. Set \
             spec.writeConnectionSecretToRef.name.",
        )
    })?;
    Segment::parse(&secret).map_err(|error| {
        Problem::field("spec.writeConnectionSecretToRef.name", error.to_string())
    })?;
    let answer = Api::<Secret>::namespaced(client, namespace).get_opt(&secret).await;
    let found = answer?.ok_or_else(|| {
        Problem::not_found(format!(
            "The Secret {secret} with the connection details does not \
             exist yet."
        ))
    })?;
    let values = found.data.unwrap_or_default().into_iter();
    let values =
        values.filter_map(|(key, value)| Some((key, String::from_utf8(value.0).ok()?))).collect();
    Ok(Connection { secret, values })
}
