//! Stops and starts by users.

use anyhow::{Context, Result, ensure};
use futures::future::try_join_all;

use super::{identities, is_stopped};
use crate::environment::{Environment, is_ready};
use crate::fixture::Fixture;
use crate::paved::{Paved, address};
use crate::scenarios::deletion;

/// Environments that cannot be stopped: a virtual cluster, and AKS.
const CANNOT_STOP: [&str; 2] = ["virtual-environment", "aks"];

/// The longest time for a stop or a start.
const TIMEOUT: [&str; 2] = ["--timeout", "8m"];

/// Every API stops and starts, and a virtual environment on each cluster that can. A stopped
/// environment is ready, and no resource is created again.
pub(in crate::scenarios) async fn every_environment_stops_and_starts(
    fixture: Fixture,
) -> Result<()> {
    let paved = Paved::from_fixture(&fixture)?;
    let all = deletion::every(&fixture)?;
    let can_stop = all.iter().filter(|(name, _)| !CANNOT_STOP.contains(name));
    let played = can_stop.map(async |(_, environment)| {
        environment.apply().await?;
        environment.ready().await?;
        let played = stops_and_starts(&paved, environment).await;
        played.with_context(|| environment.resource())
    });
    try_join_all(played).await.map(drop)
}

async fn stops_and_starts(paved: &Paved, environment: &Environment) -> Result<()> {
    let address = address(environment);
    let before = identities(environment).await?;
    paved.run(&["stop", &address]).await?.is(0, &["is being stopped"])?;
    paved.run(&[&["wait", &address], &TIMEOUT[..]].concat()).await?.is(0, &[])?;
    let object = environment.object().await?;
    ensure!(is_stopped(&object), "the wait is over, but the status is {}", object["status"]);
    let stopped = identities(environment).await?;
    ensure!(stopped == before, "resources were created again: {before:?}, {stopped:?}");
    paved.run(&["status", &address]).await?.is(0, &["Stopped", "by request"])?;

    let start = [&["start", &address, "--wait"], &TIMEOUT[..]].concat();
    paved.run(&start).await?.is(0, &["is being started"])?;
    let object = environment.object().await?;
    ensure!(
        is_ready(&object) && object["status"]["power"] == "Running",
        "the wait is over, but the status is {}",
        object["status"]
    );
    let started = identities(environment).await?;
    ensure!(started == before, "resources were created again: {before:?}, {started:?}");
    Ok(())
}
