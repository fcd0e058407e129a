//! The histories of all environments in one wait, and the last verdict on each.

use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::Goal;
use super::course::{Course, Ending, Verdict};
use super::watched::Seen;

/// A history for each environment.
pub struct Courses(Vec<(Course, Verdict)>);

impl Courses {
    /// A history for each of `count` environments. `patience` is how long a resource may stay
    /// rejected.
    pub fn new(count: usize, goal: &Goal, patience: Duration, begin: Instant) -> Self {
        let one = |_| (Course::new(goal.clone(), patience, begin), Verdict::Pending);
        Self((0..count).map(one).collect())
    }

    /// Judges the environments at these indices by their current state.
    pub fn judge(
        &mut self,
        places: impl IntoIterator<Item = usize>,
        seen: &[Seen],
        now: Instant,
        clock: Timestamp,
    ) {
        for place in places {
            let (course, verdict) = &mut self.0[place];
            *verdict = course.judge(&seen[place], now, clock);
        }
    }

    /// Records that the state of all environments is unknown for now.
    pub fn lose_sight(&mut self) {
        self.0.iter_mut().for_each(|(course, _)| course.lose_sight());
    }

    /// The first failure.
    pub fn failure(&self) -> Option<&Ending> {
        self.0.iter().find_map(|(_, verdict)| verdict.ending())
    }

    /// Whether this environment has reached the goal.
    pub fn is_done(&self, place: usize) -> bool {
        matches!(self.0[place].1, Verdict::Done)
    }

    /// Whether all environments have reached the goal.
    pub fn are_done(&self) -> bool {
        (0..self.0.len()).all(|place| self.is_done(place))
    }
}
