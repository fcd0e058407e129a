//! Somebody applies an example; it becomes Ready, and tells what its owner needs.

use anyhow::{Context, Result, ensure};
use function_paved_road::apis::{APIS, AnyApi, Flavour};
use futures::future::try_join_all;
use serde_json::{Value, json};

use crate::environment::Environment;
use crate::stage::{Stage, eventually};

pub(super) async fn every_claim_becomes_ready(stage: Stage) -> Result<()> {
    all_become_ready(&stage, Flavour::Claims).await
}

pub(super) async fn every_namespaced_composite_becomes_ready(stage: Stage) -> Result<()> {
    all_become_ready(&stage, Flavour::Namespaced).await
}

async fn all_become_ready(stage: &Stage, flavour: Flavour) -> Result<()> {
    let ready = APIS.iter().map(async |api| {
        if api.info().name != "virtual-environment" {
            return becomes_ready(stage, *api, flavour, json!({})).await.map(drop);
        }
        let environment = becomes_ready(stage, *api, flavour, json!({})).await?;
        let add_ons = stage.add_ons().await?;
        add_ons.join(&environment).await?;
        tells_its_status(api.info().name, &environment.object().await?)?;
        add_ons.leave(&environment).await
    });
    try_join_all(ready).await.map(drop)
}

/// An API's example, changed so, becomes Ready and tells what it should; gives it back.
pub(super) async fn becomes_ready(
    stage: &Stage,
    api: &dyn AnyApi,
    flavour: Flavour,
    change: Value,
) -> Result<Environment> {
    let name = api.info().name;
    let environment = stage.ready(name, flavour, change).await?;
    tells_its_status(name, &environment.object().await?)?;
    shows_its_columns(api, &environment).await?;
    hands_over_its_secret(stage, api, &environment, flavour).await.with_context(|| name)?;
    Ok(environment)
}

/// The status fields of apis.md that a ready environment of each kind has.
fn tells_its_status(api: &str, object: &Value) -> Result<()> {
    let own: &[&str] = match api {
        "gpu-workspace" => &["connection", "instanceId", "machine", "privateIp", "publicIp"],
        "application-environment" => &["bucketUrl", "dbAddress", "dbEndpoint", "gkeEndpoint"],
        "unified-environment" => &[
            "backendUrl",
            "databaseHost",
            "frontendBucketName",
            "frontendDistributionId",
            "frontendUrl",
            "ready",
            "region",
        ],
        "stock-pool" => &["allocated", "available", "lastSyncTime", "observedGeneration"],
        "virtual-environment" => &["endpoint", "kubeconfigSecret", "type", "url"],
        _ => &[],
    };
    ensure!(!own.is_empty(), "no scenario knows the status of {api}");
    let status = &object["status"];
    for field in own {
        ensure!(!status[field].is_null(), "{api}: status has no {field}: {status}");
    }
    let lines = status["resources"].as_array().context("status.resources is no list")?;
    let unready: Vec<_> = lines.iter().filter(|line| line["ready"] != true).collect();
    ensure!(unready.is_empty(), "{api} is Ready, and these are not: {unready:?}");
    Ok(())
}

/// `kubectl get` shows the API's own columns, and how far it is: Crossplane may write conditions that it read before once more, and
/// the right ones after them.
async fn shows_its_columns(api: &dyn AnyApi, environment: &Environment) -> Result<()> {
    eventually("kubectl get shows Ready and Available", async || {
        let table = environment.table().await?;
        let (head, row) = table.split_once('\n').context("kubectl get printed no row")?;
        let own = api.info().columns.iter().map(|(name, _, _)| name.to_uppercase());
        for column in own.chain(["PHASE", "PROGRESS", "REASON"].map(str::to_owned)) {
            ensure!(head.contains(&column), "no column {column} in {head}");
        }
        Ok(["Ready", "Available"].iter().all(|cell| row.contains(cell)).then_some(()))
    })
    .await
}

/// The connection details are in a Secret of the owner's namespace, under all their keys.
async fn hands_over_its_secret(
    stage: &Stage,
    api: &dyn AnyApi,
    environment: &Environment,
    flavour: Flavour,
) -> Result<()> {
    let keys = api.info().connection_keys;
    if keys.is_empty() {
        return Ok(());
    }
    let name = match flavour {
        Flavour::Claims => environment.manifest["spec"]["writeConnectionSecretToRef"]["name"]
            .as_str()
            .unwrap_or_default()
            .to_owned(),
        Flavour::Namespaced => format!("{}-{}", environment.name(), api.info().name),
    };
    eventually(&format!("Secret {name} has the keys {keys:?}"), async || {
        let secret = stage.objects.get("v1", "Secret", &stage.namespace, &name).await?;
        Ok(secret.filter(|secret| {
            keys.iter().all(|key| secret["data"][key].as_str().is_some_and(|value| !value.is_empty()))
        }))
    })
    .await
    .map(drop)
}
