//! What happens to environments that live: changes, accidents, restarts.

mod by_hand;
mod edits;
mod settings;

use std::time::Duration;

use anyhow::{Context, Result, ensure};
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

/// Parts of each kind of provider: managed resources in two clouds, a Deployment (in the claims
/// flavour an Object that wraps it) among others and as all that there is, what lets a role into a
/// database, a Release. (A Usage that is deleted, or a provider config, only goes once nobody needs
/// it.)
const LOST: [(&str, &[&str]); 5] = [
    ("gpu-workspace", &["role-policy"]),
    ("application-environment", &["bucket"]),
    ("unified-environment", &["backend-deployment", "postgres-grant"]),
    ("stock-pool", &["deployment"]),
    ("virtual-environment", &["app"]),
];

pub(super) async fn resource_deleted_by_hand_comes_back(fixture: Fixture) -> Result<()> {
    let parts = in_each_flavour(&fixture, async |flavour| {
        let lost = LOST.into_iter().map(async |(api, slots)| {
            let environment = fixture.ready(api, flavour, examples::beside(api, flavour)).await?;
            for slot in slots {
                comes_back(&environment, slot, &fixture.operator()).await?;
            }
            Ok(())
        });
        try_join_all(lost).await.map(drop)
    });
    try_join(parts, a_connection_secret_comes_back(&fixture)).await.map(drop)
}

/// The slot of the connection details in the namespaced flavour.
const CONNECTION: &str = "connection";

/// Somebody deletes what fills a slot: it is made again, and everything is in sync.
async fn comes_back(environment: &Environment, slot: &str, who: &Kubectl) -> Result<()> {
    let lost = environment.slot(slot).await?;
    who.delete(&lost).await?;
    let lost = &lost["metadata"];
    eventually(&format!("{slot} is back"), async || {
        // Until it is made again, nothing fills the slot.
        let found = environment.slot(slot).await.unwrap_or_default()["metadata"].clone();
        Ok((found["name"] == lost["name"] && found["uid"] != lost["uid"]).then_some(()))
    })
    .await?;
    settled(std::slice::from_ref(environment)).await
}

/// With something in each of its keys, though one of them is a password that nobody else has.
async fn a_connection_secret_comes_back(fixture: &Fixture) -> Result<()> {
    let api = "application-environment";
    let another = json!({"metadata": {"name": "another"}});
    let environment = fixture.ready(api, Flavour::Namespaced, another).await?;
    // No operator's business: operators see no Secrets.
    comes_back(&environment, CONNECTION, &fixture.admin).await?;
    claims::connection_secret(fixture, api, Flavour::Namespaced, &environment).await.map(drop)
}

/// Somebody terminates the machine in the cloud's own console.
pub(super) async fn resource_vanished_from_a_cloud_comes_back(fixture: Fixture) -> Result<()> {
    in_each_flavour(&fixture, async |flavour| {
        let environment = fixture.ready("gpu-workspace", flavour, json!({})).await?;
        let before = environment.object().await?["status"]["instanceId"].clone();
        fixture.vanishes(&environment.slot("instance").await?).await?;
        let after = environment
            .until("another machine is there", |object| {
                let id = &object["status"]["instanceId"];
                id.is_string() && *id != before && is_ready(object)
            })
            .await?;
        let machine = environment.slot("instance").await?;
        ensure!(
            machine["metadata"]["annotations"][names::EXTERNAL_NAME]
                == after["status"]["instanceId"],
            "the environment names another machine than it has: {}",
            after["status"]
        );
        settled(&[environment]).await
    })
    .await
}

/// What is wanted of each environment.
async fn desired(environments: &[Environment]) -> Result<Vec<Desired>> {
    try_join_all(environments.iter().map(Environment::desired)).await
}

/// Waits until every environment is ready, and every part of it in sync.
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
        "what ran before is another while providers are down"
    );
    providers.iter().try_for_each(|provider| provider.start_again())?;
    try_join_all(late.iter().map(Environment::ready)).await?;
    settled(&standing).await
}

/// How often a replica is killed.
const STRIKES: usize = 5;

/// While environments are made, a replica is killed again and again that is about to answer: its
/// calls are lost.
pub(super) async fn killed_function_delays_no_environment(fixture: Fixture) -> Result<()> {
    let made = async {
        let (examples, clusters) =
            try_join(fixture.shared_examples(), fixture.shared_clusters()).await?;
        let examples = examples.into_iter().map(|(_, _, environment)| environment);
        let clusters = clusters.into_iter().map(|(_, _, environment)| environment);
        let environments: Vec<_> = examples.chain(clusters).collect();
        // Where somebody else had them made, nobody would ask the function any more.
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
    // Whatever becomes of the environments, the replica that is down is started again.
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
        let replica = struck
            .with_context(|| format!("{number} calls were cut off, and no other was made"))??;
        tokio::time::sleep(Duration::from_secs(1)).await;
        replica.start_again()?;
    }
    Ok(())
}

/// A claim says that it is synced and ready although its composite cannot be composed any more.
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
    crossplane_looks_again(&fixture).await?;
    try_join_all(environments.iter().map(Environment::poke)).await?;
    for (environment, before) in environments.iter().zip(before) {
        let after = environment.desired().await?;
        ensure!(after == before, "{} is another: {before:?}, {after:?}", environment.resource());
    }
    Ok(())
}

/// More reconciles of composites than it takes to look at each of those that stand.
const SEVERAL: f64 = 20.0;

/// Starts Crossplane anew, and waits until it has looked at every composite.
pub(super) async fn crossplane_looks_again(fixture: &Fixture) -> Result<()> {
    let core = fixture.plane.process("crossplane")?;
    // What it has counted goes with it.
    CircuitBreakers::from_plane(&fixture.plane)
        .await?
        .have_not_opened_since(&CircuitBreakers::default())?;
    core.stop().await;
    core.start_again()?;
    eventually("Crossplane has looked at every composite again", async || {
        // Until it listens, there is nothing to count.
        let count =
            fixture.plane.metrics.sum("controller_runtime_reconcile_total", "composite/").await;
        Ok((count.unwrap_or_default() > SEVERAL).then_some(()))
    })
    .await
}
