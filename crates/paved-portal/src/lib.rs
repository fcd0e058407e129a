//! The server of `paved portal`: environments for users without YAML. It keeps no state and has few
//! rights of its own. It reads with its own role, shows each user only environments that the API
//! server allows, and writes with the user's rights.

mod access;
mod action;
mod address;
mod answer;
mod api;
mod bodies;
mod cache;
mod clients;
mod config;
mod csrf;
mod extract;
mod failure;
mod flags;
mod health;
mod identity;
mod impersonation;
mod kinds;
mod legacy_api;
mod limits;
mod live;
mod metrics;
mod middleware;
mod namespace;
mod oidc;
mod openapi;
mod owner;
mod pages;
mod parts;
mod problem;
mod request;
mod serve;
mod session;
mod sign_in;
mod signed_in;
mod stream_limits;
mod template;
mod token_auth;

use std::io::IsTerminal as _;
use std::net::SocketAddr;
use std::sync::Arc;

use kube::config::AuthInfo;
use paved_client::cluster::{self, Cluster, configure};
use tokio::task::JoinSet;
use tracing::subscriber::DefaultGuard;
use tracing::{Level, Subscriber};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use url::Url;

use access::Access;
use api::Composer;
use bodies::Bodies;
use clients::Clients;
use config::{Auth, Config};
use csrf::Origins;
use identity::Naming;
use impersonation::Impersonation;
use kinds::Catalog;
use live::Live;
use metrics::Metrics;
use namespace::Namespaces;
use oidc::Provider;
use serve::{Listener, signalled};
use session::{Revoked, Sessions};
use stream_limits::Streams;
use token_auth::TokenAuth;

pub use failure::Failure;
pub use flags::Flags;
pub use limits::Limits;
/// The type of a caller's log writer.
pub use tracing_subscriber::fmt::MakeWriter;

/// The state shared by all requests. Data about a user is cached with that user's key. Clones share
/// the same state, and a handler extracts the parts that it needs.
#[derive(Clone)]
struct Portal {
    config: Arc<Config>,
    limits: Limits,
    /// The only watched namespace, if the kubeconfig's user has no rights in others.
    only: Option<String>,
    public_url: Url,
    origins: Arc<Origins>,
    clients: Clients,
    catalog: Arc<Catalog>,
    access: Arc<Access>,
    acting: Arc<Impersonation>,
    naming: Naming,
    bearers: Arc<TokenAuth>,
    namespaces: Namespaces,
    live: Arc<Live>,
    streams: Arc<Streams>,
    /// The OpenID provider and the sessions. `None` if every caller is the kubeconfig's own user.
    oidc: Option<(Arc<Provider>, Arc<Sessions>)>,
    composer: Arc<Composer>,
    bodies: Arc<Bodies>,
    metrics: Arc<Metrics>,
}

/// The `OpenAPI` description of the portal's API, as JSON.
pub fn description() -> Result<String, serde_json::Error> {
    openapi::description().to_pretty_json()
}

/// Serves until a signal is received.
pub async fn run(flags: &Flags, access: &cluster::Access) -> Result<(), Failure> {
    listen(flags, access).await?.run(signalled()).await
}

/// A portal that listens on its address, with the process's log.
pub async fn listen(flags: &Flags, access: &cluster::Access) -> Result<Server, Failure> {
    let config = Config::from_flags(flags)?;
    log(config.level);
    Server::bind(config, access, &Limits::default()).await
}

/// A portal that listens on its address, as in `paved portal`.
pub struct Server {
    listener: Listener,
    portal: Portal,
    /// The log of this thread. Dropping the server ends it.
    log: Option<DefaultGuard>,
}

impl Server {
    /// A portal with the flags of `paved portal`, and with the caller's limits and log. The log
    /// receives only lines of this thread, so the portal must run on one thread.
    pub async fn start(
        flags: &Flags,
        access: &cluster::Access,
        limits: &Limits,
        log: impl for<'w> MakeWriter<'w> + Send + Sync + 'static,
    ) -> Result<Self, Failure> {
        let config = Config::from_flags(flags)?;
        let guard = lines(config.level, log).set_default();
        let server = Self::bind(config, access, limits).await?;
        Ok(Self { log: Some(guard), ..server })
    }

    async fn bind(
        config: Config,
        access: &cluster::Access,
        limits: &Limits,
    ) -> Result<Self, Failure> {
        if access.impersonate.is_some() && matches!(config.auth, Auth::Oidc(_)) {
            return Err(Failure::Usage(
                "--as: not allowed, because the portal acts as the signed-in user. Remove the flag"
                    .to_owned(),
            ));
        }
        config.warn();
        // Several crates include a crypto provider, so it must be selected explicitly.
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let mut kubernetes = configure(access).await?;
        // Clients get an error immediately, and may retry. Watches retry automatically.
        kubernetes.default_retry = false;
        if matches!(config.auth, Auth::Oidc(_)) {
            not_impersonating(&kubernetes.auth_info)?;
        }
        let cluster = Cluster::from_config(kubernetes.clone(), access)?;
        let clients = Clients::new(&cluster, kubernetes)
            .map_err(|error| cluster.explain(&error, "connect"))?;
        let only = access.namespace.clone().filter(|_| matches!(config.auth, Auth::None));
        let listener = Listener::bind(&config).await?;
        let portal = Portal::new(config, limits, only, clients, listener.url())?;
        if let (Auth::Oidc(oidc), Some((provider, _))) = (&portal.config.auth, &portal.oidc) {
            provider.check(oidc).await?;
        }
        Ok(Self { listener, portal, log: None })
    }

    /// The listen address.
    pub fn address(&self) -> SocketAddr {
        self.listener.address()
    }

    /// Serves until `stop` completes. Then streams and requests end. The error is the message of
    /// `paved portal`.
    pub async fn serve(
        self,
        stop: impl Future<Output = ()> + Send + 'static,
    ) -> Result<(), String> {
        self.run(stop).await.map_err(|failure| failure.to_string())
    }

    async fn run(self, stop: impl Future<Output = ()> + Send + 'static) -> Result<(), Failure> {
        let _background = self.portal.follow();
        let _log = self.log;
        self.listener.serve(self.portal, stop).await
    }
}

/// Rejects a kubeconfig with impersonation. The client would add those headers to the signed-in
/// user's headers, and the API server would combine all groups.
fn not_impersonating(user: &AuthInfo) -> Result<(), Failure> {
    let fields = [
        ("as", user.impersonate.is_some()),
        ("as-uid", user.impersonate_uid.is_some()),
        ("as-groups", user.impersonate_groups.is_some()),
        ("as-user-extra", user.impersonate_user_extra.is_some()),
    ];
    let found: Vec<&str> =
        fields.iter().filter(|(_, is_set)| *is_set).map(|(name, _)| *name).collect();
    if found.is_empty() {
        return Ok(());
    }
    Err(Failure::Usage(format!(
        "the kubeconfig's user has {}. With --auth oidc, the portal acts as the signed-in user. \
         Remove the setting",
        found.join(", ")
    )))
}

/// The log target for lines that are logged at any level.
const AUDIT: &str = "audit";

/// Logs to standard error: JSON lines, or text on a terminal.
fn log(level: Level) {
    // A process has one log. If a test runs the portal twice in one process, the first log remains.
    let _ = if std::io::stderr().is_terminal() {
        let text = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
        tracing_subscriber::registry().with(logged(level)).with(text).try_init()
    } else {
        lines(level, std::io::stderr).try_init()
    };
}

/// A log of JSON lines. It never contains the value of a header, a query or a body.
fn lines(
    level: Level,
    writer: impl for<'w> MakeWriter<'w> + Send + Sync + 'static,
) -> impl Subscriber + Send + Sync {
    let lines = tracing_subscriber::fmt::layer().with_writer(writer).json();
    let lines = lines.flatten_event(true).with_span_list(false);
    tracing_subscriber::registry().with(logged(level)).with(lines)
}

/// The log filter. The Kubernetes client would log unreadable responses with any contents. The
/// portal itself logs the errors of watches.
fn logged(level: Level) -> Targets {
    let all = Targets::new().with_default(level).with_target(AUDIT, Level::INFO);
    all.with_target("kube_client", Level::ERROR).with_target("kube_runtime", Level::ERROR)
}

impl Portal {
    fn new(
        config: Config,
        limits: &Limits,
        only: Option<String>,
        clients: Clients,
        listening: Url,
    ) -> Result<Self, Failure> {
        let public_url = config.public_url.clone().unwrap_or(listening);
        let own = clients.own();
        let oidc = match &config.auth {
            Auth::None => None,
            Auth::Oidc(oidc) => {
                let sessions =
                    Sessions::new(oidc, config.public_url.as_ref(), Revoked::for_cluster(&own));
                Some((Arc::new(Provider::new(oidc, &public_url, limits)?), Arc::new(sessions)))
            }
        };
        let catalog = Arc::new(Catalog::new(clients.clone(), only.clone()));
        let access = Arc::new(Access::new(clients.clone(), Arc::clone(&catalog), limits));
        let live = Arc::new(Live::new(
            owner::unique(4).map_err(|why| Failure::Usage(why.detail().to_owned()))?,
        ));
        let streams = Arc::new(Streams::new(limits));
        let naming = config.auth.naming();
        // With sign-in, users must not create environments in the namespace of the portal's own
        // keys.
        let fallback = Some(own.namespace).filter(|_| matches!(config.auth, Auth::None));
        Ok(Self {
            metrics: Arc::new(Metrics::new(&access.asked, &live, &streams)),
            origins: Arc::new(Origins::new(&config, &public_url)),
            catalog,
            bearers: Arc::new(TokenAuth::new(clients.clone(), naming.clone(), limits)),
            naming,
            namespaces: Namespaces::new(config.template.clone(), fallback),
            composer: Arc::default(),
            bodies: Arc::new(Bodies::new(limits)),
            config: Arc::new(config),
            limits: *limits,
            only,
            public_url,
            clients,
            access,
            acting: Arc::default(),
            live,
            streams,
            oidc,
        })
    }

    /// Starts the background tasks. Dropping the result ends them.
    fn follow(&self) -> JoinSet<()> {
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
        if let Some(sessions) = self.sessions() {
            let prune = self.limits.ended_sessions;
            tasks.spawn(async move { sessions.revoked.follow(prune).await });
        }
        tasks
    }

    fn sessions(&self) -> Option<Arc<Sessions>> {
        self.oidc.as_ref().map(|(_, sessions)| Arc::clone(sessions))
    }
}
