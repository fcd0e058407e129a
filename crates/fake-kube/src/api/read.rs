//! Reading: an object, a list, a watch.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures::{StreamExt, stream};
use serde_json::{Value, json};
use tokio::sync::watch::Receiver;
use tokio::time::{Instant, timeout_at};

use super::{Query, Request, versioned};
use crate::Cluster;
use crate::answer::{Refused, respond};
use crate::json::text;
use crate::kinds::Kind;
use crate::store::{Event, Key, Store};

/// The interval between the bookmarks of a watch. A bookmark has the newest version that the watch
/// has seen.
const BOOKMARK: Duration = Duration::from_secs(30);

/// The default duration of a watch, in seconds.
const LAST: u64 = 30 * 60;

/// Returns one object.
pub fn get(store: &Store, request: &Request<'_>) -> Result<Response, Refused> {
    let key = request.kind.key(request.namespace, request.name);
    let object = store.get(&key).ok_or_else(|| Refused::absent(request.kind, request.name))?;
    Ok(respond(StatusCode::OK, &versioned(&object, request.kind)))
}

/// Returns all requested objects in pages of `limit`. With `resourceVersionMatch=Exact`, returns
/// their state at that version.
pub fn list(store: &Store, request: &Request<'_>) -> Result<Response, Refused> {
    let wanted = Wanted::from_request(request);
    let (version, found) = if request.query.get("resourceVersionMatch") == "Exact" {
        let version = version(request)?;
        (
            version,
            store.list_at(&wanted.resource, version).ok_or_else(|| Refused::expired(version))?,
        )
    } else {
        store.list(&wanted.resource, None)
    };
    let page = Page::from_query(&request.query, version);
    let fits = |(key, object): &&(Key, Arc<Value>)| wanted.fits(key, object) && page.is_after(key);
    let mut rest = found.iter().filter(fits);
    let items: Vec<_> = rest.by_ref().take(page.limit).collect();
    let end = items.last().filter(|_| rest.next().is_some());
    let metadata = json!({
        "resourceVersion": page.version.to_string(),
        "continue": end.map_or(String::new(), |(key, _)| page.next(key)),
    });
    let items: Vec<Value> =
        items.into_iter().map(|(_, object)| versioned(object, request.kind)).collect();
    let (kind, api_version) = (format!("{}List", request.kind.name), request.kind.api_version());
    let list =
        json!({"kind": kind, "apiVersion": api_version, "metadata": metadata, "items": items});
    Ok(respond(StatusCode::OK, &list))
}

/// A page of a list.
struct Page {
    limit: usize,
    /// The version of the first page.
    version: u64,
    /// The last object of the page before: namespace and name.
    after: Option<(String, String)>,
}

impl Page {
    fn from_query(query: &Query, version: u64) -> Self {
        let mut token = query.get("continue").splitn(3, '/');
        let first = token.next().and_then(|version| version.parse().ok());
        let after = token.next().zip(token.next());
        Self {
            limit: query.get("limit").parse().ok().filter(|limit| *limit > 0).unwrap_or(usize::MAX),
            version: first.unwrap_or(version),
            after: after.map(|(namespace, name)| (namespace.to_owned(), name.to_owned())),
        }
    }

    fn is_after(&self, key: &Key) -> bool {
        let is_later =
            |(namespace, name): &(String, String)| (&key.namespace, &key.name) > (namespace, name);
        self.after.as_ref().is_none_or(is_later)
    }

    /// The token of the page after an object.
    fn next(&self, last: &Key) -> String {
        format!("{}/{}/{}", self.version, last.namespace, last.name)
    }
}

/// The version in a request.
fn version(request: &Request<'_>) -> Result<u64, Refused> {
    let text = request.query.get("resourceVersion");
    text.parse().map_err(|_| {
        Refused::new(
            400,
            "BadRequest",
            format!("resourceVersion: found {text:?}; a version is allowed"),
        )
    })
}

/// The objects that a request selects.
struct Wanted {
    resource: String,
    namespace: String,
    labels: Vec<Term>,
    name: Option<String>,
}

/// A term of a label selector, without sets of values: `a`, `!a`, `a=b`, `a!=b`.
struct Term {
    label: String,
    /// `None` for any value.
    value: Option<String>,
    /// Whether objects that fit are left out.
    is_negative: bool,
}

impl Term {
    fn from_text(text: &str) -> Self {
        let (label, value, is_negative) = if let Some(label) = text.strip_prefix('!') {
            (label, None, true)
        } else if let Some((label, value)) = text.split_once("!=") {
            (label, Some(value), true)
        } else if let Some((label, value)) = text.split_once('=') {
            (label, Some(value.trim_start_matches('=')), false)
        } else {
            (text, None, false)
        };
        Self { label: label.to_owned(), value: value.map(str::to_owned), is_negative }
    }

    fn fits(&self, object: &Value) -> bool {
        let found = object["metadata"]["labels"][&self.label].as_str();
        let has = match &self.value {
            Some(value) => found == Some(value),
            None => found.is_some(),
        };
        has != self.is_negative
    }
}

impl Wanted {
    fn from_request(request: &Request<'_>) -> Self {
        let terms = |key: &str| request.query.get(key).split(',').filter(|term| !term.is_empty());
        let name = terms("fieldSelector").find_map(|term| term.strip_prefix("metadata.name="));
        Self {
            resource: request.kind.resource(),
            namespace: request.namespace.to_owned(),
            labels: terms("labelSelector").map(Term::from_text).collect(),
            name: name.map(str::to_owned),
        }
    }

    fn fits(&self, key: &Key, object: &Value) -> bool {
        key.resource == self.resource
            && (self.namespace.is_empty() || self.namespace == key.namespace)
            && self.name.as_ref().is_none_or(|name| *name == key.name)
            && self.labels.iter().all(|term| term.fits(object))
    }
}

/// The state of an open watch.
struct Watching {
    store: Arc<Store>,
    kind: Kind,
    wanted: Wanted,
    newest: Receiver<u64>,
    cuts: Receiver<u64>,
    seen: u64,
    ready: VecDeque<Value>,
    bookmarks: bool,
    beat: Instant,
    end: Instant,
}

/// All changes since a version. Without a version, the watch begins with all objects.
pub fn watch(cluster: &Cluster, request: &Request<'_>) -> Result<Response, Refused> {
    let (query, wanted) = (&request.query, Wanted::from_request(request));
    let store = &cluster.store;
    let (newest, cuts) = (store.follow(), cluster.faults.cuts());
    let mut ready = VecDeque::new();
    let seen = match query.get("resourceVersion") {
        "" | "0" => {
            let (version, found) = store.list(&wanted.resource, None);
            let there = found.iter().filter(|(key, object)| wanted.fits(key, object));
            ready.extend(there.map(|(_, object)| event("ADDED", &versioned(object, request.kind))));
            version
        }
        _ => version(request)?,
    };
    let last = query.get("timeoutSeconds").parse().unwrap_or(LAST);
    let watching = Watching {
        store: Arc::clone(store),
        kind: request.kind.clone(),
        wanted,
        newest,
        cuts,
        seen,
        ready,
        bookmarks: query.is("allowWatchBookmarks"),
        beat: Instant::now() + BOOKMARK,
        end: Instant::now() + Duration::from_secs(last),
    };
    let events = stream::unfold(Some(watching), |watching| async {
        let mut watching = watching?;
        let next = watching.next().await?;
        let over = next["type"] == "ERROR";
        Some((
            Ok::<_, std::io::Error>(Bytes::from(format!("{next}\n"))),
            (!over).then_some(watching),
        ))
    });
    Ok(([(header::CONTENT_TYPE, "application/json")], Body::from_stream(events.boxed()))
        .into_response())
}

impl Watching {
    async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(next) = self.ready.pop_front() {
                return Some(next);
            }
            self.newest.borrow_and_update();
            let Some(events) = self.store.since(self.seen) else {
                return Some(event("ERROR", &Refused::expired(self.seen).status()));
            };
            self.take(&events);
            if !self.ready.is_empty() {
                continue;
            }
            let until = self.beat.min(self.end);
            let changed = async {
                tokio::select! {
                    biased;
                    _ = self.cuts.changed() => false,
                    changed = self.newest.changed() => changed.is_ok(),
                }
            };
            match timeout_at(until, changed).await {
                Ok(true) => {}
                Ok(false) => return None,
                Err(_) if Instant::now() >= self.end => return None,
                Err(_) => {
                    self.beat = Instant::now() + BOOKMARK;
                    if self.bookmarks {
                        let metadata = json!({"resourceVersion": self.seen.to_string()});
                        let object = versioned(&json!({"metadata": metadata}), &self.kind);
                        return Some(event("BOOKMARK", &object));
                    }
                }
            }
        }
    }

    fn take(&mut self, events: &[Event]) {
        for one in events {
            self.seen = one.version;
            if self.wanted.fits(&one.key, &one.object) {
                self.ready.push_back(event(one.verb, &versioned(&one.object, &self.kind)));
            }
        }
    }
}

fn event(verb: &str, object: &Value) -> Value {
    debug_assert!(!text(object, "/kind").is_empty());
    json!({"type": verb, "object": object})
}
