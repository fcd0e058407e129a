//! Health: whether an observed resource is ready. If not, whether it is being created, waits or has
//! failed.
//!
//! Readiness is explicit: only a condition, or a fact of a built-in kind, makes a resource ready.
//! Absent, unknown or malformed data never does.

mod argocd;
mod clouds;
mod helm;
mod kubernetes;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use serde_json::Value;

use crate::diagnosis::{Cause, Code, is_not_there_yet};
use crate::reason::Reason;
use crate::value::{Object, at, text};
use argocd::application;
#[cfg(test)]
pub(crate) use clouds::CLOUD_STATES;
use clouds::cloud_state;
use helm::release;
use kubernetes::{core, deployment, exists};

/// The state of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It is in its expected state.
    Available,
    /// It was requested, and its provider works on it.
    Creating,
    /// Another object has to exist first.
    Waiting,
    /// Its provider rejected it, or gave up.
    Failed,
}

/// A resource's readiness, with its state, reason and message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    /// The readiness in the response.
    pub ready: bool,
    /// The state.
    pub state: State,
    /// The reason of the state, in one word.
    pub reason: Reason,
    /// Borrowed: our own text. Owned: the provider's text, not scrubbed yet.
    pub message: Cow<'static, str>,
    /// The cause, if the engine knows it. Otherwise the diagnosis finds it in the message.
    pub cause: Option<Cause>,
}

impl Health {
    /// The resource is in its expected state.
    pub(crate) fn available() -> Self {
        Self { ready: true, ..Self::pending(State::Available, Reason::Available, "") }
    }

    /// The resource is not ready.
    pub fn pending(state: State, reason: Reason, message: impl Into<Cow<'static, str>>) -> Self {
        Self { ready: false, state, reason, message: message.into(), cause: None }
    }

    /// The resource waits for an object, in words: `its password`.
    pub(crate) fn waiting_for(awaited: &str) -> Self {
        Self {
            cause: Some(Cause::new(Code::WaitsFor, [("for", awaited)])),
            ..Self::pending(State::Waiting, Reason::Waiting, format!("waits for {awaited}"))
        }
    }

    /// The latest change was not observed yet, so its result is unknown.
    pub(crate) fn changing() -> Self {
        Self::pending(State::Creating, Reason::Creating, "is being changed")
    }

    /// The resource is new in this answer, or was not observed yet.
    pub fn unseen() -> Self {
        Self::pending(State::Creating, Reason::Creating, "is being created")
    }
}

/// The health of an observed managed resource, a Usage or an object of a built-in kind.
pub fn from_object(object: &Object) -> Health {
    if at(object, &["metadata", "deletionTimestamp"]).is_some_and(Value::is_string) {
        return Health::pending(State::Waiting, Reason::Deleting, "is being deleted");
    }
    match (
        text(object, &["apiVersion"]).unwrap_or_default(),
        text(object, &["kind"]).unwrap_or_default(),
    ) {
        ("v1", kind) => core(kind, object),
        ("apps/v1", "Deployment") => deployment(object),
        ("networking.k8s.io/v1" | "storage.k8s.io/v1", _) => exists(object),
        (group, "Object") if group.starts_with("kubernetes.") => wrapped(object),
        (group, "Release") if group.starts_with("helm.") => release(object),
        (group, "Application") if group.starts_with("argoproj.io/") => application(object),
        _ => managed(object),
    }
}

/// The health of a managed resource: its conditions, once its provider has processed its newest
/// generation. Providers that do not report the generation are trusted. A Usage has `Ready` too.
fn managed(object: &Object) -> Health {
    let health = by_conditions(object);
    if health.state == State::Available && is_stale(object) {
        return Health::changing();
    }
    match cloud_state(object) {
        Some(state) if health.state == State::Available => state,
        // The provider's own message has more details.
        Some(_) => Health { ready: false, ..health },
        None => health,
    }
}

/// The health according to `Ready`, `Synced` and `LastAsyncOperation`.
fn by_conditions(object: &Object) -> Health {
    let ready = condition(object, "Ready").filter(|ready| ready.status == "True");
    let synced = condition(object, "Synced").filter(|synced| synced.status == "False");
    let last = condition(object, "LastAsyncOperation").filter(|last| last.status == "False");
    let mut health = match (last, synced, condition(object, "Ready")) {
        (Some(last), _, _) if is_not_there_yet(last.message) => last.health(State::Waiting),
        (Some(last), _, _) => last.health(State::Failed),
        (None, Some(synced), _)
            if synced.reason == "ReconcilePaused" || is_not_there_yet(synced.message) =>
        {
            synced.health(State::Waiting)
        }
        (None, Some(synced), _) => synced.health(State::Failed),
        (None, None, Some(_)) if ready.is_some() => Health::available(),
        (None, None, Some(unready)) => unready.health(State::Creating),
        (None, None, None) => Health::unseen(),
    };
    health.ready = ready.is_some();
    health
}

/// A provider-kubernetes Object is ready if it reports ready for its newest manifest, and the
/// wrapped object is ready. If not, the wrapped object has more details.
fn wrapped(object: &Object) -> Health {
    let wrapper = by_conditions(object);
    if matches!(wrapper.state, State::Failed | State::Waiting) {
        return Health { ready: false, ..wrapper };
    }
    if is_stale(object) {
        return Health::changing();
    }
    match at(object, &["status", "atProvider", "manifest"]) {
        Some(Value::Object(manifest)) => {
            let inner = from_object(manifest);
            if inner.ready && !wrapper.ready { Health { ready: false, ..wrapper } } else { inner }
        }
        _ => Health::unseen(),
    }
}

/// Whether the provider has not processed the object's newest generation yet. Crossplane's runtime
/// (1.20 and later) writes the observed generation into `Synced` at the end of every reconcile. A
/// resource is therefore never stale for long. `Ready` may keep an older generation.
fn is_stale(object: &Object) -> bool {
    let generation = at(object, &["metadata", "generation"]).and_then(Value::as_i64);
    let conditions = at(object, &["status", "conditions"]).and_then(Value::as_array);
    let synced = conditions.into_iter().flatten().find(|entry| entry["type"] == "Synced");
    let observed = synced.and_then(|synced| synced["observedGeneration"].as_i64());
    generation.zip(observed).is_some_and(|(generation, observed)| observed < generation)
}

struct Condition<'o> {
    status: &'o str,
    reason: &'o str,
    message: &'o str,
}

impl Condition<'_> {
    fn health(&self, state: State) -> Health {
        let (reason, silent) = match (state, self.reason) {
            (State::Failed, _) => (Reason::Failed, "its provider gives no message"),
            (State::Waiting, "ReconcilePaused") => (Reason::Paused, "is paused"),
            (State::Waiting, _) => (Reason::Waiting, "waits for something else"),
            (_, "Unavailable") => (Reason::Unavailable, "is not available"),
            (_, "Deleting") => (Reason::Deleting, "is being deleted"),
            _ => (Reason::Creating, "is being created"),
        };
        let said = !self.message.trim().is_empty();
        let message: Cow<'static, str> =
            if said { self.message.to_owned().into() } else { silent.into() };
        Health::pending(state, reason, message)
    }
}

fn condition<'o>(object: &'o Object, kind: &str) -> Option<Condition<'o>> {
    let conditions = at(object, &["status", "conditions"])?.as_array()?;
    let entry =
        conditions.iter().find(|entry| entry.get("type").and_then(Value::as_str) == Some(kind))?;
    let field = |name| entry.get(name).and_then(Value::as_str).unwrap_or_default();
    Some(Condition { status: field("status"), reason: field("reason"), message: field("message") })
}
