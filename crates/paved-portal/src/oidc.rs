//! The OpenID provider: the sign-in of users, and their claims.

mod claims;
mod http_client;

use std::sync::Arc;
use std::time::{Duration, Instant};

use openidconnect::core::{
    CoreAuthenticationFlow, CoreClient, CoreClientAuthMethod as AuthMethod,
    CoreJwsSigningAlgorithm as Algorithm, CoreProviderMetadata,
};
use openidconnect::{
    AuthType, AuthorizationCode, ClientId, ClientSecret, CsrfToken, DiscoveryError, ErrorResponse,
    IssuerUrl, Nonce, OAuth2TokenResponse, PkceCodeChallenge, PkceCodeVerifier, RedirectUrl,
    RequestTokenError, Scope, TokenResponse,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::Mutex;
use url::Url;

use super::config;
use super::limits::Limits;
use super::problem::Problem;
use crate::Failure;
use claims::{complete, identity, payload, unreadable_response};
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

    /// Checks that the provider has the configured issuer. Without its response, the check is left to
    /// the first sign-in: the portal also starts without the provider.
    pub(super) async fn check(&self, oidc: &config::Oidc) -> Result<(), Failure> {
        match self.discover(oidc).await {
            Ok(found) => {
                *self.known.lock().await = Some((Arc::new(found), Instant::now()));
                Ok(())
            }
            Err(error) => {
                let issuer = &oidc.issuer;
                if let Some(stated) = stated_issuer(&error) {
                    return Err(Failure::Usage(format!(
                        "--oidc-issuer: found {issuer:?}; allowed: {stated:?}, the issuer that the \
                         provider states, letter for letter"
                    )));
                }
                tracing::warn!(issuer, %error, "the provider's description could not be read");
                Ok(())
            }
        }
    }

    async fn discover(
        &self,
        oidc: &config::Oidc,
    ) -> Result<CoreProviderMetadata, DiscoveryError<http_client::Error>> {
        let issuer = IssuerUrl::new(oidc.issuer.clone()).map_err(DiscoveryError::UrlParse)?;
        CoreProviderMetadata::discover_async(issuer, &self.http).await
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
        let found = self.discover(oidc).await.map_err(|error| undescribed(oidc, &error))?;
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
        let answer = answer.map_err(|error| no_token(&error))?;
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

fn refused(detail: &str) -> Problem {
    Problem::forbidden(detail)
}

/// The problem of a code without a token.
fn no_token<E, T>(error: &RequestTokenError<E, T>) -> Problem
where
    E: std::error::Error + 'static,
    T: ErrorResponse + 'static,
{
    match error {
        RequestTokenError::Request(error) => unavailable(error),
        RequestTokenError::Parse(error, body) => {
            // The error itself may have the token.
            let field = error.path().to_string();
            tracing::warn!(field, "the provider's token response could not be read");
            unreadable_response(body)
        }
        error => {
            tracing::warn!(%error, "the provider rejected an authorization code");
            refused("The provider rejected the sign-in. Sign in again.")
        }
    }
}

/// The issuer in the provider's description, if it is not the configured one.
fn stated_issuer(error: &DiscoveryError<http_client::Error>) -> Option<&str> {
    let DiscoveryError::Validation(message) = error else { return None };
    message.strip_prefix("unexpected issuer URI `")?.split('`').next()
}

/// The problem of a provider without a usable description.
fn undescribed(oidc: &config::Oidc, error: &DiscoveryError<http_client::Error>) -> Problem {
    let issuer = &oidc.issuer;
    if let Some(stated) = stated_issuer(error) {
        tracing::error!(issuer, stated, "--oidc-issuer is not the issuer that the provider states");
        let detail = format!(
            "The sign-in is configured incorrectly: the issuer of the provider is {stated}, and \
             --oidc-issuer is {issuer}. Ask the operator of the portal to correct --oidc-issuer."
        );
        return Problem::new(http::StatusCode::INTERNAL_SERVER_ERROR, detail);
    }
    if matches!(error, DiscoveryError::Response(http::StatusCode::NOT_FOUND, ..)) {
        tracing::error!(issuer, "--oidc-issuer names no OpenID provider");
        let detail = format!(
            "No OpenID provider answers at {issuer}. Ask the operator of the portal to check \
             --oidc-issuer."
        );
        return Problem::new(http::StatusCode::BAD_GATEWAY, detail);
    }
    unavailable(error)
}

fn unavailable(error: &dyn std::error::Error) -> Problem {
    tracing::warn!(%error, "the provider does not respond as expected");
    Problem::new(
        http::StatusCode::BAD_GATEWAY,
        "The sign-in provider does not respond as expected. Try again in a moment.",
    )
}
