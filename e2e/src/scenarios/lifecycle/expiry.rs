//! The end of environments, with and without a controller.

use anyhow::{Result, ensure};
use crossplane::conditions;
use futures::future::{try_join, try_join_all};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{SHORT, expired, is_being_deleted, pools, stay, stopped, time, with, workspaces};
use crate::controller::Controller;
use crate::environment::Environment;
use crate::fixture::Fixture;
use crate::scenarios::deletion;

/// Pools are stopped, and deleted some seconds later. Workspaces are deleted at their end. Without
/// a controller, all of them stay.
pub(in crate::scenarios) async fn expired_environment_is_stopped_then_deleted(
    fixture: Fixture,
) -> Result<()> {
    let controller = Controller::install(&fixture).await?;
    let kept = pools(&fixture, "kept", with(&json!({"ttl": SHORT, "keepStoppedFor": "40s"})));
    let workspaces = workspaces(&fixture, json!({"ttl": SHORT, "onExpiry": "Delete"}));
    let (kept, workspaces) = try_join(kept, workspaces).await?;
    stopped(&kept, "Expired").await?;
    expired(&workspaces).await?;
    stay(&workspaces).await?;
    try_join_all(workspaces.iter().map(tells_what_to_do)).await?;
    let ending = kept.iter().chain(&workspaces).map(Ending::new);
    let ending = try_join_all(ending).await?;
    let replica = controller.start("one").await?;
    try_join_all(ending.iter().map(|one| one.comes(&fixture))).await?;
    replica.stop().await;
    Ok(())
}

/// Checks that the condition `Expiring` has the command that deletes an expired environment.
async fn tells_what_to_do(environment: &Environment) -> Result<()> {
    let object = environment.object().await?;
    let told = conditions::get(&object, "Expiring");
    let kind = object["kind"].as_str().unwrap_or_default().to_lowercase();
    let (name, namespace) = (environment.name(), environment.namespace());
    let advice = format!("Without a controller, run: paved delete {kind}/{name} -n {namespace}");
    ensure!(
        told["status"] == "True"
            && told["reason"] == "Expired"
            && told["message"].as_str().is_some_and(|message| message.contains(&advice)),
        "without a controller, the condition Expiring is {told}"
    );
    Ok(())
}

/// An environment before its announced deletion.
struct Ending<'e> {
    environment: &'e Environment,
    composite: Value,
    composed: Vec<Value>,
    deletes_at: Timestamp,
}

impl<'e> Ending<'e> {
    async fn new(environment: &'e Environment) -> Result<Self> {
        let (composite, composed) =
            try_join(environment.composite(), environment.composed()).await?;
        let deletes_at = time(environment, "deletesAt").await?;
        Ok(Self { environment, composite, composed, deletes_at })
    }

    /// Waits for the deletion, which is not earlier than announced and leaves no resource.
    async fn comes(&self, fixture: &Fixture) -> Result<()> {
        let Self { environment, deletes_at, .. } = self;
        is_being_deleted(environment).await?;
        let (now, name) = (Timestamp::now(), environment.name());
        ensure!(now >= *deletes_at, "{name} is deleted at {now}, and {deletes_at} was announced");
        environment.gone().await?;
        deletion::no_trace_is_left(fixture, &self.composite, &self.composed).await
    }
}
