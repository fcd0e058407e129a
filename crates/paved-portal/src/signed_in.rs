//! The user of a request, identified by a session or by a Kubernetes token.

use std::sync::Arc;

use axum::extract::{FromRef, FromRequestParts};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};

use super::access::Access;
use super::identity::{Person, Token};
use super::impersonation::Impersonation;
use super::problem::Problem;
use super::session::Sessions;
use super::token_auth::TokenAuth;

/// The token of an `Authorization: Bearer` header. Another scheme is an error, because ignoring it
/// would hide a mistake.
fn bearer(headers: &HeaderMap) -> Result<Option<Token>, Problem> {
    let Some(value) = headers.get(header::AUTHORIZATION) else { return Ok(None) };
    let token = value.to_str().ok().and_then(|text| {
        let (scheme, token) = text.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
    });
    let fits =
        |token: &&str| !token.is_empty() && token.chars().all(|letter| letter.is_ascii_graphic());
    match token.filter(fits) {
        Some(token) => Ok(Some(Token::new(token))),
        None => Err(Problem::unauthorized(
            "Authorization: unknown scheme; allowed: Bearer with a Kubernetes token.",
        )),
    }
}

/// Identifies the users of requests.
#[derive(Clone)]
pub(super) struct Callers {
    pub(super) bearers: Arc<TokenAuth>,
    /// The sessions. Without an OpenID provider, every caller is the kubeconfig's own user.
    pub(super) sessions: Option<Arc<Sessions>>,
    pub(super) acting: Arc<Impersonation>,
    pub(super) access: Arc<Access>,
}

impl Callers {
    /// The user of a request, with only the groups that the portal may act for. `None` without a
    /// credential.
    pub(super) async fn person(&self, headers: &HeaderMap) -> Result<Option<Arc<Person>>, Problem> {
        if let Some(token) = bearer(headers)? {
            return self.bearers.person(&token).await.map(Some);
        }
        let Some(sessions) = &self.sessions else { return self.bearers.own().await.map(Some) };
        match sessions.person(headers) {
            Some(person) => self.acting.narrowed(&self.access, person).await.map(Some),
            None => Ok(None),
        }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for SignedIn
where
    Callers: FromRef<S>,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let person = Callers::from_ref(state).person(&parts.headers).await?;
        person
            .map(SignedIn)
            .ok_or_else(|| Problem::unauthorized("Sign in, or send a token of Kubernetes."))
    }
}

/// The authenticated user. A request without one is rejected.
pub(super) struct SignedIn(pub(super) Arc<Person>);
