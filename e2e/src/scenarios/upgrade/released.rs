//! The environments of the first release survive the upgrade to today's function and APIs.

use std::{
    collections::{BTreeMap, BTreeSet},
    convert::Infallible,
    pin::pin,
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use crossplane::{api_version, conditions, names::EXTERNAL_NAME};
use function_paved_road::lifecycle::NOTE;
use futures::{
    StreamExt,
    future::{join_all, try_join_all},
    stream::select_all,
};
use serde_json::{Value, json};
use tokio::{sync::Mutex, task::spawn_blocking};
use xtask::{
    guide,
    package::{chart, image::sha256},
    released::FIRST,
    workspace,
};

use super::{NEXT, Part, Release, State, follows, install, installation, reference};
use crate::control_plane::{CircuitBreakers, ControlPlane, Function, Options, packages};
use crate::environment::{Environment, is_ready, slot};
use crate::eventually::eventually;
use crate::fixture::Fixture;
use crate::objects::Objects;
use crate::scenarios::{helm::Helm, portrayed};

pub(crate) async fn environments_survive_the_function_first(fixture: Fixture) -> Result<()> {
    play(&fixture, Order::FunctionFirst, "function-first").await
}

pub(crate) async fn environments_survive_the_apis_first(fixture: Fixture) -> Result<()> {
    play(&fixture, Order::ApisFirst, "apis-first").await
}

/// The documented adoption: Helm takes over the objects that kubectl applied, and upgrades them.
pub(crate) async fn environments_survive_the_adoption_by_the_chart(fixture: Fixture) -> Result<()> {
    play(&fixture, Order::Chart, "by-the-chart").await
}

/// Environments with today's new fields and resources keep all of them under the first release's
/// APIs and function. The function then refuses environments with resources that it does not know.
pub(crate) async fn rolled_back_environments_keep_all_resources(fixture: Fixture) -> Result<()> {
    let _alone = UPGRADE.lock().await;
    let fixture = first(&fixture, "rolled-back").await?;
    portrayed(roll_back(&fixture).await, &fixture, "rolled-back").await
}

/// Held by each upgrade, because three control planes at once are too many for two processors.
static UPGRADE: Mutex<()> = Mutex::const_new(());

/// The component that is upgraded first.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    FunctionFirst,
    ApisFirst,
    /// All at once, by the chart.
    Chart,
}

async fn play(fixture: &Fixture, order: Order, name: &str) -> Result<()> {
    let _alone = UPGRADE.lock().await;
    let fixture = first(fixture, name).await?;
    portrayed(upgrade(&fixture, order).await, &fixture, name).await
}

/// Starts a control plane with the packages, roles and Settings of the first release.
async fn first(fixture: &Fixture, name: &str) -> Result<Fixture> {
    let folder = spawn_blocking(|| FIRST.folder()).await??;
    let options = Options {
        sources: folder.join("sources"),
        packages: Some(folder.join("packages")),
        release: FIRST.version.to_owned(),
        pace: Duration::ZERO,
        ..fixture.plane.beside()
    };
    let plane = ControlPlane::start(&options).await.context("a control plane with v0.1.0")?;
    Fixture::set(Arc::new(plane), name).await?.with_rights().await
}

/// Creates every example, and upgrades to today's release. Each step leaves all of them as they
/// are.
async fn upgrade(fixture: &Fixture, order: Order) -> Result<()> {
    let environments = fixture.shared_environments().await?;
    let before = try_join_all(environments.iter().map(Before::read)).await?;
    let untouched = untouched(fixture, &environments).await?;
    if order != Order::Chart {
        fixture.plane.grant(workspace::root()).await?;
    }
    let _today = publish(&fixture.plane).await?;
    let steps = async {
        let mut installed = State::default();
        let check = async |release: &str| {
            let checks = before.iter().zip(&environments);
            let checks =
                checks.map(|(before, environment)| before.stays(fixture, environment, release));
            let errors = join_all(checks).await.into_iter().filter_map(Result::err);
            let errors: Vec<_> = errors.map(|error| format!("{error:#}")).collect();
            ensure!(errors.is_empty(), errors.join("\n    "));
            let now = self::untouched(fixture, &environments).await?;
            ensure!(now == untouched, "pods or Secrets changed: {untouched:?}, {now:?}");
            anyhow::Ok(())
        };
        if order == Order::ApisFirst {
            installed.change(Part::Apis, Release::Next);
            install(fixture, Part::Apis, Release::Next, &installed).await?;
            check(FIRST.version).await.context("the APIs wait for the function")?;
            skip_dependencies(fixture).await?;
            check(NEXT).await.context("the APIs come before the function")?;
        }
        if order == Order::Chart {
            adopt(fixture).await?;
            fixture.plane.function.replicas[0].stop().await;
            return check(NEXT).await.context("the chart has adopted the installation");
        }
        installed.change(Part::Function, Release::Next);
        install(fixture, Part::Function, Release::Next, &installed).await?;
        fixture.plane.function.replicas[0].stop().await;
        if order == Order::FunctionFirst {
            check(FIRST.version).await.context("the function comes before the APIs")?;
            installed.change(Part::Apis, Release::Next);
            install(fixture, Part::Apis, Release::Next, &installed).await?;
        }
        check(NEXT).await.context("both are upgraded")
    };
    tokio::select! {
        done = steps => done?,
        seen = stay_ready(fixture, &environments) => seen.map(|never| match never {})?,
    }
    CircuitBreakers::from_plane(&fixture.plane)
        .await?
        .have_not_opened_since(&CircuitBreakers::default())
}

/// Installs the chart of the next release over the objects of the first one, as
/// docs/how-to/upgrade.md says.
async fn adopt(fixture: &Fixture) -> Result<()> {
    let guide = guide::text(&["docs/how-to/upgrade.md"])?;
    let command = guide::blocks(&guide).into_iter().find(|block| block.contains("take-ownership"));
    let command = command.context("the guide adopts no installation")?;
    let helm = Helm::new(&fixture.plane);
    let chart = helm.pack(NEXT).await?;
    helm.follow(&command, &chart).await?;
    packages::healthy(&fixture.plane.outer).await.map(drop)
}

/// Creates environments with new fields under today's release, and returns to the first one: first
/// the APIs, then the function.
async fn roll_back(fixture: &Fixture) -> Result<()> {
    let plane = &fixture.plane;
    plane.grant(workspace::root()).await?;
    let today = publish(plane).await?;
    let mut installed = State::default();
    for part in [Part::Function, Part::Apis] {
        installed.change(part, Release::Next);
        install(fixture, part, Release::Next, &installed).await?;
    }
    let environments = with_new_fields(fixture).await?;
    let before =
        try_join_all(environments.iter().map(|(environment, _)| environment.uids())).await?;
    let keep_all = async || {
        for ((environment, _), before) in environments.iter().zip(&before) {
            let composed = environment.composed().await?;
            let deleted =
                composed.iter().find(|one| !one["metadata"]["deletionTimestamp"].is_null());
            ensure!(deleted.is_none(), "{} loses {:?}", environment.name(), deleted.map(slot));
            let now = environment.uids().await?;
            ensure!(now == *before, "{} had {before:?}, has {now:?}", environment.name());
        }
        anyhow::Ok(())
    };

    return_to_first(fixture, "Configuration").await?;
    for (environment, _) in &environments {
        follows(fixture, environment, FIRST.version).await?;
        environment.poke().await?;
        environment.ready().await?;
    }
    keep_all().await.context("the APIs of the first release")?;

    return_to_first(fixture, "Function").await?;
    today.replicas[0].stop().await;
    for (environment, unknown) in &environments {
        match unknown {
            None => {
                environment.poke().await?;
                environment.ready().await?;
            }
            Some(slot) => is_refused_for(environment, slot).await?,
        }
    }
    keep_all().await.context("the function of the first release")?;

    today.replicas[0].start_again()?;
    for part in [Part::Function, Part::Apis] {
        install(fixture, part, Release::Next, &installed).await?;
    }
    for (environment, _) in &environments {
        follows(fixture, environment, NEXT).await?;
        environment.ready().await?;
    }
    keep_all().await.context("today's release again")
}

/// Environments with new fields, and a resource of each that the first release does not know.
async fn with_new_fields(fixture: &Fixture) -> Result<Vec<(Environment, Option<&'static str>)>> {
    let lifecycle = json!({"ttl": "30d", "onExpiry": "Stop", "keepStoppedFor": "7d"});
    let mut environments = Vec::new();
    for flavour in fixture.flavours() {
        let spec = json!({"spec": {"lifecycle": lifecycle}});
        for api in ["gpu-workspace", "stock-pool"] {
            environments.push((fixture.example(api, flavour, spec.clone())?, None));
        }
        let mut pages = spec;
        pages["spec"]["frontend"] = json!({"kind": "pages"});
        let pages = fixture.example("unified-environment", flavour, pages)?;
        environments.push((pages, Some("frontend-rewrite")));
        let app = json!({"spec": {"parameters": {"app": {"namespace": ""}}}});
        let app = fixture.example("virtual-environment", flavour, app)?;
        environments.push((app, Some("app-application")));
    }
    try_join_all(environments.iter().map(|(environment, _)| environment.apply())).await?;
    for (environment, unknown) in &environments {
        environment.ready().await?;
        environment.rests().await?;
        if let Some(unknown) = unknown {
            environment.slot(unknown).await?;
        }
    }
    Ok(environments)
}

/// Installs the packages of a kind of the first release again, and waits until they are in force.
async fn return_to_first(fixture: &Fixture, kind: &str) -> Result<()> {
    let mut packages = packages::installation(&fixture.plane.args());
    packages.retain(|package| package["kind"] == kind);
    fixture.plane.outer.apply(&packages).await?;
    for package in &packages {
        eventually("the first release is installed again", async || {
            let found =
                fixture.objects.referred(&reference(package), "").await?.unwrap_or_default();
            let is_it = found["status"]["currentIdentifier"] == package["spec"]["package"];
            Ok((is_it && conditions::is_true(&found, "Healthy")).then_some(()))
        })
        .await?;
    }
    Ok(())
}

/// Waits until the first release's function refuses an environment, and names the resource.
async fn is_refused_for(environment: &Environment, slot: &str) -> Result<()> {
    environment.touch().await?;
    eventually("the first release's function refuses", async || {
        let composite = environment.composite().await?;
        let words = conditions::get(&composite, "Synced")["message"].to_string();
        Ok(words.contains(&format!("this would delete `{slot}`")).then_some(()))
    })
    .await
}

/// Pushes today's packages as the next release, and starts today's function for them.
async fn publish(plane: &ControlPlane) -> Result<Function> {
    let (workdir, args) = (plane.workdir(), &Release::Next.args(plane));
    let output = workdir.subfolder("packages-today")?;
    packages::build(args, output.clone()).await?;
    packages::push(workdir, &plane.registry, args, &output).await?;
    let (authority, program) = (plane.runtime.authority(), workspace::built("function")?);
    let today = Function::start(workdir, authority, &program, "function-today", 1).await?;
    plane.runtime.serve(&format!(":{NEXT}"), &today.endpoint);
    Ok(today)
}

/// Tells Crossplane to install the APIs although they want a later function.
async fn skip_dependencies(fixture: &Fixture) -> Result<()> {
    for mut object in installation(&fixture.plane, Part::Apis, Release::Next) {
        object["spec"]["skipDependencyResolution"] = json!(true);
        fixture.plane.outer.apply(std::slice::from_ref(&object)).await?;
        eventually("the APIs are installed without the function", async || {
            let package =
                fixture.objects.referred(&reference(&object), "").await?.unwrap_or_default();
            Ok(conditions::is_true(&package, "Healthy").then_some(()))
        })
        .await?;
    }
    Ok(())
}

/// An environment as the first release made it.
struct Before {
    composed: Fields,
    status: Fields,
}

impl Before {
    async fn read(environment: &Environment) -> Result<Self> {
        environment.rests().await?;
        let status = fields(&environment.object().await?["status"]);
        Ok(Self { composed: composed(environment).await?, status })
    }

    /// Waits until an environment uses the Composition of a release. Fails if a resource has
    /// changed, or a status field is missing.
    async fn stays(
        &self,
        fixture: &Fixture,
        environment: &Environment,
        release: &str,
    ) -> Result<()> {
        follows(fixture, environment, release).await?;
        environment.poke().await?;
        let object = environment.until("ready again", is_ready).await?;
        environment.rests().await?;
        let now = composed(environment).await?;
        let paths = self.composed.keys().chain(now.keys()).collect::<BTreeSet<_>>().into_iter();
        let changed = paths.filter(|path| self.composed.get(*path) != now.get(*path));
        // The note has the price, which the environment keeps from now on.
        let changed: Vec<_> = changed.filter(|path| !path.ends_with(NOTE)).collect();
        let status = fields(&object["status"]);
        let lost: Vec<_> = self.status.keys().filter(|path| !status.contains_key(*path)).collect();
        let name = format!("{} {}", environment.resource(), environment.name());
        ensure!(changed.is_empty(), "{name} changed: {changed:?}");
        ensure!(lost.is_empty(), "{name} has lost of its status: {lost:?}");
        Ok(())
    }
}

/// Values by their paths.
type Fields = BTreeMap<String, Value>;

/// Every value that a user or a provider finds in the resources of an environment, and their uids.
async fn composed(environment: &Environment) -> Result<Fields> {
    let mut found = Fields::new();
    for mut object in environment.composed().await? {
        let title = format!("{} {}", slot(&object), object["kind"].as_str().unwrap_or_default());
        make_intended_changes(&mut object);
        let metadata = object["metadata"].take();
        let is_ours = |key: &str| !key.starts_with("crossplane.io/") || key == EXTERNAL_NAME;
        let notes = [&metadata["labels"], &metadata["annotations"]];
        let notes = notes.into_iter().filter_map(Value::as_object).flatten();
        let notes: Vec<_> = notes.filter(|(key, _)| is_ours(key)).collect();
        object["status"].take();
        object["metadata"] = json!({"name": metadata["name"], "uid": metadata["uid"]});
        for (key, note) in notes {
            object["metadata"][key] = note.clone();
        }
        let fields = fields(&object).into_iter();
        found.extend(fields.map(|(path, value)| (format!("{title} {path}"), value)));
    }
    Ok(found)
}

/// Writes the two changes that an upgrade makes on purpose, unless they are made. No provider
/// changes anything in its cloud for them.
///
/// - The subnet of a machine, as the cloud reports it. If the machine is created again, it needs
///   the subnet.
/// - Providers no longer copy the version of Kubernetes into the specs of clusters of EKS and AKS.
fn make_intended_changes(object: &mut Value) {
    let kind = object["kind"].as_str().unwrap_or_default();
    let group = api_version::group_of(object);
    let is_machine = kind == "Instance" && group.starts_with("ec2.");
    let is_cluster = kind == "Cluster" && group.starts_with("eks.") || kind == "KubernetesCluster";
    let subnet = object["status"]["atProvider"]["subnetId"].clone();
    let spec = &mut object["spec"];
    if is_machine && spec["forProvider"]["subnetId"].is_null() {
        spec["forProvider"]["subnetId"] = subnet;
    }
    if is_cluster && spec["managementPolicies"] == json!(["*"]) {
        spec["managementPolicies"] = json!(["Observe", "Create", "Update", "Delete"]);
    }
}

/// The values of an object by their paths. Entries of lists have the name of their slot or type, or
/// their index.
///
/// The first release writes `observedGeneration` in claims. It is the generation of the composite,
/// which misleads tools that compare it with the claim's, so later releases leave it out.
fn fields(object: &Value) -> Fields {
    fn collect(value: &Value, path: &str, found: &mut Fields) {
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    collect(value, &format!("{path}.{name}"), found);
                }
            }
            Value::Array(entries) => {
                for (index, entry) in entries.iter().enumerate() {
                    let name = [&entry["slot"], &entry["type"]].into_iter().find_map(Value::as_str);
                    let name = name.map_or_else(|| index.to_string(), str::to_owned);
                    collect(entry, &format!("{path}[{name}]"), found);
                }
            }
            Value::Null => {}
            value => _ = found.insert(path.to_owned(), value.clone()),
        }
    }
    let mut found = Fields::new();
    collect(object, "", &mut found);
    found.remove(".observedGeneration");
    found
}

/// Digests of the pods of the cluster and of all virtual clusters, and of the Secrets beside the
/// environments. An upgrade restarts no pod, and changes no password.
async fn untouched(fixture: &Fixture, environments: &[Environment]) -> Result<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    for objects in [fixture.objects.clone(), Objects::new(fixture.plane.inner.client.clone())] {
        // The controller of the chart is new.
        let mut pods = objects.list("v1", "Pod", "").await?;
        pods.retain(|pod| pod["metadata"]["namespace"] != chart::NAME);
        found.extend(
            pods.iter()
                .map(|pod| format!("{} {}", pod["metadata"]["name"], pod["metadata"]["uid"])),
        );
    }
    let secrets = fixture.objects.list("v1", "Secret", namespace(environments)?).await?.into_iter();
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

/// Watches the environments for as long as the future is polled. Fails as soon as one has failed,
/// is rejected, or is not ready without an intended change. Crossplane itself sets `Provisioned` to
/// Unknown while it changes to another function or another XRD.
async fn stay_ready(fixture: &Fixture, environments: &[Environment]) -> Result<Infallible> {
    let namespace = namespace(environments)?;
    let mut watches = Vec::new();
    for (api, flavour) in fixture.apis() {
        let example = fixture.manifest(api.info().name, flavour)?;
        let text = |key: &str| example[key].as_str().unwrap_or_default();
        let watch = fixture.objects.watch(text("apiVersion"), text("kind"), namespace).await?;
        watches.push(watch.boxed());
    }
    let mut seen = pin!(select_all(watches));
    while let Some(object) = seen.next().await {
        let is_ready = conditions::is_true(&object, "Ready")
            && conditions::get(&object, "Provisioned")["status"] != "False";
        let status = &object["status"];
        if status["phase"] == "Failed" || !is_ready && !is_changed_on_purpose(status) {
            let name = &object["metadata"]["name"];
            bail!("{} {name} is not ready during the upgrade: {status}", object["kind"]);
        }
    }
    bail!("the API server has ended the watches")
}

/// Whether an environment is not ready only because a provider has not yet looked at an intended
/// change. No resource is ready before its provider has looked at its newest spec.
fn is_changed_on_purpose(status: &Value) -> bool {
    let resources = status["resources"].as_array().into_iter().flatten();
    let unready: Vec<_> = resources.filter(|resource| resource["ready"] != true).collect();
    let is_changed = |resource: &&Value| {
        let kind = resource["kind"].as_str().unwrap_or_default();
        ["Instance", "Cluster", "KubernetesCluster"].contains(&kind)
            && resource["message"] == "is being changed"
    };
    !unready.is_empty() && unready.iter().all(is_changed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn environment_is_changed_on_purpose_only_by_its_cluster_or_machine() {
        let resource = |kind: &str, message: Value| {
            let ready = message.is_null();
            json!({"kind": kind, "ready": ready, "message": message})
        };
        let changed = json!("is being changed");
        for (resources, expected) in [
            ([resource("Instance", changed.clone()), resource("Role", Value::Null)], true),
            ([resource("Instance", changed.clone()), resource("Role", changed)], false),
            ([resource("Instance", json!("is being created")), json!({"ready": true})], false),
            ([resource("Instance", Value::Null), resource("Role", Value::Null)], false),
        ] {
            assert_eq!(is_changed_on_purpose(&json!({"resources": resources})), expected);
        }
    }

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
        assert!(fields(&status).keys().eq(expected), "{:?}", fields(&status));
    }
}
