//! The health of objects of built-in kinds.

use serde_json::Value;

use super::{Health, State, condition};
use crate::reason::Reason;
use crate::value::{Object, at, text};

pub(super) fn core(kind: &str, object: &Object) -> Health {
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
pub(super) fn exists(object: &Object) -> Health {
    if at(object, &["metadata", "uid"]).is_some_and(Value::is_string) {
        Health::available()
    } else {
        Health::unseen()
    }
}

/// A Deployment has no condition Ready. It is ready once its controller has observed the newest
/// spec and all replicas are available.
pub(super) fn deployment(object: &Object) -> Health {
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
