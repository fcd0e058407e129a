//! The server of `paved portal`: environments for people who never write YAML. It keeps no state and holds little power of its own: it reads under
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
mod failure;
mod flags;
mod health;
mod kinds;
mod layers;
mod live;
mod metrics;
mod namespace;
mod oidc;
mod openapi;
mod origin;
mod owner;
mod pages;
mod parts;
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
use std::sync::Arc;

use kube::config::AuthInfo;
use tokio::task::JoinSet;
use tracing::Level;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use url::Url;

use access::Access;
use acting::Acting;
use api::Preview;
use bearer::Bearers;
use clients::Clients;
use config::{Auth, Config};
use kinds::Catalog;
use live::Live;
use metrics::Metrics;
use namespace::Namespaces;
use oidc::Provider;
use origin::Origins;
use paved_client::cluster::{self, Cluster, configure};
use serve::Listener;
use session::{Revoked, Sessions};
use streams::Streams;
use who::Naming;

pub use failure::Failure;
pub use flags::Flags;

/// Everything that requests share. What is remembered of a person is remembered under that person's key. Clones share it too; a
/// handler takes the parts that it needs.
#[derive(Clone)]
struct Portal {
    config: Arc<Config>,
    /// The only namespace that is watched, where the rights of the kubeconfig's user end there.
    only: Option<String>,
    public_url: Url,
    origins: Arc<Origins>,
    clients: Clients,
    catalog: Arc<Catalog>,
    access: Arc<Access>,
    acting: Arc<Acting>,
    naming: Naming,
    bearers: Arc<Bearers>,
    namespaces: Namespaces,
    live: Arc<Live>,
    streams: Arc<Streams>,
    /// The OpenID provider and the sessions, unless everybody is the kubeconfig's own user.
    oidc: Option<(Arc<Provider>, Arc<Sessions>)>,
    preview: Arc<Preview>,
    metrics: Arc<Metrics>,
}

/// The `OpenAPI` description of the portal's API, as JSON.
pub fn description() -> Result<String, serde_json::Error> {
    openapi::description().to_pretty_json()
}

/// Serves until a signal comes.
pub async fn run(flags: &Flags, access: &cluster::Access) -> Result<(), Failure> {
    let config = Config::of(flags)?;
    if access.impersonate.is_some() && matches!(config.auth, Auth::Oidc(_)) {
        return Err(Failure::Usage("--as: the portal acts as whoever signs in; leave it out".to_owned()));
    }
    log(&config);
    config.warn();
    // Several crates bring a provider of their own: this one is meant.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let mut kubernetes = configure(access).await?;
    // Whoever waits for an answer is told at once, and may ask again; watches have a patience of their own.
    kubernetes.default_retry = false;
    if matches!(config.auth, Auth::Oidc(_)) {
        not_impersonating(&kubernetes.auth_info)?;
    }
    let cluster = Cluster::of(kubernetes.clone(), access)?;
    let clients = Clients::new(&cluster, kubernetes).map_err(|error| cluster.explain(&error, "connect"))?;
    let only = access.namespace.clone().filter(|_| matches!(config.auth, Auth::None));
    let listener = Listener::bind(&config).await?;
    let portal = Portal::new(config, only, clients, listener.url())?;
    let _background = portal.follow();
    listener.serve(portal).await
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
        "the kubeconfig's user has {}; with --auth oidc the portal acts as whoever signs in: remove it",
        found.join(", ")
    )))
}

/// The log's target of what has to stand in it, whatever its level is.
const AUDIT: &str = "audit";

/// JSON lines on standard error, text on a terminal. A value of a header, a query or a body never stands in them.
fn log(config: &Config) {
    // The client logs answers that it cannot read, whatever stands in them; and what befalls watches is told here.
    let told = Targets::new().with_default(config.level);
    let told = told.with_target("kube_client", Level::ERROR).with_target("kube_runtime", Level::ERROR);
    let told = told.with_target(AUDIT, Level::INFO);
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let log = tracing_subscriber::registry().with(told);
    // A program has one log: where a test runs the portal twice in one process, the first one's stays.
    let _ = if std::io::stderr().is_terminal() {
        log.with(lines).try_init()
    } else {
        log.with(lines.json().flatten_event(true).with_span_list(false)).try_init()
    };
}

impl Portal {
    fn new(config: Config, only: Option<String>, clients: Clients, listening: Url) -> Result<Self, Failure> {
        let public_url = config.public_url.clone().unwrap_or(listening);
        let own = clients.own();
        let oidc = match &config.auth {
            Auth::None => None,
            Auth::Oidc(oidc) => {
                let sessions = Sessions::new(oidc, config.public_url.as_ref(), Revoked::of(&own));
                Some((Arc::new(Provider::new(oidc, &public_url)?), Arc::new(sessions)))
            }
        };
        let catalog = Arc::new(Catalog::new(clients.clone(), only.clone()));
        let access = Arc::new(Access::new(clients.clone(), Arc::clone(&catalog)));
        let live =
            Arc::new(Live::new(owner::unique(4).map_err(|why| Failure::Usage(why.detail().to_owned()))?));
        let streams = Arc::new(Streams::new());
        let naming = config.auth.naming();
        // Where the portal's own keys lie, nobody who signs in has anything to make.
        let fallback = Some(own.namespace).filter(|_| matches!(config.auth, Auth::None));
        Ok(Self {
            metrics: Arc::new(Metrics::new(&access, &live, &streams)),
            origins: Arc::new(Origins::of(&config, &public_url)),
            catalog,
            bearers: Arc::new(Bearers::new(clients.clone(), naming.clone())),
            naming,
            namespaces: Namespaces::new(config.template.clone(), fallback),
            preview: Arc::default(),
            config: Arc::new(config),
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

    /// Everything that goes on beside requests, for as long as the answer is held.
    fn follow(&self) -> JoinSet<()> {
        let mut tasks = JoinSet::new();
        let cluster = self.clients.own();
        tasks.spawn(live::follow(
            cluster.clone(),
            self.only.clone(),
            Arc::clone(&self.catalog),
            Arc::clone(&self.live),
        ));
        tasks.spawn(live::follow_deletions(cluster, Arc::clone(&self.live)));
        if let Some(sessions) = self.sessions() {
            tasks.spawn(async move { sessions.revoked.follow().await });
        }
        tasks
    }
    fn sessions(&self) -> Option<Arc<Sessions>> {
        self.oidc.as_ref().map(|(_, sessions)| Arc::clone(sessions))
    }
}
