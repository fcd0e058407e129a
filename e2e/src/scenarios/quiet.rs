//! An environment that is ready and left alone causes no writes, though everybody looks at it.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Result, ensure};
use futures::future::{join_all, try_join_all};
use serde_json::Value;

use super::day_two::crossplane_looks_again;
use crate::environment::Environment;
use crate::eventually::eventually;
use crate::stage::Stage;

/// How long nothing may be written.
const SILENCE: Duration = Duration::from_mins(2);

/// How long late writes of what has just become ready may take.
const SETTLING: Duration = Duration::from_secs(15);

pub(super) async fn nothing_is_written_while_nothing_happens(stage: Stage) -> Result<()> {
    let environments = stage.standing().await?;
    let before = try_join_all(environments.iter().map(settled)).await?;
    let silent = tokio::time::sleep(SILENCE);
    everybody_looks_again(&stage).await?;
    silent.await;
    for (environment, before) in environments.iter().zip(before) {
        let after = versions(environment).await?;
        let written: Vec<_> =
            after.iter().filter(|(name, version)| before.get(*name) != Some(version)).collect();
        ensure!(written.is_empty(), "written in {} s: {written:?}", SILENCE.as_secs());
        ensure!(after.len() == before.len(), "something came or went: {before:?}, {after:?}");
    }
    Ok(())
}

/// Where an environment stands once nothing is written any more.
async fn settled(environment: &Environment) -> Result<BTreeMap<String, String>> {
    eventually("nothing is written any more", async || {
        let before = versions(environment).await?;
        tokio::time::sleep(SETTLING).await;
        Ok((versions(environment).await? == before).then_some(before))
    })
    .await
}

/// Crossplane and the providers look seldom at what does not change; but each looks at everything when it is started.
async fn everybody_looks_again(stage: &Stage) -> Result<()> {
    let providers =
        ["stand-in", "provider-kubernetes", "provider-helm"].map(|name| stage.plane.process(name));
    let providers = providers.into_iter().collect::<Result<Vec<_>>>()?;
    join_all(providers.iter().map(|provider| provider.stop())).await;
    providers.iter().try_for_each(|provider| provider.start_again())?;
    crossplane_looks_again(stage).await
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
