//! The election of a leader by a Lease, as in Kubernetes' own controllers.
//!
//! A replica takes over if it has seen no change of the Lease for the Lease's duration, by its own
//! steady clock. Times in the Lease are for people: the clocks of nodes differ, and one may be
//! wrong by a year. Each write requires the version that was read last, so at most one replica
//! succeeds.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{ObjectMeta, PostParams};
use paved_client::cluster::{Api, Cluster};
use tokio::sync::Mutex;

use crate::Limits;
use crate::clock::Clock;

/// The name of the Lease, and of the controller as a writer.
pub(crate) const NAME: &str = "paved-controller";

/// Takes part in the election.
pub(crate) struct Election {
    api: Api<Lease>,
    identity: String,
    clock: Clock,
    limits: Limits,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The Lease as it was read or written last.
    lease: Option<Lease>,
    /// When the Lease changed last, by the steady clock.
    since: Duration,
    /// Until when this replica leads, by the steady clock.
    until: Option<Duration>,
    /// Whether the Lease was ever read or written.
    is_known: bool,
    /// The API server's time of the last write, and the steady clock's.
    served: Option<(Timestamp, Duration)>,
}

impl Election {
    /// A candidate. `identity` is unique in the cluster and among restarts.
    pub fn new(
        cluster: &Cluster,
        namespace: &str,
        identity: String,
        clock: Clock,
        limits: Limits,
    ) -> Self {
        let api = Api::namespaced(cluster.client.clone(), namespace);
        Self { api, identity, clock, limits, state: Mutex::default() }
    }

    /// Whether this replica leads.
    pub async fn leads(&self) -> bool {
        self.state.lock().await.until.is_some_and(|until| self.clock.steady() < until)
    }

    /// Whether the Lease is known.
    pub async fn is_known(&self) -> bool {
        self.state.lock().await.is_known
    }

    /// Reads the Lease without a part in the election, and asks the API server for its time by a
    /// write that is not stored. Without the right to write, the time stays unknown.
    pub async fn look(&self) -> kube::Result<()> {
        let mut state = self.state.lock().await;
        state.lease = self.api.get_opt(NAME).await?;
        let params = PostParams { dry_run: true, ..params() };
        let begun = self.clock.steady();
        let written = match &state.lease {
            Some(lease) => {
                let mut lease = lease.clone();
                lease.spec.get_or_insert_default().renew_time = Some(MicroTime(self.clock.now()));
                self.api.replace(NAME, &params, &lease).await
            }
            None => self.api.create(&params, &self.without_holder()).await,
        };
        match written {
            Ok(written) => state.served = self.served(&written, begun).await,
            Err(kube::Error::Api(_)) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// How far this machine's clock is ahead of the API server's; negative if it is behind. `None`
    /// if the API server's time is not known.
    pub async fn ahead(&self) -> Option<SignedDuration> {
        let (time, begun) = self.state.lock().await.served?;
        let passed = SignedDuration::try_from(self.clock.steady().saturating_sub(begun)).ok()?;
        Some(self.clock.now().duration_since(time.checked_add(passed).ok()?))
    }

    /// Whether another replica has led before, as the Lease counts.
    pub async fn had_leaders(&self) -> bool {
        let state = self.state.lock().await;
        let Some(spec) = state.lease.as_ref().and_then(|lease| lease.spec.as_ref()) else {
            return false;
        };
        let is_own = spec.holder_identity.as_ref() == Some(&self.identity);
        spec.lease_transitions.unwrap_or(0) > i32::from(is_own)
    }

    /// Renews the Lease, takes it over, or looks whether its holder still renews it.
    pub async fn step(&self) -> kube::Result<()> {
        let mut state = self.state.lock().await;
        let begun = self.clock.steady();
        if state.until.is_none_or(|until| begun >= until) {
            state.until = None;
            self.read(&mut state, begun).await?;
        }
        let Some(lease) = state.lease.clone() else { return Ok(()) };
        let spec = lease.spec.clone().unwrap_or_default();
        let holder = spec.holder_identity.as_deref().filter(|holder| !holder.is_empty());
        let duration = spec.lease_duration_seconds.and_then(|seconds| u64::try_from(seconds).ok());
        let duration = duration.map_or(self.limits.lease, Duration::from_secs);
        let is_abandoned = begun.saturating_sub(state.since) >= duration;
        let lease = match holder {
            Some(holder) if holder == self.identity => lease,
            Some(_) if !is_abandoned => return Ok(()),
            _ => self.taken(lease),
        };
        self.write(&mut state, lease).await.map(drop)
    }

    /// Reads an annotation of the Lease.
    pub async fn annotation(&self, name: &str) -> Option<String> {
        let state = self.state.lock().await;
        state.lease.as_ref()?.metadata.annotations.as_ref()?.get(name).cloned()
    }

    /// Writes annotations of the Lease. `false`: this replica does not lead any more, and the
    /// Lease stays as it is.
    pub async fn annotate(&self, values: &[(&str, String)]) -> kube::Result<bool> {
        let mut state = self.state.lock().await;
        let leads = state.until.is_some_and(|until| self.clock.steady() < until);
        let Some(mut lease) = state.lease.clone().filter(|_| leads) else { return Ok(false) };
        let annotations = lease.metadata.annotations.get_or_insert_default();
        for (name, value) in values {
            annotations.insert((*name).to_owned(), value.clone());
        }
        self.write(&mut state, lease).await
    }

    /// Gives the Lease back, so that another replica leads at once.
    pub async fn release(&self) {
        let mut state = self.state.lock().await;
        if state.until.take().is_none() {
            return;
        }
        let Some(mut lease) = state.lease.take() else { return };
        let spec = lease.spec.get_or_insert_default();
        spec.holder_identity = None;
        spec.renew_time = None;
        spec.acquire_time = None;
        if let Err(error) = self.api.replace(NAME, &params(), &lease).await {
            tracing::warn!(%error, "the Lease is not given back");
        }
    }

    /// Reads the Lease, or creates it.
    async fn read(&self, state: &mut State, begun: Duration) -> kube::Result<()> {
        let found = match self.api.get_opt(NAME).await? {
            Some(found) => found,
            None => match self.api.create(&params(), &self.without_holder()).await {
                Ok(made) => made,
                // Another replica was faster.
                Err(kube::Error::Api(status)) if status.code == 409 => return Ok(()),
                Err(error) => return Err(error),
            },
        };
        let version = |lease: &Lease| lease.metadata.resource_version.clone();
        if state.lease.as_ref().map(version) != Some(version(&found)) {
            state.since = begun;
        }
        state.lease = Some(found);
        state.is_known = true;
        Ok(())
    }

    /// Writes the Lease with the present time. `false`: another replica has written it since.
    async fn write(&self, state: &mut State, mut lease: Lease) -> kube::Result<bool> {
        let begun = self.clock.steady();
        let spec = lease.spec.get_or_insert_default();
        spec.renew_time = Some(MicroTime(self.clock.now()));
        spec.lease_duration_seconds = self.duration();
        match self.api.replace(NAME, &params(), &lease).await {
            Ok(written) => {
                state.served = self.served(&written, begun).await;
                state.lease = Some(written);
                state.since = begun;
                state.until = Some(begun + self.limits.lead);
                Ok(true)
            }
            Err(kube::Error::Api(status)) if status.code == 409 || status.code == 404 => {
                state.until = None;
                state.lease = None;
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// The API server's time of a write that began at `begun`, and the steady clock's. A Lease that
    /// was created without any field never gets managed fields, so that its writes have no time.
    /// Then a creation that is not stored has the time.
    async fn served(&self, written: &Lease, begun: Duration) -> Option<(Timestamp, Duration)> {
        if let Some(time) = time_of(written) {
            return Some((time, begun));
        }
        let begun = self.clock.steady();
        let mut other = self.without_holder();
        other.metadata.name = None;
        other.metadata.generate_name = Some(format!("{NAME}-"));
        let made = self.api.create(&PostParams { dry_run: true, ..params() }, &other).await.ok()?;
        Some((made.metadata.creation_timestamp?.0, begun))
    }

    /// A Lease without a holder. It has a field, because an object that is created without any field
    /// never gets managed fields.
    fn without_holder(&self) -> Lease {
        let spec = LeaseSpec { lease_duration_seconds: self.duration(), ..LeaseSpec::default() };
        let metadata = ObjectMeta { name: Some(NAME.to_owned()), ..ObjectMeta::default() };
        Lease { metadata, spec: Some(spec) }
    }

    /// The Lease's duration in seconds.
    fn duration(&self) -> Option<i32> {
        i32::try_from(self.limits.lease.as_secs()).ok()
    }

    /// The Lease with this replica as its holder.
    fn taken(&self, mut lease: Lease) -> Lease {
        let spec = lease.spec.get_or_insert_default();
        spec.holder_identity = Some(self.identity.clone());
        spec.acquire_time = Some(MicroTime(self.clock.now()));
        spec.lease_transitions = Some(spec.lease_transitions.unwrap_or(0).saturating_add(1));
        lease
    }
}

/// The API server's time of our last write to a Lease.
fn time_of(lease: &Lease) -> Option<Timestamp> {
    let entries = lease.metadata.managed_fields.iter().flatten();
    let own = entries.filter(|entry| entry.manager.as_deref() == Some(NAME));
    own.filter_map(|entry| entry.time.as_ref()).map(|time| time.0).max()
}

fn params() -> PostParams {
    PostParams { field_manager: Some(NAME.to_owned()), ..PostParams::default() }
}
