//! `/api/v1/me`: who the portal takes me for.

use axum::extract::{Extension, State};
use serde::Serialize;
use utoipa::ToSchema;

use crate::address::PublicAddress;
use crate::answer::Answer;
use crate::namespace::Namespaces;
use crate::problem::Refusals;
use crate::signed_in::SignedIn;
use crate::who::Credential;

/// Whoever asks.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Me {
    /// As Kubernetes knows me.
    username: String,
    /// As I know myself: the username without the provider's prefix.
    login: String,
    /// As Kubernetes knows them, and as far as the portal may act for them.
    groups: Vec<String>,
    /// What stands in the label `owner` of what is mine.
    owner: String,
    /// session, token or kubeconfig.
    credential: &'static str,
    /// When the session ends (RFC 3339).
    #[serde(skip_serializing_if = "Option::is_none")]
    expires: Option<String>,
    /// The public address that I come from, where the portal sees one.
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<String>,
    /// Where new environments go where none is chosen: the first of these where I may create them.
    namespaces: Vec<String>,
}

/// Who I am.
#[utoipa::path(get, path = "/api/v1/me", operation_id = "getMe", tag = "me", responses((status = 200, description = "Who I am.", body = Me), Refusals))]
pub(crate) async fn get(
    State(namespaces): State<Namespaces>,
    SignedIn(person): SignedIn,
    address: Option<Extension<PublicAddress>>,
) -> Answer<Me> {
    let (credential, expires) = match person.credential() {
        Credential::Own => ("kubeconfig", None),
        Credential::Session { expires, .. } => ("session", Some(expires.to_string())),
        Credential::Bearer(_) => ("token", None),
    };
    Answer(Me {
        username: person.username().to_owned(),
        login: person.login().to_owned(),
        groups: person.groups().to_vec(),
        owner: person.owner().label(),
        credential,
        expires,
        address: address.map(|Extension(PublicAddress(address))| address.to_string()),
        namespaces: namespaces.candidates(&person),
    })
}
