//! `paved portal`: environments for people who never write YAML. It keeps no state and holds little power of its own: it reads under
//! its own role, shows each person what the API server says they may see, and writes under their rights.

mod access;
mod acting;
mod address;
mod answer;
mod answers;
mod api;
mod bearer;
mod clients;
mod config;
mod extract;
mod health;
mod kinds;
mod layers;
mod limits;
mod live;
mod metrics;
mod namespace;
mod oidc;
mod openapi;
mod origin;
pub(crate) mod owner;
mod pages;
mod problem;
mod request;
mod serve;
mod session;
mod shapes;
mod sign_in;
mod signed_in;
mod streams;
mod template;
mod who;

use std::io::IsTerminal as _;
use std::net::SocketAddr;
use std::sync::Arc;

use kube::config::AuthInfo;
use tokio::task::JoinSet;
use tracing::subscriber::DefaultGuard;
use tracing::{Level, Subscriber};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use url::Url;

use crate::Console;
use crate::cli;
use crate::cluster::{Cluster, configure};
use crate::failure::Failure;
use access::Access;
use acting::Acting;
use api::Preview;
use bearer::Bearers;
use clients::Clients;
use config::{Auth, Config};
use kinds::Catalog;
pub use limits::Limits;
use live::Live;
use metrics::Metrics;
use namespace::Namespaces;
use oidc::Provider;
use origin::Origins;
use serve::{Listener, signalled};
use session::{Revoked, Sessions};
use streams::Streams;
use who::Naming;

/// Everything that requests share. What is remembered of a person is remembered under that person's key.
struct Portal {
    config: Config,
    limits: Limits,
    /// The only namespace that is watched, where the rights of the kubeconfig's user end there.
    only: Option<String>,
    public_url: Url,
    origins: Origins,
    clients: Clients,
    catalog: Arc<Catalog>,
    access: Access,
    acting: Acting,
    naming: Naming,
    bearers: Bearers,
    namespaces: Namespaces,
    live: Arc<Live>,
    streams: Streams,
    provider: Option<Provider>,
    sessions: Option<Sessions>,
    preview: Preview,
    metrics: Metrics,
}

/// Serves until a signal comes.
pub(crate) async fn run(args: &cli::Portal, console: &mut Console<'_>) -> Result<(), Failure> {
    if args.print_openapi {
        let description = openapi::description();
        writeln!(console.out, "{}", description.to_pretty_json().map_err(std::io::Error::other)?)?;
        return Ok(());
    }
    let config = Config::of(args)?;
    log(config.level);
    Server::bind(config, &args.access, Limits::default()).await?.run(signalled()).await
}

/// A portal that listens on its address: what `paved portal` runs.
pub struct Server {
    listener: Listener,
    portal: Arc<Portal>,
    /// The log of this thread, for as long as the server lives.
    log: Option<DefaultGuard>,
}

impl Server {
    /// A portal with the flags of `paved portal`, and with limits and a log of the caller's. The log
    /// has the lines of this thread, so the portal has to run on one thread. An error is what
    /// `paved portal` prints.
    pub async fn start(
        flags: &[String],
        limits: Limits,
        log: impl for<'w> MakeWriter<'w> + Send + Sync + 'static,
    ) -> Result<Self, String> {
        let args = ["paved", "portal"].into_iter().map(str::to_owned).chain(flags.iter().cloned());
        let cli = crate::parse(args.map(Into::into).collect()).map_err(|error| error.to_string())?;
        let cli::Command::Portal(args) = cli.command else {
            return Err("the flags belong to another command".to_owned());
        };
        let config = Config::of(&args).map_err(|failure| failure.to_string())?;
        let guard = lines(config.level, log).set_default();
        let server = Self::bind(config, &args.access, limits).await;
        server.map(|server| Self { log: Some(guard), ..server }).map_err(|failure| failure.to_string())
    }

    async fn bind(config: Config, access: &cli::Access, limits: Limits) -> Result<Self, Failure> {
        if access.impersonate.is_some() && matches!(config.auth, Auth::Oidc(_)) {
            return Err(Failure::Usage(
                "--as: not allowed, because the portal acts as the signed-in user. Remove the flag"
                    .to_owned(),
            ));
        }
        config.warn();
        // Several crates bring a provider of their own: this one is meant.
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let mut kubernetes = configure(access).await?;
        // Clients get an error at once, and may ask again. Watches retry by themselves.
        kubernetes.default_retry = false;
        if matches!(config.auth, Auth::Oidc(_)) {
            not_impersonating(&kubernetes.auth_info)?;
        }
        let cluster = Cluster::of(kubernetes.clone(), access)?;
        let clients =
            Clients::new(&cluster, kubernetes).map_err(|error| cluster.explain(&error, "connect"))?;
        let only = access.namespace.clone().filter(|_| matches!(config.auth, Auth::None));
        let listener = Listener::bind(&config).await?;
        let portal = Arc::new(Portal::new(config, limits, only, clients, listener.url())?);
        Ok(Self { listener, portal, log: None })
    }

    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.listener.address()
    }

    /// Serves until `stop` is done. Then streams and requests end. An error is what `paved portal`
    /// prints.
    pub async fn serve(self, stop: impl Future<Output = ()> + Send + 'static) -> Result<(), String> {
        self.run(stop).await.map_err(|failure| failure.to_string())
    }

    async fn run(self, stop: impl Future<Output = ()> + Send + 'static) -> Result<(), Failure> {
        let _background = self.portal.follow();
        let _log = self.log;
        self.listener.serve(self.portal, stop).await
    }
}

/// Rejects a kubeconfig whose user impersonates somebody. The client would add those headers to the ones of
/// the person who is signed in, and the API server would take all groups together.
fn not_impersonating(user: &AuthInfo) -> Result<(), Failure> {
    let fields = [
        ("as", user.impersonate.is_some()),
        ("as-uid", user.impersonate_uid.is_some()),
        ("as-groups", user.impersonate_groups.is_some()),
        ("as-user-extra", user.impersonate_user_extra.is_some()),
    ];
    let found: Vec<&str> = fields.iter().filter(|(_, is_set)| *is_set).map(|(name, _)| *name).collect();
    if found.is_empty() {
        return Ok(());
    }
    Err(Failure::Usage(format!(
        "the kubeconfig's user has {}. With --auth oidc, the portal acts as the signed-in user. \
         Remove the setting",
        found.join(", ")
    )))
}

/// The log's target of what has to stand in it, whatever its level is.
const AUDIT: &str = "audit";

/// Logs to standard error: JSON lines, or text on a terminal.
fn log(level: Level) {
    // A program has one log: where a test runs the portal twice in one process, the first one's stays.
    let _ = if std::io::stderr().is_terminal() {
        let text = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
        tracing_subscriber::registry().with(logged(level)).with(text).try_init()
    } else {
        lines(level, std::io::stderr).try_init()
    };
}

/// A log of JSON lines. The value of a header, a query or a body is never in it.
fn lines(
    level: Level,
    writer: impl for<'w> MakeWriter<'w> + Send + Sync + 'static,
) -> impl Subscriber + Send + Sync {
    let lines = tracing_subscriber::fmt::layer().with_writer(writer).json();
    let lines = lines.flatten_event(true).with_span_list(false);
    tracing_subscriber::registry().with(logged(level)).with(lines)
}

/// What is logged. The Kubernetes client logs responses that it cannot read, whatever they contain,
/// and the portal itself logs the errors of watches.
fn logged(level: Level) -> Targets {
    let all = Targets::new().with_default(level).with_target(AUDIT, Level::INFO);
    all.with_target("kube_client", Level::ERROR).with_target("kube_runtime", Level::ERROR)
}

impl Portal {
    fn new(
        config: Config,
        limits: Limits,
        only: Option<String>,
        clients: Clients,
        listening: Url,
    ) -> Result<Self, Failure> {
        let public_url = config.public_url.clone().unwrap_or(listening);
        let own = clients.own();
        let (provider, sessions) = match &config.auth {
            Auth::None => (None, None),
            Auth::Oidc(oidc) => {
                let sessions = Sessions::new(oidc, config.public_url.as_ref(), Revoked::of(&own));
                (Some(Provider::new(oidc, &public_url, &limits)?), Some(sessions))
            }
        };
        let catalog = Arc::new(Catalog::new(clients.clone(), only.clone()));
        let access = Access::new(clients.clone(), Arc::clone(&catalog), &limits);
        let live =
            Arc::new(Live::new(owner::unique(4).map_err(|why| Failure::Usage(why.detail().to_owned()))?));
        let streams = Streams::new(&limits);
        let naming = config.auth.naming();
        // Where the portal's own keys lie, nobody who signs in has anything to make.
        let fallback = Some(own.namespace).filter(|_| matches!(config.auth, Auth::None));
        Ok(Self {
            metrics: Metrics::new(&access, &live, &streams),
            origins: Origins::of(&config, &public_url),
            catalog,
            bearers: Bearers::new(clients.clone(), naming.clone(), &limits),
            naming,
            namespaces: Namespaces::new(config.template.clone(), fallback),
            preview: Preview::default(),
            config,
            limits,
            only,
            public_url,
            clients,
            access,
            acting: Acting::default(),
            live,
            streams,
            provider,
            sessions,
        })
    }

    /// Everything that goes on beside requests, for as long as the answer is held.
    fn follow(self: &Arc<Self>) -> JoinSet<()> {
        let mut tasks = JoinSet::new();
        let cluster = self.clients.own();
        tasks.spawn(live::follow(
            cluster.clone(),
            self.only.clone(),
            Arc::clone(&self.catalog),
            Arc::clone(&self.live),
            self.limits.kinds,
        ));
        tasks.spawn(live::follow_deletions(cluster, Arc::clone(&self.live), self.limits));
        let portal = Arc::clone(self);
        tasks.spawn(async move {
            if let Some(sessions) = &portal.sessions {
                sessions.revoked.follow(portal.limits.ended_sessions).await;
            }
        });
        tasks
    }

    /// What is missing, so that requests cannot be answered as they should.
    fn missing(&self) -> Vec<String> {
        let mut missing: Vec<String> =
            self.live.unsynced().into_iter().map(|kind| format!("the watch of {kind}")).collect();
        if !self.catalog.seen().is_known() {
            missing.push("the cluster's kinds".to_owned());
        } else if missing.is_empty() && self.live.seen_whole().is_err() {
            // Between two steps of the watch: it is ready when it answers.
            missing.push("a first look at what there is".to_owned());
        }
        let away = self.limits.interrupted_portal;
        if self.live.unseen() > away {
            missing.push("the API server's watches".to_owned());
        }
        let unheard = |revoked: &Revoked| !revoked.is_known() || revoked.unheard() > away;
        if self.sessions.as_ref().is_some_and(|sessions| unheard(&sessions.revoked)) {
            missing.push("the sessions that were ended".to_owned());
        }
        missing
    }
}
