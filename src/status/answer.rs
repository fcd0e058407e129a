//! The answer: the result of a composition, after the API has added all resources.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use super::clock::ComposedResource;
use super::condition::{Condition, Event, PROVISIONED, stored};
use super::resource_status::seconds;
use super::status::{self, Phase};
use super::{Addition, COMMON_ADDITIONS, Composition, LifecycleStatus, revision, scrub, stalled};
use crate::diagnosis::Code;
use crate::error::Error;
use crate::models::Scope;
use crate::observe::{Resource, State};
use crate::reason::Reason;
use crate::value::Object;

/// Time until Crossplane calls again.
mod requeue {
    use std::time::Duration;
    /// All resources are ready. Watches report changes. This time is for changes without a watch.
    pub const READY: Duration = Duration::from_mins(10);
    /// A resource is being created, waits or has failed. Short enough for states that depend on
    /// time, for example a failure that lasts.
    pub const BUSY: Duration = Duration::from_secs(30);
    /// The shortest time, for a limit that is about to pass.
    pub const LEAST: Duration = Duration::from_secs(1);
    /// A secret was generated, and Crossplane publishes it right after this answer.
    pub const PUBLISHING: Duration = Duration::from_secs(5);
}

/// The content of the response.
pub struct CompositionResult {
    /// Every resource by slot, and whether it is ready.
    pub resources: BTreeMap<String, (Object, bool)>,
    /// The composite's status.
    pub status: Object,
    /// The composite's connection details. Empty in the namespaced API.
    pub connection: BTreeMap<String, Vec<u8>>,
    /// The environment's phase.
    pub phase: Phase,
    /// Whether all resources are ready, including resources that are not desired yet.
    pub ready: bool,
    /// The conditions to set, `Provisioned` first.
    pub conditions: Vec<Condition>,
    /// Sentences for the owner of the environment, once each.
    pub events: Vec<Event>,
    /// Time until the next call.
    pub requeue: Duration,
}

impl Composition<'_> {
    /// Completes the resources that the API composed.
    ///
    /// # Errors
    /// [`Error::WouldDelete`] if an existing resource of ours was neither composed nor removed by
    /// name.
    pub fn complete(&mut self) -> Result<(), Error> {
        self.compose_connection_secret()?;
        self.tell_changes();
        self.estimate();
        self.apply_power(false)?;
        self.account_for_everything()
    }

    /// Ends the composition. `status` is the API's own status, and `additions` are its additions of
    /// later schema revisions. `wrong` is the error that rejected the spec, if the observed resources
    /// are preserved because of one.
    pub fn build(
        mut self,
        status: Object,
        additions: &[Addition],
        wrong: Option<&Error>,
    ) -> CompositionResult {
        self.keep_note();
        let power = self.power;
        let (resources, next_limit) = self.composed_resources();
        let exists = self.desired.keys().any(|slot| self.exists(slot));
        let mut common = status::common(&resources, exists);
        common.spec_hash.clone_from(&self.xr.spec_hash);
        common.on_deletion = Some(self.on_deletion());
        let outlook = power.and_then(|power| self.outlook(power, common.phase));
        let (mut reason, mut message) = provisioned(&resources, common.phase);
        let phase_of_lifecycle = outlook.as_ref().and_then(|outlook| outlook.phase);
        let phase = phase_of_lifecycle.unwrap_or(common.phase);
        if phase == Phase::Stopped {
            (reason, message) = (Reason::Stopped, self.told_of_stop());
        }
        common.phase = phase;
        common.power = power;
        // A server-side apply makes null of an empty object with fields before.
        let has_fields = |status: &LifecycleStatus| *status != LifecycleStatus::default();
        common.lifecycle =
            outlook.as_ref().map(|outlook| outlook.status.clone()).filter(has_fields);
        if let Some(price) = self.price() {
            common.tell_price(price);
        }
        let provisioned = if let Some(error) = wrong {
            let message = scrub::cut(&error.to_string());
            Condition::new(PROVISIONED, false, &error.code(), message)
        } else {
            let is_reached = matches!(reason, Reason::Available | Reason::Stopped);
            Condition::new(PROVISIONED, is_reached, &reason, scrub::cut(&message))
        };
        let is_wrong = phase == Phase::Failed || wrong.is_some();
        let progress = self.progress(&provisioned, is_wrong);
        let mut whole = status::known(status);
        // An API may have a phase of its own, which has the same values for this.
        let is_general = phase_of_lifecycle.is_some() || phase == Phase::Failed;
        if let Some(own) = whole.get_mut("phase").filter(|_| is_general) {
            *own = serde_json::to_value(phase).unwrap_or_default();
        }
        let known = self.settings.revision();
        revision::hold_back(&mut whole, known, additions);
        if let Ok(Value::Object(mut common)) = serde_json::to_value(common) {
            revision::hold_back(&mut common, known, COMMON_ADDITIONS);
            // An API may set a common field itself.
            for (field, value) in common {
                whole.entry(field).or_insert(value);
            }
        }
        self.date(&mut whole);
        let legacy = self.xr.scope == Scope::LegacyCluster;
        let usual = match phase {
            Phase::Ready | Phase::Stopped => requeue::READY,
            _ if self.unpublished => requeue::PUBLISHING,
            _ => requeue::BUSY,
        };
        // The state changes with the time, and no watch reports that.
        let next = [next_limit, stalled::next(&resources, self.now)].into_iter().flatten().min();
        let usual = next.map_or(usual, |next| usual.min(next.max(requeue::LEAST)));
        let stalled = stalled::condition(&resources, &self.xr.status, self.now);
        let (expiring, warnings) =
            outlook.map(|outlook| (outlook.expiring, outlook.events)).unwrap_or_default();
        let (over_budget, spending) = self.over_budget();
        let (outdated, without_effect) = self.outdated();
        let requeue =
            self.active_plan.as_ref().map_or(usual, |active| active.requeue(self.now, usual));
        let ready = resources.iter().all(|resource| resource.status.ready);
        let desired = self.desired.into_iter();
        let resources = desired.map(|(slot, d)| (slot, (d.object, d.health.ready))).collect();
        let optional = [stalled, expiring, over_budget, outdated].into_iter().flatten();
        let events = progress.into_iter().chain(spending).chain(without_effect).chain(warnings);
        CompositionResult {
            conditions: std::iter::once(provisioned).chain(optional).collect(),
            events: events.collect(),
            resources,
            status: whole,
            connection: if legacy { self.connection } else { BTreeMap::new() },
            phase,
            ready,
            requeue,
        }
    }

    /// Sets the status field with the time of the last change of any other field.
    fn date(&self, status: &mut Object) {
        let Some(field) = self.dated else { return };
        let same = status.iter().all(|(key, value)| self.xr.status.get(key) == Some(value))
            && self.xr.status.keys().all(|key| {
                key == field
                    || crossplane::status::FIELDS.contains(&key.as_str())
                    || status.contains_key(key)
            });
        let before = self.xr.status.get(field).filter(|_| same).cloned();
        status.insert(field.to_owned(), before.unwrap_or_else(|| seconds(self.now).into()));
    }

    /// Rejects a composition that would delete existing resources by accident.
    fn account_for_everything(&self) -> Result<(), Error> {
        let missed = |(slot, resource): (&String, &Resource)| {
            let dropped = resource.is_ours()
                && !self.desired.contains_key(slot)
                && !self.removed.contains(slot);
            dropped.then(|| slot.clone())
        };
        let missed: Vec<String> = self.observation.resources.iter().filter_map(missed).collect();
        if missed.is_empty() { Ok(()) } else { Err(Error::WouldDelete(missed)) }
    }

    /// The event about `Provisioned`, if its reason or its message changed.
    fn progress(&self, provisioned: &Condition, is_warning: bool) -> Option<Event> {
        let before = stored(&self.xr.status, PROVISIONED);
        let field = |name| before.and_then(|before| before.get(name)).and_then(Value::as_str);
        let Condition { reason, message, .. } = provisioned;
        let is_known = field("reason") == Some(reason) && field("message") == Some(message);
        (!is_known).then(|| Event { is_warning, reason: reason.clone(), message: message.clone() })
    }
}

/// Reason and sentence of the condition `Provisioned`. They describe the first failure. Without a
/// failure, they describe a rejected resource, a resource in creation or a waiting resource, in
/// this order. A resource that waits for another one comes last. If all resources are ready, the sentence says so.
fn provisioned(resources: &[ComposedResource], phase: Phase) -> (Reason, String) {
    let failed = resources.iter().filter(|resource| resource.state == State::Failed);
    if let Some(first) = failed
        .min_by(|a, b| (&a.status.since, &a.status.slot).cmp(&(&b.status.since, &b.status.slot)))
    {
        return (Reason::Failed, sentence(first));
    }
    if phase == Phase::Ready {
        let count = resources.iter().filter(|resource| resource.counted).count();
        let told = if count == 1 {
            "the only resource is ready".to_owned()
        } else {
            format!("all {count} resources are ready")
        };
        return (Reason::Available, told);
    }
    let unready: Vec<&ComposedResource> =
        resources.iter().filter(|resource| !resource.status.ready).collect();
    let creating = unready.iter().find(|resource| resource.state == State::Creating);
    let not_accepted = Reason::NotAccepted.to_string();
    let refused =
        unready.iter().find(|resource| resource.status.reason.as_ref() == Some(&not_accepted));
    let is_cause = |resource: &&&ComposedResource| {
        resource.status.cause.as_ref().is_none_or(|cause| cause.code != Code::WaitsFor)
    };
    let waiting = unready.iter().find(is_cause).or(unready.first());
    let Some(first) = refused.or(creating).or(waiting) else {
        return (Reason::Creating, "nothing is composed yet".to_owned());
    };
    let reason = if first.state == State::Creating { Reason::Creating } else { Reason::Waiting };
    let others = unready
        .iter()
        .filter(|resource| resource.counted && resource.status.slot != first.status.slot)
        .count();
    let rest = if others == 0 { String::new() } else { format!(" ({others} more not ready)") };
    (reason, format!("{}{rest}", sentence(first)))
}

fn sentence(resource: &ComposedResource) -> String {
    let message = resource.status.message.as_deref().unwrap_or("is not ready");
    format!("{} ({}): {message}", resource.status.slot, resource.status.kind)
}
