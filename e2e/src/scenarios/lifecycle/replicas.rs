//! Replicas of the controller.

use anyhow::{Result, ensure};
use futures::future::{try_join, try_join_all};
use serde_json::json;

use super::{gone, pools, stay, time, with};
use crate::controller::Controller;
use crate::fixture::Fixture;

/// The leader is killed before the end of the environments. The other replica takes over, and
/// deletes each environment once.
pub(in crate::scenarios) async fn killed_controller_is_replaced_and_deletes_once(
    fixture: Fixture,
) -> Result<()> {
    let controller = Controller::install(&fixture).await?;
    let (one, two) = try_join(controller.start("one"), controller.start("two")).await?;
    let first = controller.leader(None).await?;
    let ends = with(&json!({"ttl": "20s", "onExpiry": "Delete"}));
    let pools = pools(&fixture, "ends", ends).await?;
    try_join_all(pools.iter().map(|pool| time(pool, "deletesAt"))).await?;
    stay(&pools).await?;
    let (killed, other) = if first == "one" { (&one, &two) } else { (&two, &one) };
    killed.kill();
    gone(&pools).await?;
    let second = controller.leader(Some(&first)).await?;
    ensure!(["one", "two"].contains(&second.as_str()), "{second} leads");
    let mut deletions = killed.deletions()?;
    deletions.extend(other.deletions()?);
    for pool in &pools {
        let end = format!("/{}", pool.name());
        let count = deletions.iter().filter(|deleted| deleted.ends_with(&end)).count();
        ensure!(count == 1, "{} was deleted {count} times: {deletions:?}", pool.name());
    }
    other.stop().await;
    Ok(())
}
