//! The answer of a call.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use super::clock::ComposedResource;
use super::condition::{Condition, Event, PROVISIONED, stored};
use super::lifecycle::Outlook;
use super::{
    Addition, COMMON_ADDITIONS, CommonStatus, LifecycleStatus, Phase, common, is_common, revision,
    stalled,
};
use crate::compose::cut;
use crate::diagnosis::Code;
use crate::models::Scope;
use crate::observe::{Observation, State};
use crate::power::Composed;
use crate::reason::Reason;
use crate::value::{Object, seconds};

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

/// The answer to a request.
pub struct Answer {
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

impl Answer {
    /// Ends a call. `additions` are those of later schema revisions to the API's own status.
    pub fn new(mut composed: Composed<'_>, additions: &[Addition]) -> Self {
        composed.write_note();
        let (resources, next_limit) = composed.composed_resources();
        let exists = composed.desired.keys().any(|slot| composed.observation.exists(slot));
        let common = common(&resources, exists);
        let outlook = composed.outlook(common.phase);
        let phase = outlook.as_ref().and_then(|outlook| outlook.phase).unwrap_or(common.phase);
        let provisioned = composed.provisioned(&resources, common.phase, phase);
        let status = composed.whole_status(common, outlook.as_ref(), additions);
        let requeue = composed.requeue(&resources, phase, next_limit);
        let (conditions, events) = composed.conditions(provisioned, &resources, phase, outlook);
        let is_namespaced = composed.observation.xr.scope == Scope::Namespaced;
        let desired = composed.desired.into_iter();
        Self {
            resources: desired
                .map(|(slot, desired)| (slot, (desired.object, desired.health.ready)))
                .collect(),
            status,
            connection: if is_namespaced { BTreeMap::new() } else { composed.connection },
            phase,
            ready: resources.iter().all(|resource| resource.status.ready),
            conditions,
            events,
            requeue,
        }
    }
}

impl Composed<'_> {
    /// The condition `Provisioned`. The phase `Stopped` is one of the lifecycle.
    fn provisioned(
        &self,
        resources: &[ComposedResource],
        of_resources: Phase,
        phase: Phase,
    ) -> Condition {
        if let Some(error) = &self.rejection {
            return Condition::new(PROVISIONED, false, &error.code(), cut(&error.to_string()));
        }
        let (reason, message) = if phase == Phase::Stopped {
            (Reason::Stopped, self.stop_sentence())
        } else {
            progress(resources, of_resources)
        };
        let is_reached = matches!(reason, Reason::Available | Reason::Stopped);
        Condition::new(PROVISIONED, is_reached, &reason, cut(&message))
    }

    /// The status: the fields of the API, and then the common fields that the API did not set.
    fn whole_status(
        &mut self,
        mut common: CommonStatus,
        outlook: Option<&Outlook>,
        additions: &[Addition],
    ) -> Object {
        let phase_of_lifecycle = outlook.and_then(|outlook| outlook.phase);
        common.phase = phase_of_lifecycle.unwrap_or(common.phase);
        common.spec_hash.clone_from(&self.observation.xr.spec_hash);
        common.on_deletion = Some(self.on_deletion());
        common.power = self.power_state();
        // A server-side apply makes null of an empty object with fields before.
        let has_fields = |status: &LifecycleStatus| *status != LifecycleStatus::default();
        common.lifecycle = outlook.map(|outlook| outlook.status.clone()).filter(has_fields);
        if let Some(price) = self.power().and_then(|(power, _)| power.price.as_ref()) {
            common.set_price(price);
        }
        let mut whole = self.own_status();
        // An API may have a phase of its own, which has the same values for this.
        let is_general = phase_of_lifecycle.is_some() || common.phase == Phase::Failed;
        if let Some(own) = whole.get_mut("phase").filter(|_| is_general) {
            *own = serde_json::to_value(common.phase).unwrap_or_default();
        }
        let known = self.observation.settings.revision();
        revision::hold_back(&mut whole, known, additions);
        if let Ok(Value::Object(mut common)) = serde_json::to_value(common) {
            revision::hold_back(&mut common, known, COMMON_ADDITIONS);
            for (field, value) in common {
                whole.entry(field).or_insert(value);
            }
        }
        self.date(&mut whole);
        whole
    }

    /// The status of the API, without nulls and empty strings: unknown fields are absent. The own
    /// status of a rejected environment stays the same.
    fn own_status(&mut self) -> Object {
        let mut own = std::mem::take(&mut self.status);
        if self.rejection.is_some() {
            let stored = self.observation.xr.status.iter();
            let stored = stored.filter(|(field, _)| !is_common(field));
            own = stored.map(|(field, value)| (field.clone(), value.clone())).collect();
        }
        own.retain(|_, value| !(value.is_null() || value.as_str() == Some("")));
        own
    }

    /// Time until the next call: until a resource or the lifecycle changes with the time, which no
    /// watch reports.
    fn requeue(
        &self,
        resources: &[ComposedResource],
        phase: Phase,
        next_limit: Option<Duration>,
    ) -> Duration {
        let now = self.observation.now;
        let usual = match phase {
            Phase::Ready | Phase::Stopped => requeue::READY,
            _ if self.unpublished => requeue::PUBLISHING,
            _ => requeue::BUSY,
        };
        let next = [next_limit, stalled::next(resources, now)].into_iter().flatten().min();
        let usual = next.map_or(usual, |next| usual.min(next.max(requeue::LEAST)));
        let Some((power, active)) = self.power() else { return usual };
        let usual = power.wakes_in.map_or(usual, |time| usual.min(time));
        active.plan.requeue(now, usual)
    }

    /// The conditions to set, and the events about them.
    fn conditions(
        &self,
        provisioned: Condition,
        resources: &[ComposedResource],
        phase: Phase,
        outlook: Option<Outlook>,
    ) -> (Vec<Condition>, Vec<Event>) {
        let Observation { xr, now, .. } = self.observation;
        let stalled = stalled::condition(resources, &xr.status, *now);
        let (expiring, of_lifecycle) =
            outlook.map(|outlook| (outlook.expiring, outlook.events)).unwrap_or_default();
        let (over_budget, of_budget) = self.over_budget();
        let (outdated, of_composition) = self.outdated();
        let progress = self.progress(&provisioned, phase).into_iter();
        let events = progress.chain(of_budget).chain(of_composition).chain(of_lifecycle);
        let others = [stalled, expiring, over_budget, outdated].into_iter().flatten();
        (std::iter::once(provisioned).chain(others).collect(), events.collect())
    }

    /// Sets the status field with the time of the last change of any other field.
    fn date(&self, status: &mut Object) {
        let Some(field) = self.dated else { return };
        let same =
            status.iter().all(|(key, value)| self.observation.xr.status.get(key) == Some(value))
                && self.observation.xr.status.keys().all(|key| {
                    key == field
                        || crossplane::status::FIELDS.contains(&key.as_str())
                        || status.contains_key(key)
                });
        let before = self.observation.xr.status.get(field).filter(|_| same).cloned();
        status.insert(
            field.to_owned(),
            before.unwrap_or_else(|| seconds(self.observation.now).into()),
        );
    }

    /// The event about `Provisioned`, if its reason or its message changed.
    fn progress(&self, provisioned: &Condition, phase: Phase) -> Option<Event> {
        let is_warning = phase == Phase::Failed || self.rejection.is_some();
        let before = stored(&self.observation.xr.status, PROVISIONED);
        let field = |name| before.and_then(|before| before.get(name)).and_then(Value::as_str);
        let Condition { reason, message, .. } = provisioned;
        let is_known = field("reason") == Some(reason) && field("message") == Some(message);
        (!is_known).then(|| Event { is_warning, reason: reason.clone(), message: message.clone() })
    }
}

/// Reason and sentence of the condition `Provisioned`. They describe the first failure. Without a
/// failure, they describe a rejected resource, a resource in creation or a waiting resource, in
/// this order. A resource that waits for another one comes last. If all resources are ready, the
/// sentence says so.
fn progress(resources: &[ComposedResource], phase: Phase) -> (Reason, String) {
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
