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

/// Virtual environments that have no nodes while they are stopped.
const CLUSTERS: [&str; 2] = ["eks", "gke"];

/// The longest time for a stop or a start.
const TIMEOUT: [&str; 2] = ["--timeout", "8m"];

/// Every API stops and starts, and a virtual environment on each cluster that can. A stopped
/// environment is ready, and no resource is created again. A stopped cluster can be deleted.
pub(in crate::scenarios) async fn every_environment_stops_and_starts(
    fixture: Fixture,
) -> Result<()> {
    let paved = Paved::from_fixture(&fixture)?;
    let all = deletion::every(&fixture)?;
    let can_stop = all.iter().filter(|(name, _)| !CANNOT_STOP.contains(name));
    let played = can_stop.map(async |(name, environment)| {
        let played = plays(&fixture, &paved, name, environment).await;
        played.with_context(|| environment.resource())
    });
    try_join_all(played).await.map(drop)
}

async fn plays(
    fixture: &Fixture,
    paved: &Paved,
    name: &str,
    environment: &Environment,
) -> Result<()> {
    environment.apply().await?;
    environment.ready().await?;
    stops_and_starts(paved, environment).await?;
    if CLUSTERS.contains(&name) {
        is_deleted_while_stopped(fixture, paved, environment).await?;
    }
    Ok(())
}

async fn stops(paved: &Paved, environment: &Environment) -> Result<()> {
    let address = address(environment);
    paved.run(&["stop", &address]).await?.is(0, &["is being stopped"])?;
    paved.run(&[&["wait", &address], &TIMEOUT[..]].concat()).await?.is(0, &[])?;
    let object = environment.object().await?;
    ensure!(is_stopped(&object), "the wait is over, but the status is {}", object["status"]);
    Ok(())
}

/// Stops and deletes it. Its content needs nodes to be deleted, so the content is only released.
/// The cluster of the fake clouds keeps the content.
async fn is_deleted_while_stopped(
    fixture: &Fixture,
    paved: &Paved,
    environment: &Environment,
) -> Result<()> {
    stops(paved, environment).await?;
    let has_app = environment.slot("app-application").await.is_ok();
    deletion::goes(fixture, environment).await?;
    ensure!(
        !has_app || !fixture.app_inside(environment).await?.is_empty(),
        "the app was deleted before its cluster"
    );
    Ok(())
}

async fn stops_and_starts(paved: &Paved, environment: &Environment) -> Result<()> {
    let address = address(environment);
    let before = identities(environment).await?;
    stops(paved, environment).await?;
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
