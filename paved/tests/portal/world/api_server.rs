//! An API server on loopback for many people: who they are by token or impersonation, what they may by a few rules, the kinds of
//! environment, Secrets and ConfigMaps, and watches that can be cut.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use futures::{StreamExt, stream};
use kube::api::DynamicObject;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::watch;

/// The kinds that this cluster makes, with their plurals.
pub const KINDS: [(&str, &str); 5] = [
    ("GpuDevWorkspaceClaim", "gpudevworkspaceclaims"),
    ("ApplicationEnvironment", "applicationenvironments"),
    ("EnvironmentClaim", "environmentclaims"),
    ("StockPool", "stockpools"),
    ("Environment", "environments"),
];

/// Their group and version.
pub const GROUP: &str = "/apis/platform.acme.io/v1alpha1";

/// Whose rights something else than RBAC decides, as a cloud's webhook does: the rules that are listed are not what counts.
pub const CAROL: &str = "carol";

/// Who asks with a token that nobody has.
pub const NOBODY: &str = "nobody";

/// What a request looked like: who asked, the method, the path.
pub type Asked = (String, String, String);

/// People: name, groups, and the namespaces in which they may do everything; `*` is all of them.
const PEOPLE: [(&str, &[&str], &[&str]); 8] = [
    ("portal", &[], &[]),
    ("ada", &["vision"], &["team-vision"]),
    ("oidc:ada", &["oidc:vision"], &["team-vision"]),
    (
        "system:serviceaccount:team-vision:builder",
        &["system:serviceaccounts", "system:serviceaccounts:team-vision"],
        &["team-vision"],
    ),
    ("bob", &["sound"], &["team-sound"]),
    ("eve", &[], &[]),
    (CAROL, &[], &["team-vision"]),
    ("operator", &["ops"], &["*"]),
];

/// An API server, for as long as it is held.
pub struct ApiServer {
    folder: TempDir,
    here: Arc<Here>,
    server: tokio::task::JoinHandle<()>,
    address: std::net::SocketAddr,
}

struct Here {
    inner: Mutex<Inner>,
    /// Changes whenever something happens: how often watches were cut, and how many changes there were.
    tick: watch::Sender<(u64, u64)>,
}

#[derive(Default)]
struct Inner {
    /// By path.
    objects: BTreeMap<String, Value>,
    /// Collection, type and object, in order.
    events: Vec<(String, &'static str, Value)>,
    asked: Vec<Asked>,
    /// What people may besides, or no more: `who verb place`, where the place is a namespace, a whole path, or `users/NAME` and
    /// `groups/NAME` of those that are impersonated.
    granted: BTreeMap<String, bool>,
    /// Events before this one are forgotten: whoever asks for them is told so.
    forgotten: usize,
    /// Whether every answer is an error.
    down: bool,
    /// Whether nothing is answered any more.
    silent: bool,
    kinds: Kinds,
}

/// What discovery makes of the kinds of environment.
#[derive(Default, PartialEq)]
enum Kinds {
    #[default]
    Listed,
    /// They are served all the same.
    Unlisted,
    Gone,
}

impl Drop for ApiServer {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl ApiServer {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let here = Arc::new(Here { inner: Mutex::default(), tick: watch::channel((0, 0)).0 });
        let router = Router::new().fallback(answer).with_state(Arc::clone(&here));
        let server = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { folder: tempfile::tempdir().unwrap(), here, server, address }
    }

    /// A kubeconfig for whoever has this token.
    pub fn kubeconfig(&self, token: &str) -> std::path::PathBuf {
        let named = |kind: &str, body: Value| json!({"name": "c", kind: body});
        let kubeconfig = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [named("cluster", json!({"server": format!("http://{}", self.address)}))],
            "users": [named("user", json!({"token": format!("token-{token}")}))],
            "contexts": [named("context", json!({"cluster": "c", "user": "c", "namespace": "portal"}))],
        });
        let path = self.folder.path().join(format!("kubeconfig-{token}"));
        std::fs::write(&path, kubeconfig.to_string()).unwrap();
        path
    }

    /// An object, as somebody else than the portal puts it there.
    pub fn put(&self, path: &str, object: Value) {
        self.here.put(path, object);
    }

    /// An answer under a path, without anything added.
    pub fn put_as_is(&self, path: &str, answer: Value) {
        self.here.inner().objects.insert(path.to_owned(), answer);
    }

    /// Changes an object.
    pub fn change(&self, path: &str, change: impl FnOnce(&mut Value)) {
        let mut object = self.get(path).unwrap();
        change(&mut object);
        self.here.put(path, object);
    }

    /// Takes an object away.
    pub fn remove(&self, path: &str) {
        self.here.remove(path);
    }

    pub fn get(&self, path: &str) -> Option<Value> {
        self.here.inner().objects.get(path).cloned()
    }

    /// Paths of all objects of a collection.
    pub fn paths(&self, part: &str) -> Vec<String> {
        self.here.inner().objects.keys().filter(|path| path.contains(part)).cloned().collect()
    }

    /// What was asked since the last time.
    pub fn asked(&self) -> Vec<Asked> {
        std::mem::take(&mut self.here.inner().asked)
    }

    /// From now on somebody may do this, or may not: `list team-vision`, `list` or `watch` and a whole path, or `impersonate groups/vision`.
    pub fn grant(&self, who: &str, what: &str, allowed: bool) {
        self.here.inner().granted.insert(format!("{who} {what}"), allowed);
    }

    /// Cuts all watches; those that come back are told that what they ask for is forgotten.
    pub fn cut_watches(&self) {
        let mut inner = self.here.inner();
        inner.forgotten = inner.events.len();
        drop(inner);
        self.here.tick.send_modify(|(cuts, _)| *cuts += 1);
    }

    /// Does not list the kinds of environment any more: they are gone, or are there all the same.
    pub fn unlist(&self, gone: bool) {
        let mut inner = self.here.inner();
        inner.kinds = if gone { Kinds::Gone } else { Kinds::Unlisted };
    }

    /// Takes requests, and answers none of them any more. Watches go on.
    pub fn fall_silent(&self) {
        self.here.inner().silent = true;
    }

    /// Answers nothing but errors, or answers again.
    pub fn set_down(&self, down: bool) {
        self.here.inner().down = down;
        if down {
            self.here.tick.send_modify(|(cuts, _)| *cuts += 1);
        }
    }
}

impl Here {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap()
    }

    fn put(&self, path: &str, mut object: Value) -> Value {
        let mut inner = self.inner();
        let (collection, name) = path.rsplit_once('/').unwrap();
        let known = inner.objects.get(path).cloned();
        let version = inner.events.len() + 1;
        let metadata = &mut object["metadata"];
        metadata["name"] = json!(name);
        metadata["namespace"] = json!(namespace(path));
        metadata["resourceVersion"] = json!(version.to_string());
        if let Some(known) = &known {
            metadata["uid"] = known["metadata"]["uid"].clone();
            metadata["creationTimestamp"] = known["metadata"]["creationTimestamp"].clone();
        } else {
            metadata["uid"] = json!(format!("uid-{version}"));
            metadata["creationTimestamp"] = json!("2026-01-01T10:00:00Z");
        }
        let kind = if known.is_some() { "MODIFIED" } else { "ADDED" };
        inner.objects.insert(path.to_owned(), object.clone());
        inner.events.push((collection.to_owned(), kind, object.clone()));
        drop(inner);
        self.tick.send_modify(|(_, count)| *count += 1);
        object
    }

    fn remove(&self, path: &str) -> Option<Value> {
        let mut inner = self.inner();
        let mut object = inner.objects.remove(path)?;
        object["metadata"]["resourceVersion"] = json!((inner.events.len() + 1).to_string());
        let collection = path.rsplit_once('/').unwrap().0.to_owned();
        inner.events.push((collection, "DELETED", object.clone()));
        drop(inner);
        self.tick.send_modify(|(_, count)| *count += 1);
        Some(object)
    }
}

fn namespace(path: &str) -> String {
    path.split("/namespaces/").nth(1).and_then(|rest| rest.split('/').next()).unwrap_or_default().to_owned()
}

fn status(code: u16, reason: &str, message: &str, causes: &Value) -> Response {
    let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": code, "reason": reason,
        "message": message, "details": {"causes": causes}});
    (StatusCode::from_u16(code).unwrap(), shown(&status)).into_response()
}

fn shown(value: &Value) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], value.to_string()).into_response()
}

/// Whom a request means; the portal alone may impersonate, as far as that was not taken from it.
fn who(here: &Here, headers: &HeaderMap) -> Result<String, Box<Response>> {
    let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap().to_owned());
    let authorizations = headers.get_all(header::AUTHORIZATION).iter().count();
    let token = text("authorization").unwrap_or_default();
    let user = token.strip_prefix("Bearer token-").unwrap_or_default().to_owned();
    if authorizations != 1 || !PEOPLE.iter().any(|(name, ..)| *name == user) {
        return Err(Box::new(status(401, "Unauthorized", "Unauthorized", &json!([]))));
    }
    assert!(headers.get_all("impersonate-user").iter().count() <= 1, "impersonated twice");
    let Some(other) = text("impersonate-user") else { return Ok(user) };
    let groups = headers.get_all("impersonate-group").iter().map(|group| ("groups", group.to_str().unwrap()));
    for (what, name) in groups.chain([("users", other.as_str())]) {
        if user != "portal" || !here.inner().may(&user, "impersonate", &format!("{what}/{name}")) {
            let message =
                format!("{what} {name:?} is forbidden: User {user:?} cannot impersonate resource {what:?}");
            return Err(Box::new(status(403, "Forbidden", &message, &json!([]))));
        }
    }
    Ok(other)
}

impl Inner {
    /// The objects as they stood when so much had happened.
    fn at(&self, version: usize) -> BTreeMap<String, Value> {
        let mut objects = BTreeMap::new();
        for (collection, kind, object) in &self.events[..version] {
            let path = format!("{collection}/{}", object["metadata"]["name"].as_str().unwrap());
            if *kind == "DELETED" {
                objects.remove(&path);
            } else {
                objects.insert(path, object.clone());
            }
        }
        objects
    }

    /// The rule by which the portal may act for groups: for all, or where some were taken from it for those of
    /// people that are left.
    fn impersonation(&self) -> Value {
        let is_taken =
            |what: &str| self.granted.get(&format!("portal impersonate groups/{what}")) == Some(&false);
        let mut rule = json!({"verbs": ["impersonate"], "apiGroups": [""], "resources": ["groups"]});
        let taken = |(what, may): (&String, &bool)| what.starts_with("portal impersonate groups/") && !may;
        if self.granted.iter().any(taken) {
            let groups = PEOPLE.iter().flat_map(|(_, groups, _)| *groups);
            let left: Vec<&str> = groups.copied().filter(|group| !is_taken(group)).collect();
            rule["resourceNames"] = json!(left);
        }
        rule
    }

    fn may(&self, who: &str, verb: &str, namespace: &str) -> bool {
        if let Some(allowed) = self.granted.get(&format!("{who} {verb} {namespace}")) {
            return *allowed;
        }
        if who == "portal" {
            return ["list", "get", "watch", "impersonate"].contains(&verb) || namespace == "portal";
        }
        if verb == "impersonate" {
            return who == "operator";
        }
        let person = PEOPLE.iter().find(|(name, ..)| *name == who);
        person.is_some_and(|(_, _, places)| places.iter().any(|place| *place == namespace || *place == "*"))
    }
}

async fn answer(
    State(here): State<Arc<Here>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    if here.inner().down {
        return status(503, "ServiceUnavailable", "down", &json!([]));
    }
    let path = uri.path().to_owned();
    let who = match who(&here, &headers) {
        Ok(who) => who,
        Err(refused) => {
            here.inner().asked.push((NOBODY.to_owned(), method.to_string(), path));
            return *refused;
        }
    };
    here.inner().asked.push((who.clone(), method.to_string(), path.clone()));
    if here.inner().silent {
        std::future::pending::<()>().await;
    }
    let sent: Value = serde_json::from_slice(&body).unwrap_or_default();
    if let Some(review) = review(&here, &who, &path, &sent) {
        return review;
    }
    if path == "/apis" {
        return shown(&discovery(here.inner().kinds != Kinds::Listed));
    }
    let query = uri.query().unwrap_or_default();
    let of_a_kind = KINDS.iter().any(|(_, plural)| path.ends_with(plural));
    if of_a_kind && here.inner().kinds == Kinds::Gone {
        return absent(&path);
    }
    let collection = of_a_kind
        || ["configmaps", "secrets", "compositeresourcedefinitions", "compositions", "environmentconfigs"]
            .iter()
            .any(|plural| path.ends_with(&format!("/{plural}")));
    let verb = match (&method, collection) {
        (&Method::GET, true) if query.contains("watch=true") => "watch",
        (&Method::GET, true) => "list",
        (&Method::GET, false) => "get",
        (&Method::POST, _) => "create",
        (&Method::DELETE, _) => "delete",
        _ => "update",
    };
    let granted = here.inner().granted.get(&format!("{who} {verb} {path}")).copied();
    if !granted.unwrap_or_else(|| here.inner().may(&who, verb, &namespace(&path))) {
        return status(
            403,
            "Forbidden",
            &format!("{path} is forbidden: User {who:?} cannot {verb} resource"),
            &json!([]),
        );
    }
    let dry_run = query.contains("dryRun");
    match (method.as_str(), collection) {
        ("GET", true) if verb == "watch" => changes(&here, &path, query),
        ("GET", true) => list(&here, &path, query),
        ("GET", false) => one(&here, &path),
        ("POST", _) => create(&here, &path, sent, dry_run),
        ("PUT", _) => replace(&here, &path, sent, dry_run),
        ("PATCH", _) => patch(&here, &path, &sent, headers[header::CONTENT_TYPE].to_str().unwrap(), query),
        ("DELETE", _) => delete(&here, &path, &sent),
        _ => status(405, "MethodNotAllowed", "no", &json!([])),
    }
}

/// Questions about oneself.
fn review(here: &Here, who: &str, path: &str, sent: &Value) -> Option<Response> {
    let groups =
        PEOPLE.iter().find(|(name, ..)| *name == who).map_or(&[] as &[&str], |(_, groups, _)| *groups);
    let status = match path.rsplit('/').next()? {
        "selfsubjectreviews" => json!({"userInfo": {"username": who, "groups": groups}}),
        "selfsubjectaccessreviews" => {
            let asked = &sent["spec"]["resourceAttributes"];
            let text = |field: &str| asked[field].as_str().unwrap_or_default();
            let place = match text("verb") {
                "impersonate" => format!("{}/{}", text("resource"), text("name")),
                _ => text("namespace").to_owned(),
            };
            json!({"allowed": here.inner().may(who, text("verb"), &place)})
        }
        "selfsubjectrulesreviews" => {
            let namespace = sent["spec"]["namespace"].as_str().unwrap();
            let is_partial = who == CAROL;
            let may = |verb: &&str| is_partial || here.inner().may(who, verb, namespace);
            let verbs: Vec<&str> = ["list", "get"].into_iter().filter(may).collect();
            let rule = json!({"verbs": verbs, "apiGroups": ["platform.acme.io"], "resources": ["*"]});
            let mut rules = vec![rule];
            rules.extend((who == "portal").then(|| here.inner().impersonation()));
            let is_partial = is_partial || !here.inner().may(who, "list", "all rules") && who == "portal";
            json!({"resourceRules": rules, "nonResourceRules": [], "incomplete": is_partial})
        }
        _ => return None,
    };
    let mut answer = sent.clone();
    answer["metadata"] = json!({});
    answer["spec"] = if sent["spec"].is_null() { json!({}) } else { sent["spec"].clone() };
    answer["status"] = status;
    Some((StatusCode::CREATED, shown(&answer)).into_response())
}

fn discovery(is_empty: bool) -> Value {
    let resource = |(kind, plural): (&str, &str)| {
        json!({"resource": plural, "responseKind": {"group": "", "version": "", "kind": kind}, "scope": "Namespaced",
            "singularResource": kind.to_lowercase(), "verbs": ["get", "list", "watch"], "categories": ["claim", "paved"]})
    };
    let resources = if is_empty { Vec::new() } else { KINDS.map(resource).to_vec() };
    json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": [
        {"metadata": {"name": "platform.acme.io"}, "versions": [
            {"version": "v1alpha1", "resources": resources}]}]})
}

/// Whether an object's path lies in a collection, which may be that of all namespaces.
fn lies_in(path: &str, collection: &str) -> bool {
    let (own, _) = path.rsplit_once('/').unwrap();
    if own == collection {
        return true;
    }
    let (prefix, plural) = collection.rsplit_once('/').unwrap();
    own.strip_prefix(&format!("{prefix}/namespaces/"))
        .is_some_and(|rest| rest.split('/').nth(1) == Some(plural))
}

fn list(here: &Here, path: &str, query: &str) -> Response {
    let inner = here.inner();
    let asked = |key: &str| query.split('&').find_map(|part| part.strip_prefix(key));
    let labels = asked("labelSelector=").unwrap_or_default().replace("%3D", "=").replace("%2C", ",");
    let labels: Vec<(&str, &str)> = labels.split(',').filter_map(|label| label.split_once('=')).collect();
    let name = asked("fieldSelector=metadata.name%3D");
    let fits = |object: &Value| {
        let metadata = &object["metadata"];
        labels.iter().all(|(key, value)| metadata["labels"][key] == *value)
            && name.is_none_or(|name| metadata["name"] == name)
    };
    let then = asked("resourceVersion=").filter(|_| query.contains("resourceVersionMatch=Exact"));
    let then = then.map(|version| inner.at(version.parse().unwrap()));
    let items: Vec<&Value> = then
        .as_ref()
        .unwrap_or(&inner.objects)
        .iter()
        .filter(|(one, object)| lies_in(one, path) && fits(object))
        .map(|(_, object)| object)
        .collect();
    shown(
        &json!({"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": inner.events.len().to_string()}, "items": items}),
    )
}

fn changes(here: &Arc<Here>, path: &str, query: &str) -> Response {
    let since = query.split('&').find_map(|part| part.strip_prefix("resourceVersion=")).unwrap_or("0");
    let since: usize = since.parse().unwrap();
    if since < here.inner().forgotten {
        let gone = json!({"kind": "Status", "status": "Failure", "code": 410, "reason": "Expired", "message": "too old"});
        return shown(&json!({"type": "ERROR", "object": gone}));
    }
    let (path, here) = (path.to_owned(), Arc::clone(here));
    let ticks = here.tick.subscribe();
    let cuts = ticks.borrow().0;
    let events = stream::unfold((since, ticks), move |(mut since, mut ticks)| {
        let (path, here) = (path.clone(), Arc::clone(&here));
        async move {
            loop {
                if ticks.borrow_and_update().0 != cuts {
                    return None;
                }
                let next = here.inner().events.get(since).cloned();
                let Some((collection, kind, object)) = next else {
                    ticks.changed().await.ok()?;
                    continue;
                };
                since += 1;
                if lies_in(&format!("{collection}/x"), &path) {
                    let event = json!({"type": kind, "object": object});
                    return Some((
                        Ok::<_, std::io::Error>(Bytes::from(format!("{event}\n"))),
                        (since, ticks),
                    ));
                }
            }
        }
    });
    Body::from_stream(events.boxed()).into_response()
}

/// Whether an object is one of Kubernetes' at all: no API server takes anything else.
fn refused(object: &Value) -> Option<Response> {
    if let Err(error) = serde_json::from_value::<DynamicObject>(object.clone()) {
        return Some(status(
            400,
            "BadRequest",
            &format!("the object cannot be decoded: {error}"),
            &json!([]),
        ));
    }
    let strange = object.get("spec").is_some_and(|spec| !spec.is_object());
    let cause =
        json!({"field": "spec", "message": "must be of type object", "reason": "FieldValueTypeInvalid"});
    strange.then(|| status(422, "Invalid", "spec: Invalid value", &json!([cause])))
}

fn absent(path: &str) -> Response {
    status(404, "NotFound", &format!("{path} not found"), &json!([]))
}

fn one(here: &Here, path: &str) -> Response {
    here.inner().objects.get(path).map_or_else(|| absent(path), shown)
}

fn create(here: &Here, path: &str, sent: Value, dry_run: bool) -> Response {
    let name = sent["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    if name.starts_with("over-quota") {
        return status(403, "Forbidden", "exceeded quota: count/environments", &json!([]));
    }
    if sent["spec"]["replicas"].as_i64().is_some_and(|replicas| replicas > 1000) {
        let cause = json!({"field": "spec.replicas", "message": "should be less than or equal to 1000", "reason": "FieldValueInvalid"});
        return status(422, "Invalid", "spec.replicas is invalid", &json!([cause]));
    }
    if let Some(refused) = refused(&sent) {
        return refused;
    }
    if sent["metadata"].get("resourceVersion").is_some() {
        let message = "resourceVersion should not be set on objects to be created";
        return status(500, "InternalError", message, &json!([]));
    }
    let whole = format!("{path}/{name}");
    if here.inner().objects.contains_key(&whole) {
        return status(409, "AlreadyExists", &format!("{name} already exists"), &json!([]));
    }
    assert_eq!(
        sent["metadata"]["namespace"],
        namespace(path),
        "the body names another namespace than the path"
    );
    let object = if dry_run { sent } else { here.put(&whole, sent) };
    (StatusCode::CREATED, shown(&object)).into_response()
}

fn replace(here: &Here, path: &str, sent: Value, dry_run: bool) -> Response {
    let Some(known) = here.inner().objects.get(path).cloned() else { return absent(path) };
    // Versions are numbers to an API server, however many zeros precede them.
    let version = |object: &Value| {
        object["metadata"]["resourceVersion"].as_str().and_then(|text| text.parse::<u64>().ok())
    };
    if version(&known) != version(&sent) {
        return status(409, "Conflict", "the object has been modified", &json!([]));
    }
    if let Some(refused) = refused(&sent) {
        return refused;
    }
    shown(&if dry_run { sent } else { here.put(path, sent) })
}

fn patch(here: &Here, path: &str, sent: &Value, media_type: &str, query: &str) -> Response {
    let known = here.inner().objects.get(path).cloned();
    if known.is_none() && !media_type.contains("apply-patch") {
        return absent(path);
    }
    let mut object = known.unwrap_or_else(|| json!({}));
    let version = &sent["metadata"]["resourceVersion"];
    if version.is_string() && *version != object["metadata"]["resourceVersion"] {
        return status(409, "Conflict", "the object has been modified", &json!([]));
    }
    merge(&mut object, sent);
    note_manager(&mut object, query);
    if let Some(refused) = refused(&object) {
        return refused;
    }
    shown(&here.put(path, object))
}

/// Notes who wrote, once for each who says so.
fn note_manager(object: &mut Value, query: &str) {
    let Some(manager) = query.split('&').find_map(|part| part.strip_prefix("fieldManager=")) else { return };
    let noted = &mut object["metadata"]["managedFields"];
    let mut all = noted.as_array().cloned().unwrap_or_default();
    if all.iter().all(|one| one["manager"] != manager) {
        all.push(json!({"manager": manager}));
    }
    *noted = all.into();
}

fn merge(object: &mut Value, patch: &Value) {
    let Some(fields) = patch.as_object() else {
        *object = patch.clone();
        return;
    };
    if !object.is_object() {
        *object = json!({});
    }
    for (key, value) in fields {
        if value.is_null() {
            object.as_object_mut().unwrap().remove(key);
        } else {
            merge(&mut object[key], value);
        }
    }
}

fn delete(here: &Here, path: &str, sent: &Value) -> Response {
    let Some(known) = here.inner().objects.get(path).cloned() else { return absent(path) };
    let wanted = &sent["preconditions"]["uid"];
    if wanted.is_string() && *wanted != known["metadata"]["uid"] {
        return status(409, "Conflict", "the uid is another", &json!([]));
    }
    shown(&here.remove(path).unwrap())
}

/// The path of an environment.
pub fn at(plural: &str, namespace: &str, name: &str) -> String {
    format!("{GROUP}/namespaces/{namespace}/{plural}/{name}")
}

/// An environment that is being made.
pub fn environment(kind: &str, owner: &str) -> Value {
    json!({"apiVersion": "platform.acme.io/v1alpha1", "kind": kind, "metadata": {"labels": {"owner": owner}, "generation": 1},
        "spec": {"parameters": {"owner": owner, "instanceType": "g4dn.xlarge"}},
        "status": {"phase": "Provisioning", "progress": "1/2", "conditions": []}})
}
