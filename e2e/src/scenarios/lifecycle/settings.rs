//! Environments expire while the Settings of the platform team are wrong.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use crossplane::conditions;
use futures::future::try_join_all;
use serde_json::{Value, json};

use super::{SWITCH, identities, is_stopped, stopped, workspaces};
use crate::environment::{Environment, is_ready, slot};
use crate::fixture::Fixture;

/// Workspaces stop at their end, all other resources stay the same, and the condition
/// `Provisioned` names the error.
pub(in crate::scenarios) async fn wrong_settings_prevent_no_stop(fixture: Fixture) -> Result<()> {
    let workspaces = workspaces(&fixture, json!({"ttl": "60s"})).await?;
    for workspace in &workspaces {
        let is_whole = |object: &Value| is_ready(object) || is_stopped(object);
        workspace.until("Ready, or stopped", is_whole).await?;
    }
    let before = try_join_all(workspaces.iter().map(specs)).await?;
    let old = fixture.settings().await?;
    let wrong = json!({"gpuWorkspace": {"amis": {"us-east-1": {"default": "no image"}}}});
    fixture.patch_settings(&json!({"data": wrong})).await?;
    try_join_all(workspaces.iter().map(Environment::touch)).await?;
    let refused = try_join_all(workspaces.iter().map(is_stopped_in_spite_of)).await;
    let after = try_join_all(workspaces.iter().map(specs)).await;
    fixture.put_settings(&old).await?;
    refused?;
    for ((workspace, before), after) in workspaces.iter().zip(before).zip(after?) {
        let name = workspace.resource();
        ensure!(after == before, "{name} changed: {before:?}, {after:?}");
    }
    try_join_all(workspaces.iter().map(Environment::touch)).await?;
    stopped(&workspaces, "Expired").await
}

/// Waits until a workspace has stopped although its Settings are wrong.
async fn is_stopped_in_spite_of(workspace: &Environment) -> Result<()> {
    let is_wrong = |object: &Value| {
        let told = conditions::get(object, "Provisioned");
        object["status"]["power"] == "Stopped"
            && told["status"] == "False"
            && told["reason"] == "InvalidSettings"
            && told["message"].as_str().is_some_and(|told| told.contains("gpuWorkspace.amis"))
    };
    workspace.until("stopped, with the wrong setting in its condition", is_wrong).await.map(drop)
}

/// The identity and the spec of the resource in each slot.
async fn specs(environment: &Environment) -> Result<BTreeMap<String, (Value, Value)>> {
    let mut identities = identities(environment).await?;
    let composed = environment.composed().await?;
    let stay = composed.into_iter().filter(|part| !slot(part).starts_with(SWITCH));
    let all = stay.map(|mut part| {
        let slot = slot(&part).to_owned();
        let identity = identities.remove(&slot).unwrap_or_default();
        (slot, (identity, part["spec"].take()))
    });
    Ok(all.collect())
}
