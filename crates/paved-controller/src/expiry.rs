//! Deletes or stops expired environments.

use std::sync::Arc;

use function_paved_road::lifecycle::{SKEW, STOPPED_AT};
use function_paved_road::settings::Settings;
use jiff::{SignedDuration, Timestamp};
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions, PropagationPolicy};
use paved_client::cluster::{Cluster, Served};
use serde_json::json;
use tokio::sync::Mutex;

use crate::Limits;
use crate::clock::Clock;
use crate::lease::{Election, NAME};
use crate::limit::Spent;
use crate::metrics::Metrics;
use crate::read::{Read, Unread};
use crate::settings::lifecycle;
use crate::store::{Key, Store};
use crate::usages;
use crate::verdict::{Facts, Hold, Verdict};

/// The annotation of the Lease with the deletions of the last hour.
const DELETIONS: &str = "paved-road.fn.crossplane.io/deletions";

/// Deletes expired environments.
pub(crate) struct Expiry {
    pub cluster: Cluster,
    pub served: Served,
    pub store: Arc<Store>,
    pub election: Arc<Election>,
    pub metrics: Arc<Metrics>,
    pub clock: Clock,
    pub limits: Limits,
    /// The deletions that count.
    pub spent: Mutex<Spent>,
}

/// The decision about an environment.
pub(crate) struct Judged {
    pub verdict: Verdict,
    pub read: Read,
}

impl Expiry {
    /// Goes on with the count of an earlier leader, or with the own one of an earlier lead if it is
    /// larger: the own one does not depend on the wall clock. If the Lease has lost the count of
    /// earlier leaders, no environment is deleted for an hour.
    pub async fn resume(&self) {
        let text = self.election.annotation(DELETIONS).await;
        let (now, steady) = (self.clock.now(), self.clock.steady());
        let spent = match &text {
            Some(text) => Spent::read(text, now, steady),
            None if self.election.had_leaders().await => {
                tracing::warn!("the Lease has no count of deletions: none for an hour");
                Spent::full(steady)
            }
            None => Spent::default(),
        };
        let mut own = self.spent.lock().await;
        if own.count(steady) < spent.count(steady) {
            *own = spent;
        }
        if text.is_none() {
            let count = own.write(now, steady);
            if let Err(error) = self.election.annotate(&[(DELETIONS, count)]).await {
                tracing::warn!(%error, "the Lease cannot be written");
                self.metrics.failed();
            }
        }
    }

    /// Looks at every environment after its announced end. Ends early if the API server does not
    /// answer, if the Lease cannot be written, or after a while.
    pub async fn pass(&self, settings: Result<&Settings, Hold>) {
        let due = self.store.due(self.clock.now());
        let ahead = self.election.ahead().await;
        if let Some(ahead) = ahead {
            self.metrics.clock_ahead(ahead);
        }
        let settings = match settings {
            Ok(settings) if is_right(ahead) => settings,
            reason => {
                for key in &due {
                    self.hold(key, reason.err().unwrap_or(Hold::WrongClock));
                }
                return;
            }
        };
        let most = settings.common.controller.deletions_per_hour();
        let begun = self.clock.steady();
        for key in due {
            if self.is_limited(&key, most).await {
                self.hold(&key, Hold::Limit);
                continue;
            }
            match self.one(&key, settings, most).await {
                Ok(None) => {}
                Ok(Some(why)) => self.hold(&key, why),
                Err(error) => {
                    tracing::warn!(environment = %key, %error, "no further deletions for now");
                    self.metrics.failed();
                    return;
                }
            }
            let is_long = self.clock.steady().saturating_sub(begun) > self.limits.pass;
            if is_long || !self.election.leads().await {
                return;
            }
        }
    }

    /// Whether the limit forbids the deletion of an environment, without a read of the environment.
    /// An environment that a tool applies is read, because it may be stopped instead.
    async fn is_limited(&self, key: &Key, most: u32) -> bool {
        let Some(record) = self.store.get(key).filter(|record| !record.is_applied) else {
            return false;
        };
        let spent = self.spent.lock().await;
        spent.without(&record.uid).count(self.clock.steady()) >= most
    }

    /// Notes that an environment stays.
    fn hold(&self, key: &Key, why: Hold) {
        let first = self.limits.hold;
        let longest = if why == Hold::InProgress { first } else { self.limits.longest_hold };
        if self.store.hold(key, why, first, longest) && why != Hold::InProgress {
            tracing::warn!(environment = %key, reason = why.word(), "stays after its end: {why}");
        }
    }

    /// Looks at one environment: why it stays, if it does.
    async fn one(&self, key: &Key, settings: &Settings, most: u32) -> kube::Result<Option<Hold>> {
        let judged = match self.evaluate(key, settings).await {
            Ok(Some(judged)) => judged,
            Ok(None) | Err(Unread::Gone) => return Ok(None),
            Err(Unread::Hold(why)) => return Ok(Some(why)),
            Err(Unread::Error(error)) => return self.failed(key, error),
        };
        match judged.verdict {
            Verdict::Delete => self.delete(key, &judged.read, most).await,
            Verdict::Stop => self.stop(key, &judged.read).await,
            // The status changes soon, or the deletion is in progress.
            Verdict::Wait => Ok(Some(Hold::InProgress)),
            Verdict::Hold(why) => Ok(Some(why)),
        }
    }

    /// Reads an environment, and decides. `None` if the environment is gone.
    pub async fn evaluate(&self, key: &Key, settings: &Settings) -> Result<Option<Judged>, Unread> {
        let Some((kind, record)) = self.store.kind(&key.kind).zip(self.store.get(key)) else {
            return Ok(None);
        };
        if record.is_deleting() {
            return Ok(None);
        }
        let lifecycle = lifecycle(settings, kind.name()).ok_or(Unread::Hold(Hold::Unreadable))?;
        let read = Read::new(&self.cluster, &self.served, kind, key, &record.uid).await?;
        let is_used = self.is_used(&read).await?;
        let facts = Facts {
            environment: &read.found.object,
            composite: read.composite(),
            is_used,
            note: read.note.as_deref(),
            settings: &lifecycle,
            now: self.clock.now(),
        };
        Ok(Some(Judged { verdict: facts.evaluate(), read }))
    }

    /// Whether a Usage protects an environment or its composite. If the Usages cannot be read,
    /// Crossplane's label decides.
    async fn is_used(&self, read: &Read) -> Result<bool, Unread> {
        for object in [&read.found.object, read.composite()] {
            if !usages::is_marked(object) {
                continue;
            }
            match usages::protect(&self.cluster, &self.served, object).await {
                Ok(false) => {}
                Ok(true) | Err(kube::Error::Api(_)) => return Ok(true),
                Err(error) => return Err(Unread::Error(error)),
            }
        }
        Ok(false)
    }

    /// Deletes this very version of an environment. The attempt is counted before.
    async fn delete(&self, key: &Key, read: &Read, most: u32) -> kube::Result<Option<Hold>> {
        let metadata = &read.found.object.metadata;
        let uid = metadata.uid.as_deref().unwrap_or_default();
        let mut spent = self.spent.lock().await;
        let steady = self.clock.steady();
        if spent.without(uid).count(steady) >= most {
            return Ok(Some(Hold::Limit));
        }
        let with_this = spent.with(uid, steady);
        let text = with_this.write(self.clock.now(), steady);
        if !self.election.annotate(&[(DELETIONS, text)]).await? {
            return Ok(None);
        }
        *spent = with_this;
        // The write has just returned the API server's time.
        if !is_right(self.election.ahead().await) {
            return Ok(Some(Hold::WrongClock));
        }
        let params = DeleteParams {
            propagation_policy: Some(PropagationPolicy::Foreground),
            preconditions: Some(Preconditions {
                uid: metadata.uid.clone(),
                resource_version: metadata.resource_version.clone(),
            }),
            ..DeleteParams::default()
        };
        let api = read.found.kind.api(&self.cluster.client, Some(&key.namespace));
        match api.delete(&key.name, &params).await {
            Ok(()) => {
                self.metrics.deleted(&key.kind);
                tracing::info!(environment = %key, uid, "deleted: it has expired");
                Ok(Some(Hold::InProgress))
            }
            Err(error) => {
                if is_surely_refused(&error) {
                    *spent = spent.without(uid);
                }
                self.failed(key, error)
            }
        }
    }

    /// Asks the function to stop an environment, as its user would.
    async fn stop(&self, key: &Key, read: &Read) -> kube::Result<Option<Hold>> {
        let now = Timestamp::from_second(self.clock.now().as_second()).unwrap_or_default();
        let metadata = &read.found.object.metadata;
        let patch = json!({"metadata": {
            "uid": metadata.uid,
            "resourceVersion": metadata.resource_version,
            "annotations": {STOPPED_AT: now.to_string()},
        }});
        let params = PatchParams { field_manager: Some(NAME.to_owned()), ..PatchParams::default() };
        let api = read.found.kind.api(&self.cluster.client, Some(&key.namespace));
        match api.patch(&key.name, &params, &Patch::Merge(&patch)).await {
            Ok(_) => {
                self.metrics.stopped(&key.kind);
                tracing::info!(environment = %key, "stopped: it has expired, and Git owns it");
                Ok(Some(Hold::InProgress))
            }
            Err(error) => self.failed(key, error),
        }
    }

    /// Why an environment stays after a request about it failed.
    ///
    /// # Errors
    /// The API server did not answer, so it would not answer the next request either.
    fn failed(&self, key: &Key, error: kube::Error) -> kube::Result<Option<Hold>> {
        Ok(match &error {
            kube::Error::Api(status) if status.code == 404 => None,
            // It has changed since: it is read again.
            kube::Error::Api(status) if status.code == 409 => Some(Hold::InProgress),
            kube::Error::Api(status) if status.code == 403 => Some(Hold::Denied),
            kube::Error::Api(_) | kube::Error::SerdeError(_) | kube::Error::FromUtf8(_) => {
                tracing::warn!(environment = %key, %error, "the API server answers with an error");
                self.metrics.failed();
                Some(Hold::Refused)
            }
            _ => return Err(error),
        })
    }
}

/// Whether a clock agrees with the API server's. An unknown time does not agree.
fn is_right(ahead: Option<SignedDuration>) -> bool {
    ahead.is_some_and(|ahead| ahead.abs() <= SKEW)
}

/// Whether a deletion was surely not executed. A proxy can answer 504 after the API server has
/// executed the deletion. The client then tries again, and can get a 404, 409 or 429.
fn is_surely_refused(error: &kube::Error) -> bool {
    let kube::Error::Api(status) = error else { return false };
    match status.code {
        400 | 401 | 403 | 405 | 422 => true,
        500 => status.message.contains("failed calling webhook"),
        _ => false,
    }
}
