//! The histories of all environments in one wait, and the last outcome of each.

use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::Goal;
use super::tracker::{Ending, Outcome, Tracker};
use super::watch_set::Watched;

/// A history for each environment.
pub struct Trackers(Vec<(Tracker, Outcome)>);

impl Trackers {
    /// A history for each of `count` environments. `patience` is how long a resource may stay
    /// rejected.
    pub fn new(count: usize, goal: &Goal, patience: Duration, begin: Instant) -> Self {
        let one = |_| (Tracker::new(goal.clone(), patience, begin), Outcome::Pending);
        Self((0..count).map(one).collect())
    }

    /// Evaluates the environments at these indices by their current state.
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

    /// Records that the state of all environments is unknown for now.
    pub fn reset(&mut self) {
        self.0.iter_mut().for_each(|(tracker, _)| tracker.reset());
    }

    /// The first failure.
    pub fn failure(&self) -> Option<&Ending> {
        self.0.iter().find_map(|(_, outcome)| outcome.ending())
    }

    /// Whether this environment has reached the goal.
    pub fn is_done(&self, place: usize) -> bool {
        matches!(self.0[place].1, Outcome::Done)
    }

    /// Whether all environments have reached the goal.
    pub fn are_done(&self) -> bool {
        (0..self.0.len()).all(|place| self.is_done(place))
    }
}
