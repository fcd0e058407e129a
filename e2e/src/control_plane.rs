//! A whole control plane on this machine, as processes on loopback: no containers, no cluster.
//!
//! etcd, Kubernetes' API server with controllers and a scheduler, nodes that pretend, Crossplane
//! under its own chart's rights, a registry, our function and Configurations installed from
//! packages, provider-kubernetes and provider-helm, and a second API server for what lies inside
//! virtual clusters. Several control planes can run on one machine.

pub mod charts;
mod circuit_breakers;
mod clouds;
mod cluster;
mod crossplane;
mod function;
mod guest_cluster;
mod metrics;
pub mod packages;
pub mod pki;
pub mod ports;
pub mod postgres;
mod process;
mod providers;
mod proxy;
pub mod runtime;
pub mod settings;
mod version;
mod workdir;

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use kube::Client;
use serde_json::Value;
use tokio::{sync::Mutex, try_join};
use xtask::{package, workspace, yaml};

pub use self::{
    circuit_breakers::CircuitBreakers,
    cluster::Cluster,
    function::Function,
    metrics::Metrics,
    packages::Registry,
    process::{Process, Program},
    proxy::Proxy,
    runtime::Runtime,
    version::CoreVersion,
    workdir::Workdir,
};
use self::{crossplane::Core, postgres::Postgres};
use crate::kubeconfig;

/// The namespace of Crossplane, its packages and their secrets.
pub const NAMESPACE: &str = "crossplane-system";

/// The cluster that Crossplane runs in.
const OUTER: &str = "outer";

/// How a control plane is started.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub struct Options {
    /// Which Crossplane it is.
    pub core: CoreVersion,
    /// Wait less for Usages, where a program of that version does.
    pub fast: bool,
    /// Install our packages and those that they depend on.
    pub install: bool,
    /// Where `cargo xtask package` has left our packages, of which the Function's program is run;
    /// without it they are built of the workspace, with images that hold no program, and the one
    /// that was built for tests is run.
    pub packages: Option<PathBuf>,
    /// The sources with the roles, Settings, charts and examples.
    pub sources: PathBuf,
    /// The version of our packages.
    pub release: String,
    /// How many processes of the function there are.
    pub replicas: usize,
    /// How long clouds take for a round of a kind's model; a cluster takes four. Zero: everything
    /// at once.
    pub pace: Duration,
    /// Print nothing.
    pub quiet: bool,
    /// Leave the folder, with the logs, where it is.
    pub keep: bool,
    /// Where logs are copied to when something has failed: each control plane's into a folder of
    /// its own.
    pub logs: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            core: CoreVersion::default(),
            fast: false,
            install: true,
            packages: None,
            sources: workspace::root().to_owned(),
            release: package::Args::default().release,
            replicas: 2,
            pace: Duration::from_secs(1),
            quiet: false,
            keep: false,
            logs: None,
        }
    }
}

impl Options {
    /// Our packages that are installed.
    fn args(&self) -> package::Args {
        let (release, flavour) = (self.release.clone(), self.core.flavour());
        package::Args { release, flavour, ..package::Args::default() }
    }
}

/// A control plane that runs. Dropped, it is gone: its processes and its folder.
pub struct ControlPlane {
    /// The cluster that Crossplane runs in, where claims are applied.
    pub outer: Cluster,
    /// The cluster that all virtual clusters share, and those of EKS.
    pub inner: Cluster,
    /// Where packages are.
    pub registry: Registry,
    /// Chart repositories, and the way into virtual clusters.
    pub proxy: Proxy,
    /// The package runtime's part: says where functions are reached.
    pub runtime: Runtime,
    /// The function's replicas.
    pub function: Function,
    /// What Crossplane counts.
    pub metrics: Metrics,
    /// The turn to install add-ons inside virtual clusters: they would be there twice, as all
    /// virtual clusters are one cluster.
    pub add_ons: Arc<Mutex<()>>,
    /// The turn to make one of the environments that stand.
    pub shared_fixtures: Mutex<()>,
    /// The PostgreSQL server on which provider-sql's kinds are played, where one is installed.
    pub postgres: Option<Postgres>,
    workdir: Arc<Workdir>,
    options: Options,
    _guest_cluster: guest_cluster::GuestCluster,
}

impl ControlPlane {
    /// Starts everything; returns when all packages are healthy. A component that fails is named,
    /// with the end of its log.
    pub async fn start(options: &Options) -> Result<Self> {
        let begin = Instant::now();
        let workdir =
            Arc::new(Workdir::new(options.core.tool(options.fast), options.quiet, options.keep)?);
        let registry = Registry::start(&workdir).await?;
        let ((), (outer, inner, core), sites) = try_join!(
            publish(&workdir, &registry, options),
            clusters(&workdir, options.core),
            charts::pack(&workdir, &options.sources)
        )?;
        let proxy = Proxy::start(sites, inner.port, workdir.folder()).await?;
        let guest_cluster = guest_cluster::GuestCluster::start(&outer, &inner, &proxy.url);
        let Core { authority, metrics } = core;
        let binary = if options.packages.is_some() {
            packages::program(&workdir, &registry, &options.args()).await?
        } else {
            workspace::built("function")?
        };
        let function =
            Function::start(&workdir, &authority, &binary, "function", options.replicas).await?;
        let endpoint = function.endpoint.clone();
        let runtime = Runtime::start(outer.client.clone(), authority, endpoint, &workdir.logs());
        let postgres = if options.install { clouds::postgres(&workdir).await? } else { None };
        let plane = Self {
            outer,
            inner,
            registry,
            proxy,
            runtime,
            function,
            metrics,
            add_ons: Arc::default(),
            shared_fixtures: Mutex::default(),
            postgres,
            workdir,
            options: options.clone(),
            _guest_cluster: guest_cluster,
        };
        if options.install {
            plane.install(options).await?;
        }
        plane.workdir.tell("all", begin);
        Ok(plane)
    }

    /// The administrator's kubeconfig.
    pub fn kubeconfig(&self) -> &Path {
        &self.outer.kubeconfig
    }

    /// The administrator's client.
    pub fn client(&self) -> Client {
        self.outer.client.clone()
    }

    /// Runs kubectl as administrator; what it printed.
    pub async fn kubectl(&self, args: &[&str]) -> Result<String> {
        self.outer.kubectl(args.iter().copied()).await
    }

    /// Our packages that were installed at its start.
    pub fn args(&self) -> package::Args {
        self.options.args()
    }

    /// The sources of the packages that were installed at its start.
    pub fn sources(&self) -> &Path {
        &self.options.sources
    }

    /// Where everything is that this control plane writes.
    pub fn folder(&self) -> &Path {
        self.workdir.folder()
    }

    /// How another one is started that a scenario has for itself: small and quiet, and what this
    /// one leaves behind is left of it too.
    pub fn beside(&self) -> Options {
        let Options { core, fast, packages, keep, logs, .. } = self.options.clone();
        Options { core, fast, packages, replicas: 1, quiet: true, keep, logs, ..Options::default() }
    }

    /// Copies its logs to where they outlive it, if somebody asked for that, into a folder of this
    /// name; says where they are.
    pub fn leave_logs(&self, name: &str) -> Result<String> {
        let logs = self.workdir.logs();
        let Some(folder) = &self.options.logs else {
            let fate = if self.options.keep { "are" } else { "were, as nobody said --keep," };
            return Ok(format!("the logs of {name} {fate} in {}", logs.display()));
        };
        let left = folder.join(name);
        copy(&logs, &left).with_context(|| format!("copying logs to {}", left.display()))?;
        Ok(format!("the logs of {name} are in {}", left.display()))
    }

    /// Whether that folder stays when it is dropped.
    pub fn keeps_folder(&self) -> bool {
        self.workdir.keeps_folder()
    }

    /// Where kubectl is.
    pub fn kubectl_path(&self) -> &Path {
        &self.workdir.tools.kubectl
    }

    /// What everything stands on, to start more on it.
    pub fn workdir(&self) -> &Arc<Workdir> {
        &self.workdir
    }

    /// All processes, in the order of their start.
    pub fn processes(&self) -> Vec<Arc<Process>> {
        self.workdir.processes()
    }

    /// A process, to be stopped, killed and started again: `crossplane`, `provider-helm`,
    /// `function-0`.
    pub fn process(&self, name: &str) -> Result<Arc<Process>> {
        let found = self.processes().into_iter().find(|process| process.name() == name);
        found.with_context(|| {
            let names: Vec<_> = self.processes().iter().map(|one| one.name().to_owned()).collect();
            format!("no process is called {name}; there are {}", names.join(", "))
        })
    }

    /// Installs our packages as a user does, and waits until they and all that they depend on are
    /// healthy.
    async fn install(&self, options: &Options) -> Result<()> {
        let outer = &self.outer;
        let start = Instant::now();
        let (sources, args) = (&options.sources, options.args());
        let settings = settings::environment_config(sources)?;
        outer.apply(&[self.registry.image_config(), settings]).await?;
        outer.apply(&settings::namespaces(sources)?).await?;
        self.grant(sources).await?;
        outer.apply(&packages::installation(&args)).await?;
        outer.apply(&packages::optional(&args)?).await?;
        let count = packages::healthy(outer).await?;
        packages::configure(outer).await?;
        self.workdir.tell(&format!("{count} packages healthy"), start);
        self.run_providers(options.pace).await
    }

    /// Applies the roles, the admission policies and the runtime configs of these sources.
    pub async fn grant(&self, sources: &Path) -> Result<()> {
        self.outer.apply(&rights(sources, &self.args())?).await?;
        self.outer.apply(&runtime::shipped(sources)?).await
    }

    /// Starts what installed providers are here: two programs, and what stands in for clouds, which
    /// take `pace` for a round.
    pub async fn run_providers(&self, pace: Duration) -> Result<()> {
        providers::start(&self.workdir, &self.outer, &self.proxy, &self.runtime).await?;
        let clusters = self.folder().join("clusters.kubeconfig");
        fs::write(
            &clusters,
            kubeconfig::through(&self.proxy.url, &self.inner.authority, &self.inner.token)
                .to_string(),
        )?;
        clouds::start(&self.workdir, &self.outer, pace, self.postgres.as_ref(), &clusters).await
    }
}

/// The cluster with Crossplane, the one for virtual clusters, and Crossplane itself.
async fn clusters(workdir: &Arc<Workdir>, core: CoreVersion) -> Result<(Cluster, Cluster, Core)> {
    let etcd = cluster::etcd(workdir).await?;
    let outer = async {
        let outer = Cluster::start(workdir, OUTER, etcd).await?;
        let (core, ()) = try_join!(crossplane::start(workdir, &outer, core), outer.nodes())?;
        anyhow::Ok((outer, core))
    };
    let inner = async {
        let inner = Cluster::start(workdir, "inside", etcd).await?;
        inner.nodes().await?;
        anyhow::Ok(inner)
    };
    let ((outer, core), inner) = try_join!(outer, inner)?;
    Ok((outer, inner, core))
}

/// Fills the registry.
async fn publish(workdir: &Workdir, registry: &Registry, options: &Options) -> Result<()> {
    if options.install {
        packages::providers(workdir, registry).await?;
        packages::ours(workdir, registry, &options.args(), options.packages.as_deref()).await?;
    }
    Ok(())
}

/// The rights and admission policies that we ship: for Crossplane, people, and the providers of
/// installed packages. The first release has no policies.
fn rights(sources: &Path, args: &package::Args) -> Result<Vec<Value>> {
    let names = args.flavours().into_iter().map(|flavour| format!("providers/{flavour}"));
    let names =
        ["crossplane", "people", "providers/helm"].map(str::to_owned).into_iter().chain(names);
    let files = names.map(|name| format!("rbac/{name}.yaml")).chain(["policy.yaml".to_owned()]);
    let files = files.map(|file| sources.join("package").join(file));
    let mut rights = Vec::new();
    for file in files.filter(|file| file.exists() || !file.ends_with("policy.yaml")) {
        rights.extend(yaml::read(&file)?);
    }
    Ok(rights)
}

/// Copies a folder with all that is in it.
fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

/// The folder in which a control plane that was started in the background leaves word of itself.
pub fn background() -> PathBuf {
    workspace::target().join("up")
}
