//! Questions about who one is and what one may: everybody is the same person, who may do everything.

use axum::http::HeaderMap;
use serde_json::{Value, json};

use crate::USER;

/// The answer to a review; `None` where it is no review.
pub fn answer(subject: &str, headers: &HeaderMap, body: &[u8]) -> Option<Value> {
    let status = match subject {
        "selfsubjectreviews" => {
            let named = headers.get("impersonate-user").and_then(|name| name.to_str().ok());
            json!({"userInfo": {"username": named.unwrap_or(USER), "groups": ["system:masters", "system:authenticated"]}})
        }
        "selfsubjectaccessreviews" | "subjectaccessreviews" | "localsubjectaccessreviews" => {
            json!({"allowed": true, "reason": "everybody may do everything here"})
        }
        "selfsubjectrulesreviews" => {
            let everything = json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]});
            json!({"resourceRules": [everything], "nonResourceRules": [], "incomplete": false})
        }
        _ => return None,
    };
    let mut review: Value = serde_json::from_slice(body).unwrap_or_default();
    review["metadata"] = json!({});
    review["status"] = status;
    Some(review)
}
