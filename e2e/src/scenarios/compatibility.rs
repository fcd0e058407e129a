//! The oldest Crossplane that we support: what people have there, from the installation to the last claim's end.

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use function_paved_road::apis::{APIS, Flavour};
use futures::future::try_join_all;

use super::{bulk, claims, deletion};
use crate::control_plane::{ControlPlane, CoreVersion, Options};
use crate::environment::{Environment, resource};
use crate::stage::{Stage, eventually};

pub(super) async fn the_claims_flavour_works_on_crossplane_1_20(stage: Stage) -> Result<()> {
    let options = Options {
        core: CoreVersion::Old,
        replicas: 1,
        quiet: true,
        keep: stage.plane.keeps_folder(),
        ..Options::default()
    };
    let plane = ControlPlane::start(&options).await.context("a control plane with Crossplane 1.20")?;
    let old = Stage::set(Arc::new(plane), "compatibility").await?;
    let result = come_and_go(&old).await;
    if result.is_err() {
        println!("{}\nlogs were in {}", old.portrait().await, old.plane.folder().display());
    }
    result
}

/// One claim of each kind: ready, with all that its owner is promised; then deleted, and nothing is left.
async fn come_and_go(stage: &Stage) -> Result<()> {
    let versions = stage.admin.run(&["api-versions"]).await?;
    ensure!(!versions.contains("apiextensions.crossplane.io/v2"), "this is a newer Crossplane");
    let before = stage.objects.everything().await?;
    let ready = APIS.iter().map(async |api| {
        let change = deletion::named(*api, Flavour::Claims);
        claims::becomes_ready(stage, *api, Flavour::Claims, change).await
    });
    let environments = try_join_all(ready).await?;
    let held = try_join_all(environments.iter().map(|environment| held(stage, environment))).await?;
    ensure!(held.iter().sum::<usize>() > 0, "no claim has Usages");
    try_join_all(environments.iter().map(|environment| deletion::goes(stage, environment))).await?;
    bulk::nothing_is_left(stage, &before).await
}

/// Whoever would delete what a Usage protects is refused; how many Usages there are.
async fn held(stage: &Stage, environment: &Environment) -> Result<usize> {
    let composed = environment.composed().await?;
    let usages: Vec<_> = composed.iter().filter(|object| object["kind"] == "Usage").collect();
    for usage in &usages {
        let used = &usage["spec"]["of"];
        let (kind, name) = (resource(used), used["resourceRef"]["name"].as_str().unwrap_or_default());
        eventually(&format!("{kind} {name} is held by its Usage"), async || {
            let deleted = stage.admin.run(&["delete", &kind, name, "--dry-run=server"]).await;
            Ok(deleted.err().filter(|refusal| refusal.to_string().contains("in-use")))
        })
        .await?;
    }
    Ok(usages.len())
}
