//! Environments expire, stop and start as their users and the platform team want.

mod expiry;
mod git;
mod paused;
mod power;
mod renewal;
mod replicas;
mod settings;

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use crossplane::conditions;
use crossplane::json::merge_patch;
use crossplane::names::EXTERNAL_NAME;
use function_paved_road::apis::Flavour;
use futures::future::try_join_all;
use jiff::Timestamp;
use serde_json::{Value, json};

pub(super) use self::expiry::expired_environment_is_stopped_then_deleted;
pub(super) use self::git::environment_from_git_is_stopped_and_not_deleted;
pub(super) use self::paused::paused_environment_is_shown_and_not_deleted;
pub(super) use self::power::every_environment_stops_and_starts;
pub(super) use self::renewal::{
    late_renewal_prevents_a_deletion, unseen_renewal_prevents_a_deletion,
};
pub(super) use self::replicas::killed_controller_is_replaced_and_deletes_once;
pub(super) use self::settings::wrong_settings_prevent_no_stop;
use crate::environment::{Environment, slot};
use crate::eventually::eventually;
use crate::examples;
use crate::fixture::Fixture;

/// A time to live that ends soon after an environment's creation.
const SHORT: &str = "30s";

/// The prefix of the slots that exist only while a machine is stopped or started.
const SWITCH: &str = "power-";

/// Applies a stock pool with one pod for each kind of API.
async fn pools(fixture: &Fixture, name: &str, change: Value) -> Result<Vec<Environment>> {
    let flavours = fixture.flavours().into_iter();
    try_join_all(flavours.map(|flavour| pool(fixture, flavour, name, change.clone()))).await
}

/// Applies a stock pool with one pod. A pool is ready soon.
async fn pool(
    fixture: &Fixture,
    flavour: Flavour,
    name: &str,
    change: Value,
) -> Result<Environment> {
    let name = format!("{name}-{flavour}");
    let mut own = json!({"metadata": {"name": name}, "spec": {"replicas": 1}});
    merge_patch(&mut own, change);
    applied(fixture, "stock-pool", flavour, own).await
}

/// Applies a GPU workspace with this lifecycle for each kind of API.
async fn workspaces(fixture: &Fixture, lifecycle: Value) -> Result<Vec<Environment>> {
    let workspaces = fixture.flavours().into_iter().map(async |flavour| {
        let mut own = examples::beside("gpu-workspace", flavour);
        merge_patch(&mut own, with(&lifecycle));
        applied(fixture, "gpu-workspace", flavour, own).await
    });
    try_join_all(workspaces).await
}

async fn applied(
    fixture: &Fixture,
    api: &str,
    flavour: Flavour,
    change: Value,
) -> Result<Environment> {
    let environment = fixture.example(api, flavour, change)?;
    environment.apply().await?;
    Ok(environment)
}

/// The change that gives an environment this lifecycle.
fn with(lifecycle: &Value) -> Value {
    json!({"spec": {"lifecycle": lifecycle}})
}

/// Whether an environment is stopped as wanted, and therefore ready.
pub(super) fn is_stopped(object: &Value) -> bool {
    let status = &object["status"];
    conditions::is_true(object, "Ready")
        && conditions::is_true(object, "Synced")
        && conditions::is_true(object, "Provisioned")
        && status["phase"] == "Stopped"
        && status["power"] == "Stopped"
}

/// Waits until environments are stopped for this reason.
async fn stopped(environments: &[Environment], reason: &str) -> Result<()> {
    for environment in environments {
        let object = environment.until("stopped", is_stopped).await?;
        let told = &object["status"]["lifecycle"]["stopReason"];
        ensure!(told == reason, "{} is stopped for the reason {told}", environment.name());
    }
    Ok(())
}

/// Waits until environments that are deleted at their end have expired, with all their resources.
async fn expired(environments: &[Environment]) -> Result<()> {
    let is_expired = |object: &Value| {
        object["status"]["phase"] == "Expired" && conditions::is_true(object, "Ready")
    };
    for environment in environments {
        environment.until("expired", is_expired).await?;
    }
    Ok(())
}

/// A time of `status.lifecycle`, once the function has set the time.
async fn time(environment: &Environment, field: &str) -> Result<Timestamp> {
    let object = environment
        .until("with an end", |object| object["status"]["lifecycle"][field].is_string())
        .await?;
    let text = object["status"]["lifecycle"][field].as_str().unwrap_or_default();
    text.parse().with_context(|| format!("{field} of {}: {text}", environment.name()))
}

/// Waits until the deletion of an environment has begun, or is over.
async fn is_being_deleted(environment: &Environment) -> Result<()> {
    eventually(&format!("{} is being deleted", environment.name()), async || {
        let found = environment.found().await?;
        let is_left = found.is_some_and(|object| object["metadata"]["deletionTimestamp"].is_null());
        Ok((!is_left).then_some(()))
    })
    .await
}

/// Checks that no environment is being deleted.
async fn stay(environments: &[Environment]) -> Result<()> {
    for environment in environments {
        let object = environment.object().await?;
        let deleted = &object["metadata"]["deletionTimestamp"];
        ensure!(deleted.is_null(), "{} is being deleted since {deleted}", environment.name());
    }
    Ok(())
}

/// Waits until environments are gone.
async fn gone(environments: &[Environment]) -> Result<()> {
    try_join_all(environments.iter().map(Environment::gone)).await.map(drop)
}

/// The object of each slot, its uid and its external name. They change only if a resource is
/// created again.
async fn identities(environment: &Environment) -> Result<BTreeMap<String, Value>> {
    let composed = environment.composed().await?;
    let stay = composed.iter().filter(|part| !slot(part).starts_with(SWITCH));
    let identity = |part: &Value| {
        let metadata = &part["metadata"];
        let external = &metadata["annotations"][EXTERNAL_NAME];
        (slot(part).to_owned(), json!([part["kind"], metadata["name"], metadata["uid"], external]))
    };
    Ok(stay.map(identity).collect())
}
