//! A whole control plane on this machine: processes on loopback, without containers or a cluster.
//!
//! It consists of etcd, a Kubernetes API server with controllers and a scheduler, fake nodes, and
//! Crossplane with the rights of its chart. A registry serves the packages of our function, our
//! Configurations and the providers. provider-kubernetes and provider-helm are real programs. A
//! second API server holds the contents of virtual clusters. Several control planes can run on one
//! machine.

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
pub mod providers;
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
    version::{CoreVersion, KubernetesVersion},
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
#[expect(clippy::struct_excessive_bools, reason = "each is an independent switch")]
pub struct Options {
    /// Version of Crossplane.
    pub core: CoreVersion,
    /// Version of Kubernetes.
    pub kubernetes: KubernetesVersion,
    /// Use a build of Crossplane with a shorter wait for Usages, if this version has one.
    pub fast: bool,
    /// Install our packages and their dependencies.
    pub install: bool,
    /// Publish our packages and their dependencies in the registry, also without an installation.
    pub publish: bool,
    /// Folder with packages of `cargo xtask package`. The function then runs from its package.
    /// Without a folder, the packages are built from the workspace, with images that hold no
    /// program. The function is then the program that was built for tests.
    pub packages: Option<PathBuf>,
    /// The sources with the roles, Settings, charts and examples.
    pub sources: PathBuf,
    /// The version of our packages.
    pub release: String,
    /// Number of the function's processes.
    pub replicas: usize,
    /// Duration of one round of a kind's model. A cluster takes four rounds. With zero, all
    /// resources are ready at once.
    pub pace: Duration,
    /// Run the real provider-sql on the newest PostgreSQL, with an administrator who is not a
    /// superuser. Otherwise a fake provider has its place.
    pub real_sql: bool,
    /// Print no output.
    pub quiet: bool,
    /// Keep the folder, with the logs.
    pub keep: bool,
    /// Folder for copies of the logs after a failure. Each control plane gets its own subfolder.
    pub logs: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            core: CoreVersion::default(),
            kubernetes: KubernetesVersion::default(),
            real_sql: false,
            fast: false,
            install: true,
            publish: false,
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
    /// The flags of our installed packages.
    fn args(&self) -> package::Args {
        let (release, flavour) = (self.release.clone(), self.core.flavour());
        package::Args { release, flavour, ..package::Args::default() }
    }
}

/// A running control plane. Drop stops its processes and removes its folder.
pub struct ControlPlane {
    /// The cluster that Crossplane runs in, where claims are applied.
    pub outer: Cluster,
    /// The cluster behind all virtual clusters and EKS clusters.
    pub inner: Cluster,
    /// The registry with the packages.
    pub registry: Registry,
    /// The proxy to chart repositories and virtual clusters.
    pub proxy: Proxy,
    /// The fake package runtime, which sets the endpoints of functions.
    pub runtime: Runtime,
    /// The function's replicas.
    pub function: Function,
    /// Crossplane's metrics.
    pub metrics: Metrics,
    /// The lock for add-ons inside virtual clusters. All virtual clusters share one cluster, so
    /// add-ons must not be installed twice.
    pub add_ons: Arc<Mutex<()>>,
    /// The lock for creating a shared environment.
    pub shared_fixtures: Mutex<()>,
    /// The PostgreSQL server for provider-sql's kinds, if PostgreSQL is installed.
    pub postgres: Option<Postgres>,
    workdir: Arc<Workdir>,
    options: Options,
    _guest_cluster: guest_cluster::GuestCluster,
}

impl ControlPlane {
    /// Starts all components, and returns when all packages are healthy. An error names the
    /// component that failed, with the end of its log.
    pub async fn start(options: &Options) -> Result<Self> {
        let begin = Instant::now();
        let (core, kubernetes) = (options.core.tool(options.fast), options.kubernetes.tools());
        let workdir = Arc::new(Workdir::new(core, kubernetes, options.quiet, options.keep)?);
        let registry = Registry::start(&workdir).await?;
        let ((), (outer, inner, core), sites) = try_join!(
            publish(&workdir, &registry, options),
            clusters(&workdir, options.core),
            charts::pack(&workdir, &options.sources)
        )?;
        let proxy = Proxy::start(sites, inner.port, workdir.folder()).await?;
        let guest_cluster = guest_cluster::GuestCluster::start(&outer, &inner, &proxy, &workdir)?;
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
        let postgres = if options.real_sql {
            Some(Postgres::newest(&workdir.logs()).await?)
        } else if options.install || options.publish {
            clouds::postgres(&workdir).await?
        } else {
            None
        };
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
        } else if options.publish {
            plane.prepare(options).await?;
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

    /// Runs kubectl as administrator and returns its output.
    pub async fn kubectl(&self, args: &[&str]) -> Result<String> {
        self.outer.kubectl(args.iter().copied()).await
    }

    /// The flags of our packages that were installed at the start.
    pub fn args(&self) -> package::Args {
        self.options.args()
    }

    /// The sources of the packages that were installed at the start.
    pub fn sources(&self) -> &Path {
        &self.options.sources
    }

    /// The folder of all files that this control plane writes.
    pub fn folder(&self) -> &Path {
        self.workdir.folder()
    }

    /// Options for another control plane, small and quiet, for one scenario alone. It keeps its
    /// folder and copies its logs if this control plane does.
    pub fn beside(&self) -> Options {
        let Options { core, kubernetes, fast, packages, keep, logs, .. } = self.options.clone();
        let (replicas, quiet) = (1, true);
        let defaults = Options::default();
        Options { core, kubernetes, fast, packages, replicas, quiet, keep, logs, ..defaults }
    }

    /// Copies the logs into a subfolder with this name, if `--logs` names a folder. Returns a
    /// sentence that says where the logs are.
    pub fn leave_logs(&self, name: &str) -> Result<String> {
        let logs = self.workdir.logs();
        let Some(folder) = &self.options.logs else {
            let place = logs.display();
            return Ok(if self.options.keep {
                format!("the logs of {name} are in {place}")
            } else {
                format!("the logs of {name} were in {place}. Use --keep to keep them")
            });
        };
        let left = folder.join(name);
        copy(&logs, &left).with_context(|| format!("copying logs to {}", left.display()))?;
        Ok(format!("the logs of {name} are in {}", left.display()))
    }

    /// Whether drop keeps the folder.
    pub fn keeps_folder(&self) -> bool {
        self.workdir.keeps_folder()
    }

    /// The path of kubectl.
    pub fn kubectl_path(&self) -> &Path {
        &self.workdir.tools.kubectl
    }

    /// The folder, programs and processes, to start more processes.
    pub fn workdir(&self) -> &Arc<Workdir> {
        &self.workdir
    }

    /// All processes, in the order of their start.
    pub fn processes(&self) -> Vec<Arc<Process>> {
        self.workdir.processes()
    }

    /// A process, to stop, kill or start again: `crossplane`, `provider-helm`, `function-0`.
    pub fn process(&self, name: &str) -> Result<Arc<Process>> {
        let found = self.processes().into_iter().find(|process| process.name() == name);
        found.with_context(|| {
            let names: Vec<_> = self.processes().iter().map(|one| one.name().to_owned()).collect();
            format!("no process is named {name}; the processes are {}", names.join(", "))
        })
    }

    /// Installs our packages as a user does, and waits until they and their dependencies are
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

    /// Prepares an installation of the chart by the user: Crossplane finds the packages, and the
    /// namespaces of the examples exist.
    async fn prepare(&self, options: &Options) -> Result<()> {
        self.outer.apply(&[self.registry.image_config()]).await?;
        self.outer.apply(&settings::namespaces(&options.sources)?).await
    }

    /// Waits until the user has installed the providers, and starts them.
    pub async fn run_installed_providers(&self, pace: Duration) -> Result<()> {
        while !packages::has_providers(&self.outer).await? {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        packages::healthy(&self.outer).await?;
        self.run_providers(pace).await
    }

    /// The packed chart of the workspace.
    pub fn chart(&self) -> PathBuf {
        let version = package::chart::version(&package::Args::default().release).to_owned();
        let name = format!("{}-{version}.tgz", package::chart::NAME);
        self.folder().join("sites").join(charts::OURS).join(name)
    }

    /// Applies the roles, the admission policies and the runtime configs of these sources.
    pub async fn grant(&self, sources: &Path) -> Result<()> {
        self.outer.apply(&rights(sources, &self.args())?).await?;
        self.outer.apply(&runtime::shipped(sources)?).await
    }

    /// Starts the installed providers: two real programs, and the fake providers of clouds. A round
    /// of the clouds takes `pace`.
    pub async fn run_providers(&self, pace: Duration) -> Result<()> {
        providers::start(&self.workdir, &self.outer, &self.proxy, &self.runtime).await?;
        let clusters = self.folder().join("clusters.kubeconfig");
        fs::write(
            &clusters,
            kubeconfig::through(&self.proxy.url, &self.inner.authority, &self.inner.token)
                .to_string(),
        )?;
        let played = self.postgres.as_ref().filter(|_| !self.options.real_sql);
        clouds::start(&self.workdir, &self.outer, pace, played, &clusters).await?;
        match &self.postgres {
            Some(postgres) if self.options.real_sql => {
                providers::start_sql(&self.workdir, &self.outer, postgres).await
            }
            _ => Ok(()),
        }
    }
}

/// Starts the cluster with Crossplane, the cluster for virtual clusters, and Crossplane itself.
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
    if options.install || options.publish {
        packages::providers(workdir, registry, options.real_sql).await?;
        packages::ours(workdir, registry, &options.args(), options.packages.as_deref()).await?;
    }
    Ok(())
}

/// The rights and admission policies that we ship, for Crossplane, for people and for the providers
/// of installed packages. The first release has no policies.
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

/// Copies a folder with all its contents.
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

/// The folder with the state of a control plane in the background.
pub fn background() -> PathBuf {
    workspace::target().join("up")
}
