//! A user applies an example. It becomes Ready and gives its owner the necessary details.

mod db_client;

use std::net::IpAddr;

use anyhow::{Context, Result, bail, ensure};
use function_paved_road::apis::{APIS, AnyApi, Flavour};
use function_paved_road::observe::spec_hash;
use futures::future::{try_join, try_join_all};
use serde_json::Value;

pub(super) use self::db_client::DbClient;
use self::db_client::text;
use crate::environment::Environment;
use crate::eventually::eventually;
use crate::fixture::Fixture;
use crate::objects::Objects;

pub(super) async fn every_claim_becomes_ready(fixture: Fixture) -> Result<()> {
    all_become_ready(&fixture, Flavour::Claims).await
}

pub(super) async fn every_namespaced_composite_becomes_ready(fixture: Fixture) -> Result<()> {
    all_become_ready(&fixture, Flavour::Namespaced).await
}

async fn all_become_ready(fixture: &Fixture, flavour: Flavour) -> Result<()> {
    let (mut examples, mut clusters) =
        try_join(fixture.shared_examples(), fixture.shared_clusters()).await?;
    examples.retain(|(_, of, _)| *of == flavour);
    clusters.retain(|(_, of, _)| *of == flavour);
    let examples =
        examples.iter().map(|(api, _, environment)| tells(fixture, *api, flavour, environment));
    let clusters = clusters
        .iter()
        .map(|(cluster, _, environment)| cluster_tells(fixture, cluster, flavour, environment));
    try_join(try_join_all(examples), try_join_all(clusters)).await.map(drop)
}

/// Applies an API's example with a change, waits until it is ready and checks its details. Returns
/// it.
pub(super) async fn becomes_ready(
    fixture: &Fixture,
    api: &dyn AnyApi,
    flavour: Flavour,
    change: Value,
) -> Result<Environment> {
    let environment = fixture.ready(api.info().name, flavour, change).await?;
    tells(fixture, api, flavour, &environment).await?;
    Ok(environment)
}

/// Checks the details that a ready environment gives to its owner.
async fn tells(
    fixture: &Fixture,
    api: &dyn AnyApi,
    flavour: Flavour,
    environment: &Environment,
) -> Result<()> {
    let name = api.info().name;
    tells_its_status(name, &environment.object().await?)?;
    shows_its_columns(name, environment).await?;
    if name == "virtual-environment" {
        names_its_kubeconfig(fixture, environment).await?;
    }
    hands_over_its_secret(fixture, api, environment, flavour).await.with_context(|| name)
}

/// The same for a virtual environment on a managed cluster of this type.
async fn cluster_tells(
    fixture: &Fixture,
    cluster: &str,
    flavour: Flavour,
    environment: &Environment,
) -> Result<()> {
    let api =
        APIS.iter().find(|api| api.info().name == "virtual-environment").context("no such API")?;
    let object = environment.object().await?;
    tells_its_status(api.info().name, &object).with_context(|| cluster.to_owned())?;
    let status = &object["status"];
    ensure!(
        status["phase"] == "Ready" && status["type"] == cluster,
        "no {cluster} that is ready: {status}"
    );
    let endpoint = status["endpoint"].as_str().unwrap_or_default();
    ensure!(is_endpoint_of(cluster, endpoint), "{cluster} is not reached at {endpoint:?}");
    ensure!(status["url"] == endpoint, "{cluster} has another url than its endpoint: {status}");
    ensure!(
        status["kubeconfigSecret"]["key"] == "kubeconfig",
        "{cluster} has its kubeconfig under another key: {status}"
    );
    names_its_kubeconfig(fixture, environment).await.with_context(|| cluster.to_owned())?;
    connection_secret(fixture, api.info().name, flavour, environment)
        .await
        .with_context(|| cluster.to_owned())
        .map(drop)
}

/// Checks that the Secret exists that a virtual environment's status names, with a value under the
/// named key.
async fn names_its_kubeconfig(fixture: &Fixture, environment: &Environment) -> Result<()> {
    let object = environment.object().await?;
    let named = &object["status"]["kubeconfigSecret"];
    let name = |key: &str| named[key].as_str().unwrap_or_default();
    let secret = fixture.objects.get("v1", "Secret", name("namespace"), name("name")).await?;
    let kubeconfig = &secret.unwrap_or_default()["data"][name("key")];
    ensure!(
        kubeconfig.as_str().is_some_and(|it| !it.is_empty()),
        "status names a Secret without kubeconfig: {named}"
    );
    Ok(())
}

/// Whether a URL has the form of the API endpoints of a cluster's cloud.
fn is_endpoint_of(cluster: &str, url: &str) -> bool {
    let host = url.strip_prefix("https://").unwrap_or_default();
    match cluster {
        "gke" => host.parse::<IpAddr>().is_ok(),
        "eks" => host.ends_with(".eks.amazonaws.com"),
        "aks" => host.ends_with(".azmk8s.io:443"),
        _ => false,
    }
}

/// Checks for the status fields of apis.md that a ready environment of each kind has.
pub(super) fn tells_its_status(api: &str, object: &Value) -> Result<()> {
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
        "stock-pool" => &["allocated", "available", "lastSyncTime"],
        "virtual-environment" => &["endpoint", "kubeconfigSecret", "type", "url"],
        _ => &[],
    };
    ensure!(!own.is_empty(), "no scenario knows the status of {api}");
    let status = &object["status"];
    for field in own {
        ensure!(!status[field].is_null(), "{api}: status has no {field}: {status}");
    }
    // A claim copies its composite's status, and the composite has another generation.
    let has_claims = !object["apiVersion"].as_str().unwrap_or_default().starts_with("platform.m.");
    if api == "stock-pool" {
        let seen = &status["observedGeneration"];
        ensure!(seen.is_null() == has_claims, "{api}: status.observedGeneration is {seen}");
    }
    let newest = spec_hash(&object["spec"]);
    ensure!(
        status["specHash"] == newest,
        "{api}: status.specHash is not {newest}, that of its spec: {object}"
    );
    let lines = status["resources"].as_array().context("status.resources is not a list")?;
    let unready: Vec<_> = lines.iter().filter(|line| line["ready"] != true).collect();
    ensure!(unready.is_empty(), "{api} is Ready, and these are not: {unready:?}");
    Ok(())
}

/// A column of `kubectl get`, and a check of its cell.
type Cell = (&'static str, fn(&str) -> bool);

/// The columns of an API's example: requested values, and addresses.
fn own_cells(api: &str) -> Vec<Cell> {
    match api {
        "gpu-workspace" => vec![
            ("MACHINE", |cell| cell == "g4dn.xlarge"),
            ("ADDRESS", |cell| cell.parse::<IpAddr>().is_ok()),
        ],
        "application-environment" => vec![
            ("SIZE", |cell| cell == "medium"),
            // project:region:instance, as Cloud SQL's connectors take it.
            ("DATABASE", |cell| cell.split(':').filter(|part| !part.is_empty()).count() == 3),
        ],
        "unified-environment" => vec![
            ("APP", |cell| cell == "checkout"),
            ("URL", |cell| cell.starts_with("https://")),
            ("READY", |cell| cell == "true"),
        ],
        "stock-pool" => vec![
            ("SPEC", |cell| cell == "g1.1"),
            ("DESIRED", |cell| cell == "2"),
            ("AVAILABLE", |cell| cell == "2"),
        ],
        "virtual-environment" => {
            vec![
                ("TYPE", |cell| cell == "vcluster"),
                ("ENDPOINT", |cell| cell.starts_with("https://")),
            ]
        }
        _ => vec![],
    }
}

/// The columns for progress: Crossplane's, and ours.
const HOW_FAR: [Cell; 5] = [
    ("SYNCED", |cell| cell == "True"),
    ("READY", |cell| cell == "True"),
    ("PHASE", |cell| cell == "Ready"),
    ("PROGRESS", |cell| cell.split_once('/').is_some_and(|(done, all)| done == all && done != "0")),
    ("REASON", |cell| cell == "Available"),
];

/// Checks that `kubectl get` shows requested values, addresses and progress. Crossplane may write
/// old conditions once more before the right ones, so the check waits.
async fn shows_its_columns(api: &str, environment: &Environment) -> Result<()> {
    let own = own_cells(api);
    ensure!(!own.is_empty(), "no scenario knows the columns of {api}");
    let mut table = String::new();
    let shown = eventually("kubectl get shows all values", async || {
        table = environment.table().await?;
        let cells = cells(&table)?;
        let is_shown =
            |(head, is): &Cell| cells.iter().any(|(column, cell)| column == head && is(cell));
        Ok(own.iter().chain(&HOW_FAR).all(is_shown).then_some(()))
    });
    shown.await.with_context(|| format!("{api}:\n{table}"))
}

/// The cells of a table with one row. Each column begins below the start of its head.
fn cells(table: &str) -> Result<Vec<(&str, &str)>> {
    let (mut heads, mut row) =
        table.trim_end().split_once('\n').context("kubectl get printed no row")?;
    let mut cells = Vec::new();
    while !heads.is_empty() {
        let gap = heads.find("  ").unwrap_or(heads.len());
        let width = heads[gap..].find(|c| c != ' ').map_or(heads.len(), |rest| gap + rest);
        let (head, cell);
        (head, heads) = heads.split_at(width);
        // The last one may be longer than its head.
        let cut = if heads.is_empty() { None } else { row.split_at_checked(width) };
        (cell, row) = cut.unwrap_or((row, ""));
        cells.push((head.trim(), cell.trim()));
    }
    Ok(cells)
}

/// Checks that a Secret in the owner's namespace has the connection details under all their keys. A
/// database must accept its credentials.
async fn hands_over_its_secret(
    fixture: &Fixture,
    api: &dyn AnyApi,
    environment: &Environment,
    flavour: Flavour,
) -> Result<()> {
    let secret = connection_secret(fixture, api.info().name, flavour, environment).await?;
    let object = environment.object().await?;
    let status = &object["status"];
    for (key, field) in connection_in_status(api.info().name)? {
        let value = secret.as_ref().map(|secret| text(secret, key)).transpose()?;
        ensure!(
            value.as_deref() == status[field].as_str(),
            "{key} is {value:?}, and {field} another: {status}"
        );
    }
    let has_database = api.info().name == "unified-environment" && fixture.plane.postgres.is_some();
    match secret.filter(|_| has_database) {
        Some(secret) => DbClient::with(&secret).await.map(drop),
        None => Ok(()),
    }
}

/// The keys of an API's connection details, as clients know them.
fn connection_keys(api: &str) -> Result<&'static [&'static str]> {
    Ok(match api {
        "gpu-workspace" => &["host", "user", "instanceId"],
        "application-environment" => {
            &["kubeconfig", "db_host", "db_password", "db_address", "db_port", "db_user", "db_name"]
        }
        "unified-environment" => &["username", "password", "endpoint", "port", "database"],
        "stock-pool" => &[],
        "virtual-environment" => &["kubeconfig"],
        _ => bail!("no scenario knows the connection details of {api}"),
    })
}

/// Connection details that the status also shows: their keys, and the status fields.
fn connection_in_status(api: &str) -> Result<&'static [(&'static str, &'static str)]> {
    Ok(match api {
        "gpu-workspace" => &[("host", "publicIp"), ("instanceId", "instanceId")],
        "application-environment" => &[("db_host", "dbEndpoint"), ("db_address", "dbAddress")],
        "unified-environment" => &[("endpoint", "databaseHost")],
        "stock-pool" | "virtual-environment" => &[],
        _ => bail!("no scenario knows the connection details in the status of {api}"),
    })
}

/// Waits until the connection Secret has all keys, with the read rights of the owner's role. None
/// if an API has no connection details.
pub(super) async fn connection_secret(
    fixture: &Fixture,
    api: &str,
    flavour: Flavour,
    environment: &Environment,
) -> Result<Option<Value>> {
    let keys = connection_keys(api)?;
    if keys.is_empty() {
        return Ok(None);
    }
    let name = match flavour {
        Flavour::Claims => environment.manifest["spec"]["writeConnectionSecretToRef"]["name"]
            .as_str()
            .unwrap_or_default()
            .to_owned(),
        Flavour::Namespaced => format!("{}-{api}", environment.name()),
    };
    // The scenario's own user has no rights in the namespace of the shared environments.
    let owner = format!("user@{}", environment.namespace());
    let objects = Objects::new(fixture.plane.outer.person(&owner).await?);
    eventually(&format!("Secret {name} has the keys {keys:?}"), async || {
        let secret = objects.get("v1", "Secret", environment.namespace(), &name).await?;
        Ok(secret.filter(|secret| {
            keys.iter()
                .all(|key| secret["data"][key].as_str().is_some_and(|value| !value.is_empty()))
        }))
    })
    .await
    .map(Some)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by it")]
    use super::*;

    #[test]
    fn an_empty_cell_is_empty() {
        let table = "NAME   ADDRESS        CONNECTION-SECRET   AGE\nada                   ada-conn            7s\n";
        let told =
            [("NAME", "ada"), ("ADDRESS", ""), ("CONNECTION-SECRET", "ada-conn"), ("AGE", "7s")];
        assert_eq!(cells(table).unwrap(), told);
    }

    #[test]
    fn the_last_cell_may_be_longer_than_its_head() {
        let told = [("NAME", "ada"), ("REASON", "Available")];
        assert_eq!(cells("NAME   REASON\nada    Available").unwrap(), told);
    }
}
