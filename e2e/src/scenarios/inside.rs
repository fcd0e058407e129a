//! What is asked for inside a virtual cluster is really in there.

use anyhow::{Context, Result, ensure};
use serde_json::json;

use crate::environment::Environment;
use crate::objects::Objects;
use crate::stage::{Stage, eventually};

use super::in_both_flavours;

const API: &str = "virtual-environment";

pub(super) async fn the_app_lands_inside(stage: Stage) -> Result<()> {
    in_both_flavours(async |flavour| {
        let environment = stage.ready(API, flavour, json!({})).await?;
        let deployments = app(&stage, &environment).await?;
        ensure!(!deployments.is_empty(), "{flavour:?}: nothing of the app is inside the virtual cluster");
        Ok(())
    })
    .await
}

pub(super) async fn an_app_taken_out_of_a_claim_is_uninstalled(stage: Stage) -> Result<()> {
    in_both_flavours(async |flavour| {
        let environment = stage.ready(API, flavour, json!({})).await?;
        environment.edit(&json!({"spec": {"parameters": {"app": null}}})).await?;
        eventually("the app is uninstalled inside the virtual cluster", async || {
            Ok(app(&stage, &environment).await?.is_empty().then_some(()))
        })
        .await?;
        environment.ready().await.map(drop)
    })
    .await
}

pub(super) async fn a_virtual_cluster_that_stopped_answering_can_go(stage: Stage) -> Result<()> {
    in_both_flavours(async |flavour| {
        let environment = stage.ready(API, flavour, json!({})).await?;
        let release = environment.slot("vcluster").await?;
        let namespace = release["spec"]["forProvider"]["namespace"].as_str().context("a namespace")?;
        stage.plane.proxy.cut(namespace);
        environment.delete().await?;
        environment.gone().await
    })
    .await
}

/// The app's Deployments inside.
async fn app(stage: &Stage, environment: &Environment) -> Result<Vec<serde_json::Value>> {
    let namespace = environment.manifest["spec"]["parameters"]["app"]["namespace"].as_str();
    let namespace = namespace.context("the example's app has no namespace")?;
    let inside = Objects::new(stage.plane.inner.client.clone());
    inside.list("apps/v1", "Deployment", namespace).await
}
