//! Environments that Argo CD owns.

use anyhow::{Result, ensure};
use crossplane::json::merge_patch;
use serde_json::{Value, json};

use super::{SHORT, gone, pools, stay, stopped, with};
use crate::controller::Controller;
use crate::environment::Environment;
use crate::fixture::Fixture;

/// The annotation of Argo CD on the objects that it applies.
const TRACKING: &str = "argocd.argoproj.io/tracking-id";

/// Settings delete expired environments. Argo CD would create its environments again, so the
/// controller stops them. If the claim itself asks for its deletion, the controller deletes it.
pub(in crate::scenarios) async fn environment_from_git_is_stopped_and_not_deleted(
    fixture: Fixture,
) -> Result<()> {
    let controller = Controller::install(&fixture).await?;
    let old = fixture.settings().await?;
    let deletes = json!({"stockPool": {"lifecycle": {"onExpiry": "Delete"}}});
    fixture.patch_settings(&json!({"data": deletes})).await?;
    let played = play(&fixture, &controller).await;
    fixture.put_settings(&old).await?;
    played
}

async fn play(fixture: &Fixture, controller: &Controller) -> Result<()> {
    let replica = controller.start("one").await?;
    let tracked = |name: &'static str, lifecycle: Value| {
        let id = format!("shop:platform.acme.io/StockPool:{}/{name}", fixture.namespace);
        let mut change = with(&lifecycle);
        merge_patch(&mut change, json!({"metadata": {"annotations": {TRACKING: id}}}));
        pools(fixture, name, change)
    };
    let argo = tracked("argo", json!({"ttl": SHORT})).await?;
    let own = tracked("own", json!({"ttl": SHORT, "onExpiry": "Delete"})).await?;
    let others = pools(fixture, "other", with(&json!({"ttl": SHORT}))).await?;
    stopped(&argo, "Requested").await?;
    gone(&own).await?;
    gone(&others).await?;
    stay(&argo).await?;
    stays_for_argo_cd(controller, &argo).await?;
    replica.stop().await;
    Ok(())
}

async fn stays_for_argo_cd(controller: &Controller, environments: &[Environment]) -> Result<()> {
    let plan = controller.plan().await?;
    for environment in environments {
        let told = format!("/{} stays: Argo CD owns it", environment.name());
        ensure!(plan.contains(&told), "the plan of the controller: {plan}");
    }
    Ok(())
}
