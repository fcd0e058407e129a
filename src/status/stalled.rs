//! The condition `Stalled`: whether an environment waits for a person.
//!
//! Flux, Helm 4 and other clients of kstatus wait until an object is ready, and give up once it is
//! `Stalled`. Conditions are part of every XRD, so `Stalled` belongs to no schema revision.

use std::time::Duration;

use jiff::Timestamp;

use super::clock::ComposedResource;
use super::clock::between;
use super::clock::{NOT_READY, WAITED};
use super::condition::{Condition, stored};
use crate::compose::cut;
use crate::observe::State;
use crate::reason::Reason;
use crate::value::Object;

/// The condition's type.
pub const STALLED: &str = "Stalled";

/// Time after which a failed resource stalls the environment. Clouds often recover, and providers
/// retry.
const STALLED_AFTER: Duration = Duration::from_mins(15);

/// The condition: true if a resource has failed for a while, with the resource and its message.
/// False if the stored condition has to be withdrawn. `None` otherwise: an environment that never
/// stalled gets no condition, and no write for it.
pub(super) fn condition(
    resources: &[ComposedResource],
    status: &Object,
    now: Timestamp,
) -> Option<Condition> {
    let failed = resources
        .iter()
        .filter(|resource| resource.state == State::Failed && left(resource, now).is_zero());
    let first = failed
        .min_by(|a, b| (&a.status.since, &a.status.slot).cmp(&(&b.status.since, &b.status.slot)));
    let Some(first) = first else {
        let message = "no resource has failed for 15 minutes or longer".to_owned();
        return stored(status, STALLED)
            .map(|_| Condition::new(STALLED, false, &Reason::Recovered, message));
    };
    let minutes = STALLED_AFTER.as_secs() / 60;
    let message = first.status.message.as_deref().unwrap_or("its provider reports no cause");
    let (slot, kind) = (&first.status.slot, &first.status.kind);
    let message = if [WAITED, NOT_READY].iter().any(|begin| message.starts_with(begin)) {
        format!("{slot} ({kind}): {message}")
    } else {
        format!("{slot} ({kind}) has failed for more than {minutes} minutes: {message}")
    };
    Some(Condition::new(STALLED, true, &Reason::ResourceFailed, cut(&message)))
}

/// The time until the next failed resource stalls the environment.
pub(super) fn next(resources: &[ComposedResource], now: Timestamp) -> Option<Duration> {
    let failed = resources.iter().filter(|resource| resource.state == State::Failed);
    failed.map(|resource| left(resource, now)).filter(|left| !left.is_zero()).min()
}

/// The time until a failed resource stalls its environment.
fn left(resource: &ComposedResource, now: Timestamp) -> Duration {
    if resource.timed_out {
        return Duration::ZERO;
    }
    let lasted = resource.clock.changed().map(|changed| between(changed, now));
    STALLED_AFTER.saturating_sub(lasted.unwrap_or_default())
}
