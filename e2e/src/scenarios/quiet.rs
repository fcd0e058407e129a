//! An environment that is ready and left alone causes no writes.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Result, ensure};
use futures::future::try_join_all;
use serde_json::Value;

use crate::environment::Environment;
use crate::stage::{Stage, eventually};

/// How long nothing may be written.
const SILENCE: Duration = Duration::from_mins(2);

/// How long late writes of what has just become ready may take.
const SETTLING: Duration = Duration::from_secs(15);

pub(super) async fn nothing_is_written_while_nothing_happens(stage: Stage) -> Result<()> {
    let environments = stage.standing().await?;
    try_join_all(environments.iter().map(keeps_quiet)).await.map(drop)
}

async fn keeps_quiet(environment: &Environment) -> Result<()> {
    let before = eventually("nothing is written any more", async || {
        let before = versions(environment).await?;
        tokio::time::sleep(SETTLING).await;
        Ok((versions(environment).await? == before).then_some(before))
    })
    .await?;
    tokio::time::sleep(SILENCE).await;
    let after = versions(environment).await?;
    let written: Vec<_> = after.iter().filter(|(name, version)| before.get(*name) != Some(version)).collect();
    ensure!(written.is_empty(), "written in {} s: {written:?}", SILENCE.as_secs());
    ensure!(after.len() == before.len(), "something came or went: {before:?}, {after:?}");
    Ok(())
}

/// The resourceVersion of everything that belongs to an environment.
async fn versions(environment: &Environment) -> Result<BTreeMap<String, String>> {
    let mut objects = environment.composed().await?;
    objects.extend([environment.object().await?, environment.composite().await?]);
    let version = |object: &Value| {
        let (kind, metadata) = (&object["kind"], &object["metadata"]);
        (format!("{kind} {}", metadata["name"]), metadata["resourceVersion"].to_string())
    };
    Ok(objects.iter().map(version).collect())
}
