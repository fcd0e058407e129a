//! Sign-in and sign-out.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use url::Url;
use utoipa::IntoParams;

use super::access::Access;
use super::config::{Auth, Config};
use super::extract::Query;
use super::impersonation::Impersonation;
use super::limits::Limits;
use super::oidc::{Begun, Provider};
use super::problem::{ErrorResponses, NotFound, Problem};
use super::session::{COOKIE, Sessions, removed};

/// The cookie of a started sign-in.
const BEGUN: &str = "__Host-paved-sign-in";

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Return {
    /// The path of the portal to open after the sign-in.
    #[serde(rename = "return")]
    path: Option<String>,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Callback {
    /// The provider's authorization code.
    code: Option<String>,
    /// The id of the sign-in.
    state: Option<String>,
    /// The provider's reason for a failed sign-in.
    error: Option<String>,
}

/// Signs users in with the OpenID provider.
#[derive(Clone)]
pub(super) struct SignIn {
    /// The provider and the sessions. `None` with `--auth none`.
    pub(super) oidc: Option<(Arc<Provider>, Arc<Sessions>)>,
    pub(super) config: Arc<Config>,
    pub(super) public_url: Url,
    pub(super) acting: Arc<Impersonation>,
    pub(super) access: Arc<Access>,
    pub(super) limits: Limits,
}

type Oidc<'p> = (&'p super::config::Oidc, &'p Provider, &'p Sessions);

impl SignIn {
    fn oidc(&self) -> Result<Oidc<'_>, Problem> {
        match (&self.config.auth, &self.oidc) {
            (Auth::Oidc(oidc), Some((provider, sessions))) => Ok((oidc, provider, sessions)),
            _ => Err(Problem::not_found(
                "This portal has no sign-in: it acts as the user of the kubeconfig.",
            )),
        }
    }
}

/// Sign in: redirects to the provider, which returns to the portal.
#[utoipa::path(get, path = "/auth/sign-in", operation_id = "signIn", tag = "sign-in", params(Return),
    responses((status = 303, description = "Redirects to the provider."), ErrorResponses, NotFound))]
pub(super) async fn begin(
    State(sign_in): State<SignIn>,
    Query(query): Query<Return>,
) -> Result<Response, Problem> {
    let (oidc, provider, sessions) = sign_in.oidc()?;
    let path = safe_path(&sign_in.public_url, query.path.as_deref().unwrap_or("/"));
    let patience = SignedDuration::try_from(sign_in.limits.sign_in).unwrap_or(SignedDuration::MAX);
    let expires = Timestamp::now().as_second().saturating_add(patience.as_secs());
    let (url, mut begun) = provider.begin(oidc, path, expires).await?;
    // Browsers drop a cookie that is too long. So the return path is shortened until it fits.
    let whole = std::mem::take(&mut begun.path);
    let bare = whole.split('?').next().unwrap_or_default();
    for path in [whole.as_str(), bare, "/"] {
        path.clone_into(&mut begun.path);
        if let Some(cookie) = sessions.seal(BEGUN, &begun, patience)? {
            return Ok(redirect(url.as_str(), [Some(cookie)]));
        }
    }
    Err(Problem::bad_request(
        "The sign-in is too large for a cookie. Sign in from a page with a shorter address.",
    ))
}

/// The address to which the provider returns the browser.
#[utoipa::path(get, path = "/auth/callback", operation_id = "finishSignIn", tag = "sign-in", params(Callback),
    responses((status = 303, description = "Signed in: redirects to the requested page."), ErrorResponses, NotFound))]
pub(super) async fn finish(
    State(sign_in): State<SignIn>,
    headers: HeaderMap,
    Query(query): Query<Callback>,
) -> Result<Response, Problem> {
    let (oidc, provider, sessions) = sign_in.oidc()?;
    let begun: Option<Begun> = sessions.open(&headers, BEGUN);
    let begun = begun.filter(|begun| begun.expires > Timestamp::now().as_second());
    let begun = begun.ok_or_else(|| {
        Problem::forbidden(
            "This browser has no active sign-in, or the sign-in timed out. Sign in \
             again.",
        )
    })?;
    let (Some(code), Some(state)) = (query.code, query.state) else {
        let why = query.error.unwrap_or_else(|| "unspecified".to_owned());
        let why: String = why.chars().filter(char::is_ascii_graphic).take(80).collect();
        return Err(Problem::forbidden(format!(
            "The sign-in provider rejected the sign-in with the error {why}."
        )));
    };
    let path = begun.path.clone();
    let identity = provider.finish(oidc, begun, &state, code).await?;
    // The cookie has no room for groups without effect.
    let groups = sign_in.acting.groups(&sign_in.access, &identity.groups).await?;
    // The session has ended in this replica. If the other replicas cannot be notified, this has
    // been logged.
    let _ = sessions.end_of_others(&headers, &oidc.issuer, &identity.username).await;
    let cookie = sessions.begin(&oidc.issuer, &identity.username, &identity.login, groups)?;
    tracing::info!(user = identity.username, "signed in");
    Ok(redirect(&path, [Some(cookie), removed(BEGUN)]))
}

/// Sign out: ends the session and its streams in all tabs and replicas.
#[utoipa::path(post, path = "/auth/sign-out", operation_id = "signOut", tag = "sign-in",
    responses((status = 204, description = "Signed out."), ErrorResponses, NotFound))]
pub(super) async fn sign_out(
    State(sign_in): State<SignIn>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let (_, _, sessions) = sign_in.oidc()?;
    let ended = sessions.end(&headers).await;
    let mut response = match ended {
        Ok(()) => StatusCode::NO_CONTENT.into_response(),
        Err(problem) => problem.into_response(),
    };
    response.headers_mut().extend(removed(COOKIE).map(|cookie| (header::SET_COOKIE, cookie)));
    Ok(response)
}

fn redirect<const N: usize>(to: &str, cookies: [Option<HeaderValue>; N]) -> Response {
    let mut response = StatusCode::SEE_OTHER.into_response();
    let headers = response.headers_mut();
    if let Ok(to) = HeaderValue::from_str(to) {
        headers.insert(header::LOCATION, to);
    }
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    for cookie in cookies.into_iter().flatten() {
        headers.append(header::SET_COOKIE, cookie);
    }
    response
}

/// A path of the portal, as browsers interpret it. Any other path becomes `/`.
fn safe_path(public_url: &Url, path: &str) -> String {
    let joined = path.starts_with('/').then(|| public_url.join(path).ok()).flatten();
    let own = joined.filter(|url| url.origin() == public_url.origin() && url.username().is_empty());
    let Some(url) = own else { return "/".to_owned() };
    // A path that begins with two slashes would name another host.
    let path = format!("/{}", url.path().trim_start_matches('/'));
    url.query().map_or_else(|| path.clone(), |query| format!("{path}?{query}"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn return_path_is_always_a_path_of_the_portal() {
        let portal = Url::parse("https://portal.example.org").unwrap();
        assert_eq!(safe_path(&portal, "/environments/ada?tab=yaml"), "/environments/ada?tab=yaml");
        for evil in [
            "//evil.example.org",
            "https://evil.example.org",
            "/\\evil.example.org",
            "\\\\evil.example.org",
            "/\t/evil.example.org",
            "javascript:alert(1)",
            "evil",
            "",
            "/..//evil.example.org",
            "/..///evil.example.org",
        ] {
            let path = safe_path(&portal, evil);
            let url = portal.join(&path).unwrap();
            assert_eq!(url.origin(), portal.origin(), "{evil} became {path}");
            assert!(path.starts_with('/') && !path.starts_with("//"), "{evil} became {path}");
        }
    }
}
