//! Reviews of users and their rights.

use serde_json::{Value, json};

use crate::access::{Access, User};
use crate::json::text;

/// The response to a review. `None` if `subject` is not a kind of review.
pub fn answer(access: &Access, user: &User, subject: &str, body: &[u8]) -> Option<Value> {
    let mut review: Value = serde_json::from_slice(body).unwrap_or_default();
    let status = match subject {
        "selfsubjectreviews" => {
            json!({"userInfo": {"username": user.name, "groups": user.groups}})
        }
        "selfsubjectaccessreviews" => {
            let asked = |field: &str| text(&review, &format!("/spec/resourceAttributes/{field}"));
            let place = match asked("verb") {
                "impersonate" => format!("{}/{}", asked("resource"), asked("name")),
                _ => asked("namespace").to_owned(),
            };
            json!({"allowed": access.may(&user.name, asked("verb"), &[&place])})
        }
        "selfsubjectrulesreviews" => access.rules(&user.name, text(&review, "/spec/namespace")),
        _ => return None,
    };
    review["metadata"] = json!({});
    if review["spec"].is_null() {
        review["spec"] = json!({});
    }
    review["status"] = status;
    Some(review)
}
