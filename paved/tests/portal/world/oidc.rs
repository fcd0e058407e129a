//! An OpenID provider on loopback. It signs in the user that the test chooses, and checks that the
//! portal follows the protocol.

use std::sync::{Arc, Mutex};

use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::net::TcpListener;

use super::portal::{Answer, Portal};

/// The key of the portal's sessions.
const KEY: [u8; 64] = [7; 64];

/// The secret that the portal and the provider share, if the provider requires a secret.
pub const SECRET: &str = "client-canary";

/// A provider. It stops when it is dropped.
pub struct Provider {
    pub issuer: String,
    here: Arc<Mutex<Here>>,
    server: tokio::task::JoinHandle<()>,
}

struct Here {
    issuer: String,
    key: Ed25519KeyPair,
    /// The claims of the next user.
    claims: Value,
    /// Nonce and challenge of the portal's request.
    asked: (String, String),
    /// Claims that only the userinfo endpoint returns.
    apart: Value,
    /// The portal's authentication method at the token endpoint.
    method: &'static str,
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Provider {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let issuer = format!("http://{}", listener.local_addr().unwrap());
        let here = Arc::new(Mutex::new(Here {
            issuer: issuer.clone(),
            key: Ed25519KeyPair::generate().unwrap(),
            claims: json!({}),
            asked: Default::default(),
            apart: json!({}),
            method: "none",
        }));
        let router = Router::new()
            .route("/.well-known/openid-configuration", get(description))
            .route("/keys", get(keys))
            .route("/token", post(token))
            .route("/me", get(user_info))
            .with_state(Arc::clone(&here));
        let server = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { issuer, here, server }
    }

    /// Flags of a portal that uses this provider. The folder holds the portal's key.
    pub fn flags(&self, folder: &tempfile::TempDir) -> Vec<String> {
        let key = folder.path().join("key");
        std::fs::write(&key, KEY).unwrap();
        [
            "--oidc-issuer",
            &self.issuer,
            "--oidc-client-id",
            "portal",
            "--session-key-file",
            key.to_str().unwrap(),
        ]
        .map(str::to_owned)
        .to_vec()
    }

    /// From now on, the portal must send its secret with this method.
    pub fn wants_secret(&self, method: &'static str) {
        self.here.lock().unwrap().method = method;
    }

    /// From now on, the provider states another issuer.
    pub fn states_issuer(&self, issuer: &str) {
        issuer.clone_into(&mut self.here.lock().unwrap().issuer);
    }

    /// Begins a sign-in. Returns the cookie and the state.
    pub async fn begin(&self, portal: &Portal, back: &str) -> (String, String) {
        let answer = portal.get("", &format!("/auth/sign-in?return={back}")).await;
        assert_eq!(answer.status, 303, "{:?}", answer.body);
        let url: url::Url = answer.header("location").parse().unwrap();
        let asked = |name: &str| {
            url.query_pairs()
                .find(|(key, _)| key == name)
                .map(|(_, value)| value.into_owned())
                .unwrap()
        };
        assert!(url.as_str().starts_with(&format!("{}/authorize?", self.issuer)));
        assert_eq!(
            (asked("response_type").as_str(), asked("code_challenge_method").as_str()),
            ("code", "S256")
        );
        self.here.lock().unwrap().asked = (asked("nonce"), asked("code_challenge"));
        (cookie(&answer, "__Host-paved-sign-in"), asked("state"))
    }

    /// Sets the claims of the next user.
    pub fn says(&self, claims: Value, apart: Value) {
        let mut here = self.here.lock().unwrap();
        (here.claims, here.apart) = (claims, apart);
    }

    /// Signs a user in. Returns the answer of the portal's callback.
    pub async fn sign_in(&self, portal: &Portal, claims: Value) -> Answer {
        self.sign_in_with(portal, claims, json!({})).await
    }

    /// The same, with claims that only the userinfo endpoint returns.
    pub async fn sign_in_with(&self, portal: &Portal, claims: Value, apart: Value) -> Answer {
        let (cookie, state) = self.begin(portal, "/").await;
        self.says(claims, apart);
        portal
            .send(
                "GET",
                &format!("/auth/callback?code=c&state={state}"),
                &[("cookie", &cookie)],
                "",
            )
            .await
    }

    /// A user's session that the portal created earlier, and that ends after this number of
    /// seconds.
    pub fn session_that_ends(&self, login: &str, groups: &[&str], seconds: i64) -> String {
        let expires = jiff::Timestamp::now().as_second() + seconds;
        let content = json!({"id": "i", "issuer": self.issuer, "username": login, "login": login, "groups": groups, "expires": expires});
        let name = "__Host-paved-session";
        let mut jar = ::cookie::CookieJar::new();
        let session = ::cookie::Cookie::new(name, content.to_string());
        jar.private_mut(&self.key()).add(session);
        format!("{name}={}", jar.get(name).unwrap().value())
    }

    /// The key of a portal's cookies, from the key file and the portal's identity.
    fn key(&self) -> ::cookie::Key {
        let mut hash = sha2::Sha512::new();
        for part in
            [&KEY[..], self.issuer.as_bytes(), b"portal", b"email", b"groups", b"", b"", b""]
        {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        ::cookie::Key::derive_from(&hash.finalize())
    }

    /// Signs a user in, and returns the session.
    pub async fn session(&self, portal: &Portal, login: &str, groups: &[&str]) -> String {
        let claims = json!({"sub": format!("sub-{login}"), "email": login, "email_verified": true, "groups": groups});
        let answer = self.sign_in(portal, claims).await;
        assert_eq!(answer.status, 303, "{:?}", answer.body);
        cookie(&answer, "__Host-paved-session")
    }
}

/// A cookie that an answer sets, in the form that a browser sends.
pub fn cookie(answer: &Answer, name: &str) -> String {
    let all = answer.headers.get_all("set-cookie").iter().map(|value| value.to_str().unwrap());
    let one = all
        .filter(|value| value.starts_with(name))
        .find(|value| !value.contains("Max-Age=0"))
        .unwrap();
    one.split(';').next().unwrap().to_owned()
}

async fn description(State(here): State<Arc<Mutex<Here>>>) -> Json<Value> {
    let (issuer, method) = {
        let here = here.lock().unwrap();
        (here.issuer.clone(), here.method)
    };
    let at = |path: &str| format!("{issuer}/{path}");
    Json(
        json!({"issuer": issuer, "authorization_endpoint": at("authorize"), "token_endpoint": at("token"),
        "jwks_uri": at("keys"), "userinfo_endpoint": at("me"), "response_types_supported": ["code"],
        "subject_types_supported": ["public"], "id_token_signing_alg_values_supported": ["EdDSA"],
        "token_endpoint_auth_methods_supported": [method]}),
    )
}

async fn keys(State(here): State<Arc<Mutex<Here>>>) -> Json<Value> {
    let public = URL_SAFE_NO_PAD.encode(here.lock().unwrap().key.public_key());
    Json(
        json!({"keys": [{"kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "use": "sig", "kid": "k", "x": public}]}),
    )
}

async fn token(State(here): State<Arc<Mutex<Here>>>, headers: HeaderMap, body: String) -> Response {
    let form: std::collections::BTreeMap<String, String> =
        url::form_urlencoded::parse(body.as_bytes()).into_owned().collect();
    let here = here.lock().unwrap();
    let head = headers.get("authorization").map(|value| value.to_str().unwrap());
    let secret = form.get("client_secret").map(String::as_str);
    let basic = format!("Basic {}", STANDARD.encode(format!("portal:{SECRET}")));
    let wanted = match here.method {
        "client_secret_basic" => (Some(basic.as_str()), None),
        "client_secret_post" => (None, Some(SECRET)),
        _ => (None, None),
    };
    if (head, secret) != wanted {
        return (StatusCode::UNAUTHORIZED, Json(json!({"error": "invalid_client"})))
            .into_response();
    }
    let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(form["code_verifier"].as_bytes()));
    if form["code"] != "c" || challenge != here.asked.1 {
        return (StatusCode::BAD_REQUEST, Json(json!({"error": "invalid_grant"}))).into_response();
    }
    let now = jiff::Timestamp::now().as_second();
    let mut claims = json!({"iss": here.issuer, "aud": "portal", "iat": now, "exp": now + 60, "nonce": here.asked.0});
    claims.as_object_mut().unwrap().extend(here.claims.as_object().unwrap().clone());
    let encode = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let text = format!("{}.{}", encode(&json!({"alg": "EdDSA", "kid": "k"})), encode(&claims));
    let signature = URL_SAFE_NO_PAD.encode(here.key.sign(text.as_bytes()));
    Json(json!({"access_token": "access-canary", "token_type": "Bearer", "expires_in": 60, "id_token": format!("{text}.{signature}")}))
        .into_response()
}

async fn user_info(State(here): State<Arc<Mutex<Here>>>, headers: HeaderMap) -> Json<Value> {
    assert_eq!(headers["authorization"], "Bearer access-canary");
    Json(here.lock().unwrap().apart.clone())
}
