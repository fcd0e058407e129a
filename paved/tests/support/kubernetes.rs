//! An API server on loopback with the paths for one environment: discovery, the environment and its
//! watches, Secrets, and forwarding to pods.

use std::fs;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::serve::Listener;
use futures::{SinkExt, StreamExt, stream};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch::{Receiver, Sender, channel};
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::server::{Request, Response as Switched};
use tokio_tungstenite::tungstenite::http::HeaderValue;

/// A cluster with one environment. It stops when it is dropped.
pub struct Cluster {
    folder: TempDir,
    shown: Sender<Shown>,
    asked: Arc<Mutex<Vec<String>>>,
    server: tokio::task::JoinHandle<()>,
}

/// The state of the API server.
#[derive(Clone)]
struct Shown {
    /// The environment, even after its deletion.
    environment: Value,
    is_there: bool,
    answers: bool,
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Cluster {
    /// Starts a cluster with this environment. `others` are further or other responses by path, for
    /// example `/api/v1/namespaces/team/secrets/x`. `DELETE /api/…` applies to one method. A Status
    /// sets the response's code, and `null` never returns a response. A list has one response for
    /// each request in turn. Watches always show only the environment.
    pub async fn with(environment: Value, others: &[(&str, Value)]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (shown, seen) = channel(Shown { environment, is_there: true, answers: true });
        let others =
            others.iter().map(|(path, object)| ((*path).to_owned(), object.clone())).collect();
        let listener =
            Door { listener, forwarding: Arc::new(Mutex::new(JoinSet::new())), seen: seen.clone() };
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let here = Here { shown: shown.clone(), seen, others, asked: Arc::clone(&asked) };
        let router = Router::new().fallback(answer).with_state(Arc::new(here));
        let server = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        let folder = tempfile::tempdir().unwrap();
        let named = |kind: &str, body: Value| json!({"name": "c", kind: body});
        let kubeconfig = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [named("cluster", json!({"server": format!("http://{address}")}))],
            "users": [named("user", json!({}))],
            "contexts": [named("context", json!({"cluster": "c", "user": "c", "namespace": "team"}))],
        });
        fs::write(folder.path().join("kubeconfig"), kubeconfig.to_string()).unwrap();
        Self { folder, shown, asked, server }
    }

    /// The path of a kubeconfig for the cluster.
    pub fn kubeconfig(&self) -> std::path::PathBuf {
        self.folder.path().join("kubeconfig")
    }

    /// Changes the environment.
    pub fn becomes(&self, environment: Value) {
        self.shown.send_modify(|shown| shown.environment = environment);
    }

    /// Removes the environment.
    pub fn loses_it(&self) {
        self.shown.send_modify(|shown| shown.is_there = false);
    }

    /// Restores the environment.
    pub fn comes_back(&self) {
        self.shown.send_modify(|shown| shown.is_there = true);
    }

    /// The requests so far: method, path and query.
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    /// Waits for a watch among the requests after the first `requests`.
    pub async fn is_watched(&self, requests: usize) {
        while !self.asked().iter().skip(requests).any(|asked| asked.contains("watch=")) {
            sleep(Duration::from_millis(10)).await;
        }
    }

    /// Whether the environment exists.
    pub fn has_it(&self) -> bool {
        self.shown.borrow().is_there
    }

    /// Stops the API server and all watches, or starts it again.
    pub fn answers(&self, answers: bool) {
        self.shown.send_modify(|shown| shown.answers = answers);
    }
}

/// A ready environment with these fields in its status.
pub fn ready(kind: &str, spec: Value, status: Value) -> Value {
    let mut object = json!({
        "apiVersion": "platform.acme.io/v1alpha1", "kind": kind,
        "metadata": {"name": "shop", "namespace": "team", "uid": "u", "generation": 1, "resourceVersion": "1",
            "creationTimestamp": "2026-01-01T10:00:00Z"},
    });
    object["spec"] = spec;
    object["status"] = status;
    object["status"]["phase"] = json!("Ready");
    object["status"]["conditions"] = ["Synced", "Ready", "Provisioned"]
        .map(|kind| json!({"type": kind, "status": "True", "reason": "Available", "observedGeneration": 1}))
        .into();
    object
}

/// The same, during its creation.
pub fn waiting(mut object: Value) -> Value {
    let spec = object["spec"].clone();
    let kind = object["kind"].as_str().unwrap().to_owned();
    object = ready(&kind, spec, json!({}));
    object["status"]["phase"] = json!("Provisioning");
    object["status"]["conditions"][1]["status"] = json!("False");
    object["status"]["conditions"][2]["status"] = json!("False");
    object
}

struct Here {
    shown: Sender<Shown>,
    seen: Receiver<Shown>,
    others: std::collections::BTreeMap<String, Value>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Here {
    /// The number of requests for a path.
    fn count(&self, uri: &Uri) -> usize {
        let path = format!(" {}", uri.path());
        self.asked.lock().unwrap().iter().filter(|asked| asked.contains(&path)).count()
    }
}

async fn answer(State(here): State<Arc<Here>>, method: Method, uri: Uri, _: Bytes) -> Response {
    here.asked.lock().unwrap().push(format!("{method} {uri}"));
    let now = here.seen.borrow().clone();
    let kind = now.environment["kind"].as_str().unwrap();
    let plural = format!("{}s", kind.to_lowercase());
    let all = format!("/apis/platform.acme.io/v1alpha1/namespaces/team/{plural}");
    let everywhere = format!("/apis/platform.acme.io/v1alpha1/{plural}");
    let watches = uri.query().unwrap_or_default().contains("watch=");
    let listed = |path: &str| path == all || path == everywhere;
    let of_method = here.others.get(&format!("{method} {}", uri.path()));
    if let Some(other) = of_method.or_else(|| here.others.get(uri.path())).filter(|_| !watches) {
        let other = match other {
            Value::Array(answers) => &answers[here.count(&uri) - 1],
            other => other,
        };
        if other.is_null() {
            std::future::pending::<()>().await;
        }
        let code = other["code"]
            .as_u64()
            .and_then(|code| StatusCode::from_u16(code.try_into().ok()?).ok());
        return (code.unwrap_or_default(), object(other)).into_response();
    }
    match uri.path() {
        "/apis" => object(&discovery(kind, &plural)),
        path if listed(path) && watches => changes(here.seen.clone()),
        path if listed(path) => object(&json!({
            "apiVersion": "platform.acme.io/v1alpha1", "kind": format!("{kind}List"),
            "metadata": {"resourceVersion": "1"},
            "items": if now.is_there { vec![now.environment.clone()] } else { Vec::new() },
        })),
        path if path == format!("{all}/shop") && now.is_there => {
            if method == Method::DELETE {
                here.shown.send_modify(|shown| shown.is_there = false);
            }
            object(&now.environment)
        }
        path => failure(StatusCode::NOT_FOUND, &format!("{path} not found")),
    }
}

fn failure(code: StatusCode, message: &str) -> Response {
    let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code.as_u16(),
        "reason": if code == StatusCode::NOT_FOUND { "NotFound" } else { "" }, "message": message});
    (code, object(&status)).into_response()
}

/// Each request has its own connection, because forwarding needs a whole connection.
fn object(value: &Value) -> Response {
    ([(header::CONTENT_TYPE, "application/json"), (header::CONNECTION, "close")], value.to_string())
        .into_response()
}

fn discovery(kind: &str, plural: &str) -> Value {
    let resource = json!({"resource": plural, "responseKind": {"group": "", "version": "", "kind": kind},
        "scope": "Namespaced", "singularResource": kind.to_lowercase(), "verbs": ["get", "list", "watch"],
        "categories": ["paved"]});
    json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": [
        {"metadata": {"name": "platform.acme.io"}, "versions": [{"version": "v1alpha1", "resources": [resource]}]}]})
}

/// A watch until the client closes it or the API server stops.
fn changes(seen: Receiver<Shown>) -> Response {
    let events = stream::unfold(seen, |mut seen| async move {
        seen.changed().await.ok()?;
        let now = seen.borrow_and_update().clone();
        let happened = if now.is_there { "MODIFIED" } else { "DELETED" };
        let event = json!({"type": happened, "object": now.environment});
        let event = now.answers.then(|| Bytes::from(format!("{event}\n")));
        Some((event.ok_or_else(|| std::io::Error::from(std::io::ErrorKind::ConnectionReset)), seen))
    });
    Body::from_stream(events.boxed()).into_response()
}

/// Accepts connections. Connections for forwarding do not reach the router.
struct Door {
    listener: TcpListener,
    forwarding: Arc<Mutex<JoinSet<()>>>,
    seen: Receiver<Shown>,
}

impl Listener for Door {
    type Io = TcpStream;
    type Addr = std::net::SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            let (stream, address) = self.listener.accept().await.unwrap();
            if !self.seen.borrow().answers {
                continue;
            }
            let mut first = [0; 256];
            let seen = stream.peek(&mut first).await.unwrap();
            if !String::from_utf8_lossy(&first[..seen]).contains("/pods/preview-x-0/portforward?") {
                return (stream, address);
            }
            self.forwarding.lock().unwrap().spawn(echo(stream));
        }
    }

    fn local_addr(&self) -> std::io::Result<Self::Addr> {
        self.listener.local_addr()
    }
}

/// A pod whose only port returns the received text in capitals. In Kubernetes' protocol
/// v4.channel.k8s.io, every message begins with its channel, and each channel begins with the
/// port's number.
// The type of the error comes from the library.
#[allow(clippy::result_large_err)]
async fn echo(stream: TcpStream) {
    let protocol = |_: &Request, mut answer: Switched| {
        let protocol = HeaderValue::from_static("v4.channel.k8s.io");
        answer.headers_mut().insert("Sec-WebSocket-Protocol", protocol);
        Ok(answer)
    };
    let Ok(mut socket) = tokio_tungstenite::accept_hdr_async(stream, protocol).await else {
        return;
    };
    let [low, high] = 8443_u16.to_le_bytes();
    for channel in [0, 1] {
        socket.send(Message::binary(vec![channel, low, high])).await.unwrap();
    }
    while let Some(Ok(message)) = socket.next().await {
        if let Message::Binary(bytes) = message {
            let capitals = bytes.to_ascii_uppercase();
            if socket.send(Message::binary(capitals)).await.is_err() {
                return;
            }
        }
    }
}
