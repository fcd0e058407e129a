//! The function and its APIs are upgraded, and taken back, one after the other in either order: what runs does not notice.
//!
//! Both releases hold the same function, as there is no other yet; its package and its processes are others, and the later APIs have a
//! status field that it does not know.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use function_paved_road::manifests::SCHEMA_REVISION;
use futures::future::try_join_all;
use serde_json::{Value, json};
use tokio::join;
use xtask::package::configuration::Contents;
use xtask::package::{Args, names};
use xtask::tools;

use crate::control_plane::{Function, packages};
use crate::environment::{Environment, is_ready};
use crate::examples;
use crate::stage::{Stage, eventually};

/// The later release.
pub(super) const NEXT: &str = "v0.2.0";

pub(super) async fn in_whatever_order_nothing_is_made_anew(stage: Stage) -> Result<()> {
    let (now, next) = (Args::default(), later());
    let plane = &stage.plane;
    publish(&stage).await?;
    let binary = plane.function.binary.clone();
    let later =
        Function::start(plane.ground(), plane.runtime.authority(), &binary, "function-later", 2).await?;
    plane.runtime.serve(&format!(":{NEXT}"), &later.endpoint);
    let environments = stage.standing().await?.into_iter();
    let environments =
        try_join_all(environments.map(async |one| anyhow::Ok((one.desired().await?, one)))).await?;
    let steps = [
        ("the APIs first", Part::Apis, &next),
        ("the function after them", Part::Function, &next),
        ("the APIs taken back", Part::Apis, &now),
        ("the function taken back", Part::Function, &now),
        ("the function first", Part::Function, &next),
        ("the APIs after it", Part::Apis, &next),
        ("the APIs taken back again", Part::Apis, &now),
        ("the function taken back again", Part::Function, &now),
    ];
    for (step, part, release) in steps {
        install(&stage, part, release).await.context(step)?;
        if let Part::Function = part {
            let answering = if release.release == NEXT { &later } else { &plane.function };
            let idle = if release.release == NEXT { &plane.function } else { &later };
            only(answering, idle).await?;
        }
        let checks = environments.iter().map(async |(before, environment)| {
            if let Part::Apis = part {
                follows(&stage, environment, &release.release).await?;
            }
            writes_its_status(&stage, environment).await?;
            let after = environment.desired().await?;
            ensure!(*before == after, "{} changed: {before:?}, {after:?}", environment.resource());
            Ok(())
        });
        try_join_all(checks).await.context(step)?;
    }
    Ok(())
}

/// What is upgraded by itself.
#[derive(Clone, Copy)]
enum Part {
    Function,
    Apis,
}

fn later() -> Args {
    Args { release: NEXT.to_owned(), ..Args::default() }
}

/// Pushes the later release: its APIs run with today's function too, and say more in their status.
pub(super) async fn publish(stage: &Stage) -> Result<()> {
    let (ground, args) = (stage.plane.ground(), &later());
    let output = ground.subfolder("packages-later")?;
    packages::build(args, output.clone()).await?;
    let crossplane = tools::path(&tools::CLI)?;
    for (api, flavour) in examples::all() {
        let mut contents = Contents::of(args, api, flavour)?;
        let schema = &mut contents.xrd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        schema["properties"]["status"]["properties"]["later"] = json!({"type": "string"});
        let input = &mut contents.composition["spec"]["pipeline"][0]["input"];
        input["schemaRevision"] = (SCHEMA_REVISION + 1).into();
        let function = &mut contents.meta["spec"]["dependsOn"][0];
        ensure!(function["kind"] == "Function", "the first dependency is another: {function}");
        function["version"] = format!(">={}", Args::default().release).into();
        contents.write(&crossplane, &file(&output, &names::configuration(api, flavour)))?;
    }
    packages::push(ground, &stage.plane.registry, args, &output).await
}

fn file(folder: &Path, name: &str) -> std::path::PathBuf {
    folder.join(format!("{name}.xpkg"))
}

/// Installs a release of the function, or of all APIs, and waits until it is in force.
async fn install(stage: &Stage, part: Part, release: &Args) -> Result<()> {
    let is_part = |object: &Value| (object["kind"] == "Function") == matches!(part, Part::Function);
    let objects: Vec<_> = packages::installation(release).into_iter().filter(is_part).collect();
    stage.plane.outer.apply(&objects).await?;
    for object in &objects {
        eventually("the release is installed", async || {
            let package = stage.objects.referred(&reference(object), "").await?.unwrap_or_default();
            let is_it = package["status"]["currentIdentifier"] == object["spec"]["package"];
            Ok(is_it.then_some(()))
        })
        .await?;
    }
    packages::healthy(&stage.plane.outer).await.map(drop)
}

fn reference(object: &Value) -> Value {
    json!({"apiVersion": object["apiVersion"], "kind": object["kind"], "name": object["metadata"]["name"]})
}

/// From here on the one answers, and the other has ended.
async fn only(answering: &Function, idle: &Function) -> Result<()> {
    for replica in &answering.replicas {
        if !replica.is_running() {
            replica.start_again()?;
        }
    }
    join!(idle.replicas[0].stop(), idle.replicas[1].stop());
    Ok(())
}

/// Waits until an environment uses the Composition of that release.
async fn follows(stage: &Stage, environment: &Environment, release: &str) -> Result<()> {
    eventually("the Composition's new revision is used", async || {
        let spec = &environment.composite().await?["spec"];
        let of = if spec["crossplane"].is_null() { spec } else { &spec["crossplane"] };
        let name = of["compositionRevisionRef"]["name"].as_str().unwrap_or_default();
        let revision =
            stage.objects.get("apiextensions.crossplane.io/v1", "CompositionRevision", "", name).await?;
        let label =
            revision.map(|revision| revision["metadata"]["labels"]["app.kubernetes.io/version"].clone());
        Ok(label.is_some_and(|label| label == release).then_some(()))
    })
    .await
}

/// Takes a field out of the status: the function writes it again.
async fn writes_its_status(stage: &Stage, environment: &Environment) -> Result<()> {
    let composite = environment.composite().await?;
    let (resource, name) = (crate::environment::resource(&composite), &composite["metadata"]["name"]);
    let mut args =
        vec!["patch", &resource, name.as_str().unwrap_or_default(), "--subresource=status", "--type=merge"];
    args.extend(["-p", r#"{"status":{"phase":null}}"#]);
    if let Some(namespace) = composite["metadata"]["namespace"].as_str() {
        args.extend(["-n", namespace]);
    }
    stage.admin.run(&args).await?;
    eventually("the function has written the status", async || {
        Ok((environment.composite().await?["status"]["phase"] == "Ready").then_some(()))
    })
    .await?;
    environment.until("ready again", is_ready).await.map(drop)
}
