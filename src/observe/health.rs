//! Health: whether an observed resource is ready. If not, whether it is being created, waits or has
//! failed.
//!
//! Readiness is explicit: only a condition, or a fact of a built-in kind, makes a resource ready.
//! Absent, unknown or malformed data never does.

use std::borrow::Cow;

use serde_json::Value;

use super::reported::status_of;
use crate::diagnosis::{Cause, Code, is_not_there_yet};
use crate::models::helm;
use crate::reason::Reason;
use crate::value::{Object, at, text};

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

/// States in the cloud that make a resource unusable, although its provider reports it ready.
/// Providers built with upjet set `Ready` as soon as they can read a resource. Each entry has the
/// first label of the group, the kind and the field of `status.atProvider`. GKE, Cloud SQL and AKS
/// have no such field.
pub(crate) const CLOUD_STATES: [(&str, &str, &str, &[&str], State); 5] = [
    ("eks", "Cluster", "status", &["FAILED"], State::Failed),
    ("eks", "NodeGroup", "status", &["CREATE_FAILED", "DELETE_FAILED", "DEGRADED"], State::Failed),
    (
        "rds",
        "Instance",
        "status",
        &[
            "failed",
            "inaccessible-encryption-credentials",
            "inaccessible-encryption-credentials-recoverable",
            "incompatible-create",
            "incompatible-network",
            "incompatible-option-group",
            "incompatible-parameters",
            "incompatible-restore",
            "insufficient-capacity",
            "restore-error",
            "storage-full",
        ],
        State::Failed,
    ),
    ("rds", "Instance", "status", &["stopping", "stopped"], State::Waiting),
    (
        "ec2",
        "Instance",
        "instanceState",
        &["shutting-down", "stopping", "stopped", "terminated"],
        State::Waiting,
    ),
];

/// The health of a resource that is unusable according to its cloud.
fn cloud_state(object: &Object) -> Option<Health> {
    let service = text(object, &["apiVersion"])?.split('.').next()?;
    let kind = text(object, &["kind"])?;
    let of_kind =
        CLOUD_STATES.iter().filter(|(group, name, ..)| (*group, *name) == (service, kind));
    of_kind.into_iter().find_map(|(_, _, field, states, state)| {
        let found = text(object, &["status", "atProvider", field])?;
        let known = states.iter().find(|known| **known == found)?;
        Some(match state {
            State::Failed => {
                let message = format!(
                    "its cloud reports the state {known}. The cloud's console has the cause"
                );
                Health::pending(State::Failed, Reason::Failed, message)
            }
            _ => Health::pending(
                *state,
                Reason::Unavailable,
                format!("its cloud reports the state {known}"),
            ),
        })
    })
}

/// A release of a chart. Two states of provider-helm look like work in progress, but never end.
fn release(object: &Object) -> Health {
    let health = managed(object);
    if health.ready || health.state == State::Failed || is_stale(object) {
        return health;
    }
    let number = |path: &[&str]| at(object, path).and_then(Value::as_i64);
    let asked = text(object, &["spec", "forProvider", "chart", "version"]).unwrap_or_default();
    let seen = status_of::<helm::Release>(object).unwrap_or_default();
    let (state, version) = (seen.state.unwrap_or_default(), seen.version.unwrap_or_default());
    if state == "deployed" && !version.is_empty() && version != asked {
        // provider-helm compares the versions as text, and upgrades every time it observes the
        // release.
        let message = format!(
            "the chart calls its version {version}, not {asked}, so provider-helm upgrades the release \
             repeatedly. Write {version} in app.chart.version of the claim, or in \
             spec.forProvider.chart.version of the Release"
        );
        return Health::pending(State::Failed, Reason::Failed, message);
    }
    let limit = number(&["spec", "rollbackLimit"]);
    let failed =
        number(&["status", "failed"]).filter(|failed| limit.is_some_and(|limit| *failed >= limit));
    let is_unfinished = ["failed", "pending-install", "pending-upgrade"].contains(&state.as_str());
    match failed {
        Some(failed) if is_unfinished => {
            let said = seen.release_description.filter(|said| !said.is_empty());
            let said = said.map(|said| format!(": {said}")).unwrap_or_default();
            let message = format!(
                "Helm failed {failed} times, and provider-helm no longer retries{said}; \
                 it tries again after a change of chart, version or values"
            );
            Health::pending(State::Failed, Reason::Failed, message)
        }
        _ => health,
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

fn core(kind: &str, object: &Object) -> Health {
    let ready = match kind {
        "Namespace" => text(object, &["status", "phase"]) == Some("Active"),
        "Service" => {
            at(object, &["spec"]).is_some_and(Value::is_object)
                && text(object, &["spec", "type"]) != Some("LoadBalancer")
                || at(object, &["status", "loadBalancer", "ingress"])
                    .and_then(Value::as_array)
                    .is_some_and(|ingress| !ingress.is_empty())
        }
        "Secret" => at(object, &["data"]).is_some_and(Value::is_object),
        _ => return exists(object),
    };
    if ready { Health::available() } else { Health::unseen() }
}

/// A kind without a useful status. It is ready once it exists.
fn exists(object: &Object) -> Health {
    if at(object, &["metadata", "uid"]).is_some_and(Value::is_string) {
        Health::available()
    } else {
        Health::unseen()
    }
}

/// A Deployment has no condition Ready. It is ready once its controller has observed the newest
/// spec and all replicas are available.
fn deployment(object: &Object) -> Health {
    let number = |path: &[&str]| at(object, path).and_then(Value::as_i64);
    let current = number(&["metadata", "generation"])
        .zip(number(&["status", "observedGeneration"]))
        .is_some_and(|(generation, observed)| observed >= generation);
    if !current {
        return Health::pending(
            State::Creating,
            Reason::Creating,
            "its controller has not seen the newest change yet",
        );
    }
    // The best message about a failure to create pods, for example because of a quota.
    let refused = condition(object, "ReplicaFailure").filter(|refused| refused.status == "True");
    let why = |message: &str| match &refused {
        Some(refused) if !refused.message.is_empty() => {
            format!("{}: {}", message.trim_end_matches('.'), refused.message)
        }
        _ => message.to_owned(),
    };
    if let Some(progress) =
        condition(object, "Progressing").filter(|progress| progress.status == "False")
    {
        let health = progress.health(State::Failed);
        return Health { message: why(&health.message).into(), ..health };
    }
    let desired = number(&["spec", "replicas"]).unwrap_or(1);
    let count = |field| number(&["status", field]).unwrap_or(0);
    // While old pods exist, they may be the available pods.
    let only_new = count("replicas") <= desired;
    if only_new && count("updatedReplicas") >= desired && count("availableReplicas") >= desired {
        return Health::available();
    }
    let message =
        why(&format!("{} of {desired} replicas are available", count("availableReplicas")));
    Health::pending(State::Creating, Reason::Creating, message)
}

/// An Application of Argo CD. It is ready if it is healthy and in sync with its present source. It
/// has failed if Argo CD cannot read the source, or cannot apply its objects.
fn application(object: &Object) -> Health {
    let health = text(object, &["status", "health", "status"]).unwrap_or("Missing");
    let sync = text(object, &["status", "sync", "status"]).unwrap_or("Unknown");
    let conditions = at(object, &["status", "conditions"]).and_then(Value::as_array);
    let error = conditions
        .into_iter()
        .flatten()
        .find(|condition| condition["type"].as_str().is_some_and(|kind| kind.ends_with("Error")));
    if let Some(error) = error {
        let said = error["message"].as_str().unwrap_or_default();
        return Health::pending(State::Failed, Reason::Failed, words_of_helm(said));
    }
    let operation = |field| text(object, &["status", "operationState", field]);
    let said = operation("message").map(words_of_helm).filter(|said| !said.is_empty());
    match (health, sync) {
        ("Healthy", "Synced") if has_compared(object) => Health::available(),
        ("Healthy", "Synced") => Health::changing(),
        ("Degraded", _) => {
            let message = text(object, &["status", "health", "message"])
                .unwrap_or("Argo CD calls it degraded");
            Health::pending(State::Failed, Reason::Failed, message.to_owned())
        }
        _ if matches!(operation("phase"), Some("Failed" | "Error")) => {
            let message = said.unwrap_or_else(|| "Argo CD cannot apply it".to_owned());
            Health::pending(State::Failed, Reason::Failed, message)
        }
        _ => {
            let said = said.map(|said| format!(": {said}")).unwrap_or_default();
            let message = format!("is {health} and {sync} in Argo CD{said}");
            Health::pending(State::Creating, Reason::Creating, message)
        }
    }
}

/// Whether Argo CD has compared the cluster with the present source of an Application. Until then,
/// its status is that of the source before.
fn has_compared(application: &Object) -> bool {
    let Some(compared) = at(application, &["status", "sync", "comparedTo", "source"]) else {
        return true;
    };
    let wanted = at(application, &["spec", "source"]).unwrap_or(&Value::Null);
    let same = |pointer: &str| compared.pointer(pointer) == wanted.pointer(pointer);
    ["/repoURL", "/path", "/chart", "/targetRevision", "/helm/valuesObject"].into_iter().all(same)
}

/// The words of Helm in a message of Argo CD. Around them are a command with the name of a
/// temporary folder, which differs each time, and advice for a terminal.
fn words_of_helm(message: &str) -> String {
    let after = |start: &str| message.split_once(start).map(|(_, rest)| rest);
    let Some((_, result)) = after("`helm ").and_then(|rest| rest.split_once("` ")) else {
        return message.to_owned();
    };
    let words = result.strip_prefix("failed exit status ").and_then(|rest| rest.split_once(": "));
    let Some((_, words)) = words else { return format!("helm {result}") };
    let words = words.trim_start_matches("Error: ");
    words.split("\n\nUse --debug flag").next().unwrap_or(words).trim().to_owned()
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(object: Value) -> Health {
        let Value::Object(object) = object else { panic!("not an object") };
        from_object(&object)
    }

    fn health(object: Value) -> (bool, State) {
        let health = read(object);
        (health.ready, health.state)
    }

    fn with(conditions: &Value) -> Value {
        json!({"apiVersion": "ec2.aws.upbound.io/v1beta2", "kind": "Instance", "status": {"conditions": conditions}})
    }

    #[test]
    fn only_a_true_condition_is_ready() {
        for (status, ready) in
            [("True", true), ("False", false), ("Unknown", false), ("", false), ("true", false)]
        {
            assert_eq!(
                health(with(&json!([{"type": "Ready", "status": status}]))).0,
                ready,
                "{status}"
            );
        }
        for none in
            [json!(null), json!([]), json!("Ready"), json!([{"type": "Ready"}]), json!([null])]
        {
            assert!(!health(with(&none)).0, "{none}");
        }
    }

    #[test]
    fn waiting_is_not_failing() {
        let synced = |message: &str| {
            with(
                &json!([{"type": "Synced", "status": "False", "reason": "ReconcileError", "message": message}]),
            )
        };
        assert_eq!(
            health(synced(
                "cannot resolve references: mg.Spec.ForProvider.Role: referenced field was empty"
            ))
            .1,
            State::Waiting
        );
        assert_eq!(
            health(synced("cannot get credentials: Secret \"a\" not found")).1,
            State::Waiting
        );
        assert_eq!(health(synced("create failed: AccessDenied")).1, State::Failed);
        let last = json!([{"type": "Synced", "status": "True"}, {"type": "LastAsyncOperation", "status": "False", "reason": "AsyncCreateFailure", "message": "quota"}]);
        assert_eq!(health(with(&last)).1, State::Failed);
    }

    #[test]
    fn rejected_update_fails_a_ready_resource() {
        let conditions = json!([{"type": "Ready", "status": "True"}, {"type": "Synced", "status": "False", "reason": "ReconcileError", "message": "update failed: cannot change"}]);
        assert_eq!(health(with(&conditions)), (true, State::Failed));
    }

    #[test]
    fn unobserved_generation_is_not_ready() {
        let seen = |generation: Value| {
            let mut object = with(&json!([
                {"type": "Ready", "status": "True", "observedGeneration": 1},
                {"type": "Synced", "status": "True", "observedGeneration": generation},
            ]));
            object["metadata"]["generation"] = json!(3);
            health(object)
        };
        assert_eq!(seen(json!(2)), (false, State::Creating));
        assert_eq!(seen(json!(3)), (true, State::Available), "Ready may keep an older generation");
        assert_eq!(seen(json!(null)), (true, State::Available), "older providers report none");
    }

    #[test]
    fn failed_cloud_state_overrides_ready_conditions() {
        let said = |api: &str, kind: &str, field: &str, state: &str| {
            health(json!({"apiVersion": api, "kind": kind, "status": {
                "atProvider": {field: state},
                "conditions": [{"type": "Ready", "status": "True"}, {"type": "Synced", "status": "True"}],
            }}))
        };
        for api in ["eks.aws.upbound.io/v1beta2", "eks.aws.m.upbound.io/v1beta1"] {
            let group = |state| said(api, "NodeGroup", "status", state);
            assert_eq!(group("CREATE_FAILED"), (false, State::Failed));
            assert_eq!(group("DEGRADED"), (false, State::Failed));
            for fine in ["ACTIVE", "UPDATING", ""] {
                assert_eq!(group(fine), (true, State::Available), "{fine}");
            }
            assert_eq!(said(api, "Cluster", "status", "FAILED"), (false, State::Failed));
        }
        let rds = "rds.aws.m.upbound.io/v1beta1";
        assert_eq!(said(rds, "Instance", "status", "storage-full"), (false, State::Failed));
        assert_eq!(said(rds, "Instance", "status", "modifying"), (true, State::Available));
        let ec2 = "ec2.aws.upbound.io/v1beta2";
        assert_eq!(said(ec2, "Instance", "instanceState", "stopped"), (false, State::Waiting));
        assert_eq!(said(ec2, "Instance", "instanceState", "running"), (true, State::Available));
    }

    #[test]
    fn failed_cloud_state_keeps_the_providers_own_words() {
        let object = json!({"apiVersion": "eks.aws.upbound.io/v1beta2", "kind": "NodeGroup", "status": {
            "atProvider": {"status": "CREATE_FAILED"},
            "conditions": [
                {"type": "Ready", "status": "True"},
                {"type": "Synced", "status": "False", "reason": "ReconcileError", "message": "NodeCreationFailure"},
            ],
        }});
        let health = read(object);
        assert_eq!((health.ready, health.message.as_ref()), (false, "NodeCreationFailure"));
    }

    fn unavailable_release(status: &Value) -> Health {
        let mut status = status.clone();
        status["conditions"] = json!([
            {"type": "Ready", "status": "False", "reason": "Unavailable"},
            {"type": "Synced", "status": "True"},
        ]);
        let object = json!({"apiVersion": "helm.crossplane.io/v1beta1", "kind": "Release",
            "spec": {"rollbackLimit": 3, "forProvider": {"chart": {"version": "v1.21.1"}}}, "status": status});
        read(object)
    }

    #[test]
    fn release_with_a_differently_spelled_chart_version_fails() {
        let health =
            unavailable_release(&json!({"atProvider": {"state": "deployed", "version": "1.21.1"}}));
        assert_eq!(health.state, State::Failed);
        assert!(health.message.contains("Write 1.21.1 in app.chart.version"), "{}", health.message);
        let same = json!({"atProvider": {"state": "deployed", "version": "v1.21.1"}});
        assert_eq!(unavailable_release(&same).state, State::Creating);
    }

    #[test]
    fn release_at_its_rollback_limit_has_failed() {
        let status = |failed: i64| {
            json!({"failed": failed, "atProvider": {"state": "failed", "version": "v1.21.1",
                   "releaseDescription": "context deadline exceeded"}})
        };
        assert_eq!(unavailable_release(&status(2)).state, State::Creating);
        let health = unavailable_release(&status(3));
        assert_eq!(health.state, State::Failed);
        assert!(
            health.message.contains("context deadline exceeded; it tries again after a change")
        );
    }

    #[test]
    fn built_in_kinds_have_a_table() {
        let ready = [
            json!({"apiVersion": "v1", "kind": "Namespace", "status": {"phase": "Active"}}),
            json!({"apiVersion": "v1", "kind": "Secret", "data": {}}),
            json!({"apiVersion": "v1", "kind": "Service", "spec": {"type": "ClusterIP"}}),
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"generation": 2}, "spec": {"replicas": 1},
                   "status": {"observedGeneration": 2, "updatedReplicas": 1, "availableReplicas": 1}}),
        ];
        for object in ready {
            assert!(health(object.clone()).0, "{object}");
        }
        let stale = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"generation": 3}, "spec": {"replicas": 1},
                           "status": {"observedGeneration": 2, "updatedReplicas": 1, "availableReplicas": 1}});
        assert!(!health(stale).0);
        assert!(
            !health(
                json!({"apiVersion": "v1", "kind": "Service", "spec": {"type": "LoadBalancer"}})
            )
            .0
        );
    }

    fn application(status: &Value) -> Health {
        let source = json!({
            "repoURL": "https://charts.example.org", "chart": "podinfo", "targetRevision": "6.9.2",
            "helm": {"releaseName": "app", "valuesObject": {"replicaCount": 2}},
        });
        read(json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "spec": {"source": source}, "status": status,
        }))
    }

    #[test]
    fn application_is_ready_for_the_source_that_was_compared() {
        let status = |source: Value| json!({"health": {"status": "Healthy"}, "sync": {"status": "Synced", "comparedTo": {"source": source}}});
        let same = json!({
            "repoURL": "https://charts.example.org", "chart": "podinfo", "targetRevision": "6.9.2",
            "helm": {"releaseName": "app", "valuesObject": {"replicaCount": 2}},
        });
        assert!(application(&status(same.clone())).ready);
        for (pointer, before) in [
            ("/repoURL", json!("https://others.example.org")),
            ("/chart", json!("hello")),
            ("/targetRevision", json!("6.9.1")),
            ("/helm/valuesObject", json!({"replicaCount": 1})),
        ] {
            let mut source = same.clone();
            crossplane::json::set(
                &mut source,
                &pointer[1..].split('/').collect::<Vec<_>>(),
                before,
            );
            let health = application(&status(source));
            assert_eq!((health.ready, health.message.as_ref()), (false, "is being changed"));
        }
    }

    #[test]
    fn failed_application_has_the_words_of_helm() {
        let pull = "Failed to load target state: failed to generate manifest for source 1 of 1: \
            rpc error: code = Unknown desc = error fetching chart: failed to fetch chart: failed \
            to get command args to log: `helm pull --destination \
            /tmp/8a1f2a52-0d2b-4e43-9d3e-5a9f4f0c7d10 --version 6.9.9 --repo \
            https://charts.example.org podinfo` failed exit status 1: Error: chart \"podinfo\" \
            version \"6.9.9\" not found in https://charts.example.org repository";
        let template = "Failed to load target state: `helm template . --name-template app` failed \
            exit status 1: Error: execution error at (podinfo/templates/a.yaml:5:3): host is \
            required\n\nUse --debug flag to render out invalid YAML";
        let slow = "`helm pull --destination /tmp/1 podinfo` failed timeout after 1m30s";
        for (said, words) in [
            (
                pull,
                "chart \"podinfo\" version \"6.9.9\" not found in https://charts.example.org \
                 repository",
            ),
            (template, "execution error at (podinfo/templates/a.yaml:5:3): host is required"),
            (slow, "helm failed timeout after 1m30s"),
            ("repository not accessible", "repository not accessible"),
        ] {
            let condition = json!([{"type": "ComparisonError", "message": said}]);
            let health = application(&json!({
                "conditions": condition, "health": {"status": "Healthy"}, "sync": {"status": "Unknown"},
            }));
            assert_eq!((health.state, health.message.as_ref()), (State::Failed, words));
        }
    }

    #[test]
    fn application_that_cannot_be_applied_has_failed_with_the_reason() {
        let why = "one or more objects failed to apply, reason: pods is forbidden: exceeded quota";
        let status = |phase: &str| {
            json!({
                "health": {"status": "Missing"}, "sync": {"status": "OutOfSync"},
                "operationState": {"phase": phase, "message": why},
            })
        };
        for phase in ["Failed", "Error"] {
            let health = application(&status(phase));
            assert_eq!((health.state, health.message.as_ref()), (State::Failed, why));
        }
        let running = application(&status("Running"));
        assert_eq!(running.state, State::Creating);
        assert_eq!(running.message, format!("is Missing and OutOfSync in Argo CD: {why}"));
    }
}
