//! Users at the portal's pages. The specifications in `e2e/browser` define their actions. This
//! module gives them a portal on a real control plane.

use anyhow::{Context, Result, bail, ensure};
use futures::future::{join_all, try_join_all};
use serde_json::json;
use xtask::pages;

use super::{group_of, team};
use crate::control_api::ControlApi;
use crate::fixture::Fixture;
use crate::playwright;
use crate::portal::{Portal, PublicUrl};

/// All uses of the pages, by two teams.
pub(in crate::scenarios) async fn people_use_the_pages(fixture: Fixture) -> Result<()> {
    play(&fixture, "pages", ["ada.e2e-optics", "bob.e2e-music"]).await
}

/// The API server is away for a while, and users need not reload a page.
pub(in crate::scenarios) async fn the_pages_outlive_the_api_server(fixture: Fixture) -> Result<()> {
    play(&fixture, "outage", ["ada.e2e-away", "bob.e2e-home"]).await
}

/// Runs a specification with ada and bob, members of different teams.
async fn play(fixture: &Fixture, specification: &str, people: [&str; 2]) -> Result<()> {
    tokio::task::spawn_blocking(pages::build).await?.context("building the pages")?;
    let teams = try_join_all(people.map(|who| team(fixture, group_of(who)))).await?;
    let portal = Portal::start(fixture, &people.map(str::to_owned), PublicUrl::Own).await?;
    let remote = ControlApi::start(teams[0].clone()).await?;
    let urls: Vec<_> = portal.replicas.iter().map(|replica| &replica.url).collect();
    let world = json!({
        "ada": {"login": people[0], "portal": urls[0]},
        "bob": {"login": people[1], "portal": urls[1]},
        "remote": remote.url,
    });
    let results = fixture.plane.workdir().logs().join(specification);
    let played = playwright::play(specification, &world, &results).await;
    if let Err(error) = played {
        let seen = join_all(teams.iter().map(Fixture::portrait)).await;
        bail!("{error:#}\n{}", seen.concat());
    }
    for team in &teams {
        let left: Vec<_> = team.environments().await?;
        ensure!(left.is_empty(), "{} has {} environments still", team.namespace, left.len());
    }
    portal.uninstall(fixture).await
}
