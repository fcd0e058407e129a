//! IAM policies for `aws iam create-policy --policy-document file://FILE`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{Part, parts};
use crate::apis::gpu_workspace::SESSION_MANAGER;
use crate::catalog::aws::Partition;
use crate::catalog::rights::Grant;
use crate::catalog::rights::aws::{BOUNDED, Condition, POLICIES, PUBLISHER, RIGHTS, Scope};
use crate::models::Provider;

pub(super) fn documents(settings: &Value) -> Vec<(String, Value)> {
    let mut all: Vec<_> = parts(Provider::Aws)
        .map(|part| (part.file(), Policy::new(part.api, settings).document(grants(part))))
        .collect();
    // The maximum rights of a machine's role, for `gpuWorkspace.permissionsBoundary`.
    if let Ok(boundary) = serde_json::from_str(SESSION_MANAGER) {
        all.push(("gpu-workspace-machines".to_owned(), boundary));
    }
    let publisher = Policy::new("unified-environment", settings);
    all.push(("unified-environment-publishers".to_owned(), publisher.document(PUBLISHER)));
    all
}

fn grants(part: &'static Part) -> impl Iterator<Item = &'static Grant<Scope>> {
    let of_part = RIGHTS.iter().filter(|rights| part.kinds.contains(&rights.kind));
    of_part.flat_map(|rights| rights.grants)
}

/// The values of Settings that limit a policy.
struct Policy<'a> {
    /// Name of the API that needs the rights.
    api: &'a str,
    settings: &'a Value,
    partition: &'static Partition,
    /// ARN of the boundary that new roles must have.
    boundary: Option<&'a str>,
}

impl<'a> Policy<'a> {
    fn new(api: &'a str, settings: &'a Value) -> Self {
        let workspaces = &settings["gpuWorkspace"];
        let images = workspaces["amis"].as_object().and_then(|images| images.keys().next());
        let (region, boundary) = match api {
            "gpu-workspace" => {
                (images.map(String::as_str), workspaces["permissionsBoundary"].as_str())
            }
            "unified-environment" => (settings["unifiedEnvironment"]["region"].as_str(), None),
            _ => (settings["environment"]["eks"]["region"].as_str(), None),
        };
        let partition = Partition::for_region(region.unwrap_or_default());
        Self { api, settings, partition, boundary }
    }

    fn document<'g>(&self, grants: impl IntoIterator<Item = &'g Grant<Scope>>) -> Value {
        let mut merged: BTreeMap<(Vec<String>, String), BTreeSet<&str>> = BTreeMap::new();
        for grant in grants {
            let resources = grant.scope.resources.iter().map(|resource| self.arn(resource));
            let resources: Vec<String> = resources.collect();
            for action in grant.actions {
                let condition = self.condition(action, grant.scope.condition).to_string();
                merged.entry((resources.clone(), condition)).or_default().insert(action);
            }
        }
        let mut statements = Vec::new();
        for ((resources, condition), actions) in merged {
            let mut statement =
                json!({"Effect": "Allow", "Action": actions, "Resource": resources});
            let condition: Value = serde_json::from_str(&condition).unwrap_or_default();
            if condition.as_object().is_some_and(|condition| !condition.is_empty()) {
                statement["Condition"] = condition;
            }
            statements.push(statement);
        }
        json!({"Version": "2012-10-17", "Statement": statements})
    }

    fn arn(&self, resource: &str) -> String {
        let partition = self.partition.name;
        match resource {
            "*" => "*".to_owned(),
            setting if setting.starts_with('/') => {
                let role = self.settings.pointer(setting).and_then(Value::as_str);
                role.map_or_else(|| format!("arn:{partition}:iam::*:role/*"), str::to_owned)
            }
            _ => format!("arn:{partition}:{resource}"),
        }
    }

    /// The condition of an action: operators with their keys and values, or an empty object.
    fn condition(&self, action: &str, condition: Condition) -> Value {
        let service = action.split(':').next().unwrap_or_default();
        // The value of the provider's tag is the kind with its group, in both APIs.
        let kinds = format!("*.{service}.aws.*upbound.io");
        let principal = |name: &&str| self.partition.principal(name);
        let policy = |name: &str| format!("arn:{}:iam::aws:policy/{name}", self.partition.name);
        let mut all = match condition {
            Condition::None => json!({}),
            Condition::TaggedByRequest => {
                json!({"StringLike": {"aws:RequestTag/crossplane-kind": kinds}})
            }
            Condition::Tagged => {
                json!({"StringLike": {"aws:ResourceTag/crossplane-kind": kinds}})
            }
            Condition::ManagedByRequest => {
                json!({"StringEquals": {"aws:RequestTag/ManagedBy": "Crossplane"}})
            }
            Condition::Managed => {
                json!({"StringEquals": {"aws:ResourceTag/ManagedBy": "Crossplane"}})
            }
            Condition::CreatedBy(actions) => {
                json!({"StringEquals": {"ec2:CreateAction": actions}})
            }
            Condition::PassedTo(services) => {
                let principals: Vec<_> = services.iter().map(principal).collect();
                json!({"StringEquals": {"iam:PassedToService": principals}})
            }
            Condition::LinkedTo(services) => {
                json!({"StringEquals": {"iam:AWSServiceName": services}})
            }
            Condition::TaggedForPolicies => {
                let of_api = POLICIES.iter().filter(|(api, _)| *api == self.api);
                let arns: Vec<_> = of_api.map(|(_, name)| policy(name)).collect();
                json!({
                    "ArnEquals": {"iam:PolicyARN": arns},
                    "StringLike": {"aws:ResourceTag/crossplane-kind": kinds},
                })
            }
        };
        if let Some(boundary) = self.boundary.filter(|_| BOUNDED.contains(&action)) {
            all["StringEquals"]["iam:PermissionsBoundary"] = json!(boundary);
        }
        all
    }
}
