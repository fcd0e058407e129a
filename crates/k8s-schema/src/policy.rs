//! ValidatingAdmissionPolicies, as an API server holds a write against them.

use kube_cel::{AdmissionRequest, VapEvaluator, VapExpression};
use serde_json::Value;

use crossplane::json::text;

/// A write of an object: what is to be stored, what is stored, and who writes.
#[derive(Clone, Copy, Debug)]
pub struct Write<'a> {
    /// The object as it would be stored.
    pub object: &'a Value,
    /// The object as it is stored; `None` where it is created.
    pub before: Option<&'a Value>,
    /// API group of the object's kind.
    pub group: &'a str,
    /// The object's resource: `environmentclaims`.
    pub resource: &'a str,
    /// The user who writes.
    pub user: &'a str,
}

impl Write<'_> {
    fn operation(&self) -> &'static str {
        if self.before.is_some() { "UPDATE" } else { "CREATE" }
    }
}

/// The messages with which policies reject a write; none where they allow it. Bindings are taken to
/// be there. Of the match conditions those that ask for the user's rights (`authorizer`) count as
/// met: the user has no right that exempts.
pub fn rejections(policies: &[Value], write: Write<'_>) -> Vec<String> {
    let matching = policies.iter().filter(|policy| policy["kind"] == "ValidatingAdmissionPolicy");
    matching
        .filter(|policy| covers(policy, &write))
        .flat_map(|policy| broken(policy, &write))
        .collect()
}

/// Whether a policy is about the resource that is written.
fn covers(policy: &Value, write: &Write<'_>) -> bool {
    let rules = policy.pointer("/spec/matchConstraints/resourceRules").and_then(Value::as_array);
    let names = |rule: &Value, key: &str, wanted: &str| {
        rule[key].as_array().is_some_and(|all| all.iter().any(|one| one == wanted || one == "*"))
    };
    rules.into_iter().flatten().any(|rule| {
        names(rule, "apiGroups", write.group)
            && names(rule, "resources", write.resource)
            && names(rule, "operations", write.operation())
    })
}

fn broken(policy: &Value, write: &Write<'_>) -> Vec<String> {
    let builder = VapEvaluator::builder().object(write.object.clone()).request(AdmissionRequest {
        operation: write.operation().to_owned(),
        username: write.user.to_owned(),
        ..AdmissionRequest::default()
    });
    let evaluator = match write.before {
        Some(before) => builder.old_object(before.clone()).build(),
        None => builder.build(),
    };
    let of = |field: &str| policy["spec"][field].as_array().cloned().unwrap_or_default();
    let expressions = |all: Vec<Value>| -> Vec<VapExpression> {
        let read = |one: &Value| VapExpression {
            expression: text(one, &["expression"]).unwrap_or_default().to_owned(),
            message: text(one, &["message"]).map(str::to_owned),
            message_expression: None,
        };
        all.iter().map(read).collect()
    };
    let mut conditions = expressions(of("matchConditions"));
    conditions.retain(|condition| !condition.expression.contains("authorizer"));
    if !evaluator.evaluate(&conditions).iter().all(|condition| condition.passed) {
        return Vec::new();
    }
    let results = evaluator.evaluate(&expressions(of("validations")));
    results
        .into_iter()
        .filter(|result| !result.passed)
        .filter_map(|result| result.message)
        .collect()
}
