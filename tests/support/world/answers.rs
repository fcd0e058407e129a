//! Status and connection details of a kind in a mood.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use crossplane::api_version::group_of;
use function_paved_road::models::{KINDS, Scope};
use serde_json::{Value, json};

use super::Mood;

/// Gives an object the status, and what else its cluster adds, that its kind has in a mood.
pub fn answer(object: &mut Value, mood: Mood) {
    let (group, kind) =
        (group_of(object).to_owned(), object["kind"].as_str().unwrap_or_default().to_owned());
    match (group.as_str(), kind.as_str()) {
        ("", "Namespace") => phase(object, mood),
        ("", "Service") => service(object, mood),
        // Neither a Secret nor a provider config has a status; both are there as soon as they were
        // asked for.
        ("", _) | (_, "ProviderConfig") => {}
        ("apps", "Deployment") => object["status"] = deployment(object, mood),
        ("networking.k8s.io", "Ingress") => ingress(object, mood),
        ("argoproj.io", "Application") => object["status"] = application(mood),
        ("kubernetes.crossplane.io" | "kubernetes.m.crossplane.io", "Object") => {
            wrapper(object, mood);
        }
        _ => managed(object, mood),
    }
}

/// The keys that a resource writes to its connection secret; `usual` are those of a kind without
/// known ones.
pub fn connection_keys(object: &Value, usual: &[&str]) -> Vec<String> {
    if object["spec"].get("writeConnectionSecretToRef").is_none() {
        return Vec::new();
    }
    if let Some(entries) = object["spec"]["connectionDetails"].as_array() {
        let key = |entry: &Value| entry["toConnectionSecretKey"].as_str().map(str::to_owned);
        return entries.iter().filter_map(key).collect();
    }
    let service = group_of(object).split('.').next().unwrap_or_default();
    let keys: &[&str] = match (service, object["kind"].as_str().unwrap_or_default()) {
        ("postgresql", "Role") => &["username", "password", "endpoint", "port"],
        ("rds", "Instance") => &["endpoint", "address", "host", "username", "port", "password"],
        _ => usual,
    };
    keys.iter().map(|key| (*key).to_owned()).collect()
}

fn condition(kind: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({"type": kind, "status": status, "reason": reason, "message": message,
           "lastTransitionTime": "2026-11-21T08:30:00Z"})
}

/// `Synced` and `Ready` of whatever a provider serves; nothing where it is silent.
fn conditions(mood: Mood) -> Option<Value> {
    let synced = condition("Synced", "True", "ReconcileSuccess", "");
    Some(match mood {
        Mood::Silent => return None,
        Mood::Creating => json!([synced, condition("Ready", "False", "Creating", "")]),
        Mood::Ready => json!([synced, condition("Ready", "True", "Available", "")]),
        Mood::Failing => json!([
            condition("Synced", "False", "ReconcileError", "create failed: quota exceeded"),
            condition("Ready", "False", "Creating", ""),
        ]),
        Mood::Stuck => json!([
            condition("Synced", "False", "ReconcileError", "update failed: cannot change"),
            condition("Ready", "True", "Available", ""),
        ]),
    })
}

fn managed(object: &mut Value, mood: Mood) {
    let Some(conditions) = conditions(mood) else { return };
    object["status"] = json!({"conditions": conditions});
    if mood.is_made() {
        let known = AT_PROVIDER
            .get(&(group_of(object).to_owned(), object["kind"].as_str().unwrap().to_owned()));
        if let Some(seen) = known {
            object["status"]["atProvider"] = seen.clone();
        }
    }
}

/// An Object shows what it wraps; what its cluster has no failure for, the provider could not make.
fn wrapper(object: &mut Value, mood: Mood) {
    let mut inner = object["spec"]["forProvider"]["manifest"].clone();
    if object["spec"]["managementPolicies"] == json!(["Observe"]) && inner["kind"] == "Service" {
        inner["spec"]["type"] = json!("LoadBalancer");
    }
    inner["metadata"]["uid"] = json!("00000000-0000-4000-8000-00000000abcd");
    inner["metadata"]["generation"] = json!(1);
    answer(&mut inner, mood);
    let fails_itself = ["Deployment", "Application", "KnativeServing"]
        .contains(&inner["kind"].as_str().unwrap_or_default());
    let outer = match mood {
        Mood::Failing if fails_itself => Mood::Creating,
        mood => mood,
    };
    let Some(conditions) = conditions(outer) else { return };
    object["status"] = json!({"conditions": conditions});
    if outer != Mood::Failing {
        object["status"]["atProvider"] = json!({"manifest": inner});
    }
}

fn phase(namespace: &mut Value, mood: Mood) {
    if mood.is_made() {
        namespace["status"] = json!({"phase": "Active"});
    }
}

fn service(service: &mut Value, mood: Mood) {
    if mood == Mood::Silent {
        return;
    }
    service["spec"]["clusterIP"] = json!("10.96.0.7");
    let balanced = service["spec"]["type"] == "LoadBalancer" && mood.is_made();
    service["status"]["loadBalancer"] =
        if balanced { json!({"ingress": [{"ip": "203.0.113.81"}]}) } else { json!({}) };
}

fn ingress(ingress: &mut Value, mood: Mood) {
    if mood.is_made() {
        ingress["status"] = json!({"loadBalancer": {"ingress": [{"ip": "203.0.113.80"}]}});
    }
}

/// A Deployment's status: all of its replicas are available, or none; one that is stuck still has
/// its old pods.
fn deployment(deployment: &Value, mood: Mood) -> Value {
    let wanted = deployment["spec"]["replicas"].as_i64().unwrap_or(1);
    let (updated, available, progressing) = match mood {
        Mood::Silent => return Value::Null,
        Mood::Creating => (wanted, 0, ("True", "ReplicaSetUpdated")),
        Mood::Ready => (wanted, wanted, ("True", "NewReplicaSetAvailable")),
        Mood::Failing => (wanted, 0, ("False", "ProgressDeadlineExceeded")),
        Mood::Stuck => (0, wanted, ("False", "ProgressDeadlineExceeded")),
    };
    let is_available = if available == wanted { "True" } else { "False" };
    json!({
        "observedGeneration": deployment["metadata"]["generation"], "replicas": wanted, "updatedReplicas": updated,
        "readyReplicas": available, "availableReplicas": available,
        "conditions": [
            condition("Available", is_available, "MinimumReplicas", ""),
            condition("Progressing", progressing.0, progressing.1, "what the controller says"),
        ],
    })
}

fn application(mood: Mood) -> Value {
    let (health, sync) = match mood {
        Mood::Silent => return Value::Null,
        Mood::Creating => ("Progressing", "OutOfSync"),
        Mood::Ready => ("Healthy", "Synced"),
        Mood::Failing => ("Degraded", "Synced"),
        Mood::Stuck => ("Healthy", "OutOfSync"),
    };
    json!({"health": {"status": health}, "sync": {"status": sync}})
}

/// `status.atProvider` of every kind we know, by group and kind, with something in every field that
/// we read.
static AT_PROVIDER: LazyLock<BTreeMap<(String, String), Value>> = LazyLock::new(|| {
    let both = |info: &'static function_paved_road::models::KindInfo| {
        [Scope::LegacyCluster, Scope::Namespaced].map(|scope| {
            let mut seen = sample("it", (info.status)().as_value());
            say_done(info.kind.service, info.kind.kind, &mut seen);
            ((info.kind.group(scope), info.kind.kind.to_owned()), seen)
        })
    };
    KINDS.iter().flat_map(both).collect()
});

/// The words with which a service says that all is well, where our code knows them.
fn say_done(service: &str, kind: &str, seen: &mut Value) {
    let (field, word) = match (service, kind) {
        ("cloudfront", "Distribution") => ("status", "Deployed"),
        ("rds", "Instance") => ("status", "available"),
        ("", "Release") => ("state", "deployed"),
        _ => return,
    };
    if seen.get(field).is_some() {
        seen[field] = json!(word);
    }
}

fn sample(name: &str, schema: &Value) -> Value {
    let types = match &schema["type"] {
        Value::Array(types) => types.iter().filter_map(Value::as_str).collect(),
        kind => kind.as_str().into_iter().collect::<Vec<_>>(),
    };
    match types.first() {
        Some(&"string") => json!(format!("some-{name}")),
        Some(&"integer" | &"number") => json!(7),
        Some(&"boolean") => json!(true),
        Some(&"array") => json!([sample(name, &schema["items"])]),
        _ => {
            let fields = schema["properties"].as_object();
            let fields = fields
                .into_iter()
                .flatten()
                .map(|(key, schema)| (key.clone(), sample(key, schema)));
            Value::Object(fields.collect())
        }
    }
}
