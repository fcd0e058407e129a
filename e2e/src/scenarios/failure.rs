//! When a cloud refuses a resource, its owner learns the resource and the reason. Once the cloud
//! accepts the resource, it recovers without any action.

use anyhow::{Context, Result, ensure};
use crossplane::names::{CLAIM_NAME, CLAIM_NAMESPACE, COMPOSITE};
use function_paved_road::apis::Flavour;
use futures::future::try_join_all;
use serde_json::json;

use super::in_each_flavour;
use crate::fake_providers::faults::Rule;
use crate::fixture::Fixture;
use crate::paved::Paved;

const REFUSAL: &str = "VcpuLimitExceeded: You have requested more vCPU capacity than your current vCPU limit of 0 allows";

pub(super) async fn a_refused_leaf_is_named_and_recovers(fixture: Fixture) -> Result<()> {
    in_each_flavour(&fixture, async |flavour| named_and_recovers(&fixture, flavour).await).await
}

async fn named_and_recovers(fixture: &Fixture, flavour: Flavour) -> Result<()> {
    let mut quota = Rule {
        kind: Some("Instance".to_owned()),
        create: Some(REFUSAL.to_owned()),
        ..Rule::default()
    };
    match flavour {
        Flavour::Claims => {
            drop(quota.labels.insert(CLAIM_NAMESPACE.to_owned(), fixture.namespace.clone()));
        }
        Flavour::Namespaced => quota.namespace = Some(fixture.namespace.clone()),
    }
    let name = format!("quota-{flavour:?}").to_lowercase();
    fixture.rule(&name, &quota).await?;
    let workspace = fixture.example("gpu-workspace", flavour, json!({}))?;
    workspace.apply().await?;
    let message = workspace.provisioned("Failed").await?;
    for part in ["instance (Instance)", REFUSAL] {
        ensure!(message.contains(part), "Provisioned does not say {part}: {message}");
    }
    fixture.no_rule(&name).await?;
    workspace.ready().await.map(drop)
}

/// A common reason for a cloud's refusal.
struct Cause {
    name: &'static str,
    /// The slot and the kind of the refused resource.
    slot: &'static str,
    kind: &'static str,
    /// The cloud's message.
    says: &'static str,
    /// The remediation that `paved` shows.
    helps: &'static str,
}

const CAUSES: [Cause; 4] = [
    Cause {
        name: "quota",
        slot: "instance",
        kind: "Instance",
        says: REFUSAL,
        helps: "ask the platform team for a higher quota",
    },
    Cause {
        name: "permissions",
        slot: "instance",
        kind: "Instance",
        says: "UnauthorizedOperation: You are not authorized to perform this operation. User: \
               arn:aws:sts::123456789012:assumed-role/crossplane/provider-aws is not authorized to perform: ec2:RunInstances on \
               resource: arn:aws:ec2:us-east-1:123456789012:instance/* because no identity-based policy allows the \
               ec2:RunInstances action.",
        helps: "denied ec2:RunInstances. Ask the platform team to grant the permission to the provider's identity.",
    },
    Cause {
        name: "taken",
        slot: "role",
        kind: "Role",
        says: "EntityAlreadyExists: Role with name ada already exists.",
        helps: "The name is already taken. Choose another name",
    },
    Cause {
        name: "capacity",
        slot: "instance",
        kind: "Instance",
        says: "InsufficientInstanceCapacity: We currently do not have sufficient g4dn.xlarge capacity in the Availability Zone \
               you requested (us-east-1a). Our system will be working on provisioning additional capacity. You can currently \
               get g4dn.xlarge capacity by not specifying an Availability Zone in your request or choosing us-east-1b, \
               us-east-1c.",
        helps: "has no capacity. Try again later",
    },
];

pub(super) async fn common_cause_ends_the_wait_with_its_remediation(
    fixture: Fixture,
) -> Result<()> {
    in_each_flavour(&fixture, async |flavour| {
        try_join_all(CAUSES.iter().map(|cause| told(&fixture, flavour, cause))).await.map(drop)
    })
    .await
}

async fn told(fixture: &Fixture, flavour: Flavour, cause: &Cause) -> Result<()> {
    let name = format!("{}-{flavour:?}", cause.name).to_lowercase();
    let mut rule = Rule {
        kind: Some(cause.kind.to_owned()),
        create: Some(cause.says.to_owned()),
        ..Rule::default()
    };
    let mut own = json!({"metadata": {"name": name}});
    match flavour {
        Flavour::Claims => {
            own["spec"] = json!({"writeConnectionSecretToRef": {"name": format!("{name}-conn")}});
            let claim = [(CLAIM_NAMESPACE, &fixture.namespace), (CLAIM_NAME, &name)];
            rule.labels.extend(claim.map(|(label, value)| (label.to_owned(), value.clone())));
        }
        Flavour::Namespaced => {
            rule.namespace = Some(fixture.namespace.clone());
            rule.labels.insert(COMPOSITE.to_owned(), name.clone());
        }
    }
    fixture.rule(&name, &rule).await?;
    let workspace = fixture.example("gpu-workspace", flavour, own)?;
    let flags = ["--wait", "--patience", "5s", "--timeout", "8m"];
    let ran = Paved::from_fixture(fixture)?.apply(&workspace, &flags).await?;
    let part = format!("has failed: {} ({}", cause.slot, cause.kind);
    let says: String = cause.says.split(':').next().unwrap_or_default().to_owned();
    ran.is(4, &[&part, &says, cause.helps]).with_context(|| format!("{name}: {}", cause.says))
}
