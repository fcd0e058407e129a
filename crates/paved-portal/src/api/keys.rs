//! `/api/v1/keys`: the user's SSH public keys, which new workspaces accept. Each owner has a
//! ConfigMap in the portal's own namespace. The portal's own account writes it, and only for the
//! signed-in owner.

use std::collections::BTreeSet;

use axum::extract::State;
use axum::http::StatusCode;
use function_paved_road::apis::gpu_workspace::MOST_KEYS;
use function_paved_road::check::ssh_public_key;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Patch, PatchParams};
use paved_client::cluster::{Api, Kind};
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::{IntoParams, ToSchema};

use super::environments::Environments;
use super::write::Writer;
use crate::answer::Answer;
use crate::bodies::Body;
use crate::clients::Clients;
use crate::extract::{Query, name};
use crate::identity::Person;
use crate::owner::{ANNOTATION, Owner};
use crate::problem::{ErrorResponses, Problem, UnprocessableEntity};
use crate::signed_in::SignedIn;

/// The key of the ConfigMap's data, in the format of sshd.
const DATA: &str = "authorized_keys";

/// The maximum length of the list, in bytes. A machine's user data has no room for more.
const MAX_LIST_LEN: usize = 16 * 1024;

// The schema attribute of Keys accepts only a literal.
const _: () = assert!(MOST_KEYS == 20);

/// SSH public keys.
#[derive(Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"keys": ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl ada@laptop"]}))]
pub(crate) struct Keys {
    /// Lines in the format of `~/.ssh/id_ed25519.pub`.
    #[schema(max_items = 20)]
    keys: Vec<String>,
}

/// The maximum number of namespaces with a review of a right for one request.
const MAX_REVIEWED: usize = 50;

/// Where the user may create workspaces.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct KeysPlace {
    /// A namespace in which I may create workspaces. Required if the portal knows none.
    namespace: Option<String>,
}

/// My keys.
#[utoipa::path(get, path = "/api/v1/keys", operation_id = "getKeys", tag = "keys", responses((status = 200, description = "My keys.", body = Keys), ErrorResponses))]
pub(crate) async fn get(
    State(clients): State<Clients>,
    SignedIn(person): SignedIn,
) -> Result<Answer<Keys>, Problem> {
    Ok(Answer(Keys { keys: find(&clients, &person.owner()).await? }))
}

/// Replace my keys.
#[utoipa::path(put, path = "/api/v1/keys", operation_id = "replaceKeys", tag = "keys", params(KeysPlace), request_body = Keys,
    responses((status = 200, description = "My keys.", body = Keys), ErrorResponses, UnprocessableEntity))]
pub(crate) async fn put(
    State(writer): State<Writer>,
    SignedIn(person): SignedIn,
    Query(place): Query<KeysPlace>,
    body: Body,
) -> Result<Answer<Keys>, Problem> {
    may_use_keys(&writer, &person, place.namespace.as_deref()).await?;
    let Keys { keys } = body.read(&person).await?.value;
    // A workspace accepts no more keys.
    if keys.len() > MOST_KEYS {
        return Err(Problem::field(
            "keys",
            format!("found {}; allowed: at most {MOST_KEYS}", keys.len()),
        ));
    }
    let mut lines: Vec<String> = Vec::new();
    for (index, key) in keys.iter().enumerate() {
        let line = key.trim();
        ssh_public_key(line)
            .map_err(|refused| Problem::field(&format!("keys[{index}]"), refused.to_string()))?;
        if !lines.iter().any(|known| known == line) {
            lines.push(line.to_owned());
        }
    }
    let length = lines.iter().map(|line| line.len() + 1).sum::<usize>();
    if length > MAX_LIST_LEN {
        let message = format!("found {length} bytes in all; allowed: at most {MAX_LIST_LEN}");
        return Err(Problem::field("keys", message));
    }
    let owner = person.owner();
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": map_name(&owner), "labels": {"app.kubernetes.io/managed-by": "paved-portal"}, "annotations": {ANNOTATION: owner.login}},
        "data": {DATA: lines.join("\n")}});
    let params = PatchParams::apply("paved-portal").force();
    maps(&writer.environments.clients)
        .patch(&map_name(&owner), &params, &Patch::Apply(&map))
        .await?;
    tracing::info!(user = person.username(), count = lines.len(), "keys were changed");
    Ok(Answer(Keys { keys: lines }))
}

/// Checks that the user may create an environment that uses keys, because keys are stored in the
/// portal's namespace without a quota. `chosen` is a namespace that the user names.
async fn may_use_keys(
    writer: &Writer,
    person: &Person,
    chosen: Option<&str>,
) -> Result<(), Problem> {
    let kinds = writer.environments.catalog.seen().workspaces();
    let Some(first) = kinds.first() else {
        return Err(Problem::forbidden("This cluster has no kind that uses SSH keys."));
    };
    // Users can create any number of service accounts.
    if writer.namespaces.leads_nowhere(person) && is_account(person) {
        return Err(Problem::forbidden(
            "A service account has no list of keys. Put the keys into the workspace.",
        ));
    }
    if let Some(chosen) = chosen {
        name("namespace", chosen)?;
        for kind in &kinds {
            if writer.environments.access.may_create(person, kind, chosen).await? {
                return Ok(());
            }
        }
        let kind = first.name();
        let detail = format!("You may not create {kind} in namespace {chosen}.");
        let message = format!("found {chosen:?}; allowed: one in which you may create {kind}");
        return Err(Problem::forbidden(detail).at_field("namespace", message));
    }
    if !writer.namespaces.leads_nowhere(person) {
        let mut why = None;
        for kind in &kinds {
            match writer.namespace(person, kind, None).await {
                Ok(_) => return Ok(()),
                Err(problem) if problem.status() == StatusCode::FORBIDDEN => why = Some(problem),
                Err(problem) => return Err(problem),
            }
        }
        return why.map_or(Ok(()), Err);
    }
    may_create_somewhere(&writer.environments, person, &kinds).await
}

fn is_account(person: &Person) -> bool {
    person.username().starts_with("system:serviceaccount:")
}

/// Checks that a user without a default namespace may create one of the kinds in all namespaces, or
/// in a namespace with environments that the user sees.
async fn may_create_somewhere(
    environments: &Environments,
    person: &Person,
    kinds: &[Kind],
) -> Result<(), Problem> {
    let visible = environments.visible(person, |_| true).await?;
    let visible: BTreeSet<&str> =
        visible.iter().map(|entry| entry.key.namespace.as_str()).collect();
    for namespace in std::iter::once("").chain(visible).take(MAX_REVIEWED) {
        for kind in kinds {
            if environments.access.may_create(person, kind, namespace).await? {
                return Ok(());
            }
        }
    }
    let kind = kinds.first().map(Kind::name).unwrap_or_default();
    Err(Problem::forbidden(format!(
        "The portal knows no namespace in which you may create {kind}. Name one with the query \
         parameter namespace."
    ))
    .at_field("namespace", format!("found none; allowed: one in which you may create {kind}")))
}

/// Returns an owner's keys.
pub(crate) async fn find(clients: &Clients, owner: &Owner) -> Result<Vec<String>, Problem> {
    let map = maps(clients).get_opt(&map_name(owner)).await?;
    let text = map.and_then(|map| map.data?.remove(DATA)).unwrap_or_default();
    Ok(text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect())
}

fn map_name(owner: &Owner) -> String {
    format!("paved-road-keys-{}", owner.hash())
}

fn maps(clients: &Clients) -> Api<ConfigMap> {
    let cluster = clients.own();
    Api::namespaced(cluster.client, &cluster.namespace)
}
