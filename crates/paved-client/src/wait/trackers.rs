//! The courses of all environments of one wait, and the last verdict on each.

use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::Goal;
use super::tracker::{Ending, Outcome, Tracker};
use super::watch_set::Watched;

/// A course for each environment.
pub struct Trackers(Vec<(Tracker, Outcome)>);

impl Trackers {
    /// A course for each of `count` environments. `patience` is how long a resource may stay
    /// rejected.
    pub fn new(count: usize, goal: &Goal, patience: Duration, begin: Instant) -> Self {
        let one = |_| (Tracker::new(goal.clone(), patience, begin), Outcome::Pending);
        Self((0..count).map(one).collect())
    }

    /// Judges those in these places by how they stand now.
    pub fn evaluate(
        &mut self,
        places: impl IntoIterator<Item = usize>,
        seen: &[Watched],
        now: Instant,
        clock: Timestamp,
    ) {
        for place in places {
            let (tracker, outcome) = &mut self.0[place];
            *outcome = tracker.evaluate(&seen[place], now, clock);
        }
    }

    /// How they stand is not known for now.
    pub fn reset(&mut self) {
        self.0.iter_mut().for_each(|(tracker, _)| tracker.reset());
    }

    /// Why the first fails that does.
    pub fn failure(&self) -> Option<&Ending> {
        self.0.iter().find_map(|(_, outcome)| outcome.ending())
    }

    /// Whether this one is as it should be.
    pub fn is_done(&self, place: usize) -> bool {
        matches!(self.0[place].1, Outcome::Done)
    }

    /// Whether all are.
    pub fn are_done(&self) -> bool {
        (0..self.0.len()).all(|place| self.is_done(place))
    }
}
