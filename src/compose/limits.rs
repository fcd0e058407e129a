//! How long a resource may take. After its limit it has failed, with its provider's own words.
//!
//! An error is never a wait for longer than [`ERROR`]. Work that its provider reports as under way has a
//! limit by kind. A resource that waits for such a resource has that one's limit.

use std::collections::BTreeMap;
use std::time::Duration;

use crossplane::api_version;
use jiff::Timestamp;
use serde_json::Value;

use super::health::State;
use super::references::References;
use super::status::{ComposedResource, ResourceStatus};
use super::{Composition, PowerState};
use crate::diagnosis::{Cause, Code, Effect, find};
use crate::reason::Reason;
use crate::value::{Object, at, text};

/// The limit of an error, of a missing object, and of all kinds without a longer limit.
const ERROR: Duration = Duration::from_mins(15);

/// The limit of the creation and of the start of a machine.
pub(super) const MACHINE: Duration = Duration::from_mins(30);

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
    ("ec2", "Instance", MACHINE),
    ("ec2", "InstanceState", MACHINE),
];

/// The beginning of the message of a resource that its provider worked on until its limit.
const NOT_READY: &str = "not ready within ";

/// The beginning of the message of a resource that waited until its limit.
const WAITED: &str = "has waited for more than ";

/// The longest time that the creation of a resource of this kind may take.
pub(super) fn limit_of_kind(object: &Object) -> Duration {
    let group = api_version::group(text(object, &["apiVersion"]).unwrap_or_default());
    let service = group.split('.').next().unwrap_or_default();
    let kind = text(object, &["kind"]).unwrap_or_default();
    let row = LIMITS.iter().find(|(of, name, _)| (*of, *name) == (service, kind));
    row.map_or(ERROR, |(.., limit)| *limit)
}

/// A time in minutes.
fn minutes(time: Duration) -> u64 {
    time.as_secs() / 60
}

impl ResourceStatus {
    /// The time of the last change of readiness or reason. `None` if this call changes one of them.
    /// A resource that reached its limit keeps its time as long as it still works or still waits.
    pub(super) fn last_change(&self, before: Option<&Self>) -> Option<String> {
        let before =
            before.filter(|before| before.ready == self.ready && !before.since.is_empty())?;
        let message = before.message.as_deref().unwrap_or_default();
        let continues = match self.reason.as_deref() {
            Some("Waiting" | "NotAccepted") => message.starts_with(WAITED),
            Some("Creating" | "Unavailable" | "Deleting") => message.starts_with(NOT_READY),
            _ => false,
        };
        (before.reason == self.reason || continues).then(|| before.since.clone())
    }
}

impl Composition<'_> {
    /// A resource that a provider rejected for a missing object, or for a host that it cannot
    /// reach, waits while a resource that it refers to is not ready. A name that the function chose
    /// can be referred to before its resource exists.
    pub(super) fn excuse(&self, resources: &mut [ComposedResource], references: &References) {
        let finding = |resource: &ComposedResource| {
            let is_error = resource.state == State::Failed && resource.status.cause.is_none();
            let message = resource.status.message.as_deref().filter(|_| is_error)?;
            Some(find(message, Some(self.api)))
        };
        let findings: BTreeMap<String, (Effect, Option<String>)> = resources
            .iter()
            .filter_map(|resource| {
                let found = finding(resource)?;
                let host = found.cause.param("host").map(str::to_owned);
                let may_wait =
                    matches!(found.effect, Effect::WaitsForSiblings | Effect::WaitsForHost);
                may_wait.then(|| (resource.status.slot.clone(), (found.effect, host)))
            })
            .collect();
        let unready: Vec<String> = resources
            .iter()
            .filter(|resource| !resource.status.ready)
            .map(|resource| resource.status.slot.clone())
            .collect();
        // A resource does not explain a wait if it was itself rejected for a missing object, or if
        // it refers to the waiting resource.
        let is_excused = |slot: &str| {
            let is_excuse = |other: &str| {
                unready.iter().any(|one| one == other)
                    && !findings.contains_key(other)
                    && !references.has(other, slot)
            };
            references.of(slot).any(is_excuse)
        };
        for resource in resources {
            let slot = resource.status.slot.as_str();
            let Some((effect, host)) = findings.get(slot) else { continue };
            let own = (*effect == Effect::WaitsForHost)
                .then(|| self.own_host(host.as_deref(), slot))
                .flatten();
            if own.is_none() && !is_excused(slot) {
                continue;
            }
            resource.state = State::Waiting;
            resource.status.reason = Some(Reason::Waiting.to_string());
            // Otherwise, the diagnosis names the resource that the message names.
            resource.status.cause =
                own.map(|host| Cause::new(Code::WaitsFor, [("for", host.as_str())]));
        }
    }

    /// Names the resource that a waiting one waits for, if its message does not name it.
    pub(super) fn name_awaited(resources: &mut [ComposedResource], references: &References) {
        let unready: Vec<String> = resources
            .iter()
            .filter(|resource| !resource.status.ready)
            .map(|resource| resource.status.slot.clone())
            .collect();
        for resource in resources.iter_mut().filter(|one| one.state == State::Waiting) {
            let is_open =
                |cause: &&mut Cause| cause.code == Code::WaitsFor && cause.params.is_empty();
            let Some(cause) = resource.status.cause.as_mut().filter(is_open) else { continue };
            let slot = resource.status.slot.as_str();
            let mut awaited = references.of(slot).filter(|other| {
                unready.iter().any(|one| one == other) && !references.has(other, slot)
            });
            if let Some(other) = awaited.next() {
                *cause = Cause::new(Code::WaitsFor, [("slot", other)]);
            }
        }
    }

    /// Fails the resources that have reached their limit. Returns the time until the next limit.
    pub(super) fn limit(
        &self,
        resources: &mut [ComposedResource],
        references: &References,
    ) -> Option<Duration> {
        let times: BTreeMap<String, (Option<Timestamp>, bool, Duration)> = resources
            .iter()
            .map(|resource| {
                let since = resource.status.since.parse().ok();
                let limit = self.own_limit(resource);
                (resource.status.slot.clone(), (since, resource.status.ready, limit))
            })
            .collect();
        let mut next: Option<Duration> = None;
        for resource in resources.iter_mut().filter(|resource| self.is_limited(resource)) {
            let slot = resource.status.slot.clone();
            // The engine delays a resource for others that it does not name.
            let is_delayed = self.waiting.contains_key(&slot) || resource.is_delayed;
            let others = times.iter().filter(|(other, _)| {
                **other != slot && (is_delayed || references.has(&slot, other))
            });
            let (mut began, _, mut limit) = times[&slot];
            for (_, (since, ready, of_other)) in others {
                began = began.max(*since);
                limit = limit.max(if *ready { limit } else { *of_other });
            }
            let Some(began) = began else { continue };
            let lasted = Duration::try_from(self.now.duration_since(began)).unwrap_or_default();
            if lasted < limit {
                let left = limit.saturating_sub(lasted);
                next = Some(next.map_or(left, |next| next.min(left)));
                continue;
            }
            resource.time_out(limit);
        }
        next
    }

    /// Whether a resource has a limit: it is not in its expected state, and no person wants that.
    fn is_limited(&self, resource: &ComposedResource) -> bool {
        let reason = resource.status.reason.as_deref();
        let is_off = self.power == Some(PowerState::Stopped) && reason == Some("Unavailable");
        matches!(resource.state, State::Creating | State::Waiting)
            && reason.is_some()
            && reason != Some("Paused")
            && !is_off
    }

    /// The limit of a resource, without the resources that it refers to.
    fn own_limit(&self, resource: &ComposedResource) -> Duration {
        let slot = &resource.status.slot;
        let Some(desired) = self.desired.get(slot) else { return ERROR };
        let observed = self.observed.get(slot);
        let is_deleting = resource.status.reason.as_deref() == Some("Deleting");
        let is_error = resource.state == State::Waiting && !is_deleting
            || observed.is_none_or(|observed| !is_reported(observed.seen()));
        if is_error { ERROR } else { limit_of_kind(&desired.object) }
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
        let minutes = minutes(limit);
        let message =
            self.status.message.take().unwrap_or_else(|| "its provider says nothing".into());
        let begin =
            if self.state == State::Waiting && self.status.reason.as_deref() != Some("Deleting") {
                WAITED
            } else {
                NOT_READY
            };
        self.status.message = Some(format!("{begin}{minutes} minutes: {message}"));
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
        self.timed_out = Some(limit);
    }
}
