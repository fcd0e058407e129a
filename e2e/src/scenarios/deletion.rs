//! What is deleted goes, in the order that the Usages demand, and leaves nothing.

use std::time::Duration;

use anyhow::{Result, ensure};
use function_paved_road::apis::{AnyApi, Flavour};
use futures::future::try_join_all;
use serde_json::{Value, json};

use super::in_both_flavours;
use crate::environment::Environment;
use crate::examples;
use crate::stage::{Stage, eventually, merge};
use crate::stand_in::behaviour::Rule;

pub(super) async fn everything_goes_when_it_is_ready(stage: Stage) -> Result<()> {
    let gone = examples::all().map(async |(api, flavour)| {
        let environment = stage.ready(api.info().name, flavour, named(api, flavour)).await?;
        goes(&stage, &environment).await
    });
    try_join_all(gone).await.map(drop)
}

pub(super) async fn everything_goes_when_it_is_half_made(stage: Stage) -> Result<()> {
    let gone = examples::all().map(async |(api, flavour)| {
        let environment = stage.example(api.info().name, flavour, named(api, flavour))?;
        environment.apply().await?;
        eventually("something is composed", async || {
            let object = environment.object().await?;
            Ok(object["status"]["resources"].as_array().filter(|lines| !lines.is_empty()).map(drop))
        })
        .await?;
        tokio::time::sleep(Duration::from_secs(1)).await;
        goes(&stage, &environment).await
    });
    try_join_all(gone).await.map(drop)
}

pub(super) async fn everything_goes_when_the_clouds_refuse(stage: Stage) -> Result<()> {
    for (name, kind) in [("machine", "Instance"), ("cluster", "Cluster"), ("site", "Distribution")] {
        let quota = Rule {
            kind: Some(kind.to_owned()),
            namespace: Some(stage.namespace.clone()),
            create: Some("QuotaExceeded: the limit is 0".to_owned()),
            ..Rule::default()
        };
        stage.rule(name, &quota).await?;
    }
    let failing = ["gpu-workspace", "application-environment", "unified-environment"];
    let failing = examples::all()
        .filter(|(api, flavour)| *flavour == Flavour::Namespaced && failing.contains(&api.info().name));
    let gone = failing.map(async |(api, flavour)| {
        let environment = stage.example(api.info().name, flavour, named(api, flavour))?;
        environment.apply().await?;
        environment.provisioned("Failed").await?;
        goes(&stage, &environment).await
    });
    try_join_all(gone).await.map(drop)
}

pub(super) async fn a_site_whose_files_are_retained_keeps_its_bucket(stage: Stage) -> Result<()> {
    in_both_flavours(async |flavour| {
        let change = json!({"spec": {"frontend": {"retainFiles": true}}});
        let environment = stage.ready("unified-environment", flavour, change).await?;
        let composite = environment.composite().await?;
        environment.delete().await?;
        environment.gone().await?;
        let left = stage.in_the_clouds(&composite).await?;
        // The bucket, and what protects it.
        ensure!(
            left.iter().all(|one| one.starts_with("Bucket"))
                && left.iter().any(|one| one.starts_with("Bucket ")),
            "{flavour:?}: left in the clouds: {left:?}"
        );
        Ok(())
    })
    .await
}

/// Deletes it; it goes, and the clouds keep nothing of it.
pub(super) async fn goes(stage: &Stage, environment: &Environment) -> Result<()> {
    let composite = environment.composite().await?;
    environment.delete().await?;
    environment.gone().await?;
    let name = composite["metadata"]["name"].as_str().unwrap_or_default();
    let left = stage.in_the_clouds(&composite).await?;
    ensure!(left.is_empty(), "{name} is gone, and these are left in the clouds: {left:?}");
    Ok(())
}

/// Examples share names across flavours and APIs; here they live side by side, are told apart in the clouds, and keep nothing.
pub(super) fn named(api: &dyn AnyApi, flavour: Flavour) -> Value {
    let mut change = match flavour {
        Flavour::Claims => json!({}),
        Flavour::Namespaced => json!({"metadata": {"name": format!("direct-{}", api.info().name)}}),
    };
    if api.info().name == "unified-environment" {
        merge(&mut change, json!({"spec": {"frontend": {"retainFiles": false}}}));
    }
    change
}
