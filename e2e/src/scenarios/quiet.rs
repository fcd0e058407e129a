//! An environment that is left alone causes no writes, although every controller checks it again:
//! ready, stopped, or with an end that is far away.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Result, ensure};
use function_paved_road::apis::Flavour;
use futures::future::{join_all, try_join_all};
use serde_json::{Value, json};

use super::day_two::crossplane_looks_again;
use super::lifecycle::is_stopped;
use crate::environment::{Environment, is_ready};
use crate::eventually::eventually;
use crate::fixture::Fixture;

/// The time without any write.
const SILENCE: Duration = Duration::from_mins(2);

/// How long late writes of a newly ready environment may take.
const SETTLING: Duration = Duration::from_secs(15);

pub(super) async fn idle_environment_causes_no_write(fixture: Fixture) -> Result<()> {
    let mut environments = fixture.shared_environments().await?;
    environments.extend(with_a_lifecycle(&fixture).await?);
    // A provider may apply an unseen change only at its next check, minutes later. So make every
    // controller check now.
    every_controller_looks_again(&fixture, environments.len()).await?;
    let before = try_join_all(environments.iter().map(settled)).await?;
    let silent = tokio::time::sleep(SILENCE);
    every_controller_looks_again(&fixture, environments.len()).await?;
    silent.await;
    for (environment, before) in environments.iter().zip(before) {
        let after = objects(environment).await?;
        let written: Vec<_> = after
            .iter()
            .filter(|(name, object)| before.get(*name).map(version) != Some(version(object)))
            .map(|(name, object)| {
                format!("{name}, before: {:?}, after: {object}", before.get(name))
            })
            .collect();
        ensure!(written.is_empty(), "written in {} s: {}", SILENCE.as_secs(), written.join("; "));
        let names = |objects: &Objects| objects.keys().cloned().collect::<Vec<_>>();
        let (before, after) = (names(&before), names(&after));
        ensure!(after == before, "objects were created or deleted: {before:?}, {after:?}");
    }
    Ok(())
}

/// Workspaces for each kind of API: one whose end is far away, and a stopped one.
async fn with_a_lifecycle(fixture: &Fixture) -> Result<Vec<Environment>> {
    let lifecycles = [("ends", json!({"ttl": "90d"})), ("stopped", json!({"power": "Stopped"}))];
    let mut workspaces = Vec::new();
    for flavour in fixture.flavours() {
        for (name, lifecycle) in &lifecycles {
            let mut change = json!({"metadata": {"name": format!("{name}-{flavour}")}});
            change["spec"] = json!({"lifecycle": lifecycle});
            if flavour == Flavour::Claims {
                change["spec"]["writeConnectionSecretToRef"] = json!({"name": name});
            }
            let workspace = fixture.example("gpu-workspace", flavour, change)?;
            workspace.apply().await?;
            workspaces.push(workspace);
        }
    }
    for workspace in &workspaces {
        let is_reached = |object: &Value| is_ready(object) || is_stopped(object);
        workspace.until("Ready, or stopped", is_reached).await?;
    }
    Ok(workspaces)
}

/// Objects of an environment by kind and name.
type Objects = BTreeMap<String, Value>;

/// The objects of an environment after a time without any write.
async fn settled(environment: &Environment) -> Result<Objects> {
    eventually("no more writes", async || {
        let before = objects(environment).await?;
        tokio::time::sleep(SETTLING).await;
        let after = objects(environment).await?;
        let is_quiet = before.values().map(version).eq(after.values().map(version));
        Ok(is_quiet.then_some(after))
    })
    .await
}

/// Restarts Crossplane and the providers. They seldom check unchanged objects, but each checks all
/// objects when it starts.
async fn every_controller_looks_again(fixture: &Fixture, composites: usize) -> Result<()> {
    let providers = ["fake-providers", "provider-kubernetes", "provider-helm"]
        .map(|name| fixture.plane.process(name));
    let providers = providers.into_iter().collect::<Result<Vec<_>>>()?;
    join_all(providers.iter().map(|provider| provider.stop())).await;
    providers.iter().try_for_each(|provider| provider.start_again())?;
    crossplane_looks_again(fixture, composites).await
}

/// The object's version, which each write changes.
fn version(object: &Value) -> &Value {
    &object["metadata"]["resourceVersion"]
}

/// All objects of an environment.
async fn objects(environment: &Environment) -> Result<Objects> {
    let mut objects = environment.composed().await?;
    objects.extend([environment.object().await?, environment.composite().await?]);
    let name = |object: &Value| format!("{} {}", object["kind"], object["metadata"]["name"]);
    Ok(objects.into_iter().map(|object| (name(&object), object)).collect())
}
