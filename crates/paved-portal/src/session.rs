//! Sessions are encrypted cookies. The server stores only a list of sessions that were ended early.

mod revoked;

use std::sync::Arc;

use axum::http::{HeaderMap, HeaderValue, header};
use cookie::{Cookie, CookieJar, Key, SameSite};
use jiff::{SignedDuration, Timestamp};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha512};
use url::Url;

pub(super) use revoked::Revoked;

use super::config::Oidc;
use super::identity::{Credential, Person};
use super::owner;
use super::problem::Problem;

/// The session's cookie. Because of its prefix, browsers accept it only from this host, over TLS,
/// and for all paths.
pub(super) const COOKIE: &str = "__Host-paved-session";

/// The maximum size of a cookie that every browser accepts, in bytes, with its name and attributes.
const LARGEST: usize = 4000;

/// The encrypted contents of a session's cookie.
#[derive(Serialize, Deserialize)]
struct Session {
    /// A random ID. Each sign-in creates a new one.
    id: String,
    issuer: String,
    username: String,
    login: String,
    groups: Vec<String>,
    /// In seconds since 1970.
    expires: i64,
}

impl Session {
    /// The hash for the list of ended sessions. The ID cannot be derived from it.
    fn hash(&self) -> String {
        owner::hash(&[&self.id], 16)
    }
}

/// The sessions of a portal.
pub(super) struct Sessions {
    /// The first key encrypts.
    keys: Vec<Key>,
    ttl: SignedDuration,
    groups_prefix: String,
    pub(super) revoked: Revoked,
}

impl Sessions {
    /// Sessions of a portal, with its URL if one is configured.
    pub(super) fn new(oidc: &Oidc, public_url: Option<&Url>, revoked: Revoked) -> Self {
        // The configuration has checked the length of each key.
        let keys = oidc.session_keys.iter().filter(|key| key.len() >= 32);
        let keys = keys.map(|key| bound(key, oidc, public_url));
        Self {
            keys: keys.collect(),
            ttl: SignedDuration::try_from(oidc.session_ttl)
                .unwrap_or(SignedDuration::from_hours(1)),
            groups_prefix: oidc.groups_prefix.clone(),
            revoked,
        }
    }

    /// The user of the session in a request, if the session is valid.
    pub(super) fn person(&self, headers: &HeaderMap) -> Option<Arc<Person>> {
        let session = self.session(headers)?;
        let credential = Credential::Session {
            id: session.hash(),
            expires: Timestamp::from_second(session.expires).ok()?,
        };
        Some(Arc::new(Person::new(
            &session.username,
            &session.login,
            &session.issuer,
            session.groups,
            &self.groups_prefix,
            credential,
        )))
    }

    fn session(&self, headers: &HeaderMap) -> Option<Session> {
        let session: Session = self.open(headers, COOKIE)?;
        let over = session.expires <= Timestamp::now().as_second();
        let ended = self.revoked.holds(&session.hash());
        (!over && !ended && self.revoked.is_known()).then_some(session)
    }

    /// The cookie for a new session.
    pub(super) fn begin(
        &self,
        issuer: &str,
        username: &str,
        login: &str,
        groups: Vec<String>,
    ) -> Result<HeaderValue, Problem> {
        let expires = Timestamp::now().as_second() + self.ttl.as_secs();
        let session = Session {
            id: owner::unique(16)?,
            issuer: issuer.to_owned(),
            username: username.to_owned(),
            login: login.to_owned(),
            groups,
            expires,
        };
        self.seal(COOKIE, &session, self.ttl)?.ok_or_else(|| {
            Problem::forbidden(format!(
                "You are in {} groups of `impersonation.groups`, which is too many for a session. \
                 Ask the operator of the portal to list fewer groups.",
                session.groups.len()
            ))
        })
    }

    /// Ends the session in a request, in all replicas.
    pub(super) async fn end(&self, headers: &HeaderMap) -> Result<(), Problem> {
        let Some(session) = self.session(headers) else { return Ok(()) };
        self.revoke(&session).await
    }

    /// Ends another user's session in the same browser after a sign-in, so that it cannot be
    /// continued. The user's own earlier session remains, because other tabs use its stream.
    pub(super) async fn end_of_others(
        &self,
        headers: &HeaderMap,
        issuer: &str,
        username: &str,
    ) -> Result<(), Problem> {
        match self.session(headers) {
            Some(session)
                if (session.issuer.as_str(), session.username.as_str()) != (issuer, username) =>
            {
                self.revoke(&session).await
            }
            _ => Ok(()),
        }
    }

    async fn revoke(&self, session: &Session) -> Result<(), Problem> {
        let person = owner::hash(&[&session.issuer, &session.username], 16);
        self.revoked.add(&session.hash(), &person, session.expires).await
    }

    /// An encrypted cookie. `None` if it is too large for browsers.
    pub(super) fn seal<T: Serialize>(
        &self,
        name: &'static str,
        content: &T,
        ttl: SignedDuration,
    ) -> Result<Option<HeaderValue>, Problem> {
        let broken = || {
            Problem::new(http::StatusCode::INTERNAL_SERVER_ERROR, "The cookie cannot be written.")
        };
        let text = serde_json::to_string(content).map_err(|_| broken())?;
        let mut jar = CookieJar::new();
        let key = self.keys.first().ok_or_else(broken)?;
        jar.private_mut(key).add(Cookie::new(name, text));
        let sealed = jar.get(name).map(|cookie| cookie.value().to_owned()).unwrap_or_default();
        let cookie = attributes(name, sealed, ttl).to_string();
        if cookie.len() > LARGEST {
            return Ok(None);
        }
        HeaderValue::from_str(&cookie).map(Some).map_err(|_| broken())
    }

    /// The contents of an encrypted cookie.
    pub(super) fn open<T: DeserializeOwned>(
        &self,
        headers: &HeaderMap,
        name: &'static str,
    ) -> Option<T> {
        let sent = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        let sent: Vec<Cookie<'_>> = sent.flat_map(Cookie::split_parse).flatten().collect();
        let mut named = sent.into_iter().filter(|cookie| cookie.name() == name);
        let cookie = named.next()?.into_owned();
        // Two cookies with the same name: another site may have set one.
        if named.next().is_some() {
            return None;
        }
        let jar = CookieJar::new();
        let opened = self.keys.iter().find_map(|key| jar.private(key).decrypt(cookie.clone()))?;
        serde_json::from_str(opened.value()).ok()
    }
}

/// The key of one portal's cookies. It is derived from the portal's settings for the provider and
/// for names in Kubernetes. Portals with the same key file therefore do not accept each other's
/// sessions.
fn bound(key: &[u8], oidc: &Oidc, public_url: Option<&Url>) -> Key {
    let Oidc {
        issuer,
        client_id,
        username_claim,
        groups_claim,
        username_prefix,
        groups_prefix,
        ..
    } = oidc;
    let mut hash = Sha512::new();
    let texts = [
        issuer.as_str(),
        client_id,
        username_claim,
        groups_claim,
        username_prefix,
        groups_prefix,
        public_url.map_or("", Url::as_str),
    ]
    .map(str::as_bytes);
    for part in [key].into_iter().chain(texts) {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    Key::derive_from(&hash.finalize())
}

/// A cookie that scripts cannot read. Browsers send it only over TLS, and not with other sites'
/// writes.
fn attributes(name: &'static str, value: String, ttl: SignedDuration) -> Cookie<'static> {
    let age = cookie::time::Duration::seconds(ttl.as_secs());
    Cookie::build((name, value))
        .path("/")
        .secure(true)
        .http_only(true)
        .same_site(SameSite::Lax)
        .max_age(age)
        .build()
}

/// Removes a cookie.
pub(super) fn removed(name: &'static str) -> Option<HeaderValue> {
    HeaderValue::from_str(&attributes(name, String::new(), SignedDuration::ZERO).to_string()).ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn sessions(keys: &[u8]) -> Sessions {
        Sessions {
            keys: keys.iter().map(|byte| Key::derive_from(&[*byte; 64])).collect(),
            ttl: SignedDuration::from_hours(1),
            groups_prefix: String::new(),
            revoked: Revoked::local(),
        }
    }

    fn sent(cookie: &HeaderValue) -> HeaderMap {
        let pair = cookie.to_str().unwrap().split(';').next().unwrap();
        HeaderMap::from_iter([(header::COOKIE, HeaderValue::from_str(pair).unwrap())])
    }

    fn begin(sessions: &Sessions) -> HeaderValue {
        sessions.begin("https://id", "oidc:ada", "ada", vec!["team".into()]).unwrap()
    }

    #[test]
    fn session_cookie_identifies_its_person_and_is_unreadable() {
        let sessions = sessions(&[1]);
        let cookie = begin(&sessions);
        let text = cookie.to_str().unwrap();
        for flag in [
            "__Host-paved-session=",
            "HttpOnly",
            "Secure",
            "SameSite=Lax",
            "Path=/",
            "Max-Age=3600",
        ] {
            assert!(text.contains(flag), "{text}");
        }
        assert!(!text.contains("ada") && !text.contains("Domain"), "{text}");
        let person = sessions.person(&sent(&cookie)).unwrap();
        assert_eq!(
            (person.username(), person.login(), person.groups()),
            ("oidc:ada", "ada", &["team".to_owned()][..])
        );
    }

    #[test]
    fn keys_rotate() {
        let (old, added, both, new) = (&[1][..], &[1, 2][..], &[2, 1][..], &[2][..]);
        let opens = |reader: &[u8], writer: &[u8]| {
            sessions(reader).person(&sent(&begin(&sessions(writer)))).is_some()
        };
        for (before, after) in [(old, added), (added, both), (both, new)] {
            assert!(
                opens(before, after) && opens(after, before),
                "{before:?} runs together with {after:?}"
            );
        }
        assert!(!opens(old, both), "a key may be first only after all replicas have it");
        assert!(!opens(new, old));
    }

    #[test]
    fn a_session_ends_and_another_cookie_is_none() {
        let mut sessions = sessions(&[1]);
        let other = sessions.seal("__Host-paved-sign-in", &"x", sessions.ttl).unwrap().unwrap();
        let moved = other.to_str().unwrap().replace("sign-in", "session");
        assert!(sessions.person(&sent(&HeaderValue::from_str(&moved).unwrap())).is_none());
        sessions.ttl = SignedDuration::from_secs(-1);
        assert!(sessions.person(&sent(&begin(&sessions))).is_none(), "expired");
    }

    #[tokio::test]
    async fn ended_session_cannot_be_replayed() {
        let sessions = sessions(&[1]);
        let (first, second) = (sent(&begin(&sessions)), sent(&begin(&sessions)));
        sessions.end(&first).await.unwrap();
        assert!(sessions.person(&first).is_none());
        assert!(sessions.person(&second).is_some(), "another session of the same user remains");
    }

    #[test]
    fn second_cookie_of_the_same_name_is_rejected() {
        let sessions = sessions(&[1]);
        let mut headers = sent(&begin(&sessions));
        headers.append(header::COOKIE, HeaderValue::from_static("__Host-paved-session=x"));
        assert!(sessions.person(&headers).is_none());
    }

    #[test]
    fn too_many_groups_are_reported() {
        let groups = (0..500).map(|number| format!("group-{number}")).collect();
        assert!(
            sessions(&[1])
                .begin("i", "u", "u", groups)
                .unwrap_err()
                .detail()
                .contains("500 groups")
        );
    }
}
