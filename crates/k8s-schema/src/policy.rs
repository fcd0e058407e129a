//! Evaluates ValidatingAdmissionPolicies as an API server does for a write.

use kube_cel::{AdmissionRequest, VapEvaluator, VapExpression};
use serde_json::Value;

use crossplane::json::text;

/// A write of an object: the new object, the stored object and the user.
#[derive(Clone, Copy, Debug)]
pub struct Write<'a> {
    /// The object that would be stored.
    pub object: &'a Value,
    /// The stored object. `None` for a create.
    pub before: Option<&'a Value>,
    /// API group of the object's kind.
    pub group: &'a str,
    /// The plural name of the object's resource: `environmentclaims`.
    pub resource: &'a str,
    /// The name of the writing user.
    pub user: &'a str,
}

impl Write<'_> {
    fn operation(&self) -> &'static str {
        if self.before.is_some() { "UPDATE" } else { "CREATE" }
    }
}

/// The messages of the policies that reject a write. The list is empty if all policies allow the
/// write. Every policy counts as bound. A match condition about the user's rights (`authorizer`)
/// counts as met: the user has no right to an exemption.
pub fn rejections(policies: &[Value], write: Write<'_>) -> Vec<String> {
    let matching = policies.iter().filter(|policy| policy["kind"] == "ValidatingAdmissionPolicy");
    matching
        .filter(|policy| covers(policy, &write))
        .flat_map(|policy| broken(policy, &write))
        .collect()
}

/// Whether a policy covers the written resource.
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
