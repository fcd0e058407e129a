//! The person who sends a request, by a session or by a token of Kubernetes.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};

use super::Portal;
use super::config::Auth;
use super::problem::Problem;
use super::who::{Person, Token};

/// The token of an `Authorization: Bearer` header. Another scheme is a mistake, as it would be ignored otherwise.
fn bearer(headers: &HeaderMap) -> Result<Option<Token>, Problem> {
    let Some(value) = headers.get(header::AUTHORIZATION) else { return Ok(None) };
    let token = value.to_str().ok().and_then(|text| {
        let (scheme, token) = text.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
    });
    let fits = |token: &&str| !token.is_empty() && token.chars().all(|letter| letter.is_ascii_graphic());
    match token.filter(fits) {
        Some(token) => Ok(Some(Token::new(token))),
        None => Err(Problem::unauthorized("Authorization: Bearer with a token of Kubernetes is allowed.")),
    }
}

/// Who asks, as far as the request itself says, and as far as the portal may act for them.
pub(super) async fn person(portal: &Portal, headers: &HeaderMap) -> Result<Option<Arc<Person>>, Problem> {
    if let Some(token) = bearer(headers)? {
        return portal.bearers.person(&token).await.map(Some);
    }
    match &portal.config.auth {
        Auth::None => portal.bearers.own().await.map(Some),
        Auth::Oidc(_) => match portal.sessions.as_ref().and_then(|sessions| sessions.person(headers)) {
            Some(person) => portal.acting.narrowed(&portal.access, person).await.map(Some),
            None => Ok(None),
        },
    }
}

impl FromRequestParts<Arc<Portal>> for SignedIn {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, portal: &Arc<Portal>) -> Result<Self, Problem> {
        let person = person(portal, &parts.headers).await?;
        person.map(SignedIn).ok_or_else(|| Problem::unauthorized("Sign in, or send a token of Kubernetes."))
    }
}

/// The authenticated user. A request without one is rejected.
pub(super) struct SignedIn(pub(super) Arc<Person>);
