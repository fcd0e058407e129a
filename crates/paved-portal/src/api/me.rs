//! `/api/v1/me`: the user that the portal has identified.

use axum::extract::{Extension, State};
use serde::Serialize;
use utoipa::ToSchema;

use crate::address::PublicAddress;
use crate::answer::Answer;
use crate::identity::Credential;
use crate::namespace::Namespaces;
use crate::problem::ErrorResponses;
use crate::signed_in::SignedIn;

/// The current user.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Me {
    /// My username in Kubernetes.
    username: String,
    /// My username without the provider's prefix.
    login: String,
    /// My groups in Kubernetes for which the portal may act.
    groups: Vec<String>,
    /// The value of the label `owner` of my environments.
    owner: String,
    /// `session`, `token` or `kubeconfig`.
    credential: &'static str,
    /// When the session ends (RFC 3339).
    #[serde(skip_serializing_if = "Option::is_none")]
    expires: Option<String>,
    /// My public address, if the portal knows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<String>,
    /// Default namespaces. The portal uses the first namespace in which I may create an
    /// environment.
    namespaces: Vec<String>,
}

/// The current user.
#[utoipa::path(get, path = "/api/v1/me", operation_id = "getMe", tag = "me", responses((status = 200, description = "Who I am.", body = Me), ErrorResponses))]
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
