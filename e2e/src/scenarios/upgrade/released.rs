//! The environments of the first release survive the upgrade to today's function and APIs.

use std::{collections::BTreeSet, convert::Infallible, pin::pin, sync::Arc, time::Duration};

use anyhow::{Context, Result, bail, ensure};
use crossplane::conditions;
use futures::{StreamExt, future::try_join_all, stream::select_all};
use serde_json::{Value, json};
use tokio::task::spawn_blocking;
use xtask::{package::image::sha256, released::FIRST, workspace};

use super::{NEXT, Part, Release, State, follows, install, installation, reference};
use crate::control_plane::{Breakers, ControlPlane, Function, Options, packages};
use crate::environment::{Desired, Environment, is_ready};
use crate::eventually::eventually;
use crate::objects::Objects;
use crate::scenarios::portrayed;
use crate::stage::Stage;

pub(crate) async fn environments_survive_the_function_first(stage: Stage) -> Result<()> {
    play(&stage, Order::FunctionFirst, "function-first").await
}

pub(crate) async fn environments_survive_the_apis_first(stage: Stage) -> Result<()> {
    play(&stage, Order::ApisFirst, "apis-first").await
}

/// The part that is upgraded first.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    FunctionFirst,
    ApisFirst,
}

/// Starts a control plane with the packages, roles and Settings of the first release, and upgrades
/// it.
async fn play(stage: &Stage, order: Order, name: &str) -> Result<()> {
    let folder = spawn_blocking(|| FIRST.folder()).await??;
    let options = Options {
        sources: folder.join("sources"),
        packages: Some(folder.join("packages")),
        release: FIRST.version.to_owned(),
        pace: Duration::ZERO,
        ..stage.plane.beside()
    };
    let plane = ControlPlane::start(&options).await.context("a control plane with v0.1.0")?;
    let stage = Stage::set(Arc::new(plane), name).await?.with_rights().await?;
    portrayed(upgrade(&stage, order).await, &stage, name).await
}

/// Creates every example, and upgrades to today's release. Each step leaves all of them as they
/// are.
async fn upgrade(stage: &Stage, order: Order) -> Result<()> {
    let environments = stage.standing().await?;
    let before = try_join_all(environments.iter().map(Before::read)).await?;
    let untouched = untouched(stage, &environments).await?;
    stage.plane.grant(workspace::root()).await?;
    let _today = publish(&stage.plane).await?;
    let steps = async {
        let mut installed = State::default();
        let check = async |release: &str| {
            let checks = before.iter().zip(&environments);
            let checks =
                checks.map(|(before, environment)| before.stays(stage, environment, release));
            try_join_all(checks).await?;
            let now = self::untouched(stage, &environments).await?;
            ensure!(now == untouched, "pods or Secrets changed: {untouched:?}, {now:?}");
            anyhow::Ok(())
        };
        if order == Order::ApisFirst {
            installed.change(Part::Apis, Release::Next);
            install(stage, Part::Apis, Release::Next, &installed).await?;
            check(FIRST.version).await.context("the APIs wait for the function")?;
            skip_dependencies(stage).await?;
            check(NEXT).await.context("the APIs come before the function")?;
        }
        installed.change(Part::Function, Release::Next);
        install(stage, Part::Function, Release::Next, &installed).await?;
        stage.plane.function.replicas[0].stop().await;
        if order == Order::FunctionFirst {
            check(FIRST.version).await.context("the function comes before the APIs")?;
            installed.change(Part::Apis, Release::Next);
            install(stage, Part::Apis, Release::Next, &installed).await?;
        }
        check(NEXT).await.context("both are upgraded")
    };
    tokio::select! {
        done = steps => done?,
        seen = stay_ready(stage, &environments) => seen.map(|never| match never {})?,
    }
    Breakers::from_plane(&stage.plane).await?.have_not_opened_since(&Breakers::default())
}

/// Pushes today's packages as the next release, and starts today's function for them.
async fn publish(plane: &ControlPlane) -> Result<Function> {
    let (ground, args) = (plane.ground(), &Release::Next.args(plane));
    let output = ground.subfolder("packages-today")?;
    packages::build(args, output.clone()).await?;
    packages::push(ground, &plane.registry, args, &output).await?;
    let (authority, program) = (plane.runtime.authority(), workspace::built("function")?);
    let today = Function::start(ground, authority, &program, "function-today", 1).await?;
    plane.runtime.serve(&format!(":{NEXT}"), &today.endpoint);
    Ok(today)
}

/// Tells Crossplane to install the APIs although they want a later function.
async fn skip_dependencies(stage: &Stage) -> Result<()> {
    for mut object in installation(&stage.plane, Part::Apis, Release::Next) {
        object["spec"]["skipDependencyResolution"] = json!(true);
        stage.plane.outer.apply(std::slice::from_ref(&object)).await?;
        eventually("the APIs are installed without the function", async || {
            let package =
                stage.objects.referred(&reference(&object), "").await?.unwrap_or_default();
            Ok(conditions::is_true(&package, "Healthy").then_some(()))
        })
        .await?;
    }
    Ok(())
}

/// An environment as the first release made it.
struct Before {
    desired: Desired,
    status: BTreeSet<String>,
}

impl Before {
    async fn read(environment: &Environment) -> Result<Self> {
        let desired = environment.rests().await?;
        Ok(Self { desired, status: fields(&environment.object().await?["status"]) })
    }

    /// Waits until an environment uses the Composition of a release, and fails if one of its
    /// resources or a status field is not as before.
    async fn stays(&self, stage: &Stage, environment: &Environment, release: &str) -> Result<()> {
        follows(stage, environment, release).await?;
        environment.poke().await?;
        let object = environment.until("ready again", is_ready).await?;
        let name = environment.resource();
        let desired = environment.desired().await?;
        ensure!(desired == self.desired, "{name} changed: {:?}, {desired:?}", self.desired);
        let status = fields(&object["status"]);
        let lost: Vec<_> = self.status.difference(&status).collect();
        ensure!(lost.is_empty(), "{name} has lost of its status: {lost:?}");
        Ok(())
    }
}

/// The paths of all fields of a status. Entries of lists have the name of their slot or type.
///
/// The first release writes `observedGeneration` in claims. It is the generation of the composite,
/// which misleads tools that compare it with the claim's, so later releases leave it out.
fn fields(status: &Value) -> BTreeSet<String> {
    fn collect(value: &Value, path: &str, found: &mut BTreeSet<String>) {
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    collect(value, &format!("{path}.{name}"), found);
                }
            }
            Value::Array(entries) => {
                for entry in entries {
                    let name = [&entry["slot"], &entry["type"]].into_iter().find_map(Value::as_str);
                    collect(entry, &format!("{path}[{}]", name.unwrap_or_default()), found);
                }
            }
            _ => _ = found.insert(path.to_owned()),
        }
    }
    let mut found = BTreeSet::new();
    collect(status, "", &mut found);
    found.remove(".observedGeneration");
    found
}

/// Digests of the pods of the cluster and of all virtual clusters, and of the Secrets beside the
/// environments: an upgrade starts no pod again, and changes no password.
async fn untouched(stage: &Stage, environments: &[Environment]) -> Result<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    for objects in [stage.objects.clone(), Objects::new(stage.plane.inner.client.clone())] {
        let pods = objects.list("v1", "Pod", "").await?.into_iter();
        found.extend(
            pods.map(|pod| format!("{} {}", pod["metadata"]["name"], pod["metadata"]["uid"])),
        );
    }
    let secrets = stage.objects.list("v1", "Secret", namespace(environments)?).await?.into_iter();
    found.extend(secrets.map(|secret| {
        let data = sha256(secret["data"].to_string().as_bytes());
        format!("{} {data}", secret["metadata"]["name"])
    }));
    Ok(found)
}

/// The namespace of the environments.
fn namespace(environments: &[Environment]) -> Result<&str> {
    environments.first().map(Environment::namespace).context("there are no environments")
}

/// Watches the environments for as long as the future is polled, and fails at the first moment in
/// which one is not ready, has failed, or is refused.
async fn stay_ready(stage: &Stage, environments: &[Environment]) -> Result<Infallible> {
    let namespace = namespace(environments)?;
    let mut watches = Vec::new();
    for (api, flavour) in stage.apis() {
        let example = stage.manifest(api.info().name, flavour)?;
        let text = |key: &str| example[key].as_str().unwrap_or_default();
        let watch = stage.objects.watch(text("apiVersion"), text("kind"), namespace).await?;
        watches.push(watch.boxed());
    }
    let mut seen = pin!(select_all(watches));
    while let Some(object) = seen.next().await {
        let holds = |condition| conditions::is_true(&object, condition);
        if !holds("Ready") || !holds("Provisioned") || object["status"]["phase"] == "Failed" {
            let (name, status) = (&object["metadata"]["name"], &object["status"]);
            bail!("{} {name} is not ready meanwhile: {status}", object["kind"]);
        }
    }
    bail!("the API server has ended the watches")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_fields_are_named_by_slot_and_type() {
        let status = json!({
            "phase": "Ready",
            "observedGeneration": 3,
            "conditions": [{"type": "Ready", "status": "True"}],
            "resources": [{"slot": "app", "ready": true}, {"slot": "bucket", "ready": true}],
        });
        let expected = [
            ".conditions[Ready].status",
            ".conditions[Ready].type",
            ".phase",
            ".resources[app].ready",
            ".resources[app].slot",
            ".resources[bucket].ready",
            ".resources[bucket].slot",
        ];
        assert!(fields(&status).iter().eq(expected), "{:?}", fields(&status));
    }
}
