//! `/api/v1/keys`: the user's SSH public keys, which new workspaces accept. Each owner has a
//! ConfigMap in the portal's own namespace. The portal's own account writes it, and only for the
//! signed-in owner.

use axum::extract::State;
use axum::http::StatusCode;
use function_paved_road::apis::gpu_workspace::MOST_KEYS;
use function_paved_road::check::ssh_public_key;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Patch, PatchParams};
use paved_client::cluster::Api;
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use super::write::Writer;
use crate::answer::Answer;
use crate::clients::Clients;
use crate::extract::Json;
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

/// My keys.
#[utoipa::path(get, path = "/api/v1/keys", operation_id = "getKeys", tag = "keys", responses((status = 200, description = "My keys.", body = Keys), ErrorResponses))]
pub(crate) async fn get(
    State(clients): State<Clients>,
    SignedIn(person): SignedIn,
) -> Result<Answer<Keys>, Problem> {
    Ok(Answer(Keys { keys: find(&clients, &person.owner()).await? }))
}

/// Replace my keys.
#[utoipa::path(put, path = "/api/v1/keys", operation_id = "replaceKeys", tag = "keys", request_body = Keys,
    responses((status = 200, description = "My keys.", body = Keys), ErrorResponses, UnprocessableEntity))]
pub(crate) async fn put(
    State(writer): State<Writer>,
    SignedIn(person): SignedIn,
    Json(Keys { keys }): Json<Keys>,
) -> Result<Answer<Keys>, Problem> {
    may_use_keys(&writer, &person).await?;
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
        "metadata": {"name": name(&owner), "labels": {"app.kubernetes.io/managed-by": "paved-portal"}, "annotations": {ANNOTATION: owner.login}},
        "data": {DATA: lines.join("\n")}});
    let params = PatchParams::apply("paved-portal").force();
    maps(&writer.environments.clients).patch(&name(&owner), &params, &Patch::Apply(&map)).await?;
    tracing::info!(user = person.username(), count = lines.len(), "keys were changed");
    Ok(Answer(Keys { keys: lines }))
}

/// Checks that the user may create an environment that uses keys, because keys are stored in the
/// portal's namespace without a quota. If the user has no configured namespace, this check is
/// impossible. Then all users are allowed except service accounts, because users can create any
/// number of those.
async fn may_use_keys(writer: &Writer, person: &Person) -> Result<(), Problem> {
    if writer.namespaces.leads_nowhere(person) {
        return if person.username().starts_with("system:serviceaccount:") {
            Err(Problem::forbidden(
                "A service account has no list of keys. Put the keys into the \
                 workspace.",
            ))
        } else {
            Ok(())
        };
    }
    let mut why = None;
    for kind in writer.environments.catalog.seen().workspaces() {
        match writer.namespace(person, &kind, None).await {
            Ok(_) => return Ok(()),
            Err(problem) if problem.status() == StatusCode::FORBIDDEN => why = Some(problem),
            Err(problem) => return Err(problem),
        }
    }
    Err(why.unwrap_or_else(|| Problem::forbidden("This cluster has no kind that uses SSH keys.")))
}

/// Returns an owner's keys.
pub(crate) async fn find(clients: &Clients, owner: &Owner) -> Result<Vec<String>, Problem> {
    let map = maps(clients).get_opt(&name(owner)).await?;
    let text = map.and_then(|map| map.data?.remove(DATA)).unwrap_or_default();
    Ok(text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect())
}

fn name(owner: &Owner) -> String {
    format!("paved-road-keys-{}", owner.hash())
}

fn maps(clients: &Clients) -> Api<ConfigMap> {
    let cluster = clients.own();
    Api::namespaced(cluster.client, &cluster.namespace)
}
