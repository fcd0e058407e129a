//! The controller of `paved controller`: deletes expired environments, compares costs with budgets,
//! lists the namespaces that must not be deleted yet, makes deletions faster, and sends
//! notifications. All other work is the function's, also without a controller.
//!
//! Watches fill a store with a small record for each environment. One replica leads, by a Lease.
//! Each second, the leader looks for announced ends that have passed. For each of them, it reads
//! the environment, its composite and the function's note, and decides again: see `verdict.rs`.

mod budget;
mod clock;
mod expiry;
mod failure;
mod flags;
mod guard;
#[cfg(test)]
mod histories;
mod lease;
mod limit;
mod limits;
mod metrics;
mod notices;
mod notify;
mod plan;
mod read;
mod record;
mod serve;
mod settings;
mod store;
mod usages;
mod verdict;
mod waiting;
mod watching;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;

use paved_client::cluster::{Cluster, Served};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

use budget::Budgets;
pub use clock::Clock;
use expiry::Expiry;
pub use failure::Failure;
pub use flags::Flags;
use guard::Guard;
use lease::Election;
pub use limits::Limits;
use metrics::Metrics;
use notices::Notices;
use notify::Outbox;
use notify::event::Event;
pub use notify::{Receiver, Template};
pub use plan::plan;
use serve::Health;
pub use settings::SettingsFrom;
use settings::Source;
use store::Store;
use waiting::Waiting;

/// The configuration of a controller.
#[derive(Clone)]
pub struct Options {
    /// The namespace of the Lease, and of the ConfigMap with the namespaces that have environments.
    pub namespace: String,
    /// The name of this replica: unique in the cluster and among restarts.
    pub identity: String,
    /// The name of the EnvironmentConfig with Settings.
    pub settings: String,
    /// Whether there must be one.
    pub settings_from: SettingsFrom,
    /// Where events are sent.
    pub receiver: Option<Receiver>,
    /// Where health and metrics are served; `None` if they are not.
    pub listen: Option<SocketAddr>,
    /// Times.
    pub limits: Limits,
    /// The clocks.
    pub clock: Clock,
}

/// Runs a controller until `stop` is done. Then another replica leads.
///
/// # Errors
/// The address cannot be listened on.
pub async fn run(
    cluster: Cluster,
    options: Options,
    stop: impl Future<Output = ()>,
) -> Result<(), Failure> {
    let Options { namespace, identity, settings, settings_from, receiver, listen, limits, clock } =
        options;
    let metrics = Arc::new(Metrics::new());
    let store = Arc::new(Store::new(clock.clone()));
    let election = Arc::new(Election::new(&cluster, &namespace, identity, clock.clone(), limits));
    let outbox = Arc::new(Outbox::new(Arc::clone(&metrics), receiver.is_some()));
    let mut tasks = JoinSet::new();
    if let Some(address) = listen {
        let listener = TcpListener::bind(address).await.map_err(|error| {
            Failure::Usage(format!("--listen: found {address}; it cannot be taken: {error}"))
        })?;
        let health = Health {
            store: Arc::clone(&store),
            election: Arc::clone(&election),
            metrics: Arc::clone(&metrics),
            clock: clock.clone(),
            limits,
        };
        tasks.spawn(serve::serve(listener, health));
    }
    let (watched, counted) = (Arc::clone(&store), Arc::clone(&metrics));
    tasks.spawn(watching::follow(cluster.clone(), watched, counted, limits));
    if let Some(receiver) = receiver {
        let (outbox, clock) = (Arc::clone(&outbox), clock.clone());
        tasks.spawn(async move { outbox.deliver(receiver, clock, limits).await });
    }
    let waiting = Arc::new(Waiting::new(&cluster, clock.clone(), limits));
    for usages in &usages::KINDS[..2] {
        let waiting = Arc::clone(&waiting);
        tasks.spawn(async move { waiting.follow(*usages).await });
    }
    let (elected, watched) = (Arc::clone(&election), Arc::clone(&store));
    tasks.spawn(async move { elect(&elected, &watched, limits).await });
    let worker = Worker {
        source: Source::new(&cluster, &settings, settings_from),
        expiry: Expiry {
            cluster: cluster.clone(),
            served: Served::default(),
            store: Arc::clone(&store),
            election: Arc::clone(&election),
            metrics: Arc::clone(&metrics),
            clock: clock.clone(),
            limits,
            spent: tokio::sync::Mutex::default(),
        },
        guard: Guard::new(
            &cluster,
            &namespace,
            Arc::clone(&store),
            Arc::clone(&metrics),
            clock.clone(),
            limits,
        ),
        budgets: Budgets {
            cluster,
            store: Arc::clone(&store),
            metrics: Arc::clone(&metrics),
            election: Arc::clone(&election),
            outbox: Arc::clone(&outbox),
            clock: clock.clone(),
            limits,
            excesses: BTreeMap::new(),
            seen: None,
            waiting: None,
            retry: None,
        },
        notices: Notices::new(
            Arc::clone(&store),
            Arc::clone(&election),
            outbox,
            clock.clone(),
            limits,
        ),
        waiting,
        election: Arc::clone(&election),
        store,
        metrics,
        clock,
        limits,
    };
    tokio::select! {
        () = stop => {}
        () = worker.work() => {}
    }
    tasks.shutdown().await;
    election.release().await;
    tracing::info!("stopped");
    Ok(())
}

/// Takes part in the election until the task ends, while the watches show all environments. A
/// leader that does not see them gives the Lease back: another replica may see them.
async fn elect(election: &Election, store: &Store, limits: Limits) {
    let mut next = interval(limits.renew);
    next.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        next.tick().await;
        if !store.missing(limits.interrupted).is_empty() {
            election.release().await;
            continue;
        }
        if let Err(error) = election.step().await {
            tracing::warn!(%error, "the Lease cannot be read or written");
        }
    }
}

/// Does the work of the leader.
struct Worker {
    source: Source,
    expiry: Expiry,
    guard: Guard,
    budgets: Budgets,
    notices: Notices,
    waiting: Arc<Waiting>,
    election: Arc<Election>,
    store: Arc<Store>,
    metrics: Arc<Metrics>,
    clock: Clock,
    limits: Limits,
}

impl Worker {
    async fn work(mut self) {
        let mut leads = false;
        let mut next = interval(self.limits.tick);
        next.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            next.tick().await;
            let is_blind = !self.store.missing(self.limits.interrupted).is_empty();
            let led = std::mem::replace(&mut leads, self.election.leads().await && !is_blind);
            self.metrics.leads(leads);
            if !leads {
                // The leader sends the events.
                let _ = self.store.news();
                if led {
                    tracing::warn!("leads no longer");
                    self.store.unhold();
                    self.metrics.settings_missing(false);
                    self.metrics.keep_namespaces(&BTreeSet::new());
                }
                continue;
            }
            if !led {
                tracing::info!("leads");
                self.source.forget();
                self.guard.resume();
                self.expiry.resume().await;
                self.notices.resume().await;
                self.budgets.resume(self.notices.floor()).await;
            }
            self.round().await;
        }
    }

    async fn round(&mut self) {
        if self.source.refresh(self.clock.steady()).await {
            let event = Event::no_settings(self.source.name(), self.clock.now());
            self.notices.outbox.put(event);
        }
        self.metrics.settings_missing(self.source.is_missing());
        let settings = self.source.get();
        self.guard.pass().await;
        self.expiry.pass(settings).await;
        self.waiting.pass(&self.store, &self.metrics).await;
        self.budgets.pass(settings.ok()).await;
        if let Err(error) = self.notices.pass().await {
            tracing::warn!(%error, "the Lease cannot be written");
            self.metrics.failed();
        }
    }
}
