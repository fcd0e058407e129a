//! Upgrades and downgrades of the function and its APIs, in either order. Running environments do
//! not change.
//!
//! The packages are the released ones. The later function is today's function with one more status
//! field, which the later APIs' schemas have. It also decides differently about new resources.

mod released;

use std::{convert::Infallible, path::Path, time::Duration};

use anyhow::{Context, Result, ensure};
use crossplane::conditions;
use futures::future::try_join_all;
use serde_json::{Value, json};
use tokio::join;
use xtask::package::configuration::Contents;
use xtask::package::{Args, names};
use xtask::{tools, workspace};

use crate::control_plane::{ControlPlane, Function, packages};
use crate::environment::{Desired, Environment, is_ready};
use crate::eventually::eventually;
use crate::fixture::Fixture;
use crate::objects::reference;
use crate::{examples, next_release};

pub(super) use self::released::{
    environments_survive_the_adoption_by_the_chart, environments_survive_the_apis_first,
    environments_survive_the_function_first, rolled_back_environments_keep_all_resources,
};

/// The later release.
pub(super) const NEXT: &str = "v0.3.0";

pub(super) async fn in_whatever_order_nothing_is_made_anew(fixture: Fixture) -> Result<()> {
    publish(&fixture.plane).await?;
    let later = function(&fixture.plane, 2).await?;
    let environments = fixture.shared_environments().await?.into_iter();
    let environments =
        try_join_all(environments.map(async |one| anyhow::Ok((one.desired().await?, one)))).await?;
    let steps = [
        ("the function first", Part::Function, Release::Next),
        ("the APIs after it", Part::Apis, Release::Next),
        ("the function taken back first", Part::Function, Release::Now),
        ("the function again", Part::Function, Release::Next),
        ("the APIs taken back", Part::Apis, Release::Now),
        ("the function taken back after them", Part::Function, Release::Now),
        ("the APIs first", Part::Apis, Release::Next),
        ("the function after them", Part::Function, Release::Next),
        ("the APIs taken back again", Part::Apis, Release::Now),
        ("the function taken back again", Part::Function, Release::Now),
    ];
    let in_every_order = async {
        let mut installed = State::default();
        let mut newcomer = None;
        for (step, part, release) in steps {
            installed.change(part, release);
            install(&fixture, part, release, &installed).await.context(step)?;
            if let Part::Function = part {
                let of_now = &fixture.plane.function;
                let (answering, idle) =
                    if release == Release::Next { (&later, of_now) } else { (of_now, &later) };
                only(answering, idle).await?;
            }
            if newcomer.is_none() && installed.function == Release::Next {
                newcomer = Some(made_by_the_later(&fixture).await.context(step)?);
            }
            let all = environments.iter().chain(&newcomer);
            let checks =
                all.map(|(before, environment)| runs_on(&fixture, &installed, before, environment));
            try_join_all(checks).await.context(step)?;
        }
        Ok(())
    };
    tokio::select! {
        done = in_every_order => done,
        seen = stay_ready(environments.iter().map(|(_, environment)| environment)) => seen.map(|never| match never {}),
    }
}

/// Checks once a second, for as long as the future is polled, that every earlier environment is
/// ready.
async fn stay_ready<'e>(
    environments: impl Iterator<Item = &'e Environment> + Clone,
) -> Result<Infallible> {
    loop {
        for environment in environments.clone() {
            let object = environment.object().await?;
            let ready = conditions::get(&object, "Ready");
            ensure!(
                ready["status"] == "True",
                "{} is not ready during the upgrade: {ready}",
                environment.resource()
            );
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// An environment of the later function follows its decisions, and keeps them under today's
/// function.
async fn made_by_the_later(fixture: &Fixture) -> Result<(Desired, Environment)> {
    let flavour = fixture.flavours().pop().context("Crossplane serves no API")?;
    let workspace = fixture.ready("gpu-workspace", flavour, json!({})).await?;
    let image = workspace.slot("instance").await?["spec"]["forProvider"]["ami"].clone();
    ensure!(image == next_release::IMAGE, "the later function makes machines of {image}");
    Ok((workspace.rests().await?, workspace))
}

/// Checks that an environment follows the installed release, and that its resources are unchanged.
async fn runs_on(
    fixture: &Fixture,
    installed: &State,
    before: &Desired,
    environment: &Environment,
) -> Result<()> {
    follows(fixture, environment, &installed.in_force.version()).await?;
    writes_its_status(environment, installed.says_more()).await?;
    let after = environment.desired().await?;
    ensure!(*before == after, "{} changed: {before:?}, {after:?}", environment.resource());
    Ok(())
}

/// A component that is upgraded separately.
#[derive(Clone, Copy)]
enum Part {
    Function,
    Apis,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Release {
    #[default]
    Now,
    Next,
}

impl Release {
    /// The version of the packages.
    fn version(self) -> String {
        match self {
            Self::Now => Args::default().release,
            Self::Next => NEXT.to_owned(),
        }
    }

    /// The packages for a control plane.
    fn args(self, plane: &ControlPlane) -> Args {
        Args { release: self.version(), ..plane.args() }
    }
}

/// The requested releases, and the release of the APIs in force.
#[derive(Default)]
struct State {
    function: Release,
    apis: Release,
    in_force: Release,
}

impl State {
    fn change(&mut self, part: Part, release: Release) {
        match part {
            Part::Function => self.function = release,
            Part::Apis => self.apis = release,
        }
        if !self.is_held() {
            self.in_force = self.apis;
        }
    }

    /// Whether Crossplane holds back the APIs, because they need a later function.
    fn is_held(&self) -> bool {
        self.apis > self.function
    }

    /// Whether the later status field is written. Both the function and the schema must have it.
    fn says_more(&self) -> bool {
        self.function.min(self.in_force) == Release::Next
    }
}

/// Pushes the later release, with one more field in its APIs' status.
pub(super) async fn publish(plane: &ControlPlane) -> Result<()> {
    let (workdir, args) = (plane.workdir(), &Release::Next.args(plane));
    let output = workdir.subfolder("packages-later")?;
    packages::build(args, output.clone()).await?;
    let crossplane = tools::path(&tools::CLI)?;
    for (api, flavour) in examples::all(args.flavours()) {
        let mut contents = Contents::new(args, api, flavour)?;
        let schema = &mut contents.xrd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        schema["properties"]["status"]["properties"][next_release::FIELD] =
            json!({"type": "string"});
        let input = &mut contents.composition["spec"]["pipeline"][0]["input"];
        input["schemaRevision"] = next_release::REVISION.into();
        contents.write(&crossplane, &file(&output, &names::configuration(api, flavour)))?;
    }
    packages::push(workdir, &plane.registry, args, &output).await
}

/// Starts the later release's function, and makes it the endpoint of its package.
pub(super) async fn function(plane: &ControlPlane, replicas: usize) -> Result<Function> {
    let binary = workspace::built("function-next-release")?;
    let authority = plane.runtime.authority();
    let later =
        Function::start(plane.workdir(), authority, &binary, "function-next-release", replicas)
            .await?;
    plane.runtime.serve(&format!(":{NEXT}"), &later.endpoint);
    Ok(later)
}

fn file(folder: &Path, name: &str) -> std::path::PathBuf {
    folder.join(format!("{name}.xpkg"))
}

/// The packages of a release of the function, or of all APIs.
fn installation(plane: &ControlPlane, part: Part, release: Release) -> Vec<Value> {
    let mut objects = packages::installation(&release.args(plane));
    objects.retain(|object| (object["kind"] == "Function") == matches!(part, Part::Function));
    objects
}

/// Installs a release of the function, or of all APIs. Waits until it is in force, or until
/// Crossplane reports why it is not.
async fn install(fixture: &Fixture, part: Part, release: Release, installed: &State) -> Result<()> {
    let objects = installation(&fixture.plane, part, release);
    fixture.plane.outer.apply(&objects).await?;
    for object in &objects {
        eventually("the release is installed", async || {
            let package =
                fixture.objects.referred(&reference(object), "").await?.unwrap_or_default();
            let is_it = package["status"]["currentIdentifier"] == object["spec"]["package"];
            Ok(is_it.then_some(()))
        })
        .await?;
    }
    for object in &packages::installation(&release.args(&fixture.plane)) {
        let is_held = object["kind"] == "Configuration" && installed.is_held();
        eventually("Crossplane accepts or rejects the release", async || {
            let package =
                fixture.objects.referred(&reference(object), "").await?.unwrap_or_default();
            let health = conditions::get(&package, "Healthy");
            let words = health["message"].as_str().unwrap_or_default();
            let is_healthy = health["status"] == "True";
            // Crossplane 1.20 sets the status `Unknown`, and 2.x sets `False`.
            let is_rejected = !is_healthy && words.contains("incompatible dependencies");
            Ok((if is_held { is_rejected } else { is_healthy }).then_some(()))
        })
        .await
        .with_context(|| object["metadata"]["name"].to_string())?;
    }
    Ok(())
}

/// Starts the replicas of one function, and stops the replicas of the other.
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
pub(super) async fn follows(
    fixture: &Fixture,
    environment: &Environment,
    release: &str,
) -> Result<()> {
    eventually("the Composition's new revision is used", async || {
        let spec = &environment.composite().await?["spec"];
        let of = if spec["crossplane"].is_null() { spec } else { &spec["crossplane"] };
        let name = of["compositionRevisionRef"]["name"].as_str().unwrap_or_default();
        let revision = fixture
            .objects
            .get("apiextensions.crossplane.io/v1", "CompositionRevision", "", name)
            .await?;
        let label = revision
            .map(|revision| revision["metadata"]["labels"]["app.kubernetes.io/version"].clone());
        Ok(label.is_some_and(|label| label == release).then_some(()))
    })
    .await
}

/// Calls the function again. It writes the status, with the additional field only in the later
/// release.
async fn writes_its_status(environment: &Environment, says_more: bool) -> Result<()> {
    environment.poke().await?;
    eventually("the function has written the status", async || {
        let status = &environment.composite().await?["status"];
        Ok((status["phase"] == "Ready" && status[next_release::FIELD].is_string() == says_more)
            .then_some(()))
    })
    .await?;
    environment.until("ready again", is_ready).await.map(drop)
}
