//! Rejected resources that wait: for a resource that they refer to, or for a host of their
//! environment.

use std::collections::BTreeMap;

use super::clock::ComposedResource;
use super::references::References;
use crate::diagnosis::{Cause, Code, Effect, find};
use crate::observe::State;
use crate::power::Composed;
use crate::reason::Reason;

impl Composed<'_> {
    /// A resource that a provider rejected for a missing object, or for a host that it cannot
    /// reach, waits while a resource that it refers to is not ready. A name that the function chose
    /// can be referred to before its resource exists.
    pub(super) fn excuse(&self, resources: &mut [ComposedResource], references: &References) {
        let findings = self.findings(resources);
        let unready = unready(resources);
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

    /// The rejections that may be waits, by slot: the effect, and the host that a provider cannot
    /// reach.
    fn findings(
        &self,
        resources: &[ComposedResource],
    ) -> BTreeMap<String, (Effect, Option<String>)> {
        let finding = |resource: &ComposedResource| {
            let is_error = resource.state == State::Failed && resource.status.cause.is_none();
            let message = resource.status.message.as_deref().filter(|_| is_error)?;
            let found = find(message, Some(self.observation.api.name));
            let host = found.cause.param("host").map(str::to_owned);
            let may_wait = matches!(found.effect, Effect::WaitsForSiblings | Effect::WaitsForHost);
            may_wait.then(|| (resource.status.slot.clone(), (found.effect, host)))
        };
        resources.iter().filter_map(finding).collect()
    }

    /// Names the resource that a waiting one waits for, if its message does not name it.
    pub(super) fn name_awaited(resources: &mut [ComposedResource], references: &References) {
        let unready = unready(resources);
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
}

/// The slots of resources that are not ready.
fn unready(resources: &[ComposedResource]) -> Vec<String> {
    let unready = resources.iter().filter(|resource| !resource.status.ready);
    unready.map(|resource| resource.status.slot.clone()).collect()
}
