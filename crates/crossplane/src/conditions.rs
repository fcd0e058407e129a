//! Conditions of an object: the entries of `status.conditions`.

use serde_json::{Value, json};

use crate::json::{at, set as set_at, text};

/// The condition of this type.
pub fn find<'o>(object: &'o Value, kind: &str) -> Option<&'o Value> {
    at(object, &["status", "conditions"])?
        .as_array()?
        .iter()
        .find(|condition| condition["type"] == kind)
}

/// The condition of this type, or null if the object lacks it.
pub fn get<'o>(object: &'o Value, kind: &str) -> &'o Value {
    find(object, kind).unwrap_or(&Value::Null)
}

/// Whether the condition of this type is `True`.
pub fn is_true(object: &Value, kind: &str) -> bool {
    get(object, kind)["status"] == "True"
}

/// Sets a condition. `now`, as RFC 3339, becomes its `lastTransitionTime` only if its status
/// changes.
pub fn set(object: &mut Value, now: &str, kind: &str, status: &str, reason: &str, message: &str) {
    let before = find(object, kind);
    let since = before
        .filter(|before| before["status"] == status)
        .and_then(|before| text(before, &["lastTransitionTime"]));
    let mut condition = json!({
        "type": kind, "status": status, "reason": reason, "lastTransitionTime": since.unwrap_or(now),
    });
    if !message.is_empty() {
        condition["message"] = json!(message);
    }
    let mut conditions = at(object, &["status", "conditions"])
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    match conditions.iter_mut().find(|condition| condition["type"] == kind) {
        Some(existing) => *existing = condition,
        None => conditions.push(condition),
    }
    set_at(object, &["status", "conditions"], Value::Array(conditions));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transition_time_changes_with_the_status() {
        let mut object = json!({});
        for (now, status) in [("a", "False"), ("b", "False"), ("c", "True"), ("d", "True")] {
            set(&mut object, now, "Ready", status, "Reason", "");
            set(&mut object, now, "Synced", "True", "Reason", "message");
        }
        assert_eq!(get(&object, "Ready")["lastTransitionTime"], "c");
        assert_eq!(get(&object, "Synced")["lastTransitionTime"], "a");
        assert!(is_true(&object, "Ready") && find(&object, "Healthy").is_none());
    }
}
