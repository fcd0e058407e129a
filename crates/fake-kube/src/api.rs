//! The Kubernetes API, as far as the portal, `paved` and `kubectl` use it: discovery, reads and watches, writes, questions about
//! rights, to which the answer is yes.

mod admit;
mod discovery;
mod read;
mod refused;
mod review;
mod write;

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use url::form_urlencoded;

use crate::kinds::{Kind, Kinds};
use crate::store::Store;
pub use admit::admitted;
pub use refused::Refused;

/// What all requests share.
pub struct Api {
    store: Arc<Store>,
    kinds: Arc<Kinds>,
}

/// The whole API.
pub fn router(store: Arc<Store>, kinds: Arc<Kinds>) -> Router {
    let api = Arc::new(Api { store, kinds });
    Router::new().fallback(answer).layer(DefaultBodyLimit::max(3 << 20)).with_state(api)
}

/// A request for objects of a kind.
struct Request<'a> {
    kind: &'a Kind,
    /// Empty for all namespaces, or where the kind lives in none.
    namespace: &'a str,
    /// Empty for the collection.
    name: &'a str,
    query: Query,
}

/// What stands after the question mark.
struct Query(Vec<(String, String)>);

impl Query {
    fn of(uri: &Uri) -> Self {
        Self(form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes()).into_owned().collect())
    }

    fn get(&self, key: &str) -> &str {
        self.0.iter().find(|(name, _)| name == key).map_or("", |(_, value)| value)
    }

    fn is(&self, key: &str) -> bool {
        ["true", "1"].contains(&self.get(key))
    }
}

async fn answer(
    State(api): State<Arc<Api>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let path: Vec<&str> = uri.path().split('/').filter(|part| !part.is_empty()).collect();
    let (group, version, rest) = match path.as_slice() {
        ["livez" | "readyz" | "healthz"] => return "ok".into_response(),
        ["api", version, rest @ ..] if !rest.is_empty() => ("", *version, rest),
        ["apis", group, version, rest @ ..] if !rest.is_empty() => (*group, *version, rest),
        _ => return discovery::answer(&api.kinds, &path, &headers),
    };
    if let [subject] = rest
        && method == Method::POST
        && let Some(review) = review::answer(subject, &headers, &body)
    {
        return shown(StatusCode::CREATED, &review);
    }
    let (namespace, plural, name) = match rest {
        ["namespaces", namespace, plural, rest @ ..] => (*namespace, *plural, rest),
        [plural, rest @ ..] => ("", *plural, rest),
        [] => return Refused::unknown(uri.path()).into_response(),
    };
    let (Some(kind), [] | [_]) = (api.kinds.called(group, version, plural), name) else {
        return Refused::unknown(uri.path()).into_response();
    };
    let name = name.first().copied().unwrap_or_default();
    let request = Request { kind, namespace, name, query: Query::of(&uri) };
    let media_type =
        headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let done = match method.as_str() {
        "GET" if name.is_empty() && request.query.is("watch") => read::watch(&api.store, &request),
        "GET" if name.is_empty() => Ok(read::list(&api.store, &request)),
        "GET" => read::get(&api.store, &request),
        "POST" if name.is_empty() => write::create(&api, &request, &body),
        "PUT" if !name.is_empty() => write::replace(&api, &request, &body),
        "PATCH" if !name.is_empty() => write::patch(&api, &request, media_type, &body),
        "DELETE" if !name.is_empty() => write::delete(&api, &request, &body),
        _ => Err(Refused::new(
            405,
            "MethodNotAllowed",
            "the server does not allow this method on the requested resource",
        )),
    };
    done.unwrap_or_else(IntoResponse::into_response)
}

/// An answer in JSON.
fn shown(status: StatusCode, value: &Value) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], value.to_string()).into_response()
}

/// An object under the version that was asked for.
fn versioned(object: &Value, kind: &Kind) -> Value {
    let mut object = object.clone();
    object["apiVersion"] = json!(kind.api_version());
    object["kind"] = json!(kind.name);
    object
}
