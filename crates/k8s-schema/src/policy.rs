//! Evaluates ValidatingAdmissionPolicies as an API server does for a write.

use kube_cel::{AdmissionRequest, VapEvaluator, VapExpression};
use serde_json::Value;

use crossplane::json::text;

/// A write of an object: the new object, the stored object and the user.
#[derive(Clone, Copy, Debug)]
pub struct Write<'a> {
    /// The object that would be stored. `None` for a deletion.
    pub object: Option<&'a Value>,
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
        match (self.object, self.before) {
            (None, _) => "DELETE",
            (Some(_), Some(_)) => "UPDATE",
            (Some(_), None) => "CREATE",
        }
    }
}

/// The object that a binding refers to as the policy's parameter.
#[derive(Clone, Copy, Debug)]
pub struct ParamRef<'a> {
    /// Its apiVersion.
    pub api_version: &'a str,
    /// Its kind.
    pub kind: &'a str,
    /// Its namespace. Empty if the binding has none.
    pub namespace: &'a str,
    /// Its name.
    pub name: &'a str,
}

/// The messages of the policies that reject a write. The list is empty if all policies allow the
/// write. Every policy without a parameter counts as bound. A policy with a parameter does not
/// apply: see [`rejections_with`]. A match condition about the user's rights (`authorizer`) counts
/// as met: the user has no right to an exemption.
pub fn rejections(policies: &[Value], write: Write<'_>) -> Vec<String> {
    rejections_with(policies, write, |_| None)
}

/// The same for policies with parameters, with the bindings of these policies among the documents.
/// `find` returns the object that a binding refers to by name. Without the object, the binding's
/// `parameterNotFoundAction` decides.
pub fn rejections_with(
    documents: &[Value],
    write: Write<'_>,
    find: impl Fn(ParamRef<'_>) -> Option<Value>,
) -> Vec<String> {
    let policies = documents.iter().filter(|one| one["kind"] == "ValidatingAdmissionPolicy");
    let mut messages = Vec::new();
    for policy in policies.filter(|policy| covers(policy, &write)) {
        let kind = &policy["spec"]["paramKind"];
        if kind.is_null() {
            messages.extend(broken(policy, &write, None));
            continue;
        }
        let bindings = documents.iter().filter(|one| {
            one["kind"] == "ValidatingAdmissionPolicyBinding"
                && one["spec"]["policyName"] == policy["metadata"]["name"]
        });
        for reference in bindings.map(|binding| &binding["spec"]["paramRef"]) {
            let of =
                |object: &'_ Value, key: &str| text(object, &[key]).unwrap_or_default().to_owned();
            let (api_version, kind) = (of(kind, "apiVersion"), of(kind, "kind"));
            let (namespace, name) = (of(reference, "namespace"), of(reference, "name"));
            let found = find(ParamRef {
                api_version: &api_version,
                kind: &kind,
                namespace: &namespace,
                name: &name,
            });
            match found {
                Some(params) => messages.extend(broken(policy, &write, Some(params))),
                None if reference["parameterNotFoundAction"] == "Allow" => {}
                None => messages.push(format!("no params found: {kind} {name}")),
            }
        }
    }
    messages
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

fn broken(policy: &Value, write: &Write<'_>, params: Option<Value>) -> Vec<String> {
    let mut builder = VapEvaluator::builder().request(AdmissionRequest {
        operation: write.operation().to_owned(),
        username: write.user.to_owned(),
        ..AdmissionRequest::default()
    });
    if let Some(object) = write.object {
        builder = builder.object(object.clone());
    }
    if let Some(before) = write.before {
        builder = builder.old_object(before.clone());
    }
    if let Some(params) = params {
        builder = builder.params(params);
    }
    let evaluator = builder.build();
    let of = |field: &str| policy["spec"][field].as_array().cloned().unwrap_or_default();
    let expressions = |all: Vec<Value>| -> Vec<VapExpression> {
        let read = |one: &Value| VapExpression {
            expression: text(one, &["expression"]).unwrap_or_default().to_owned(),
            message: text(one, &["message"]).map(str::to_owned),
            message_expression: text(one, &["messageExpression"]).map(str::to_owned),
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
