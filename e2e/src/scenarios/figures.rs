//! Costs: the time until each environment is ready, the command line with two thousand
//! environments, and a thousand streams.

mod load;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use crossplane::api_version::group_of;
use function_paved_road::apis::{AnyApi, Flavour};
use futures::{StreamExt, TryStreamExt, stream};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, copy, sink};
use tokio::process::Command;
use xtask::workspace;

pub(super) use self::load::streams_hear_of_every_change;
use crate::control_plane::{ControlPlane, Metrics};
use crate::fixture::Fixture;
use crate::objects::Objects;

pub(super) async fn each_becomes_ready_by_itself(fixture: Fixture) -> Result<()> {
    for (api, flavour) in fixture.apis() {
        let info = api.info();
        let before = Counts::from_plane(&fixture.plane, api, flavour).await?;
        let begin = Instant::now();
        let add_ons = fixture.add_ons().await?;
        let change = if info.name == "virtual-environment" { add_ons.change() } else { json!({}) };
        let environment = fixture.ready(info.name, flavour, change).await?;
        let seconds = begin.elapsed().as_secs_f64();
        let after = Counts::from_plane(&fixture.plane, api, flavour).await?;
        let resources = environment.composed().await?.len();
        println!(
            "    {:24} {flavour:?}: {resources} resources, ready after {seconds:.1} s, {} reconciles, {} events",
            info.name,
            after.reconciles - before.reconciles,
            after.events - before.events
        );
        environment.delete().await?;
        environment.gone().await?;
    }
    Ok(())
}

/// Crossplane's work for the composites of a kind.
struct Counts {
    reconciles: f64,
    /// The events that its circuit breakers count. An update counts as two.
    events: f64,
}

impl Counts {
    async fn from_plane(plane: &ControlPlane, api: &dyn AnyApi, flavour: Flavour) -> Result<Self> {
        let info = api.info();
        let names = match flavour {
            Flavour::Claims => &info.composite,
            Flavour::Namespaced => &info.namespaced,
        };
        let controller =
            format!("controller=\"composite/{}.{}\"", names.plural, flavour.default_group());
        Ok(Self {
            reconciles: plane
                .metrics
                .sum("controller_runtime_reconcile_total", &controller)
                .await?,
            events: plane.metrics.sum("circuit_breaker_events_total", &controller).await?,
        })
    }
}

/// The environments are copies of the examples, with their final status, in an API server without
/// Crossplane. Only the released command line is measured.
pub(super) async fn two_thousand_are_listed_and_waited_for(fixture: Fixture) -> Result<()> {
    const OF_EACH: usize = 125;
    let program = released()?;
    is_light(&program).await?;
    let inner = &fixture.plane.inner;
    let objects = Objects::new(inner.client.clone());
    let namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": fixture.namespace}});
    objects.apply(&namespace).await?;
    let environments = fixture.shared_environments().await?;
    copy_kinds(&fixture.objects, &objects).await?;
    let mut names = Vec::new();
    let mut copies = Vec::new();
    for environment in environments {
        let object = environment.object().await?;
        for number in 0..OF_EACH {
            let mut copy = object.clone();
            let kind = object["kind"].as_str().unwrap_or_default().to_lowercase();
            let group = group_of(&object);
            let name = format!("{}-{number}", environment.name());
            names.push(format!("{kind}.{group}/{name}"));
            copy["metadata"] = json!({"name": name, "namespace": fixture.namespace});
            copies.push(copy);
        }
    }
    write_all(&objects, &copies).await?;
    let list = ["list"].map(str::to_owned).to_vec();
    let json = ["list", "-o", "json"].map(str::to_owned).to_vec();
    let wait = [&["wait", "--for=deleted", "--timeout=5s"].map(str::to_owned)[..], &names].concat();
    for (what, args, code) in [("list", list, 0), ("list -o json", json, 0), ("wait", wait, 5)] {
        let cost = Cost::measure(&fixture, &program, &args).await?;
        println!(
            "    paved {what}, {} environments: first output after {:.2} s, {:.1} MiB at most, {:?}",
            names.len(),
            cost.first.as_secs_f64(),
            cost.peak,
            cost.requests
        );
        cost.is_fair(code, fixture.apis().count(), names.len())
            .with_context(|| format!("paved {what}"))?;
    }
    Ok(())
}

/// The maximum size of the command line.
const LARGEST: u64 = 30 << 20;

/// The longest that `--help` may take.
const START: Duration = Duration::from_millis(20);

/// Users download the command line, and start it again and again.
async fn is_light(program: &Path) -> Result<()> {
    let size = std::fs::metadata(program)?.len();
    let mut took = Vec::new();
    for _ in 0..9 {
        let begin = Instant::now();
        let ran = Command::new(program).arg("--help").output().await.context("starting paved")?;
        ensure!(ran.status.success(), "paved --help: {ran:?}");
        took.push(begin.elapsed());
    }
    took.sort();
    println!("    paved: {} KiB; --help after {:?}", size >> 10, took[4]);
    ensure!(size <= LARGEST && took[4] <= START, "{size} bytes, --help after {took:?}");
    Ok(())
}

/// Applies many objects.
async fn write_all(objects: &Objects, all: &[Value]) -> Result<()> {
    stream::iter(all).map(|one| objects.apply(one)).buffer_unordered(8).try_collect().await
}

/// The released command line. The costs of other builds are irrelevant.
fn released() -> Result<PathBuf> {
    let released = workspace::target().join("release/paved");
    let is_there = released.exists();
    ensure!(
        is_there,
        "{} does not exist. Run `cargo build --release --bin paved`",
        released.display()
    );
    Ok(released)
}

/// Installs the environments' kinds in another cluster, without a subresource for the status.
async fn copy_kinds(from: &Objects, to: &Objects) -> Result<()> {
    for mut definition in
        from.list("apiextensions.k8s.io/v1", "CustomResourceDefinition", "").await?
    {
        let categories = definition["spec"]["names"]["categories"].as_array();
        if !categories.is_some_and(|all| all.iter().any(|one| one == "paved")) {
            continue;
        }
        definition["metadata"] = json!({"name": definition["metadata"]["name"]});
        for version in definition["spec"]["versions"].as_array_mut().into_iter().flatten() {
            version.as_object_mut().and_then(|version| version.remove("subresources"));
        }
        for field in ["conversion", "status"] {
            definition["spec"].as_object_mut().and_then(|spec| spec.remove(field));
        }
        definition.as_object_mut().and_then(|definition| definition.remove("status"));
        to.apply(&definition).await?;
    }
    Ok(())
}

/// The costs of a run.
struct Cost {
    /// Its exit code.
    code: Option<i32>,
    /// The time until the first byte of output.
    first: Duration,
    /// The peak memory, in MiB.
    peak: f64,
    /// Requests for environments, by verb.
    requests: BTreeMap<String, f64>,
}

impl Cost {
    /// Requires an exit code, output within a second, and at most 60 MiB. Environments must be
    /// requested by kind, in pages of a hundred.
    fn is_fair(&self, code: i32, kinds: usize, environments: usize) -> Result<()> {
        ensure!(self.code == Some(code), "ended with {:?} instead of {code}", self.code);
        ensure!(self.first <= Duration::from_secs(1), "first output after {:?}", self.first);
        ensure!(self.peak <= 60.0, "{} MiB", self.peak);
        let asked = |verb: &str| self.requests.get(verb).copied().unwrap_or_default();
        ensure!(asked("GET") < 1.0, "environments are asked for one by one: {:?}", self.requests);
        let lists = u32::try_from(environments / 100 + kinds)?;
        ensure!(asked("LIST") <= f64::from(lists), "{lists} pages are listed: {:?}", self.requests);
        let watches = u32::try_from(kinds)?;
        ensure!(
            asked("WATCH") <= f64::from(watches),
            "{watches} kinds are watched: {:?}",
            self.requests
        );
        Ok(())
    }

    async fn measure(fixture: &Fixture, program: &Path, args: &[String]) -> Result<Self> {
        let inner = &fixture.plane.inner;
        let metrics = Metrics::from_client(inner.client.clone());
        let before = requests(&metrics).await?;
        let begin = Instant::now();
        let mut child = Command::new(program)
            .args(args)
            .arg("--kubeconfig")
            .arg(&inner.kubeconfig)
            .args(["-n", &fixture.namespace])
            .env_remove("GITHUB_OUTPUT")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .context("starting paved")?;
        let status = format!("/proc/{}/status", child.id().context("paved has ended")?);
        let memory = tokio::spawn(async move {
            let mut peak = 0.0;
            while let Ok(status) = tokio::fs::read_to_string(&status).await {
                let high = status
                    .lines()
                    .find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
                let Some(high) = high.and_then(|high| high.parse::<f64>().ok()) else { break };
                peak = high / 1024.0;
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            peak
        });
        let mut out = child.stdout.take().context("paved's output")?;
        out.read_u8().await.context("paved has no output")?;
        let first = begin.elapsed();
        copy(&mut out, &mut sink()).await.context("reading paved's output")?;
        let code = child.wait().await.context("waiting for paved")?.code();
        let mut requests = requests(&metrics).await?;
        for (verb, count) in &mut requests {
            *count -= before.get(verb).unwrap_or(&0.0);
        }
        requests.retain(|_, count| *count > 0.0);
        Ok(Self { code, first, peak: memory.await?, requests })
    }
}

/// The number of requests for environments, by verb.
async fn requests(metrics: &Metrics) -> Result<BTreeMap<String, f64>> {
    let mut requests = BTreeMap::new();
    for (labels, count) in metrics.samples("apiserver_request_total").await? {
        let label = |name: &str| labels.split(&format!("{name}=\"")).nth(1)?.split('"').next();
        if label("group").is_some_and(|group| {
            Flavour::ALL.iter().any(|flavour| flavour.default_group() == group)
        }) {
            *requests.entry(label("verb").unwrap_or_default().to_owned()).or_default() += count;
        }
    }
    Ok(requests)
}
