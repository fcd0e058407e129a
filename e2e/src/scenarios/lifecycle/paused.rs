//! Paused claims and composites.

use anyhow::{Result, ensure};
use crossplane::names::PAUSED;
use function_paved_road::apis::Flavour;
use futures::future::try_join3;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{SHORT, gone, pool, pools, stay, time, with};
use crate::controller::Controller;
use crate::environment::{Environment, is_ready};
use crate::eventually::eventually;
use crate::fixture::Fixture;
use crate::objects::resource;
use crate::paved::{Paved, address};

/// The composite of a paused claim goes on and is stopped. A paused composite is not stopped. The
/// controller deletes both only after the pause.
pub(in crate::scenarios) async fn paused_environment_is_shown_and_not_deleted(
    fixture: Fixture,
) -> Result<()> {
    let controller = Controller::install(&fixture).await?;
    let ends = |ttl: &str| with(&json!({"ttl": ttl, "keepStoppedFor": "5s"}));
    let (claim, composites, others) = try_join3(
        pool(&fixture, Flavour::Claims, "claim", ends(SHORT)),
        pools(&fixture, "composite", ends("60s")),
        pools(&fixture, "other", with(&json!({"ttl": SHORT, "onExpiry": "Delete"}))),
    )
    .await?;
    for environment in &composites {
        environment.until("Ready", is_ready).await?;
        pause(&fixture, &environment.composite().await?, "=true").await?;
        let end = time(environment, "expiresAt").await?;
        ensure!(Timestamp::now() < end, "{} was paused too late", environment.name());
    }
    time(&claim, "expiresAt").await?;
    pause(&fixture, &claim.object().await?, "=true").await?;
    eventually("the composite of a paused claim is stopped", async || {
        Ok((claim.composite().await?["status"]["phase"] == "Stopped").then_some(()))
    })
    .await?;
    let replica = controller.start("one").await?;
    gone(&others).await?;
    let mut paused = composites.clone();
    paused.push(claim.clone());
    are_held(&controller, &paused).await?;
    stay(&paused).await?;
    run_on(&composites).await?;
    are_shown(&fixture, &paused).await?;

    pause(&fixture, &claim.object().await?, "-").await?;
    for environment in &composites {
        pause(&fixture, &environment.composite().await?, "-").await?;
    }
    gone(&paused).await?;
    replica.stop().await;
    Ok(())
}

/// Adds or removes the annotation that pauses an object.
async fn pause(fixture: &Fixture, object: &Value, value: &str) -> Result<()> {
    let (kind, name) = (resource(object), object["metadata"]["name"].as_str().unwrap_or_default());
    let annotation = format!("{PAUSED}{value}");
    let args = ["annotate", &kind, name, "-n", &fixture.namespace, "--overwrite", &annotation];
    fixture.admin.run(&args).await.map(drop)
}

/// Waits until the controller would delete paused environments, but for their pause.
async fn are_held(controller: &Controller, paused: &[Environment]) -> Result<()> {
    eventually("the controller holds paused environments", async || {
        let plan = controller.plan().await?;
        let is_held = |environment: &Environment| {
            plan.contains(&format!("/{} stays: the claim or its composite", environment.name()))
        };
        Ok(paused.iter().all(is_held).then_some(()))
    })
    .await
}

/// Checks that pools still ask for their pod.
async fn run_on(pools: &[Environment]) -> Result<()> {
    for pool in pools {
        let deployment = pool.slot("deployment").await?;
        let spec = deployment.pointer("/spec/forProvider/manifest/spec");
        let replicas = &spec.unwrap_or(&deployment["spec"])["replicas"];
        ensure!(*replicas == 1, "a paused pool asks for {replicas} pods");
    }
    Ok(())
}

/// `paved list` and `paved status` show the pause of each object that users apply. Users of a claim
/// may not read its composite. `paved doctor` also shows the pause of a claim's composite to an
/// operator.
async fn are_shown(fixture: &Fixture, paused: &[Environment]) -> Result<()> {
    let paved = Paved::from_fixture(fixture)?;
    let list = paved.run(&["list"]).await?.told;
    for environment in paused {
        if environment.object().await?["metadata"]["annotations"][PAUSED] != "true" {
            continue;
        }
        let name = environment.name();
        let line = list.lines().find(|line| line.starts_with(&format!("{name} ")));
        ensure!(line.is_some_and(|line| line.contains("Paused")), "paved list:\n{list}");
        paved.run(&["status", &address(environment)]).await?.is(0, &["Paused"])?;
    }
    let operator = paved.by(fixture.operator().person.as_deref());
    let doctor = operator.run(&["doctor"]).await?.told;
    for line in ["Paused claims", "Paused composites"] {
        ensure!(doctor.contains(line), "{line:?} is missing in paved doctor:\n{doctor}");
    }
    Ok(())
}
