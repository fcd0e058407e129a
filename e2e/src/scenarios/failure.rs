//! When a cloud refuses something, the owner is told which part and why, and need do nothing once the cloud takes it.

use anyhow::{Context, Result, ensure};
use function_paved_road::apis::Flavour;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::in_both_flavours;
use crate::environment::condition;
use crate::stage::Stage;
use crate::stand_in::behaviour::Rule;

/// The label of a claim's resources that says where the claim is.
const CLAIM_NAMESPACE: &str = "crossplane.io/claim-namespace";

const REFUSAL: &str =
    "VcpuLimitExceeded: You have requested more vCPU capacity than your current vCPU limit of 0 allows";

/// Seconds that one reconcile may take on a busy machine: core would look again only later without being told.
const AT_ONCE: i64 = 15;

pub(super) async fn a_refused_leaf_is_named_and_recovers(stage: Stage) -> Result<()> {
    in_both_flavours(async |flavour| named_and_recovers(&stage, flavour).await).await
}

fn time(value: &Value) -> Result<Timestamp> {
    value.as_str().context("a condition has no time")?.parse().context("a condition's time is none")
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
    for part in ["instance", REFUSAL] {
        ensure!(message.contains(part), "Provisioned does not say {part}: {message}");
    }
    let told = condition(&workspace.object().await?, "Provisioned")["lastTransitionTime"].clone();
    let refused = condition(&workspace.slot("instance").await?, "Synced")["lastTransitionTime"].clone();
    let late = time(&told)?.duration_since(time(&refused)?);
    ensure!(late.as_secs() < AT_ONCE, "the claim said so {} s after its part", late.as_secs());
    stage.no_rule(&name).await?;
    workspace.ready().await.map(drop)
}
