//! The built-in kinds of Kubernetes.

use serde_json::{Value, json};

use super::kind_behaviour::{DEFAULT, Id, KindBehaviour};
use super::{State, set_condition};
use crate::core::{World, naming};
use crossplane::json::{at, set, text};

/// A built-in kind without a relevant status.
const BASE: KindBehaviour = KindBehaviour { id: Id::None, set_status: |_, _, _, _| {}, ..DEFAULT };

pub(super) fn behaviour(kind: &str) -> KindBehaviour {
    match kind {
        "Deployment" | "StatefulSet" => {
            KindBehaviour { rounds: 2, set_status: set_workload_status, ..BASE }
        }
        "Namespace" => KindBehaviour {
            set_status: |namespace, state, _, _| {
                if *state == State::Ready {
                    set(namespace, &["status", "phase"], json!("Active"));
                }
            },
            ..BASE
        },
        "Service" => KindBehaviour { set_status: set_service_status, ..BASE },
        "Ingress" => KindBehaviour {
            rounds: 2,
            set_status: |ingress, state, _, _| {
                if *state == State::Ready {
                    set(
                        ingress,
                        &["status", "loadBalancer"],
                        json!({"ingress": [{"ip": "203.0.113.80"}]}),
                    );
                }
            },
            ..BASE
        },
        "PersistentVolumeClaim" => KindBehaviour {
            set_status: |claim, state, _, _| {
                let phase = if *state == State::Ready { "Bound" } else { "Pending" };
                set(claim, &["status", "phase"], json!(phase));
            },
            ..BASE
        },
        _ => BASE,
    }
}

/// Sets a workload's status. All replicas are available once it is ready, and none before.
fn set_workload_status(workload: &mut Value, state: &State, world: &World, _: &KindBehaviour) {
    const UNAVAILABLE: (&str, &str) =
        ("MinimumReplicasUnavailable", "Deployment does not have minimum availability.");
    let mut status = replicas(workload, *state == State::Ready);
    if let Some(conditions) = at(workload, &["status", "conditions"]) {
        status["conditions"] = conditions.clone();
    }
    set(workload, &["status"], status);
    let now = world.now().to_string();
    let mut put = |kind, status, (reason, message): (&str, &str)| {
        set_condition(workload, &now, kind, status, reason, message);
    };
    match state {
        State::Ready => {
            put(
                "Available",
                "True",
                ("MinimumReplicasAvailable", "Deployment has minimum availability."),
            );
            put(
                "Progressing",
                "True",
                ("NewReplicaSetAvailable", "ReplicaSet has successfully progressed."),
            );
        }
        State::Creating | State::Waiting(_) => {
            put("Available", "False", UNAVAILABLE);
            put("Progressing", "True", ("ReplicaSetUpdated", "ReplicaSet is progressing."));
        }
        State::Failed(why) => {
            put("Available", "False", UNAVAILABLE);
            put("Progressing", "False", ("ProgressDeadlineExceeded", why));
        }
    }
}

/// The counts in a workload's status. Kubernetes omits zero counts.
fn replicas(workload: &Value, ready: bool) -> Value {
    let number = |path: &[&str]| at(workload, path).and_then(Value::as_i64).unwrap_or(1);
    let replicas = number(&["spec", "replicas"]);
    let available = if ready { replicas } else { 0 };
    let mut status = json!({"observedGeneration": number(&["metadata", "generation"])});
    for (field, count) in [
        ("replicas", replicas),
        ("updatedReplicas", replicas),
        ("readyReplicas", available),
        ("availableReplicas", available),
        ("unavailableReplicas", replicas - available),
    ] {
        if count > 0 {
            status[field] = json!(count);
        }
    }
    status
}

fn set_service_status(service: &mut Value, state: &State, _: &World, _: &KindBehaviour) {
    if *state != State::Ready {
        return;
    }
    let name = text(service, &["metadata", "name"]).unwrap_or_default();
    let digits = naming::hex(name);
    let byte = |at: usize| {
        digits.get(at..at + 2).and_then(|hex| u8::from_str_radix(hex, 16).ok()).unwrap_or(1)
    };
    let cluster_ip = format!("10.96.{}.{}", byte(0), byte(2).max(1));
    if at(service, &["spec", "clusterIP"]).is_none() {
        set(service, &["spec", "clusterIP"], json!(cluster_ip));
    }
    let balanced = text(service, &["spec", "type"]) == Some("LoadBalancer");
    let status = if balanced {
        json!({"loadBalancer": {"ingress": [{"ip": "203.0.113.81"}]}})
    } else {
        json!({"loadBalancer": {}})
    };
    set(service, &["status"], status);
}
