//! The condition of an environment with an older Composition than the claim or the Settings need.

use super::condition::{Condition, Event, stored};
use crate::compose::cut;
use crate::power::Composed;
use crate::reason::Reason;

/// The type of the condition.
pub const OUTDATED: &str = "OutdatedComposition";

impl Composed<'_> {
    /// The condition `OutdatedComposition`, if it has to be set or withdrawn. The events are the
    /// fields and limits without effect, if the message has changed.
    pub(super) fn outdated(&self) -> (Option<Condition>, Vec<Event>) {
        let stored = stored(&self.observation.xr.status, OUTDATED);
        let all: Vec<String> = self.plan.outdated().iter().map(ToString::to_string).collect();
        if all.is_empty() {
            let message = "the Composition carries all fields and limits".to_owned();
            let condition = Condition::new(OUTDATED, false, &Reason::UpToDate, message);
            return (stored.map(|_| condition), Vec::new());
        }
        let message = cut(&all.join("; also "));
        let is_known = stored.is_some_and(|stored| {
            stored["status"] == "True" && stored["message"] == message.as_str()
        });
        let news = all.into_iter().filter(|_| !is_known);
        let events = news.map(|field| Event::warning(&Reason::OldSchemaRevision, field)).collect();
        (Some(Condition::new(OUTDATED, true, &Reason::OldSchemaRevision, message)), events)
    }
}
