//! How long a resource may take. After its limit it has failed, with its provider's own words.
//!
//! An error is never a wait for longer than [`ERROR`]. Work that its provider reports as under way
//! has a limit by kind. A resource that waits for such a resource has that one's limit.

use std::collections::BTreeMap;
use std::time::Duration;

use crossplane::api_version;
use jiff::Timestamp;
use serde_json::Value;

use super::clock::{ComposedResource, ERROR, NOT_READY, WAITED, between};
use super::references::References;
use crate::compose::cut;
use crate::diagnosis::{Cause, Code, find};
use crate::observe::State;
use crate::power::{Composed, MACHINE_LIMIT, PowerState};
use crate::reason::Reason;
use crate::value::{Object, at, text};

/// The limit of kinds that clouds need long for.
const SLOW: Duration = Duration::from_mins(45);

/// The limits of kinds: the first label of the group, the kind and the limit. The sources are the
/// default times of the Terraform providers, which upjet's providers wrap, and the clouds' manuals.
pub(super) const LIMITS: &[(&str, &str, Duration)] = &[
    // terraform-provider-aws, website/docs/r/eks_cluster.html.markdown: create 30m, update 60m.
    ("eks", "Cluster", SLOW),
    // terraform-provider-aws, website/docs/r/eks_node_group.html.markdown: create 60m.
    ("eks", "NodeGroup", SLOW),
    // terraform-provider-google, container_cluster: create 40m.
    ("container", "Cluster", SLOW),
    // terraform-provider-google, container_node_pool: create 30m.
    ("container", "NodePool", SLOW),
    // terraform-provider-azurerm, kubernetes_cluster: create 90m.
    ("containerservice", "KubernetesCluster", SLOW),
    // terraform-provider-google, sql_database_instance: create 90m, before version 5 40m.
    ("sql", "DatabaseInstance", SLOW),
    // terraform-provider-aws, db_instance: create 40m.
    ("rds", "Instance", SLOW),
    // terraform-provider-aws, cloudfront_distribution: up to 90m. CloudFront's guide: minutes.
    ("cloudfront", "Distribution", SLOW),
    // terraform-provider-aws, instance: create 10m. A start may wait for capacity.
    ("ec2", "Instance", MACHINE_LIMIT),
    ("ec2", "InstanceState", MACHINE_LIMIT),
];

/// The longest time that the creation of a resource of this kind may take.
pub(super) fn limit_of_kind(object: &Object) -> Duration {
    let group = api_version::group(text(object, &["apiVersion"]).unwrap_or_default());
    let service = group.split('.').next().unwrap_or_default();
    let kind = text(object, &["kind"]).unwrap_or_default();
    let row = LIMITS.iter().find(|(of, name, _)| (*of, *name) == (service, kind));
    row.map_or(ERROR, |(.., limit)| *limit)
}

/// The times of a resource that others may wait for.
struct Times {
    /// The begin of its present reason.
    changed: Option<Timestamp>,
    is_ready: bool,
    /// Its own limit.
    limit: Duration,
}

/// A time in minutes.
fn minutes(time: Duration) -> u64 {
    time.as_secs() / 60
}

impl Composed<'_> {
    /// Fails the resources that have reached their limit. Returns the time until the next limit.
    ///
    /// The limit begins again with each change of the reason, and with each change of a resource
    /// that this one refers to. The limit of the whole stretch never begins again.
    pub(super) fn limit(
        &self,
        resources: &mut [ComposedResource],
        references: &References,
    ) -> Option<Duration> {
        let times: BTreeMap<String, Times> = resources
            .iter()
            .map(|resource| (resource.status.slot.clone(), self.times(resource)))
            .collect();
        let chains = self.chains(&times, references);
        let mut next: Option<Duration> = None;
        for resource in resources.iter_mut() {
            if !self.is_limited(resource) && resource.state != State::Failed {
                continue;
            }
            for (began, limit) in self.bounds(resource, &times, &chains, references) {
                let left = limit.saturating_sub(between(began, self.observation.now));
                if left.is_zero() {
                    resource.time_out(limit);
                    break;
                }
                next = Some(next.map_or(left, |next| next.min(left)));
            }
        }
        next
    }

    /// The limits of a resource, each with its begin: that of the present reason, and that of the
    /// whole stretch.
    fn bounds(
        &self,
        resource: &ComposedResource,
        times: &BTreeMap<String, Times>,
        chains: &BTreeMap<&str, Duration>,
        references: &References,
    ) -> impl Iterator<Item = (Timestamp, Duration)> + use<> {
        let slot = &resource.status.slot;
        // The engine delays a resource for others that it does not name.
        let is_delayed = self.waiting.contains_key(slot) || resource.is_delayed;
        let mut limit = times[slot].limit;
        let mut began = times[slot].changed;
        let mut longest = self.limit_of_slot(slot);
        for (other, time) in times.iter().filter(|(other, _)| *other != slot) {
            let is_awaited = is_delayed || references.has(slot, other);
            if is_awaited {
                began = began.max(time.changed);
                limit = limit.max(if time.is_ready { limit } else { time.limit });
            }
            let is_recent = |changed| between(changed, self.observation.now) < 2 * ERROR;
            let is_recent = !time.is_ready || time.changed.is_some_and(is_recent);
            // Before its object exists, a resource may wait for all others.
            if is_recent && (is_awaited || !self.observation.exists(slot)) {
                longest = longest.max(chains[other.as_str()]);
            }
        }
        let of_reason = began.filter(|_| self.is_limited(resource)).map(|began| (began, limit));
        let of_stretch = resource.clock.begun().max(self.observation.created(slot));
        let of_stretch = of_stretch.map(|began| (began, longest + ERROR));
        of_reason.into_iter().chain(of_stretch)
    }

    fn times(&self, resource: &ComposedResource) -> Times {
        Times {
            changed: resource.clock.changed(),
            is_ready: resource.status.ready,
            limit: self.own_limit(resource),
        }
    }

    /// For each slot, the limits of slow resources that work one after the other, up to the one in
    /// the slot.
    fn chains<'t>(
        &self,
        times: &'t BTreeMap<String, Times>,
        references: &References,
    ) -> BTreeMap<&'t str, Duration> {
        let mut slots: Vec<&str> = times.keys().map(String::as_str).collect();
        // A resource has more references than each of those that it refers to.
        slots.sort_by_key(|slot| references.of(slot).count());
        let mut chains = BTreeMap::new();
        for slot in slots {
            let own = Some(self.limit_of_slot(slot)).filter(|limit| *limit > ERROR);
            let before = references.of(slot).filter(|other| !references.has(other, slot));
            let longest = before.filter_map(|other| chains.get(other)).max().copied();
            chains.insert(slot, own.unwrap_or_default() + longest.unwrap_or_default());
        }
        chains
    }

    /// The limit of the kind in a slot.
    pub(super) fn limit_of_slot(&self, slot: &str) -> Duration {
        self.desired.get(slot).map_or(ERROR, |desired| limit_of_kind(&desired.object))
    }

    /// Whether a resource has a limit: it is not in its expected state, and no person wants that.
    fn is_limited(&self, resource: &ComposedResource) -> bool {
        let reason = resource.status.reason.as_deref();
        let is_off =
            self.power_state() == Some(PowerState::Stopped) && reason == Some("Unavailable");
        matches!(resource.state, State::Creating | State::Waiting)
            && reason.is_some()
            && reason != Some("Paused")
            && !is_off
    }

    /// The limit of a resource, without the resources that it refers to.
    fn own_limit(&self, resource: &ComposedResource) -> Duration {
        let slot = &resource.status.slot;
        let observed = self.observation.resources.get(slot);
        let is_deleting = resource.status.reason.as_deref() == Some("Deleting");
        let is_error = resource.state == State::Waiting && !is_deleting
            || observed.is_none_or(|observed| !is_reported(observed.seen()));
        if is_error { ERROR } else { self.limit_of_slot(slot) }
    }
}

/// Whether the provider of a resource reports anything about it, and no error.
fn is_reported(object: &Object) -> bool {
    let conditions = at(object, &["status", "conditions"]).and_then(Value::as_array);
    let conditions = conditions.map(Vec::as_slice).unwrap_or_default();
    let failed = conditions.iter().any(|one| one["type"] == "Synced" && one["status"] == "False");
    !conditions.is_empty() && !failed
}

impl ComposedResource {
    /// The resource has failed, because it reached its limit.
    fn time_out(&mut self, limit: Duration) {
        self.timed_out = true;
        if self.state == State::Failed {
            return;
        }
        let minutes = minutes(limit);
        let message =
            self.status.message.take().unwrap_or_else(|| "its provider says nothing".into());
        let begin =
            if self.state == State::Waiting && self.status.reason.as_deref() != Some("Deleting") {
                WAITED
            } else {
                NOT_READY
            };
        self.status.message = Some(cut(&format!("{begin}{minutes} minutes: {message}")));
        let timed_out = Cause::new(Code::TimedOut, [("minutes", minutes.to_string().as_str())]);
        self.status.cause = Some(match self.status.cause.take() {
            Some(cause) if cause.code.is_waiting() => {
                let found = find(&message, None).cause;
                if found.code == Code::Unreachable {
                    found
                } else {
                    let params = cause.params.into_iter().chain(timed_out.params).collect();
                    Cause { code: Code::TimedOut, params }
                }
            }
            Some(cause) => cause,
            None => timed_out,
        });
        self.state = State::Failed;
        self.status.reason = Some(Reason::Failed.to_string());
    }
}
