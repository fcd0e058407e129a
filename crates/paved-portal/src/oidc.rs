//! The OpenID provider: the sign-in of users, and their claims.

mod http_client;

use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use openidconnect::core::{
    CoreAuthenticationFlow, CoreClient, CoreClientAuthMethod as AuthMethod,
    CoreJwsSigningAlgorithm as Algorithm, CoreProviderMetadata,
};
use openidconnect::{
    AuthType, AuthorizationCode, ClientId, ClientSecret, CsrfToken, IssuerUrl, Nonce,
    OAuth2TokenResponse, PkceCodeChallenge, PkceCodeVerifier, RedirectUrl, Scope, TokenResponse,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::sync::Mutex;
use url::Url;

use super::config;
use super::identity::may_be_named;
use super::limits::Limits;
use super::problem::Problem;
use crate::Failure;
use http_client::HttpClient;

/// Accepted signature algorithms. Only the provider can create such signatures. Shared secrets and
/// unsigned tokens are rejected.
const ALGORITHMS: [Algorithm; 9] = [
    Algorithm::RsaSsaPkcs1V15Sha256,
    Algorithm::RsaSsaPkcs1V15Sha384,
    Algorithm::RsaSsaPkcs1V15Sha512,
    Algorithm::RsaSsaPssSha256,
    Algorithm::RsaSsaPssSha384,
    Algorithm::RsaSsaPssSha512,
    Algorithm::EcdsaP256Sha256,
    Algorithm::EcdsaP384Sha384,
    Algorithm::EdDsa,
];

/// The provider.
pub(super) struct Provider {
    redirect: RedirectUrl,
    http: HttpClient,
    /// Lifetime of the description and the keys.
    ttl: Duration,
    known: Mutex<Option<(Arc<CoreProviderMetadata>, Instant)>>,
}

/// The values that the response to a started sign-in must match. An encrypted cookie of the same
/// browser has them.
#[derive(Serialize, Deserialize)]
pub(super) struct Begun {
    state: String,
    nonce: String,
    verifier: String,
    /// The page that the user requested: a path of the portal.
    pub(super) path: String,
    /// In seconds since 1970.
    pub(super) expires: i64,
}

/// The user that the provider has identified.
pub(super) struct Identity {
    pub(super) username: String,
    pub(super) login: String,
    pub(super) groups: Vec<String>,
}

impl Provider {
    /// A provider for a portal with this URL. The first sign-in contacts it.
    pub(super) fn new(
        oidc: &config::Oidc,
        public_url: &Url,
        limits: &Limits,
    ) -> Result<Self, Failure> {
        let redirect = public_url
            .join("/auth/callback")
            .map_err(|error| Failure::Usage(format!("--public-url: {error}")))?;
        Ok(Self {
            redirect: RedirectUrl::from_url(redirect),
            http: HttpClient::new(oidc.ca.as_deref(), limits.provider_answer)?,
            ttl: limits.provider,
            known: Mutex::default(),
        })
    }

    /// The provider's description, with its keys.
    async fn metadata(
        &self,
        oidc: &config::Oidc,
        anew: bool,
    ) -> Result<Arc<CoreProviderMetadata>, Problem> {
        let mut known = self.known.lock().await;
        let fresh = known.as_ref().filter(|(_, since)| !anew && since.elapsed() < self.ttl);
        if let Some((metadata, _)) = fresh {
            return Ok(Arc::clone(metadata));
        }
        let issuer = IssuerUrl::new(oidc.issuer.clone()).map_err(|error| unavailable(&error))?;
        let found = CoreProviderMetadata::discover_async(issuer, &self.http)
            .await
            .map_err(|error| unavailable(&error))?;
        let found = Arc::new(found);
        *known = Some((Arc::clone(&found), Instant::now()));
        Ok(found)
    }

    /// The URL for a user's sign-in, and the values that the response must match.
    pub(super) async fn begin(
        &self,
        oidc: &config::Oidc,
        path: String,
        expires: i64,
    ) -> Result<(Url, Begun), Problem> {
        let metadata = self.metadata(oidc, false).await?;
        let client = CoreClient::from_provider_metadata(
            (*metadata).clone(),
            ClientId::new(oidc.client_id.clone()),
            oidc.client_secret.clone().map(ClientSecret::new),
        )
        .set_redirect_uri(self.redirect.clone());
        let (challenge, verifier) = PkceCodeChallenge::new_random_sha256();
        let flow = CoreAuthenticationFlow::AuthorizationCode;
        let mut request = client.authorize_url(flow, CsrfToken::new_random, Nonce::new_random);
        for scope in &oidc.scopes {
            request = request.add_scope(Scope::new(scope.clone()));
        }
        let (url, state, nonce) = request.set_pkce_challenge(challenge).url();
        let begun = Begun {
            state: state.into_secret(),
            nonce: nonce.secret().clone(),
            verifier: verifier.into_secret(),
            path,
            expires,
        };
        Ok((url, begun))
    }

    /// Exchanges the code for the user's identity. Only the browser that started the sign-in can
    /// use the code.
    pub(super) async fn finish(
        &self,
        oidc: &config::Oidc,
        begun: Begun,
        state: &str,
        code: String,
    ) -> Result<Identity, Problem> {
        // Both values are random and used once, so the duration of the comparison reveals no useful
        // fact.
        if begun.state != state {
            return Err(refused("The sign-in belongs to another browser. Sign in again."));
        }
        let metadata = self.metadata(oidc, false).await?;
        let client = CoreClient::from_provider_metadata(
            (*metadata).clone(),
            ClientId::new(oidc.client_id.clone()),
            oidc.client_secret.clone().map(ClientSecret::new),
        )
        .set_auth_type(auth_type(&metadata))
        .set_redirect_uri(self.redirect.clone());
        let exchange = client
            .exchange_code(AuthorizationCode::new(code))
            .map_err(|error| unavailable(&error))?;
        let answer = exchange
            .set_pkce_verifier(PkceCodeVerifier::new(begun.verifier))
            .request_async(&self.http)
            .await;
        let answer = answer.map_err(|error| {
            tracing::warn!(%error, "the provider rejected an authorization code");
            refused("The provider rejected the sign-in. Sign in again.")
        })?;
        let token = answer.id_token().ok_or_else(|| {
            refused(
                "The provider returned no ID token. Ask the operator of the portal to check the \
                 provider.",
            )
        })?;
        let nonce = Nonce::new(begun.nonce);
        let verified =
            match token.claims(&client.id_token_verifier().set_allowed_algs(ALGORITHMS), &nonce) {
                Ok(claims) => Ok(claims.subject().to_string()),
                // The provider may have new keys.
                Err(openidconnect::ClaimsVerificationError::SignatureVerification(_)) => {
                    let metadata = self.metadata(oidc, true).await?;
                    let client = CoreClient::from_provider_metadata(
                        (*metadata).clone(),
                        ClientId::new(oidc.client_id.clone()),
                        oidc.client_secret.clone().map(ClientSecret::new),
                    );
                    let verifier = client.id_token_verifier().set_allowed_algs(ALGORITHMS);
                    token.claims(&verifier, &nonce).map(|claims| claims.subject().to_string())
                }
                Err(error) => Err(error),
            };
        let subject = verified.map_err(|error| {
            tracing::warn!(%error, "an ID token is invalid");
            refused("The provider's ID token is invalid. Sign in again.")
        })?;
        let mut claims = payload(&token.to_string()).unwrap_or_default();
        let wanted = [&oidc.username_claim, &oidc.groups_claim];
        if wanted.iter().any(|claim| !claims.contains_key(claim.as_str()))
            && let Some(endpoint) = metadata.userinfo_endpoint()
        {
            let said = self.http.user_info(endpoint.url(), answer.access_token().secret()).await;
            // Claims about another user do not count.
            let said =
                said.filter(|said| said.get("sub").and_then(Value::as_str) == Some(&subject));
            complete(&mut claims, said.unwrap_or_default());
        }
        identity(oidc, &claims)
    }
}

/// The place of the portal's secret: the header, unless the provider accepts the secret only in the
/// body.
fn auth_type(metadata: &CoreProviderMetadata) -> AuthType {
    let taken = metadata.token_endpoint_auth_methods_supported().map_or(&[][..], Vec::as_slice);
    let in_body_alone = taken.contains(&AuthMethod::ClientSecretPost)
        && !taken.contains(&AuthMethod::ClientSecretBasic);
    if in_body_alone { AuthType::RequestBody } else { AuthType::BasicAuth }
}

/// The claims of a token with a checked signature.
fn payload(token: &str) -> Option<Map<String, Value>> {
    let payload = token.split('.').nth(1)?;
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(payload).ok()?).ok()
}

/// Adds the claims of the userinfo endpoint. The address and its verification must be from the same
/// source. A verification in the ID token is not valid for an address of the userinfo endpoint, or
/// the reverse.
fn complete(claims: &mut Map<String, Value>, mut said: Map<String, Value>) {
    match claims.get("email") {
        None => drop(claims.remove("email_verified")),
        Some(email) if said.get("email") != Some(email) => drop(said.remove("email_verified")),
        Some(_) => {}
    }
    for (claim, value) in said {
        claims.entry(claim).or_insert(value);
    }
}

/// The user of the claims, with the names in Kubernetes.
fn identity(oidc: &config::Oidc, claims: &Map<String, Value>) -> Result<Identity, Problem> {
    let claim = &oidc.username_claim;
    let login = claims.get(claim).and_then(Value::as_str).unwrap_or_default();
    if claim == "email"
        && claims.get("email_verified").is_some_and(|verified| *verified != Value::Bool(true))
    {
        return Err(refused(
            "The provider has not verified your email address. Verify the address, and sign in \
             again.",
        ));
    }
    let username = format!("{}{login}", oidc.username_prefix);
    if login.is_empty() || !may_be_named(&username) {
        let detail = format!("The provider returned no valid username in the claim {claim}.");
        return Err(refused(&detail));
    }
    let groups = match claims.get(&oidc.groups_claim) {
        Some(Value::Array(groups)) => groups.iter().filter_map(Value::as_str).collect(),
        Some(Value::String(group)) => vec![group.as_str()],
        _ => Vec::new(),
    };
    let named = groups
        .iter()
        .filter(|group| !group.is_empty())
        .map(|group| format!("{}{group}", oidc.groups_prefix));
    // The provider must not assign Kubernetes' own groups: one of them has all rights.
    let mut groups: Vec<String> = named.filter(|group| may_be_named(group)).collect();
    groups.sort_unstable();
    groups.dedup();
    Ok(Identity { username, login: login.to_owned(), groups })
}

fn refused(detail: &str) -> Problem {
    Problem::forbidden(detail)
}

fn unavailable(error: &dyn std::error::Error) -> Problem {
    tracing::warn!(%error, "the provider does not respond as expected");
    Problem::new(
        http::StatusCode::BAD_GATEWAY,
        "The sign-in provider does not respond as expected. Try again in a moment.",
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    fn oidc() -> config::Oidc {
        config::Oidc {
            issuer: "https://id.example.org".into(),
            client_id: "portal".into(),
            client_secret: None,
            scopes: Vec::new(),
            username_claim: "email".into(),
            groups_claim: "groups".into(),
            username_prefix: String::new(),
            prefix_is_chosen: false,
            groups_prefix: String::new(),
            ca: None,
            session_keys: Vec::new(),
            session_ttl: Duration::from_hours(1),
        }
    }

    fn read_identity(claims: &Value) -> Result<Identity, Problem> {
        identity(&oidc(), claims.as_object().unwrap())
    }

    #[test]
    fn system_users_and_groups_are_rejected() {
        let ada = read_identity(
            &json!({"email": "ada@acme.io", "groups": ["team", "system:masters", "", 3, "a\nb"]}),
        )
        .unwrap();
        assert_eq!((ada.username.as_str(), ada.groups), ("ada@acme.io", vec!["team".to_owned()]));
        for email in ["system:admin", "", "a\r\nImpersonate-Group: system:masters", " ada"] {
            assert!(read_identity(&json!({"email": email})).is_err(), "{email}");
        }
        let mut prefixed = oidc();
        prefixed.groups_prefix = "oidc:".into();
        let all = json!({"email": "ada@acme.io", "groups": "system:masters"});
        let ada = identity(&prefixed, all.as_object().unwrap()).unwrap();
        assert_eq!(ada.groups, ["oidc:system:masters"], "the prefixed group has no rights");
    }

    #[test]
    fn verification_counts_for_the_address_of_its_own_source() {
        let bob = |verified: bool| json!({"email": "bob@acme.io", "email_verified": verified});
        for (token, apart, fits) in [
            (json!({"email_verified": true}), bob(false), false),
            (json!({"email_verified": true}), json!({"email": "bob@acme.io"}), true),
            (json!({"email_verified": false}), bob(true), true),
            (json!({"email": "ada@acme.io"}), bob(false), true),
            (json!({"email": "bob@acme.io"}), bob(false), false),
            (json!({"email": "bob@acme.io", "email_verified": true}), bob(false), true),
        ] {
            let mut claims = token.as_object().unwrap().clone();
            complete(&mut claims, apart.as_object().unwrap().clone());
            assert_eq!(identity(&oidc(), &claims).is_ok(), fits, "{token} {apart}");
        }
    }

    #[test]
    fn unverified_address_belongs_to_no_user() {
        for (verified, fits) in
            [(json!(true), true), (json!(false), false), (json!("false"), false)]
        {
            assert_eq!(
                read_identity(&json!({"email": "ada@acme.io", "email_verified": verified})).is_ok(),
                fits
            );
        }
    }
}
