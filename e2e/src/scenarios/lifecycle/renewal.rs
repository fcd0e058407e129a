//! Renewals that the controller, the function or the status sees late.

use std::time::Duration;

use anyhow::{Result, ensure};
use function_paved_road::lifecycle::{RENEWED_AT, RENEWED_FOR};
use futures::future::{join_all, try_join, try_join_all};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::{SHORT, expired, gone, is_being_deleted, pools, stay, time, with};
use crate::controller::Controller;
use crate::environment::Environment;
use crate::fixture::Fixture;
use crate::paved::{Paved, address};

/// A renewed environment ends at least this far ahead.
const LEAST: SignedDuration = SignedDuration::from_hours(3);

/// How long before its end an environment is renewed.
const BEFORE: SignedDuration = SignedDuration::from_secs(1);

/// First the controller starts late: environments are renewed after their end. Then environments
/// are renewed directly before the controller would delete them. Others are deleted meanwhile,
/// which shows that the controller has looked.
pub(in crate::scenarios) async fn late_renewal_prevents_a_deletion(fixture: Fixture) -> Result<()> {
    let controller = Controller::install(&fixture).await?;
    let ends = with(&json!({"ttl": SHORT, "onExpiry": "Delete"}));
    let late = pools(&fixture, "late", ends.clone());
    let (late, others) = try_join(late, pools(&fixture, "other", ends.clone())).await?;
    expired(&late).await?;
    expired(&others).await?;
    extend(&fixture, &late).await?;
    are_renewed(&late).await?;
    let replica = controller.start("one").await?;
    gone(&others).await?;
    stay(&late).await?;

    let last = pools(&fixture, "last", ends.clone());
    let (last, others) = try_join(last, pools(&fixture, "next", ends)).await?;
    try_join_all(last.iter().map(|pool| renewed_directly_before(&fixture, pool))).await?;
    gone(&others).await?;
    are_renewed(&last).await?;
    stay(&last).await?;
    stay(&late).await?;
    replica.stop().await;
    Ok(())
}

/// The function does not run while environments are renewed, so the status still announces their
/// deletion.
pub(in crate::scenarios) async fn unseen_renewal_prevents_a_deletion(
    fixture: Fixture,
) -> Result<()> {
    let controller = Controller::install(&fixture).await?;
    let ends = with(&json!({"ttl": SHORT, "onExpiry": "Delete"}));
    let renewed = pools(&fixture, "renewed", ends.clone());
    let (renewed, others) = try_join(renewed, pools(&fixture, "other", ends)).await?;
    expired(&renewed).await?;
    expired(&others).await?;
    let function = &fixture.plane.function.replicas;
    join_all(function.iter().map(|replica| replica.stop())).await;
    let unseen = async {
        extend(&fixture, &renewed).await?;
        let replica = controller.start("one").await?;
        try_join_all(others.iter().map(is_being_deleted)).await?;
        let plan = controller.plan().await?;
        for environment in &renewed {
            let told = format!("/{} stays: its status announces another end", environment.name());
            ensure!(plan.contains(&told), "the plan of the controller: {plan}");
        }
        stay(&renewed).await?;
        anyhow::Ok(replica)
    }
    .await;
    function.iter().try_for_each(|replica| replica.start_again())?;
    let replica = unseen?;
    are_renewed(&renewed).await?;
    stay(&renewed).await?;
    gone(&others).await?;
    replica.stop().await;
    Ok(())
}

/// `paved extend`, as their user.
async fn extend(fixture: &Fixture, environments: &[Environment]) -> Result<()> {
    let paved = Paved::from_fixture(fixture)?;
    for environment in environments {
        let told = paved.run(&["extend", &address(environment), "4h"]).await?;
        told.is(0, &["expires at"])?;
    }
    Ok(())
}

/// Renews an environment a moment before its end. A command would take too long to start.
async fn renewed_directly_before(fixture: &Fixture, environment: &Environment) -> Result<()> {
    let renewal = time(environment, "deletesAt").await? - BEFORE;
    let wait = Duration::try_from(renewal.duration_since(Timestamp::now()));
    tokio::time::sleep(wait.unwrap_or_default()).await;
    let (manifest, now) = (&environment.manifest, Timestamp::now());
    let renewal = json!({
        "apiVersion": manifest["apiVersion"],
        "kind": manifest["kind"],
        "metadata": {
            "name": environment.name(),
            "namespace": environment.namespace(),
            "annotations": {RENEWED_AT: now.to_string(), RENEWED_FOR: "4h"},
        },
    });
    fixture.objects.apply(&renewal).await
}

/// Waits until the status of environments announces a later end.
async fn are_renewed(environments: &[Environment]) -> Result<()> {
    for environment in environments {
        let is_later = |text: &str| {
            let end = text.parse::<Timestamp>();
            end.is_ok_and(|end| end.duration_since(Timestamp::now()) >= LEAST)
        };
        environment
            .until("renewed", |object| {
                object["status"]["lifecycle"]["expiresAt"].as_str().is_some_and(is_later)
            })
            .await?;
    }
    Ok(())
}
