//! When a cloud refuses something, the owner is told which part and why, and need do nothing once the cloud takes it.

use anyhow::{Result, ensure};
use function_paved_road::apis::Flavour;
use serde_json::json;

use super::in_both_flavours;
use crate::stage::Stage;
use crate::stand_in::behaviour::Rule;

/// The label of a claim's resources that says where the claim is.
const CLAIM_NAMESPACE: &str = "crossplane.io/claim-namespace";

const REFUSAL: &str =
    "VcpuLimitExceeded: You have requested more vCPU capacity than your current vCPU limit of 0 allows";

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
    let message = workspace.provisioned("Failed").await?;
    for part in ["instance", "VcpuLimitExceeded"] {
        ensure!(message.contains(part), "Provisioned does not say {part}: {message}");
    }
    stage.no_rule(&name).await?;
    workspace.ready().await.map(drop)
}
