//! Changes, accidents and restarts while environments run.

mod by_hand;
mod edits;
mod settings;

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use crossplane::json::merge_patch;
use crossplane::names;
use function_paved_road::apis::Flavour;
use futures::future::{join, join_all, try_join, try_join_all};
use serde_json::json;

pub(super) use self::by_hand::resource_upgraded_by_hand_stays_upgraded;
pub(super) use self::edits::updatable_field_reaches_its_resource;
pub(super) use self::settings::{
    new_networks_reach_running_resources, new_settings_leave_running_resources_alone,
    new_tags_and_publishers_reach_running_resources, wrong_settings_change_no_running_resource,
};
use super::{claims, in_each_flavour};
use crate::control_plane::{CircuitBreakers, Function};
use crate::environment::{Desired, Environment, is_ready};
use crate::eventually::{TIMEOUT, eventually};
use crate::examples;
use crate::fixture::Fixture;
use crate::kubectl::Kubectl;
use crate::paved::Paved;

/// Resources of each kind of provider: managed resources in two clouds, a Deployment, a database
/// grant and a Release. The Deployment is one of many resources or the only one. For claims, an
/// Object wraps it. Usages and provider configs are left out, because they cannot be deleted while
/// they are in use.
const LOST: [(&str, &[&str]); 5] = [
    ("gpu-workspace", &["role-policy"]),
    ("application-environment", &["bucket"]),
    ("unified-environment", &["backend-deployment", "postgres-grant"]),
    ("stock-pool", &["deployment"]),
    ("virtual-environment", &["argocd", "app-application"]),
];

pub(super) async fn resource_deleted_by_hand_comes_back(fixture: Fixture) -> Result<()> {
    let parts = in_each_flavour(&fixture, async |flavour| {
        let lost = LOST.into_iter().map(async |(api, slots)| {
            let mut change = examples::beside(api, flavour);
            let mut add_ons = None;
            if api == "virtual-environment" {
                let turn = fixture.add_ons().await?;
                merge_patch(&mut change, turn.app());
                add_ons = Some(turn);
            }
            let environment = fixture.ready(api, flavour, change).await?;
            for slot in slots {
                comes_back(&environment, slot, &fixture.operator()).await?;
            }
            if let Some(add_ons) = add_ons {
                add_ons.leave(&environment).await?;
            }
            Ok(())
        });
        try_join_all(lost).await.map(drop)
    });
    try_join(parts, a_connection_secret_comes_back(&fixture)).await.map(drop)
}

/// The slot of a namespaced composite's connection details.
const CONNECTION: &str = "connection";

/// Deletes the resource in a slot. It is created again, and all resources are in sync.
async fn comes_back(environment: &Environment, slot: &str, who: &Kubectl) -> Result<()> {
    let lost = environment.slot(slot).await?;
    who.delete(&lost).await?;
    let lost = &lost["metadata"];
    eventually(&format!("{slot} is back"), async || {
        // The slot is empty until the resource is created again.
        let found = environment.slot(slot).await.unwrap_or_default()["metadata"].clone();
        Ok((found["name"] == lost["name"] && found["uid"] != lost["uid"]).then_some(()))
    })
    .await?;
    settled(std::slice::from_ref(environment)).await
}

/// The new Secret has a value under each key, although one is a password without another copy.
async fn a_connection_secret_comes_back(fixture: &Fixture) -> Result<()> {
    let api = "application-environment";
    let another = json!({"metadata": {"name": "another"}});
    let environment = fixture.ready(api, Flavour::Namespaced, another).await?;
    // Operators have no access to Secrets, so the administrator deletes it.
    comes_back(&environment, CONNECTION, &fixture.admin).await?;
    claims::connection_secret(fixture, api, Flavour::Namespaced, &environment).await.map(drop)
}

/// Terminates the machine as in the cloud's own console.
pub(super) async fn resource_vanished_from_a_cloud_comes_back(fixture: Fixture) -> Result<()> {
    in_each_flavour(&fixture, async |flavour| {
        let environment = fixture.ready("gpu-workspace", flavour, json!({})).await?;
        let before = environment.object().await?["status"]["instanceId"].clone();
        fixture.vanishes(&environment.slot("instance").await?).await?;
        let after = environment
            .until("ready with another machine", |object| {
                let id = &object["status"]["instanceId"];
                id.is_string() && *id != before && is_ready(object)
            })
            .await?;
        let machine = environment.slot("instance").await?;
        ensure!(
            machine["metadata"]["annotations"][names::EXTERNAL_NAME]
                == after["status"]["instanceId"],
            "the status does not name the environment's machine: {}",
            after["status"]
        );
        settled(&[environment]).await
    })
    .await
}

/// The desired state of each environment.
async fn desired(environments: &[Environment]) -> Result<Vec<Desired>> {
    try_join_all(environments.iter().map(Environment::desired)).await
}

/// Waits until every environment is ready, with all its resources in sync.
async fn settled(environments: &[Environment]) -> Result<()> {
    for environment in environments {
        eventually(&format!("{} is in sync", environment.resource()), async || {
            Ok(environment.is_settled().await?.then_some(()))
        })
        .await?;
    }
    Ok(())
}

pub(super) async fn a_provider_that_was_down_catches_up(fixture: Fixture) -> Result<()> {
    let standing = fixture.shared_environments().await?;
    let before = desired(&standing).await?;
    let providers = ["fake-providers", "provider-kubernetes", "provider-helm"]
        .map(|name| fixture.plane.process(name));
    let providers = providers.into_iter().collect::<Result<Vec<_>>>()?;
    join_all(providers.iter().map(|provider| provider.stop())).await;
    let mut late = Vec::new();
    for api in ["gpu-workspace", "unified-environment", "virtual-environment"] {
        for flavour in fixture.flavours() {
            let environment = fixture.example(api, flavour, examples::beside(api, flavour))?;
            environment.apply().await?;
            late.push(environment);
        }
    }
    try_join_all(late.iter().map(|environment| environment.provisioned("Creating"))).await?;
    ensure!(
        desired(&standing).await? == before,
        "running environments changed while providers are down"
    );
    providers.iter().try_for_each(|provider| provider.start_again())?;
    try_join_all(late.iter().map(Environment::ready)).await?;
    settled(&standing).await
}

/// How often a replica is killed.
const STRIKES: usize = 5;

/// While environments are created, replicas that are about to answer are killed again and again, so
/// their calls are lost.
pub(super) async fn killed_function_delays_no_environment(fixture: Fixture) -> Result<()> {
    let made = async {
        let (examples, clusters) =
            try_join(fixture.shared_examples(), fixture.shared_clusters()).await?;
        let examples = examples.into_iter().map(|(_, _, environment)| environment);
        let clusters = clusters.into_iter().map(|(_, _, environment)| environment);
        let environments: Vec<_> = examples.chain(clusters).collect();
        // If another scenario created them already, the function would not be called any more.
        try_join_all(environments.iter().map(Environment::poke)).await?;
        anyhow::Ok(environments)
    };
    let struck = async {
        let all = fixture.apis().count() + fixture.clusters().count();
        eventually("all are applied", async || {
            Ok((fixture.applied_shared().await? == all).then_some(()))
        })
        .await?;
        killed(&fixture.plane.function).await
    };
    // The killed replica is started again, even if the environments fail.
    let (environments, struck) = join(made, struck).await;
    let environments = environments?;
    struck?;
    for environment in &environments {
        let made = fixture.in_the_clouds(&environment.composite().await?).await?;
        let composed = environment.composed().await?;
        for kind in made.iter().filter_map(|one| one.split(' ').next()) {
            let made = made.iter().filter(|one| one.split(' ').next() == Some(kind)).count();
            let wanted = composed.iter().filter(|object| object["kind"] == kind).count();
            ensure!(
                made == wanted,
                "{}: {made} of {kind} were made, {wanted} are wanted",
                environment.resource()
            );
        }
    }
    Ok(())
}

/// Kills replicas that are about to answer, and starts each again.
async fn killed(function: &Function) -> Result<()> {
    for number in 0..STRIKES {
        let struck = tokio::time::timeout(TIMEOUT, function.strike()).await;
        let replica =
            struck.with_context(|| format!("{number} calls were cut off, but none followed"))??;
        tokio::time::sleep(Duration::from_secs(1)).await;
        replica.start_again()?;
    }
    Ok(())
}

/// A claim reports Synced and Ready even if its composite can no longer be composed.
pub(super) async fn an_edit_that_no_function_answers_is_not_ready(fixture: Fixture) -> Result<()> {
    let paved = Paved::from_fixture(&fixture)?;
    let pools = fixture.flavours().into_iter().map(|flavour| {
        let name = format!("edited-{flavour}");
        fixture.example("stock-pool", flavour, json!({"metadata": {"name": name}}))
    });
    let mut pools = pools.collect::<Result<Vec<_>>>()?;
    for pool in &pools {
        paved.apply(pool, &["--wait", "--timeout", "5m"]).await?.is(0, &["is ready after"])?;
    }
    let replicas = &fixture.plane.function.replicas;
    join_all(replicas.iter().map(|replica| replica.stop())).await;
    for pool in &mut pools {
        pool.manifest["spec"]["replicas"] = 3.into();
    }
    let flags = ["--wait", "--patience", "20s", "--timeout", "8m"];
    let edits = join_all(pools.iter().map(|pool| paved.apply(pool, &flags))).await;
    replicas.iter().try_for_each(|replica| replica.start_again())?;
    for edit in edits {
        edit?.is(4, &["Crossplane"])?;
    }
    for pool in &pools {
        paved.apply(pool, &["--wait", "--timeout", "5m"]).await?.is(0, &["is ready"])?;
    }
    Ok(())
}

pub(super) async fn restarted_crossplane_recreates_no_resource(fixture: Fixture) -> Result<()> {
    let environments = fixture.shared_environments().await?;
    let before = desired(&environments).await?;
    crossplane_looks_again(&fixture, environments.len()).await?;
    try_join_all(environments.iter().map(Environment::poke)).await?;
    for (environment, before) in environments.iter().zip(before) {
        let after = environment.desired().await?;
        ensure!(after == before, "{} changed: {before:?}, {after:?}", environment.resource());
    }
    Ok(())
}

/// Restarts Crossplane, and waits until it has reconciled more often than it has composites.
pub(super) async fn crossplane_looks_again(fixture: &Fixture, composites: usize) -> Result<()> {
    let core = fixture.plane.process("crossplane")?;
    // A restart resets Crossplane's counters.
    CircuitBreakers::from_plane(&fixture.plane)
        .await?
        .have_not_opened_since(&CircuitBreakers::default())?;
    core.stop().await;
    core.start_again()?;
    eventually("Crossplane has looked at every composite again", async || {
        // Crossplane has no metrics until it listens.
        let count =
            fixture.plane.metrics.sum("controller_runtime_reconcile_total", "composite/").await;
        let count = count.unwrap_or_default();
        Ok((f64::from(u32::try_from(composites)?) < count).then_some(()))
    })
    .await
}
