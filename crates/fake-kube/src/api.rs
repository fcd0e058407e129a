//! The subset of the Kubernetes API over HTTP that the portal, `paved` and `kubectl` use:
//! discovery, reads and watches, writes, and reviews of access.

mod admit;
mod discovery;
mod read;
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

use crate::Cluster;
use crate::answer::{Refused, respond};
use crate::kinds::{Kind, Place};
pub use admit::admitted;

/// The whole API.
pub fn router(cluster: Arc<Cluster>) -> Router {
    Router::new().fallback(answer).layer(DefaultBodyLimit::max(3 << 20)).with_state(cluster)
}

/// A request for objects of a kind.
struct Request<'a> {
    kind: &'a Kind,
    /// Empty for all namespaces, or for a kind without namespaces.
    namespace: &'a str,
    /// Empty for the collection.
    name: &'a str,
    /// Whether it is for the status only.
    is_status: bool,
    /// Name of the user.
    user: &'a str,
    query: Query,
}

/// The parameters of the query.
struct Query(Vec<(String, String)>);

impl Query {
    fn from_uri(uri: &Uri) -> Self {
        Self(
            form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes())
                .into_owned()
                .collect(),
        )
    }

    fn get(&self, key: &str) -> &str {
        self.0.iter().find(|(name, _)| name == key).map_or("", |(_, value)| value)
    }

    fn is(&self, key: &str) -> bool {
        ["true", "1"].contains(&self.get(key))
    }
}

async fn answer(
    State(cluster): State<Arc<Cluster>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    if cluster.faults.is_down() {
        return Refused::new(503, "ServiceUnavailable", "the API server is down").into_response();
    }
    let user = cluster.access.identify(&headers);
    cluster.note(crate::Request {
        user: user.as_ref().ok().map(|user| user.name.clone()),
        method: method.to_string(),
        path: uri.path().to_owned(),
        query: uri.query().unwrap_or_default().to_owned(),
    });
    let user = match user {
        Ok(user) => user,
        Err(refused) => return refused.into_response(),
    };
    if cluster.faults.is_silent() {
        std::future::pending::<()>().await;
    }
    let path: Vec<&str> = uri.path().split('/').filter(|part| !part.is_empty()).collect();
    match path.as_slice() {
        ["livez" | "readyz" | "healthz"] => return "ok".into_response(),
        ["api", _, _, ..] | ["apis", _, _, _, ..] => {}
        _ => return discovery::answer(&cluster, &path, &headers),
    }
    if let [.., subject] = path.as_slice()
        && method == Method::POST
        && let Some(review) = review::answer(&cluster.access, &user, subject, &body)
    {
        return respond(StatusCode::CREATED, &review);
    }
    let place = cluster.kinds.locate(uri.path());
    let Some(place) = place.filter(|place| !cluster.faults.is_withdrawn(&place.kind.group)) else {
        return Refused::unknown(uri.path()).into_response();
    };
    let Place { kind, namespace, name, is_status } = place;
    let query = Query::from_uri(&uri);
    let request = Request { kind, namespace, name, is_status, user: &user.name, query };
    let done = match request.verb(&method) {
        None => Err(Refused::new(
            405,
            "MethodNotAllowed",
            "the server does not allow this method on the requested resource",
        )),
        Some(verb) if !cluster.access.may(&user.name, verb, &[namespace, uri.path()]) => {
            Err(Refused::forbidden(&user.name, verb, kind, namespace, name))
        }
        Some(verb) => match cluster.faults.failure(verb, uri.path()) {
            None => request.run(&cluster, verb, &headers, &body),
            Some(failure) => {
                if failure.is_executed {
                    drop(request.run(&cluster, verb, &headers, &body));
                }
                Err(Refused::new(failure.code, "Injected", failure.message))
            }
        },
    };
    done.unwrap_or_else(IntoResponse::into_response)
}

impl Request<'_> {
    /// The verb in Kubernetes' authorization.
    fn verb(&self, method: &Method) -> Option<&'static str> {
        match (method.as_str(), self.name.is_empty()) {
            ("DELETE", _) if self.is_status => None,
            ("GET", true) if self.query.is("watch") => Some("watch"),
            ("GET", true) => Some("list"),
            ("GET", false) => Some("get"),
            ("POST", true) => Some("create"),
            ("PUT", false) => Some("update"),
            ("PATCH", false) => Some("patch"),
            ("DELETE", false) => Some("delete"),
            _ => None,
        }
    }

    fn run(
        &self,
        cluster: &Arc<Cluster>,
        verb: &str,
        headers: &HeaderMap,
        body: &[u8],
    ) -> Result<Response, Refused> {
        match verb {
            "watch" => read::watch(cluster, self),
            "list" => read::list(&cluster.store, self),
            "get" => read::get(&cluster.store, self),
            "create" => write::create(cluster, self, body),
            "update" => write::replace(cluster, self, body),
            "patch" => {
                let media_type =
                    headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
                write::patch(cluster, self, media_type.unwrap_or_default(), body)
            }
            _ => write::delete(cluster, self, body),
        }
    }
}

/// An object with the requested API version.
fn versioned(object: &Value, kind: &Kind) -> Value {
    let mut object = object.clone();
    object["apiVersion"] = json!(kind.api_version());
    object["kind"] = json!(kind.name);
    object
}
