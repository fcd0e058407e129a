//! When a cloud refuses something, the owner is told which part and why, and need do nothing once the cloud takes it.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use crossplane::conditions;
use crossplane::names::{CLAIM_NAME, CLAIM_NAMESPACE, COMPOSITE};
use function_paved_road::apis::Flavour;
use futures::future::try_join_all;
use serde_json::json;

use super::in_both_flavours;
use crate::environment::Environment;
use crate::eventually::eventually;
use crate::paved::Paved;
use crate::stage::Stage;
use crate::stand_in::behaviour::Rule;

const REFUSAL: &str =
    "VcpuLimitExceeded: You have requested more vCPU capacity than your current vCPU limit of 0 allows";

/// The longest that a part's news may take to its owner on a busy machine. The function has core look again at a composite that is not
/// ready after 30 s, a tenth more or less: this has to stay below 27 s, or no watch is proven. A claim is looked at only when told.
const AT_ONCE: Duration = Duration::from_secs(20);

pub(super) async fn a_refused_leaf_is_named_and_recovers(stage: Stage) -> Result<()> {
    in_both_flavours(async |flavour| named_and_recovers(&stage, flavour).await).await
}

async fn named_and_recovers(stage: &Stage, flavour: Flavour) -> Result<()> {
    let mut quota =
        Rule { kind: Some("Instance".to_owned()), create: Some(REFUSAL.to_owned()), ..Rule::default() };
    match flavour {
        Flavour::Claims => drop(quota.labels.insert(CLAIM_NAMESPACE.to_owned(), stage.namespace.clone())),
        Flavour::Namespaced => quota.namespace = Some(stage.namespace.clone()),
    }
    let name = format!("quota-{flavour:?}").to_lowercase();
    stage.rule(&name, &quota).await?;
    let workspace = stage.example("gpu-workspace", flavour, json!({}))?;
    workspace.apply().await?;
    let late = told_after(&workspace).await?;
    ensure!(late < AT_ONCE, "its owner was told {} s after the refusal", late.as_secs());
    let message = workspace.provisioned("Failed").await?;
    for part in ["instance (Instance)", REFUSAL] {
        ensure!(message.contains(part), "Provisioned does not say {part}: {message}");
    }
    stage.no_rule(&name).await?;
    workspace.ready().await.map(drop)
}

/// Looks on until the owner is told that a part has failed; how long after the part itself had said so.
async fn told_after(workspace: &Environment) -> Result<Duration> {
    let mut refused = None;
    let late = eventually("its owner is told of the refusal", async || {
        // The owner first: what is told then is there to be seen afterwards.
        let is_told = conditions::get(&workspace.object().await?, "Provisioned")["reason"] == "Failed";
        // Until it is made, nothing fills the slot.
        let part = workspace.slot("instance").await.unwrap_or_default();
        if refused.is_none() && part["status"]["conditions"].to_string().contains(REFUSAL) {
            refused = Some(Instant::now());
        }
        Ok(is_told.then(|| refused.map(|refused| refused.elapsed())))
    })
    .await?;
    late.context("its owner was told of a failure before any part was refused")
}

/// Why a cloud commonly refuses something.
struct Cause {
    name: &'static str,
    /// What is refused: its slot and its kind.
    slot: &'static str,
    kind: &'static str,
    /// The cloud's words.
    says: &'static str,
    /// What `paved` says of them.
    helps: &'static str,
}

const CAUSES: [Cause; 4] = [
    Cause {
        name: "quota",
        slot: "instance",
        kind: "Instance",
        says: REFUSAL,
        helps: "have the quota raised",
    },
    Cause {
        name: "permissions",
        slot: "instance",
        kind: "Instance",
        says: "UnauthorizedOperation: You are not authorized to perform this operation. User: \
               arn:aws:sts::123456789012:assumed-role/crossplane/provider-aws is not authorized to perform: ec2:RunInstances on \
               resource: arn:aws:ec2:us-east-1:123456789012:instance/* because no identity-based policy allows the \
               ec2:RunInstances action.",
        helps: "The provider's identity may not do this: the platform team has to grant it.",
    },
    Cause {
        name: "taken",
        slot: "role",
        kind: "Role",
        says: "EntityAlreadyExists: Role with name ada already exists.",
        helps: "The name is taken: name the environment otherwise",
    },
    Cause {
        name: "capacity",
        slot: "instance",
        kind: "Instance",
        says: "InsufficientInstanceCapacity: We currently do not have sufficient g4dn.xlarge capacity in the Availability Zone \
               you requested (us-east-1a). Our system will be working on provisioning additional capacity. You can currently \
               get g4dn.xlarge capacity by not specifying an Availability Zone in your request or choosing us-east-1b, \
               us-east-1c.",
        helps: "The cloud has none left there just now: try again later",
    },
];

pub(super) async fn each_common_cause_ends_the_wait_with_what_helps(stage: Stage) -> Result<()> {
    in_both_flavours(async |flavour| {
        try_join_all(CAUSES.iter().map(|cause| told(&stage, flavour, cause))).await.map(drop)
    })
    .await
}

async fn told(stage: &Stage, flavour: Flavour, cause: &Cause) -> Result<()> {
    let name = format!("{}-{flavour:?}", cause.name).to_lowercase();
    let mut rule =
        Rule { kind: Some(cause.kind.to_owned()), create: Some(cause.says.to_owned()), ..Rule::default() };
    let mut own = json!({"metadata": {"name": name}});
    match flavour {
        Flavour::Claims => {
            own["spec"] = json!({"writeConnectionSecretToRef": {"name": format!("{name}-conn")}});
            let claim = [(CLAIM_NAMESPACE, &stage.namespace), (CLAIM_NAME, &name)];
            rule.labels.extend(claim.map(|(label, value)| (label.to_owned(), value.clone())));
        }
        Flavour::Namespaced => {
            rule.namespace = Some(stage.namespace.clone());
            rule.labels.insert(COMPOSITE.to_owned(), name.clone());
        }
    }
    stage.rule(&name, &rule).await?;
    let workspace = stage.example("gpu-workspace", flavour, own)?;
    let flags = ["--wait", "--patience", "5s", "--timeout", "8m"];
    let ran = Paved::of(stage)?.apply(&workspace, &flags).await?;
    let part = format!("has failed: {} ({}", cause.slot, cause.kind);
    let says: String = cause.says.split(':').next().unwrap_or_default().to_owned();
    ran.is(4, &[&part, &says, cause.helps]).with_context(|| format!("{name}: {}", cause.says))
}
