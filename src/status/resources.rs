//! The entries of the resources in the status.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crossplane::api_version;
use crossplane::names::EXTERNAL_NAME;
use jiff::SignedDuration;
use serde_json::Value;

use super::ResourceStatus;
use super::clock::{Clock, ComposedResource};
use super::references::References;
use crate::compose::Desired;
use crate::diagnosis::{self, Cause, Code, Line};
use crate::models::Scope;
use crate::observe::{Health, State, lenient};
use crate::power::{Composed, PowerState};
use crate::reason::Reason;
use crate::value::{at, text};

impl Composed<'_> {
    /// An entry for each slot, composed or waiting, sorted by slot. Also the time until the next
    /// resource reaches its limit.
    pub(super) fn composed_resources(&self) -> (Vec<ComposedResource>, Option<Duration>) {
        let before = self.observation.xr.status.get("resources").and_then(|list| list.as_array());
        let before = before.into_iter().flatten().filter_map(lenient::<ResourceStatus>);
        let before: BTreeMap<String, ResourceStatus> =
            before.map(|line| (line.slot.clone(), line)).collect();
        let refused = self.refused_kinds();
        let mut resources: Vec<ComposedResource> = self
            .desired
            .iter()
            .map(|(slot, desired)| self.composed_resource(slot, desired, &refused))
            .collect();
        resources.extend(self.waiting.iter().map(|(slot, absent)| {
            self.line(slot, &absent.kind, Health::waiting_for(&absent.awaited), absent.counted)
        }));
        resources.sort_by(|a, b| a.status.slot.cmp(&b.status.slot));
        let is_done = |resource: &ComposedResource| resource.state == State::Available;
        let references = (!resources.iter().all(is_done)).then(|| References::new(self));
        if let Some(references) = &references {
            self.excuse(&mut resources, references);
        }
        diagnose(&mut resources, self.observation.api.name);
        if let Some(references) = &references {
            Self::name_awaited(&mut resources, references);
        }
        let is_edited = self.is_edited();
        for resource in &mut resources {
            self.time(resource, before.get(&resource.status.slot), is_edited);
        }
        let next = references.and_then(|references| self.limit(&mut resources, &references));
        (resources, next)
    }

    /// Sets the times of a resource, which continue those of the line `before`, and reports a
    /// provider that does not answer.
    fn time(
        &self,
        resource: &mut ComposedResource,
        before: Option<&ResourceStatus>,
        is_edited: bool,
    ) {
        let limit = self.limit_of_slot(&resource.status.slot);
        let now = self.observation.now;
        resource.clock = Clock::of(&resource.status, before, limit, now, is_edited);
        if let Some(cause) = self.unanswered(resource) {
            resource.status.message = Some(format!(
                "its provider has not answered for more than a minute. Check that the {} exists \
                 and that the provider runs",
                cause.provider_config()
            ));
            resource.status.cause = Some(cause);
        }
        resource.write_clock();
    }

    /// The cause of a cloud resource that has existed for a minute without any condition from its
    /// provider. The providers of the clouds do not report a missing provider config. Reason and
    /// time stay the same.
    fn unanswered(&self, resource: &ComposedResource) -> Option<Cause> {
        const UNANSWERED_AFTER: SignedDuration = SignedDuration::from_mins(1);
        let object = &self.observation.resources.get(&resource.status.slot)?.object;
        let group = api_version::group(text(object, &["apiVersion"])?);
        let family = group.strip_suffix(".upbound.io")?;
        let conditions = at(object, &["status", "conditions"]).and_then(Value::as_array);
        let is_silent = conditions.is_none_or(Vec::is_empty) && resource.state == State::Creating;
        let since = resource.clock.changed()?;
        let since = self
            .observation
            .created(&resource.status.slot)
            .map_or(since, |created| since.max(created));
        if !is_silent || self.observation.now.duration_since(since) < UNANSWERED_AFTER {
            return None;
        }
        let name = text(object, &["spec", "providerConfigRef", "name"]).unwrap_or("default");
        let is_namespaced = self.observation.xr.scope == Scope::Namespaced;
        let default = if is_namespaced { "ClusterProviderConfig" } else { "ProviderConfig" };
        let kind = text(object, &["spec", "providerConfigRef", "kind"]).unwrap_or(default);
        let family = family.split_once('.').map_or(family, |(_, family)| family);
        let group = format!("{family}.upbound.io");
        let params = [("config", name), ("kind", kind), ("group", group.as_str())];
        Some(Cause::new(Code::ProviderConfigMissing, params))
    }

    fn composed_resource(
        &self,
        slot: &str,
        desired: &Desired,
        refused: &BTreeSet<&str>,
    ) -> ComposedResource {
        let kind = desired.kind();
        let asked_for = text(&desired.object, &["kind"]).unwrap_or_default();
        let health = if !self.observation.exists(slot) && refused.contains(asked_for) {
            let message = format!(
                "the API server has not accepted this {asked_for}. Check the events of {} {}, and \
                 that the provider is installed",
                self.observation.xr.kind, self.observation.xr.name
            );
            Health::pending(State::Waiting, Reason::NotAccepted, message)
        } else {
            desired.health.clone()
        };
        self.line(slot, kind, health, desired.counted)
    }

    fn line(&self, slot: &str, kind: &str, health: Health, counted: bool) -> ComposedResource {
        let observed = self.observation.resources.get(slot);
        // For a wrapper, users want the name of the wrapped object.
        let wrapped = self.desired.get(slot).and_then(|desired| {
            text(&desired.object, &["spec", "forProvider", "manifest", "metadata", "name"])
        });
        let named = || {
            self.desired.get(slot).and_then(|desired| text(&desired.object, &["metadata", "name"]))
        };
        let message = match health.message {
            Cow::Borrowed(ours) => ours.to_owned(),
            Cow::Owned(theirs) => self.secrets.scrub(&theirs),
        };
        let quiet = health.state == State::Available;
        let status = ResourceStatus {
            slot: slot.to_owned(),
            kind: kind.to_owned(),
            name: wrapped
                .or_else(|| observed.and_then(|observed| observed.name()))
                .or_else(named)
                .map(str::to_owned),
            external_name: observed
                .and_then(|observed| observed.annotation(EXTERNAL_NAME))
                .filter(|name| !name.is_empty() && wrapped.is_none())
                .map(str::to_owned),
            ready: health.ready,
            since: String::new(),
            reason: (!quiet).then(|| health.reason.to_string()),
            message: Some(message).filter(|message| !quiet && !message.is_empty()),
            cause: health.cause,
        };
        let is_delayed = health.state == State::Waiting && status.cause.is_some();
        let clock = Clock::begin(self.observation.now);
        ComposedResource {
            status,
            state: health.state,
            counted,
            clock,
            is_delayed,
            timed_out: false,
        }
    }

    /// Whether a person has changed the environment since the last call: its spec, or whether it is
    /// stopped.
    fn is_edited(&self) -> bool {
        let before = |field| text(&self.observation.xr.status, &[field]);
        let hash = before("specHash").zip(self.observation.xr.spec_hash.as_deref());
        let is_stopped =
            matches!(self.power_state(), Some(PowerState::Stopping | PowerState::Stopped));
        // An earlier revision of the status has no power.
        let is_switched = before("power")
            .is_some_and(|power| ["Stopping", "Stopped"].contains(&power) != is_stopped);
        hash.is_some_and(|(before, now)| before != now) || is_switched
    }

    /// Kinds with as many missing objects as unseen slots. Crossplane set out to create these
    /// objects, so the API server must have rejected them.
    fn refused_kinds(&self) -> BTreeSet<&str> {
        let seen: BTreeSet<(&str, &str)> = self
            .observation
            .resources
            .values()
            .filter_map(|observed| Some((text(&observed.object, &["kind"])?, observed.name()?)))
            .collect();
        let refs = self
            .observation
            .xr
            .resource_refs
            .iter()
            .map(|(kind, name)| (kind.as_str(), name.as_str()));
        let missing = count(refs.filter(|named| !seen.contains(named)).map(|(kind, _)| kind));
        if missing.is_empty() {
            return BTreeSet::new();
        }
        let unseen = self.desired.iter().filter(|(slot, _)| !self.observation.exists(slot));
        let unseen = count(unseen.filter_map(|(_, desired)| text(&desired.object, &["kind"])));
        let all = |(kind, missing): &(&str, usize)| {
            unseen.get(kind).is_none_or(|unseen| missing >= unseen)
        };
        missing.into_iter().filter(all).map(|(kind, _)| kind).collect()
    }
}

/// The number of occurrences of each kind.
fn count<'k>(kinds: impl Iterator<Item = &'k str>) -> BTreeMap<&'k str, usize> {
    let mut counts = BTreeMap::new();
    kinds.for_each(|kind| *counts.entry(kind).or_default() += 1);
    counts
}

/// Adds the cause of each resource, if the engine did not set it.
fn diagnose(resources: &mut [ComposedResource], api: &str) {
    let lines: Vec<Line<'_>> = resources.iter().map(|resource| resource.status.line()).collect();
    let causes = diagnosis::causes(&lines, Some(api));
    for (resource, cause) in resources.iter_mut().zip(causes) {
        resource.status.cause = resource.status.cause.take().or(cause);
    }
}
