//! A Kubernetes API in memory, for the demo and for tests: discovery, reads, watches, server-side
//! apply and other writes, and reviews of access. Tests can inject faults and read the request log.
//!
//! Of the products, only `paved demo` contains it.

pub mod access;
pub mod answer;
pub mod api;
pub mod faults;
mod fields;
pub mod json;
pub mod kinds;
pub mod store;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use access::Access;
use faults::Faults;
use kinds::Kinds;
use store::Store;

/// The maximum number of requests in the log.
const LOGGED: usize = 10_000;

/// A cluster as seen through its API.
pub struct Cluster {
    /// All objects.
    pub store: Arc<Store>,
    /// The kinds that the API serves.
    pub kinds: Arc<Kinds>,
    /// Users and their rights.
    pub access: Access,
    /// Faults of the API server.
    pub faults: Faults,
    clock: Box<dyn Fn() -> Timestamp + Send + Sync>,
    requests: Mutex<VecDeque<Request>>,
}

/// A request in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The user of the request, after impersonation. `None` if the caller was not identified.
    pub user: Option<String>,
    /// The HTTP method.
    pub method: String,
    /// The path, without the query.
    pub path: String,
    /// The query: `dryRun=All&fieldManager=paved`. It is empty if the request has none.
    pub query: String,
}

impl Cluster {
    /// An empty cluster.
    pub fn new(kinds: Kinds, access: Access) -> Self {
        Self {
            store: Arc::default(),
            kinds: Arc::new(kinds),
            access,
            faults: Faults::default(),
            clock: Box::new(Timestamp::now),
            requests: Mutex::default(),
        }
    }

    /// Sets the clock for the times of writes.
    pub fn with_clock(mut self, clock: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        self.clock = Box::new(clock);
        self
    }

    /// The time of a write.
    pub fn now(&self) -> Timestamp {
        (self.clock)()
    }

    /// Ends all watches and forgets all changes. A watch from an earlier version then gets `410
    /// Expired`.
    pub fn cut_watches(&self) {
        self.store.forget();
        self.faults.cut_watches();
    }

    /// The requests since the last call, at most the newest 10,000.
    pub fn requests(&self) -> Vec<Request> {
        self.log().drain(..).collect()
    }

    fn note(&self, request: Request) {
        let mut log = self.log();
        if log.len() == LOGGED {
            log.pop_front();
        }
        log.push_back(request);
    }

    fn log(&self) -> MutexGuard<'_, VecDeque<Request>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The API of a cluster on a free port of the loopback address. Dropping it stops the server.
pub struct Server {
    /// The address of the API.
    pub address: SocketAddr,
    task: JoinHandle<()>,
}

impl Server {
    /// Starts the server.
    ///
    /// # Errors
    /// No port is free.
    pub async fn start(cluster: Arc<Cluster>) -> std::io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let router = api::router(cluster);
        let task = tokio::spawn(async move {
            // The server runs until the task is aborted.
            let _ = axum::serve(listener, router).await;
        });
        Ok(Self { address, task })
    }

    /// A kubeconfig with one context of this name. `user` is the user entry: `{}` or
    /// `{"token": "..."}`.
    pub fn kubeconfig(&self, name: &str, namespace: &str, user: &Value) -> Value {
        let server = format!("http://{}", self.address);
        let context = json!({"cluster": name, "user": name, "namespace": namespace});
        json!({
            "apiVersion": "v1", "kind": "Config", "current-context": name,
            "clusters": [{"name": name, "cluster": {"server": server}}],
            "users": [{"name": name, "user": user}],
            "contexts": [{"name": name, "context": context}],
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}
