//! The cluster of the portal's tests: users with rights in namespaces, the kinds of environment,
//! and the faults of [`fake_kube`].

use std::path::PathBuf;
use std::sync::Arc;

use fake_kube::access::{Access, User};
use fake_kube::kinds::{Kind, Kinds};
use fake_kube::store::Key;
use fake_kube::{Cluster, Server};
use jiff::Timestamp;
use k8s_schema::Schemas;
use serde_json::{Value, json};
use tempfile::TempDir;

/// The kinds in this cluster, with their plurals.
pub const KINDS: [(&str, &str); 5] = [
    ("GpuDevWorkspaceClaim", "gpudevworkspaceclaims"),
    ("ApplicationEnvironment", "applicationenvironments"),
    ("EnvironmentClaim", "environmentclaims"),
    ("StockPool", "stockpools"),
    ("Environment", "environments"),
];

/// Their group and version.
pub const GROUP: &str = "/apis/platform.acme.io/v1alpha1";

/// A user with an authorization webhook beside RBAC, as in clouds. Reviews of this user's rules are
/// incomplete.
pub const CAROL: &str = "carol";

/// The name in the request log for a caller with an unknown token.
pub const NOBODY: &str = "nobody";

/// A request: user, method, path.
pub type Asked = (String, String, String);

/// Users, their groups, and the namespace in which they have all rights. `*` stands for all
/// namespaces.
const USERS: [(&str, &[&str], Option<&str>); 8] = [
    ("portal", &[], Some("portal")),
    ("ada", &["vision"], Some("team-vision")),
    ("oidc:ada", &["oidc:vision"], Some("team-vision")),
    (
        "system:serviceaccount:team-vision:builder",
        &["system:serviceaccounts", "system:serviceaccounts:team-vision"],
        Some("team-vision"),
    ),
    ("bob", &["sound"], Some("team-sound")),
    ("eve", &[], None),
    (CAROL, &[], Some("team-vision")),
    ("operator", &["ops"], Some("*")),
];

/// An API server. It stops when it is dropped.
pub struct ApiServer {
    folder: TempDir,
    cluster: Arc<Cluster>,
    server: Server,
}

impl ApiServer {
    pub async fn start() -> Self {
        let cluster = Arc::new(Cluster::new(kinds(), access()).with_clock(clock));
        cluster.faults.exceed_quota("over-quota", "exceeded quota: count/environments");
        let server = Server::start(Arc::clone(&cluster)).await.unwrap();
        Self { folder: tempfile::tempdir().unwrap(), cluster, server }
    }

    /// A kubeconfig with a user's token.
    pub fn kubeconfig(&self, token: &str) -> PathBuf {
        let user = json!({"token": format!("token-{token}")});
        let kubeconfig = self.server.kubeconfig("c", "portal", &user);
        let path = self.folder.path().join(format!("kubeconfig-{token}"));
        std::fs::write(&path, kubeconfig.to_string()).unwrap();
        path
    }

    fn key(&self, path: &str) -> Key {
        let place = self.cluster.kinds.locate(path).unwrap();
        place.kind.key(place.namespace, place.name)
    }

    /// Writes an object, without a request.
    pub fn put(&self, path: &str, mut object: Value) {
        let key = self.key(path);
        object["metadata"]["name"] = json!(key.name);
        if !key.namespace.is_empty() {
            object["metadata"]["namespace"] = json!(key.namespace);
        }
        self.cluster.store.put(&key, clock(), |_| Some(object));
    }

    /// Changes an object.
    pub fn change(&self, path: &str, change: impl FnOnce(&mut Value)) {
        let mut object = self.get(path).unwrap();
        change(&mut object);
        self.put(path, object);
    }

    /// Begins the deletion of an object. Crossplane's finalizer blocks it.
    pub fn begin_deletion(&self, path: &str) {
        self.change(path, |object| {
            object["metadata"]["finalizers"] = json!(["finalizer.apiextensions.crossplane.io"]);
            object["metadata"]["deletionTimestamp"] = json!("2026-01-01T11:00:00Z");
        });
    }

    /// Removes an object immediately.
    pub fn remove(&self, path: &str) {
        self.cluster.store.put(&self.key(path), clock(), |_| None);
    }

    pub fn get(&self, path: &str) -> Option<Value> {
        self.cluster.store.get(&self.key(path)).map(|object| Value::clone(&object))
    }

    /// Paths of all objects of a collection.
    pub fn paths(&self, part: &str) -> Vec<String> {
        let keys = self.cluster.store.keys();
        let paths = keys.iter().filter_map(|key| self.cluster.kinds.path(key));
        paths.filter(|path| path.contains(part)).collect()
    }

    /// The requests since the last call.
    pub fn asked(&self) -> Vec<Asked> {
        let requests = self.cluster.requests().into_iter();
        let user = |user: Option<String>| user.unwrap_or_else(|| NOBODY.to_owned());
        requests.map(|request| (user(request.user), request.method, request.path)).collect()
    }

    /// Allows or denies a user a verb in a scope: `list team-vision`, `list` or `watch` and a whole
    /// path, or `impersonate groups/vision`.
    pub fn grant(&self, who: &str, what: &str, allowed: bool) {
        let (verb, place) = what.split_once(' ').unwrap();
        self.cluster.access.set(who, verb, place, allowed);
    }

    /// Adds an authorization webhook, so that reviews of the user's rules are incomplete.
    pub fn add_webhook(&self, who: &str) {
        self.cluster.access.add_webhook(who);
    }

    /// Ends all watches and forgets all changes before now.
    pub fn cut_watches(&self) {
        self.cluster.cut_watches();
    }

    /// Removes the kinds of environment, or only omits them from discovery.
    pub fn unlist(&self, gone: bool) {
        let group = "platform.acme.io";
        if gone { self.cluster.faults.withdraw(group) } else { self.cluster.faults.unlist(group) }
    }

    /// Accepts requests and answers none of them. Watches continue.
    pub fn fall_silent(&self) {
        self.cluster.faults.fall_silent();
    }

    /// Answers all requests with errors, or answers again.
    pub fn set_down(&self, down: bool) {
        self.cluster.faults.set_down(down);
    }
}

/// The time of every write.
fn clock() -> Timestamp {
    "2026-01-01T10:00:00Z".parse().unwrap()
}

/// The kinds of environment, with a schema that has only the replicas, and a composite.
fn kinds() -> Kinds {
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let mut spec = open.clone();
    spec["properties"] = json!({"replicas": {"type": "integer", "maximum": 1000}});
    let schema = json!({"type": "object", "properties": {"spec": spec, "status": open}});
    let definitions = KINDS.map(|(kind, plural)| {
        let names = json!({"kind": kind, "plural": plural, "categories": ["claim", "paved"]});
        let version = json!({"name": "v1alpha1", "served": true, "schema": {"openAPIV3Schema": schema}});
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.platform.acme.io")},
            "spec": {"group": "platform.acme.io", "scope": "Namespaced", "names": names, "versions": [version]}})
    });
    let names = json!({"kind": "XStockPool", "plural": "xstockpools"});
    let composite = Kind::from_names("platform.acme.io", "v1alpha1", &names, false);
    let kinds = definitions.iter().flat_map(Kind::from_crd).chain([composite]);
    Kinds::new(kinds, Schemas::new(&definitions).unwrap(), Vec::new())
}

/// The portal may read all objects and impersonate all users. Users have their namespaces.
fn access() -> Access {
    let access = Access::closed(USERS.map(|(name, groups, _)| User::new(name, groups)).to_vec());
    for verb in ["get", "list", "watch", "impersonate"] {
        access.set("portal", verb, "*", true);
    }
    for (name, _, place) in USERS {
        if let Some(place) = place {
            access.set(name, "*", place, true);
        }
    }
    access.add_webhook(CAROL);
    access
}

/// The path of an environment.
pub fn at(plural: &str, namespace: &str, name: &str) -> String {
    format!("{GROUP}/namespaces/{namespace}/{plural}/{name}")
}

/// An environment during its creation.
pub fn environment(kind: &str, owner: &str) -> Value {
    json!({"apiVersion": "platform.acme.io/v1alpha1", "kind": kind, "metadata": {"labels": {"owner": owner}, "generation": 1},
        "spec": {"parameters": {"owner": owner, "instanceType": "g4dn.xlarge"}},
        "status": {"phase": "Provisioning", "progress": "1/2", "conditions": []}})
}
