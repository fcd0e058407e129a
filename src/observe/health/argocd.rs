//! The health of Applications of Argo CD.

use serde_json::Value;

use super::{Health, State};
use crate::reason::Reason;
use crate::value::{Object, at, text};

/// An Application of Argo CD. It is ready if it is healthy and in sync with its present source. It
/// has failed if Argo CD cannot read the source, or cannot apply its objects.
pub(super) fn application(object: &Object) -> Health {
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
