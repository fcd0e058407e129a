//! The limit of deletions per hour.
//!
//! An attempt to delete an environment counts, because the API server can have executed a request
//! without a good answer. A second attempt replaces the first one: the environment was read between
//! them, and was not deleted.
//!
//! Within a process, the steady clock counts, because a wall clock may jump. An annotation of the
//! Lease has the deletions by the minute of the wall clock, for the next leader.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

/// The time for which a deletion counts.
const HOUR: Duration = Duration::from_hours(1);

/// The deletions of the last hour.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spent {
    /// How many deletions of earlier leaders count until this time of the steady clock.
    earlier: BTreeMap<Duration, u32>,
    /// Until when this leader's last attempt counts, by the UID of the environment.
    attempts: BTreeMap<Box<str>, Duration>,
}

impl Spent {
    /// As many deletions as possible now, so that no environment is deleted for an hour.
    pub fn full(steady: Duration) -> Self {
        let earlier = BTreeMap::from([(steady + HOUR, u32::MAX)]);
        Self { earlier, ..Self::default() }
    }

    /// Reads the annotation of an earlier leader. A time in the future counts as now. A text that
    /// cannot be read counts as full.
    pub fn read(text: &str, now: Timestamp, steady: Duration) -> Self {
        let Ok(minutes) = serde_json::from_str::<BTreeMap<Timestamp, u32>>(text) else {
            return Self::full(steady);
        };
        let mut spent = Self::default();
        for (minute, count) in minutes {
            let age = Duration::try_from(now.duration_since(minute)).unwrap_or_default();
            if let Some(left) = HOUR.checked_sub(age) {
                let counted = spent.earlier.entry(steady + left).or_default();
                *counted = counted.saturating_add(count);
            }
        }
        spent
    }

    /// The annotation for the next leader.
    pub fn write(&self, now: Timestamp, steady: Duration) -> String {
        let mut minutes: BTreeMap<Timestamp, u32> = BTreeMap::new();
        for (until, count) in self.counts() {
            let left = until.saturating_sub(steady);
            let age = SignedDuration::try_from(HOUR.saturating_sub(left)).unwrap_or_default();
            let second = now.checked_sub(age).unwrap_or(now).as_second();
            // The end of the minute, so that no deletion counts for less than an hour.
            let minute = Timestamp::from_second((second + 59).div_euclid(60) * 60).unwrap_or(now);
            let counted = minutes.entry(minute).or_default();
            *counted = counted.saturating_add(count);
        }
        serde_json::to_string(&minutes).unwrap_or_default()
    }

    /// How many deletions count.
    pub fn count(&self, steady: Duration) -> u32 {
        let counted = self.counts().filter(|(until, _)| *until > steady);
        counted.fold(0, |sum: u32, (_, count)| sum.saturating_add(count))
    }

    /// The same with an attempt, and without those that count no longer.
    pub fn with(&self, uid: &str, steady: Duration) -> Self {
        let mut spent = self.clone();
        spent.earlier.retain(|until, _| *until > steady);
        spent.attempts.retain(|_, until| *until > steady);
        spent.attempts.insert(uid.into(), steady + HOUR);
        spent
    }

    /// The same without the attempt to delete an environment that was not deleted.
    pub fn without(&self, uid: &str) -> Self {
        let mut spent = self.clone();
        spent.attempts.remove(uid);
        spent
    }

    /// How many deletions count until which time.
    fn counts(&self) -> impl Iterator<Item = (Duration, u32)> {
        let earlier = self.earlier.iter().map(|(until, count)| (*until, *count));
        earlier.chain(self.attempts.values().map(|until| (*until, 1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::constant(1_795_626_000, 0);

    fn minutes(count: u64) -> Duration {
        Duration::from_mins(count)
    }

    #[test]
    fn deletion_counts_for_an_hour() {
        let spent = Spent::default().with("a", minutes(1)).with("b", minutes(5));
        assert_eq!(spent.count(minutes(60)), 2);
        assert_eq!(spent.count(minutes(62)), 1);
        assert_eq!(spent.count(minutes(66)), 0);
    }

    #[test]
    fn environment_counts_once_from_its_last_attempt() {
        let spent = Spent::default().with("a", minutes(1)).with("a", minutes(50));
        assert_eq!(spent.count(minutes(60)), 1);
        assert_eq!(spent.count(minutes(109)), 1);
        assert_eq!(spent.without("a").count(minutes(60)), 0);
    }

    #[test]
    fn next_leader_counts_deletions_of_the_last_one() {
        let spent = Spent::default().with("a", minutes(100)).with("b", minutes(130));
        let text = spent.write(NOW, minutes(140));
        let next = Spent::read(&text, NOW, minutes(0));
        assert_eq!(next.count(minutes(0)), 2);
        assert_eq!(next.count(minutes(30)), 1);
        assert_eq!(next.count(minutes(52)), 0);
    }

    #[test]
    fn deletions_of_a_fast_clock_count_for_an_hour() {
        let spent = Spent::default().with("a", minutes(1));
        let year = SignedDuration::from_hours(24 * 365);
        let text = spent.write(NOW.checked_add(year).unwrap_or(NOW), minutes(1));
        let next = Spent::read(&text, NOW, minutes(0));
        assert_eq!(next.count(minutes(59)), 1);
        assert_eq!(next.count(minutes(61)), 0);
    }

    #[test]
    fn unreadable_count_stops_deletions_for_an_hour() {
        let spent = Spent::read("many", NOW, minutes(0));
        assert_eq!(spent.count(minutes(59)), u32::MAX);
        assert_eq!(spent.with("a", minutes(1)).count(minutes(59)), u32::MAX);
        assert_eq!(spent.count(minutes(61)), 0);
    }
}
