//! What happens to environments that live: changes, accidents, restarts.

mod settings;

use std::time::Duration;

use anyhow::{Result, ensure};
use function_paved_road::apis::Flavour;
use futures::future::{join_all, try_join_all};
use serde_json::{Value, json};

pub(super) use self::settings::{
    new_networks_reach_what_runs, new_settings_leave_alone_what_runs, new_tags_and_publishers_reach_what_runs,
};
use super::{beside, in_both_flavours};
use crate::environment::{Desired, Environment, is_ready};
use crate::examples;
use crate::stage::{Stage, eventually, is_part};

/// Every field that may change, with a value that the example does not have; add-ons come and go by themselves.
fn changes(api: &str) -> Vec<Value> {
    let parameters = |change: Value| json!({"spec": {"parameters": change}});
    match api {
        "gpu-workspace" => vec![
            parameters(json!({"allowedCidrs": ["203.0.113.0/24", "198.51.100.7/32"]})),
            parameters(json!({"allowedCidrs": ["198.51.100.7/32"]})),
            parameters(json!({"instanceType": "g4dn.2xlarge"})),
            parameters(json!({"diskGB": 120})),
            parameters(json!({"owner": "grace@acme.io"})),
        ],
        "application-environment" => vec![
            parameters(json!({"nodeCount": 2})),
            parameters(json!({"nodeSize": "large"})),
            parameters(json!({"storageGB": 30})),
            parameters(json!({"deletionPolicy": "Orphan"})),
            parameters(json!({"deletionPolicy": "Delete"})),
        ],
        "unified-environment" => vec![
            json!({"spec": {"backend": {"replicas": 3}}}),
            json!({"spec": {"backend": {"env": {"LOG_LEVEL": "debug"}}}}),
            json!({"spec": {"backend": {"image": "ghcr.io/acme/checkout:1.5.0"}}}),
            json!({"spec": {"backend": {"port": 9090}}}),
            json!({"spec": {"database": {"size": "large"}}}),
            json!({"spec": {"frontend": {"retainFiles": false}}}),
        ],
        "stock-pool" => vec![
            json!({"spec": {"replicas": 3}}),
            json!({"spec": {"memory": "8Gi"}}),
            json!({"spec": {"gpu": 0}}),
            json!({"spec": {"specName": "g1.2"}}),
            json!({"spec": {"image": "registry.k8s.io/pause:3.9"}}),
        ],
        _ => vec![
            parameters(json!({"app": {"values": {"replicaCount": 1}}})),
            parameters(json!({"app": {"chart": {"version": "6.10.0"}}})),
            parameters(json!({"app": {"chart": {
                "repository": "https://stefanprodan.github.io/others",
                "name": "hello",
                "version": "1.0.0",
            }}})),
            parameters(json!({"size": "medium"})),
            parameters(json!({"expose": "loadBalancer"})),
        ],
    }
}

/// An edit arrives: what is composed is another after it, whole and in sync, and nothing was made anew nor goes, but for the rule of a
/// firewall that stands for a network: its slot begins so.
const OF_A_NETWORK: &str = "ssh-";

pub(super) async fn what_may_change_changes(stage: Stage) -> Result<()> {
    let changed = examples::all().map(async |(api, flavour)| {
        let environment = stage.ready(api.info().name, flavour, beside(flavour)).await?;
        for change in changes(api.info().name) {
            let before = environment.desired().await?;
            environment.edit(&change).await?;
            let what = format!("{} has {change}", environment.resource());
            let after = eventually(&what, async || {
                let now = environment.desired().await?;
                Ok((now != before && environment.is_settled().await?).then_some(now))
            })
            .await?;
            let is_lost = |(name, (uid, _)): &(&String, &(String, String))| match after.get(*name) {
                Some((now, _)) => now != uid,
                None => !name.starts_with(OF_A_NETWORK),
            };
            let lost: Vec<_> = before.iter().filter(is_lost).collect();
            ensure!(lost.is_empty(), "{what}, and made anew, or gone, is {lost:?}: {after:?}");
        }
        if api.info().name == "virtual-environment" {
            let add_ons = stage.add_ons().await?;
            add_ons.join(&environment).await?;
            let other = ["https://git.example.org/team-shop/other.git", "deploy/other", "other-branch"];
            let followed = json!({"repoURL": other[0], "path": other[1], "targetRevision": other[2]});
            environment.edit(&json!({"spec": {"parameters": {"gitops": followed}}})).await?;
            eventually("Argo CD follows another repository", async || {
                let application = environment.slot("gitops").await?["spec"].to_string();
                Ok(other.iter().all(|part| application.contains(part)).then_some(()))
            })
            .await?;
            environment.edit(&json!({"spec": {"parameters": {"knative": {"enabled": false}}}})).await?;
            environment
                .until("ready without Knative", |object| is_ready(object) && !is_part(object, "knative"))
                .await?;
            add_ons.leave(&environment).await?;
        }
        anyhow::Ok(())
    });
    try_join_all(changed).await.map(drop)
}

/// Parts of each kind of provider: a managed resource, a Deployment (in the claims flavour an Object that wraps it), a Release.
const LOST: [(&str, &str); 3] = [
    ("gpu-workspace", "role-ssm"),
    ("unified-environment", "backend-deployment"),
    ("virtual-environment", "app"),
];

pub(super) async fn what_was_deleted_by_hand_comes_back(stage: Stage) -> Result<()> {
    in_both_flavours(async |flavour| {
        let lost = LOST.into_iter().map(async |(api, slot)| {
            let environment = stage.ready(api, flavour, json!({})).await?;
            let lost = environment.slot(slot).await?["metadata"].clone();
            stage.operator().delete(&environment.slot(slot).await?).await?;
            eventually(&format!("{slot} is back"), async || {
                // Until it is made again, nothing fills the slot.
                let found = environment.slot(slot).await.unwrap_or_default()["metadata"].clone();
                Ok((found["name"] == lost["name"] && found["uid"] != lost["uid"]).then_some(()))
            })
            .await?;
            settled(&[environment]).await
        });
        try_join_all(lost).await.map(drop)
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

pub(super) async fn a_provider_that_was_down_catches_up(stage: Stage) -> Result<()> {
    let standing = stage.standing().await?;
    let before = desired(&standing).await?;
    let providers =
        ["stand-in", "provider-kubernetes", "provider-helm"].map(|name| stage.plane.process(name));
    let providers = providers.into_iter().collect::<Result<Vec<_>>>()?;
    join_all(providers.iter().map(|provider| provider.stop())).await;
    let mut late = Vec::new();
    for api in ["gpu-workspace", "unified-environment", "virtual-environment"] {
        let environment = stage.example(api, Flavour::Claims, json!({}))?;
        environment.apply().await?;
        environment.provisioned("Creating").await?;
        late.push(environment);
    }
    ensure!(desired(&standing).await? == before, "what ran before is another while providers are down");
    providers.iter().try_for_each(|provider| provider.start_again())?;
    try_join_all(late.iter().map(Environment::ready)).await?;
    settled(&standing).await
}

/// Whichever replica answers is killed, again and again, while environments are made.
pub(super) async fn a_function_that_is_killed_is_missed_by_nobody(stage: Stage) -> Result<()> {
    let function = &stage.plane.function;
    let environments = examples::all()
        .map(|(api, flavour)| stage.example(api.info().name, flavour, json!({})))
        .collect::<Result<Vec<_>>>()?;
    try_join_all(environments.iter().map(Environment::apply)).await?;
    let killing = async {
        loop {
            tokio::time::sleep(Duration::from_secs(3)).await;
            let serving = &function.replicas[function.serving()];
            serving.kill();
            tokio::time::sleep(Duration::from_secs(1)).await;
            if let Err(error) = serving.start_again() {
                return error;
            }
        }
    };
    let ready = try_join_all(environments.iter().map(Environment::ready));
    let ready = tokio::select! {
        ready = ready => ready,
        error = killing => Err(error),
    };
    for replica in function.replicas.iter().filter(|replica| !replica.is_running()) {
        replica.start_again()?;
    }
    ready?;
    ensure!(function.connections().iter().all(|count| *count > 1), "only one replica was ever asked");
    for environment in &environments {
        let made = stage.in_the_clouds(&environment.composite().await?).await?;
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

/// More reconciles of composites than it takes to look at each of those that stand.
const SEVERAL: f64 = 20.0;

pub(super) async fn crossplane_restarted_makes_nothing_anew(stage: Stage) -> Result<()> {
    let environments = stage.standing().await?;
    let before = desired(&environments).await?;
    let core = stage.plane.process("crossplane")?;
    core.stop().await;
    core.start_again()?;
    eventually("Crossplane has looked at every composite again", async || {
        // Until it listens, there is nothing to count.
        let count = stage.plane.metrics.sum("controller_runtime_reconcile_total", "composite/").await;
        Ok((count.unwrap_or_default() > SEVERAL).then_some(()))
    })
    .await?;
    try_join_all(environments.iter().map(Environment::poke)).await?;
    for (environment, before) in environments.iter().zip(before) {
        let after = environment.desired().await?;
        ensure!(after == before, "{} is another: {before:?}, {after:?}", environment.resource());
    }
    Ok(())
}
