//! What happens to environments that live: changes, accidents, restarts.

use std::time::Duration;

use anyhow::{Result, ensure};
use function_paved_road::apis::Flavour;
use futures::future::{join_all, try_join_all};
use serde_json::{Value, json};

use super::in_both_flavours;
use crate::environment::{Desired, Environment, is_ready};
use crate::examples;
use crate::stage::{Stage, eventually, is_part};

/// Every field that may change, with a value that the example does not have; add-ons come and go by themselves. `expose` is not among
/// them: nothing here gives load balancers an address. Nor is another chart: the repository here has one.
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
            parameters(json!({"size": "medium"})),
        ],
    }
}

/// An edit arrives: what is composed is another after it, whole and in sync, and nothing was made anew but what stands for itself,
/// as a rule of a firewall does.
pub(super) async fn what_may_change_changes(stage: Stage) -> Result<()> {
    let changed = examples::all().map(async |(api, flavour)| {
        let environment = stage.ready(api.info().name, flavour, json!({})).await?;
        for change in changes(api.info().name) {
            let before = environment.desired().await?;
            environment.edit(&change).await?;
            let what = format!("{} has {change}", environment.resource());
            let after = eventually(&what, async || {
                let now = environment.desired().await?;
                Ok((now != before && environment.is_settled().await?).then_some(now))
            })
            .await?;
            let anew =
                before.iter().filter(|(name, (uid, _))| after.get(*name).is_some_and(|(now, _)| now != uid));
            let anew: Vec<_> = anew.collect();
            ensure!(anew.is_empty(), "{what}, and made anew was {anew:?}");
        }
        if api.info().name == "virtual-environment" {
            let add_ons = stage.add_ons().await?;
            add_ons.join(&environment).await?;
            environment.edit(&json!({"spec": {"parameters": {"gitops": {"path": "deploy/other"}}}})).await?;
            eventually("Argo CD follows another folder", async || {
                Ok(environment.slot("gitops").await?["spec"]
                    .to_string()
                    .contains("deploy/other")
                    .then_some(()))
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

/// Whatever is changed in Settings, what runs goes on as it is, and what is new has it.
pub(super) async fn new_settings_leave_alone_what_runs(stage: Stage) -> Result<()> {
    let environments = stage.standing().await?;
    let before = desired(&environments).await?;
    let old = stage.settings().await?;
    stage.patch_settings(&json!({"data": other_settings()})).await?;
    let played = async {
        try_join_all(environments.iter().map(Environment::poke)).await?;
        ensure!(
            desired(&environments).await? == before,
            "something runs otherwise after a change of Settings"
        );
        settled(&environments).await?;
        let new = stage.example("stock-pool", Flavour::Namespaced, json!({}))?;
        new.apply().await?;
        eventually("a new pool has the new runtime class", async || {
            let deployment = new.slot("deployment").await.unwrap_or_default();
            Ok((deployment["spec"]["template"]["spec"]["runtimeClassName"] == "nvidia").then_some(()))
        })
        .await
    }
    .await;
    stage.put_settings(&old).await?;
    played
}

/// What is only written on things, or lets somebody in, follows the Settings, and nothing is made anew.
pub(super) async fn new_tags_and_publishers_reach_what_runs(stage: Stage) -> Result<()> {
    let environments = stage.standing().await?;
    let before = try_join_all(environments.iter().map(Environment::uids)).await?;
    let old = stage.settings().await?;
    let publisher = "arn:aws:iam::123456789012:role/another-publisher";
    let followed = json!({"data": {
        "tags": {"cost-center": "4711"},
        "unifiedEnvironment": {"publisherRoleArns": [publisher]},
    }});
    stage.patch_settings(&followed).await?;
    let played = says(&environments, publisher, true).await;
    stage.put_settings(&old).await?;
    played?;
    // What is taken back goes.
    says(&environments, publisher, false).await?;
    let after = try_join_all(environments.iter().map(Environment::uids)).await?;
    ensure!(before == after, "something was made anew for a tag");
    Ok(())
}

/// Waits until machines have the tag and sites the publisher, or neither.
async fn says(environments: &[Environment], publisher: &str, wanted: bool) -> Result<()> {
    try_join_all(environments.iter().map(Environment::poke)).await?;
    for environment in environments {
        for (slot, value) in [("instance", "4711"), ("frontend-bucket-policy", publisher)] {
            if !is_part(&environment.object().await?, slot) {
                continue;
            }
            eventually(&format!("{slot} says {value}: {wanted}"), async || {
                let says = environment.slot(slot).await?["spec"].to_string().contains(value);
                Ok((says == wanted).then_some(()))
            })
            .await?;
        }
    }
    settled(environments).await
}

/// Settings of every section that are other than those of the examples.
fn other_settings() -> Value {
    json!({
        "providerConfigs": {"aws": {"name": "other"}, "gcp": {"name": "other"}},
        "gpuWorkspace": {
            "amis": {"us-east-1": {"default": "ami-0fedcba9876543210"}},
            "networks": {"us-east-1": {"vpcId": "vpc-0123456789abcdef0", "subnetId": "subnet-0123456789abcdef0"}},
            "permissionsBoundary": "arn:aws:iam::123456789012:policy/boundary",
        },
        "applicationEnvironment": {
            "databaseTier": "db-custom-4-15360",
            "databaseVersion": "POSTGRES_16",
            "machineTypes": {"medium": "e2-standard-8"},
            "network": "projects/acme-dev/global/networks/other",
            "projectId": "other-dev",
            "zones": {"us-central1": ["us-central1-a"]},
        },
        "unifiedEnvironment": {
            "region": "eu-west-1",
            "database": {"mode": "rds"},
            "rds": {"subnetGroup": "databases", "securityGroupIds": ["sg-0123456789abcdef0"]},
            "resources": {"medium": {"cpu": "2", "memory": "2Gi"}},
            "ingress": {"domain": "other.acme.io", "className": "other"},
        },
        "stockPool": {"runtimeClassName": "nvidia"},
        "environment": {
            "charts": {"vcluster": "0.37.0", "argocd": "10.2.0", "knative": "v1.22.0"},
            "typeBySize": {"small": "gke"},
            "machineTypes": {"gke": {"small": "e2-standard-8"}},
        },
    })
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
