//! Time: the rounds of a creation, the longest operation, and the providers' observations.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::kind_behaviour::{Id, KindBehaviour};
use super::writes::identify;
use super::{Pace, Provider, State, is_ready};
use crate::core::World;
use crossplane::conditions::is_true;
use crossplane::json::{at, text};
use crossplane::names::{CREATE_FAILED, CREATE_PENDING, CREATE_SUCCEEDED};

/// The duration of the work on a resource.
#[derive(Clone, Copy, Debug)]
pub(super) struct Work {
    pub(super) rounds: u32,
    since: Timestamp,
}

/// An observation of a resource: its time, and the labels, annotations and spec of the object after
/// it.
#[derive(Clone, Debug)]
pub(super) struct Look {
    at: Timestamp,
    seen: [Value; 3],
}

impl Look {
    /// Records the observation of an object, after the provider's changes.
    pub(super) fn new(object: &Value, at: Timestamp) -> Self {
        Self { at, seen: watched(object) }
    }
}

/// The interval between observations of a ready and unchanged resource.
const POLL: SignedDuration = SignedDuration::from_mins(10);

/// How long upjet providers follow an operation.
const LONGEST_OPERATION: SignedDuration = SignedDuration::from_hours(1);

/// The error of an operation that took longer.
const CUT_OFF: &str = "context deadline exceeded";

/// The error of a resource after a creation without a known result.
pub(super) const RESULT_UNKNOWN: &str = "cannot determine creation result - remove the \
     crossplane.io/external-create-pending annotation if it is safe to proceed";

impl Provider {
    /// Creates a resource, which takes its number of rounds. The provider follows a creation for an
    /// hour. The cloud continues after that, and the next observation finds the resource.
    pub(super) fn create(
        &mut self,
        slot: &str,
        behaviour: &KindBehaviour,
        object: &mut Value,
        world: &World,
    ) -> State {
        let begun = Work { rounds: 0, since: world.now() };
        let work = self.work.entry(slot.to_owned()).or_insert(begun);
        work.rounds += 1;
        if self.stalled.contains(slot) {
            if world.now().duration_since(work.since) < LONGEST_OPERATION {
                return State::Creating;
            }
            self.stalled.remove(slot);
            self.clouds.keep(slot, behaviour, object, world);
            return State::Failed(CUT_OFF.to_owned());
        }
        let is_done =
            work.rounds >= behaviour.rounds || self.pace == Pace::Instant || is_ready(object);
        if !is_done {
            return State::Creating;
        }
        identify(behaviour, object);
        self.clouds.put(slot, behaviour, object, world);
        State::Ready
    }

    /// Whether the resource's provider does not observe it now.
    pub(super) fn is_between_looks(
        &self,
        slot: &str,
        behaviour: &KindBehaviour,
        object: &Value,
        now: Timestamp,
    ) -> bool {
        let polls = !behaviour.watches && !matches!(behaviour.id, Id::None);
        let is_settled = is_ready(object) && is_true(object, "Synced");
        let last =
            self.looks.as_ref().and_then(|looks| looks.get(slot)).filter(|_| polls && is_settled);
        last.is_some_and(|look| now.duration_since(look.at) < POLL && look.seen == watched(object))
    }
}

/// Whether a provider stopped between the start of a creation and the record of its result.
pub(super) fn is_result_unknown(object: &Value) -> bool {
    let time = |annotation: &str| {
        let noted = text(object, &["metadata", "annotations", annotation])?;
        noted.parse::<Timestamp>().ok()
    };
    let result = time(CREATE_SUCCEEDED).max(time(CREATE_FAILED));
    time(CREATE_PENDING).is_some_and(|pending| result.is_none_or(|result| result < pending))
}

/// The fields of an object with changes that its provider notices immediately.
fn watched(object: &Value) -> [Value; 3] {
    let found = |path: &[&str]| at(object, path).cloned().unwrap_or_default();
    [found(&["metadata", "labels"]), found(&["metadata", "annotations"]), found(&["spec"])]
}
