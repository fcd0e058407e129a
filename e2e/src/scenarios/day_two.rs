//! What happens to environments that live: changes, accidents, restarts.

use anyhow::{Context, Result, ensure};
use function_paved_road::apis::Flavour;
use futures::future::try_join_all;
use serde_json::{Value, json};

use super::in_both_flavours;
use crate::environment::{Desired, Environment, is_ready};
use crate::examples;
use crate::stage::{Stage, eventually, is_part};

/// Every field that may change, with a value that the example does not have.
fn changes(api: &str) -> Vec<Value> {
    match api {
        "gpu-workspace" => vec![
            json!({"spec": {"parameters": {"allowedCidrs": ["203.0.113.0/24", "198.51.100.7/32"]}}}),
            json!({"spec": {"parameters": {"allowedCidrs": ["198.51.100.7/32"]}}}),
            json!({"spec": {"parameters": {"instanceType": "g4dn.2xlarge"}}}),
        ],
        "application-environment" => vec![json!({"spec": {"parameters": {"nodeCount": 2}}})],
        "unified-environment" => vec![
            json!({"spec": {"backend": {"replicas": 3}}}),
            json!({"spec": {"backend": {"env": {"LOG_LEVEL": "debug"}}}}),
            json!({"spec": {"backend": {"image": "ghcr.io/acme/checkout:1.5.0"}}}),
            json!({"spec": {"database": {"size": "large"}}}),
            json!({"spec": {"frontend": {"retainFiles": false}}}),
        ],
        "stock-pool" => vec![
            json!({"spec": {"replicas": 3}}),
            json!({"spec": {"memory": "8Gi"}}),
            json!({"spec": {"gpu": 0}}),
            json!({"spec": {"specName": "g1.2"}}),
        ],
        _ => vec![
            json!({"spec": {"parameters": {"app": {"values": {"replicaCount": 1}}}}}),
            json!({"spec": {"parameters": {"size": "medium"}}}),
        ],
    }
}

pub(super) async fn what_may_change_changes(stage: Stage) -> Result<()> {
    let changed = examples::all().map(async |(api, flavour)| {
        let environment = stage.ready(api.info().name, flavour, json!({})).await?;
        for change in changes(api.info().name) {
            let before = environment.object().await?["metadata"]["generation"].clone();
            environment.edit(&change).await?;
            let what = format!("ready with {change}");
            environment
                .until(&what, |object| object["metadata"]["generation"] != before && is_ready(object))
                .await?;
        }
        if api.info().name == "virtual-environment" {
            let add_ons = stage.add_ons().await?;
            add_ons.join(&environment).await?;
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

pub(super) async fn what_was_deleted_by_hand_comes_back(stage: Stage) -> Result<()> {
    in_both_flavours(async |flavour| {
        let workspace = stage.ready("gpu-workspace", flavour, json!({})).await?;
        let lost = workspace.slot("role-ssm").await?;
        let metadata = &lost["metadata"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let kind = crate::environment::resource(&lost);
        let mut args = vec!["delete".to_owned(), kind, text(&metadata["name"]), "--wait=false".to_owned()];
        if metadata["namespace"].is_string() {
            args.extend(["-n".to_owned(), text(&metadata["namespace"])]);
        }
        stage.admin.run(&args.iter().map(String::as_str).collect::<Vec<_>>()).await?;
        eventually("what was deleted is back", async || {
            let found = workspace.composed().await?.into_iter().find(|object| {
                object["metadata"]["name"] == metadata["name"] && object["metadata"]["uid"] != metadata["uid"]
            });
            Ok(found)
        })
        .await?;
        workspace.ready().await.map(drop)
    })
    .await
}

/// Whatever is changed in Settings, what runs goes on as it is.
pub(super) async fn new_settings_leave_alone_what_runs(stage: Stage) -> Result<()> {
    let environments = stage.standing().await?;
    let before = desired(&environments).await?;
    let settings = ["get", "environmentconfig", "paved-road"];
    let old = stage.admin.get(&settings[1..]).await.context("Settings come from an EnvironmentConfig")?;
    let other = json!({"data": {
        "gpuWorkspace": {"amis": {"us-east-1": {"default": "ami-0fedcba9876543210"}}},
        "environment": {"charts": {"vcluster": "0.37.0", "argocd": "10.2.0"}},
        "unifiedEnvironment": {"ingress": {"domain": "other.acme.io"}},
        "applicationEnvironment": {"databaseTier": "db-custom-4-15360"},
    }});
    stage.patch_settings(&other).await?;
    let after = async {
        try_join_all(environments.iter().map(Environment::poke)).await?;
        desired(&environments).await
    }
    .await;
    stage.patch_settings(&json!({"data": old["data"]})).await?;
    ensure!(before == after?, "something runs otherwise after a change of Settings");
    Ok(())
}

/// What is wanted of each environment.
async fn desired(environments: &[Environment]) -> Result<Vec<Desired>> {
    try_join_all(environments.iter().map(Environment::desired)).await
}

pub(super) async fn a_provider_that_was_down_catches_up(stage: Stage) -> Result<()> {
    let stand_in = stage.plane.process("stand-in")?;
    stand_in.stop().await;
    let workspace = stage.example("gpu-workspace", Flavour::Claims, json!({}))?;
    workspace.apply().await?;
    workspace.provisioned("Creating").await?;
    stand_in.start_again()?;
    workspace.ready().await.map(drop)
}

pub(super) async fn a_function_that_is_killed_is_missed_by_nobody(stage: Stage) -> Result<()> {
    let first = stage.plane.process("function-0")?;
    let environments = examples::all()
        .map(|(api, flavour)| stage.example(api.info().name, flavour, json!({})))
        .collect::<Result<Vec<_>>>()?;
    try_join_all(environments.iter().map(Environment::apply)).await?;
    first.kill();
    let ready = try_join_all(environments.iter().map(Environment::ready)).await;
    first.start_again()?;
    ready.map(drop)
}

pub(super) async fn crossplane_restarted_makes_nothing_anew(stage: Stage) -> Result<()> {
    let environments = stage.standing().await?;
    let before = desired(&environments).await?;
    let core = stage.plane.process("crossplane")?;
    core.stop().await;
    core.start_again()?;
    eventually("Crossplane has looked at every composite again", async || {
        // Until it listens, there is nothing to count.
        let count = stage.plane.metrics.sum("controller_runtime_reconcile_total", "composite/").await;
        Ok((count.unwrap_or_default() > 2.0 * environments.len() as f64).then_some(()))
    })
    .await?;
    try_join_all(environments.iter().map(Environment::poke)).await?;
    ensure!(desired(&environments).await? == before, "something was made anew, or otherwise");
    Ok(())
}
