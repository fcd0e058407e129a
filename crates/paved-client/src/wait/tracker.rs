//! The history of one environment during a wait, and the decision when the wait ends.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use function_paved_road::diagnosis::Code;
use jiff::Timestamp;

use super::Goal;
use super::remediation;
use super::watch_set::Watched;
use crate::environment::{Blocker, Environment, is_refused};

/// A status that may be for an older spec is believed after it has been unchanged for this time.
const SETTLE: Duration = Duration::from_secs(15);

/// The history since the wait began.
pub(super) struct Tracker {
    goal: Goal,
    patience: Duration,
    /// The highest numbers of ready and of existing resources.
    made: (usize, usize),
    /// The first and last time that each resource was seen rejected, since the last progress.
    refused: BTreeMap<String, (Instant, Instant)>,
    /// The time when the outcome first seemed decided.
    decided: Option<Instant>,
    begin: Instant,
}

/// Whether the wait continues.
#[derive(Debug)]
pub(super) enum Outcome {
    Pending,
    Done,
    Failed(Ending),
}

/// The failure that ends a wait.
#[derive(Clone, Debug)]
pub enum Ending {
    /// The function does not compose this spec.
    Invalid {
        /// The kind, namespace and name.
        what: String,
        /// The reason and the message of the function.
        message: String,
    },
    /// The environment will not become ready without a change.
    Provisioning {
        /// The kind, namespace and name.
        what: String,
        /// The cause and the remediation.
        message: String,
    },
    /// The cloud has no capacity for a start.
    NoCapacity {
        /// Kind, namespace and name.
        what: String,
        /// The cause and the remediation.
        message: String,
    },
}

impl Outcome {
    /// The failure, if the wait failed.
    pub(super) fn ending(&self) -> Option<&Ending> {
        match self {
            Self::Failed(ending) => Some(ending),
            Self::Pending | Self::Done => None,
        }
    }
}

impl Tracker {
    pub(super) fn new(goal: Goal, patience: Duration, begin: Instant) -> Self {
        Self { goal, patience, made: (0, 0), refused: BTreeMap::new(), decided: None, begin }
    }

    /// Evaluates the current state. `clock` is the time of day.
    pub(super) fn evaluate(&mut self, seen: &Watched, now: Instant, clock: Timestamp) -> Outcome {
        let environment = &seen.environment;
        let failed = |message: String| {
            Outcome::Failed(Ending::Provisioning { what: environment.title(), message })
        };
        if self.goal == Goal::Deleted {
            return if seen.gone { Outcome::Done } else { Outcome::Pending };
        }
        if seen.gone {
            return failed("was deleted during the wait".to_owned());
        }
        if environment.deleted.is_some() {
            return failed("is being deleted: it will not become ready".to_owned());
        }
        if let Some(decided) = self.decided(environment, now, clock) {
            return decided;
        }
        let Some((blocker, time)) = self.failed_for_good(environment, now) else {
            return Outcome::Pending;
        };
        let message = remediation::paragraph(&blocker, time);
        if self.goal == Goal::Running && blocker.code() == Some(Code::NoCapacity) {
            return Outcome::Failed(Ending::NoCapacity { what: environment.title(), message });
        }
        failed(message)
    }

    /// Discards conclusions from the last seen state. The state is unknown until the next event.
    pub(super) fn reset(&mut self) {
        self.refused.clear();
        self.decided = None;
    }

    /// The outcome if the environment is done or its spec rejected. It waits while the status may
    /// be for an older spec.
    fn decided(&mut self, seen: &Environment, now: Instant, clock: Timestamp) -> Option<Outcome> {
        let refused =
            seen.refused().map(|condition| format!("{}: {}", condition.reason, condition.message));
        let reached = match &self.goal {
            Goal::Condition { kind, status } => {
                seen.condition(kind).is_some_and(|one| one.status == *status)
            }
            Goal::Running => seen.is_running(),
            _ => seen.is_ready(),
        };
        if !(seen.is_current() && (reached || refused.is_some())) {
            self.decided = None;
            return None;
        }
        let since = *self.decided.get_or_insert(now);
        if seen.may_lag(clock) && now.duration_since(since) < SETTLE {
            return Some(Outcome::Pending);
        }
        Some(match refused {
            Some(message) if !reached => {
                Outcome::Failed(Ending::Invalid { what: seen.title(), message: sentence(&message) })
            }
            _ => Outcome::Done,
        })
    }

    /// The blocker that has lasted at least for the patience without progress, and its duration. A
    /// retrying provider may report "creating" in between. Only progress, or a pause longer than
    /// the patience, restarts the time.
    fn failed_for_good(&mut self, seen: &Environment, now: Instant) -> Option<(Blocker, Duration)> {
        let made = seen.made();
        if made.0 > self.made.0 || made.1 > self.made.1 {
            self.made = (made.0.max(self.made.0), made.1.max(self.made.1));
            self.refused.clear();
        }
        // A resource that recovers from a failure does not count as progress.
        let mended = |slot: &str| {
            seen.parts.iter().any(|part| part.slot == slot && part.ready && !is_refused(part))
        };
        self.refused.retain(|slot, _| !mended(slot));
        let mut longest: Option<(Blocker, Duration)> = None;
        // While a refusal is of an older spec, the newer one has not been tried. An uncomposed spec
        // is always the newer one.
        let current = seen.is_current() || seen.condition("Synced").is_none();
        let counts = |blocker: &Blocker| current || matches!(blocker, Blocker::Uncomposed(_));
        for blocker in seen.blockers().into_iter().filter(counts) {
            let (first, last) = self.refused.entry(blocker.key().to_owned()).or_insert((now, now));
            *last = now;
            let time = now.duration_since(*first);
            let patience = self.patience.max(blocker.grace());
            let longer = longest.as_ref().is_none_or(|(_, other)| time > *other);
            if time >= patience && now.duration_since(self.begin) >= patience && longer {
                longest = Some((blocker, time));
            }
        }
        let patience = self.patience;
        self.refused.retain(|_, (_, last)| *last == now || now.duration_since(*last) < patience);
        longest
    }
}

fn sentence(message: &str) -> String {
    message.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::Arc;

    use function_paved_road::observe::spec_hash;
    use serde_json::{Value, json};

    use super::*;
    use crate::environment::samples::{
        creating, environment, half_made, ready, refused_leaf, set, uncomposed, unsynced,
    };

    /// The outcomes of a wait.
    const DONE: &str = "done";
    const INVALID: &str = "invalid";
    const FAILED: &str = "failed";
    const NO_CAPACITY: &str = "no capacity";

    const PATIENCE: Duration = Duration::from_mins(3);

    /// A wait with a clock that the test controls.
    struct Play {
        tracker: Tracker,
        begin: Instant,
        seconds: u64,
    }

    impl Play {
        fn new(goal: Goal) -> Self {
            Self::with(goal, PATIENCE)
        }

        fn with(goal: Goal, patience: Duration) -> Self {
            let begin = Instant::now();
            Self { tracker: Tracker::new(goal, patience, begin), begin, seconds: 0 }
        }

        /// The outcome after some more seconds with this object. `None` while the wait continues.
        fn after(&mut self, seconds: u64, object: &Value) -> Option<&'static str> {
            self.look(seconds, object, false).0
        }

        fn look(
            &mut self,
            seconds: u64,
            object: &Value,
            gone: bool,
        ) -> (Option<&'static str>, String) {
            self.seconds += seconds;
            let now = self.begin + Duration::from_secs(self.seconds);
            let clock = "2026-01-01T12:00:00Z".parse().unwrap();
            let environment = Arc::new(environment(object));
            match self.tracker.evaluate(&Watched { environment, gone }, now, clock) {
                Outcome::Pending => (None, String::new()),
                Outcome::Done => (Some(DONE), String::new()),
                Outcome::Failed(Ending::Invalid { what, message }) => {
                    (Some(INVALID), format!("{what}: {message}"))
                }
                Outcome::Failed(Ending::Provisioning { what, message }) => {
                    (Some(FAILED), format!("{what} {message}"))
                }
                Outcome::Failed(Ending::NoCapacity { what, message }) => {
                    (Some(NO_CAPACITY), format!("{what} {message}"))
                }
            }
        }
    }

    #[test]
    fn wait_ends_when_the_environment_is_ready() {
        let mut play = Play::new(Goal::Ready);
        assert_eq!(play.after(0, &half_made(&creating())), None);
        assert_eq!(play.after(3600, &half_made(&creating())), None, "slow creation has not failed");
        assert_eq!(play.after(1, &ready()), Some(DONE));
    }

    #[test]
    fn rejected_resource_ends_the_wait_after_patience() {
        let mut play = Play::new(Goal::Ready);
        assert_eq!(play.after(0, &half_made(&refused_leaf())), None);
        assert_eq!(play.after(179, &half_made(&refused_leaf())), None);
        let (code, told) = play.look(1, &half_made(&refused_leaf()), false);
        assert_eq!(code, Some(FAILED));
        for part in [
            "GpuDevWorkspaceClaim team-vision/ada",
            "instance",
            "Instance",
            "i-0abc",
            "VcpuLimitExceeded",
            "quota",
            "3m",
        ] {
            assert!(told.contains(part), "{part} is missing: {told}");
        }
    }

    #[test]
    fn earlier_failure_gets_the_full_patience() {
        let mut play = Play::new(Goal::Ready);
        assert_eq!(
            play.after(10, &half_made(&refused_leaf())),
            None,
            "a quota may just have been raised"
        );
    }

    #[test]
    fn recovery_restarts_the_count() {
        let mut play = Play::new(Goal::Ready);
        assert_eq!(play.after(0, &half_made(&refused_leaf())), None);
        assert_eq!(play.after(170, &half_made(&refused_leaf())), None);
        assert_eq!(play.after(5, &half_made(&creating())), None);
        assert_eq!(play.after(600, &half_made(&creating())), None);
        assert_eq!(
            play.after(1, &half_made(&refused_leaf())),
            None,
            "another failure gets its own time"
        );
        assert_eq!(play.after(60, &ready()), Some(DONE));
    }

    #[test]
    fn a_provider_that_tries_again_and_again_does_not_begin_anew() {
        let mut play = Play::new(Goal::Ready);
        let mut ends = None;
        for _ in 0..5 {
            ends = ends.or(play.after(20, &half_made(&refused_leaf())));
            ends = ends.or(play.after(20, &half_made(&creating())));
        }
        ends = ends.or(play.after(20, &half_made(&refused_leaf())));
        assert_eq!(ends, Some(FAILED));
    }

    #[test]
    fn briefly_rejected_change_has_not_failed() {
        let mut play = Play::new(Goal::Ready);
        let late = |refused: bool| {
            let mut object = half_made(&creating());
            let resources = object["status"]["resources"].as_array_mut().unwrap();
            if refused {
                resources[0]["reason"] = json!("Failed");
            }
            object
        };
        for _ in 0..5 {
            assert_eq!(play.after(100, &late(true)), None);
            assert_eq!(play.after(1, &late(false)), None);
        }
        assert_eq!(play.after(1, &late(true)), None);
        assert_eq!(play.after(180, &late(true)), Some(FAILED));
    }

    #[test]
    fn patience_restarts_after_a_lost_connection() {
        let mut play = Play::new(Goal::Ready);
        assert_eq!(play.after(0, &half_made(&refused_leaf())), None);
        assert_eq!(play.after(170, &half_made(&refused_leaf())), None);
        play.tracker.reset();
        assert_eq!(play.after(100, &half_made(&refused_leaf())), None);
        assert_eq!(play.after(180, &half_made(&refused_leaf())), Some(FAILED));
    }

    #[test]
    fn progress_elsewhere_extends_patience() {
        let mut play = Play::new(Goal::Ready);
        let mut object = half_made(&refused_leaf());
        object["status"]["resources"][0]["ready"] = json!(false);
        assert_eq!(play.after(0, &object), None);
        assert_eq!(play.after(170, &half_made(&refused_leaf())), None);
        assert_eq!(play.after(170, &half_made(&refused_leaf())), None);
        assert_eq!(play.after(10, &half_made(&refused_leaf())), Some(FAILED));
    }

    #[test]
    fn invalid_spec_ends_the_wait_immediately() {
        let mut object = half_made(&creating());
        set(
            &mut object,
            "Provisioned",
            "False",
            "InvalidSpec",
            "spec.parameters.instanceType: found x",
        );
        let (code, told) = Play::new(Goal::Ready).look(0, &object, false);
        assert_eq!(code, Some(INVALID));
        assert!(told.contains("InvalidSpec: spec.parameters.instanceType"), "{told}");
        object["metadata"]["generation"] = json!(3);
        assert_eq!(Play::new(Goal::Ready).after(0, &object), None, "the spec was changed since");
    }

    #[test]
    fn recent_change_is_ready_only_after_a_delay() {
        let mut object = ready();
        object["metadata"]["managedFields"] =
            json!([{"manager": "paved", "operation": "Apply", "time": "2026-01-01T11:59:58Z"}]);
        let mut play = Play::new(Goal::Ready);
        assert_eq!(play.after(0, &object), None);
        assert_eq!(play.after(14, &object), None);
        assert_eq!(play.after(1, &object), Some(DONE));
    }

    #[test]
    fn uncomposed_edit_ends_the_wait_with_a_failure() {
        let mut object = ready();
        object["status"]["specHash"] = json!("0123456789abcdef");
        let mut play = Play::new(Goal::Ready);
        assert_eq!(play.after(0, &object), None);
        assert_eq!(play.after(179, &object), None);
        let (code, told) = play.look(1, &object, false);
        assert!(
            code == Some(FAILED) && told.contains("has not processed the newest spec"),
            "{told}"
        );
        // The same applies to a spec that Crossplane has not observed. A reconcile without
        // responses takes minutes.
        let mut unseen = object.clone();
        unseen["metadata"]["generation"] = json!(99);
        let mut play = Play::new(Goal::Ready);
        assert_eq!(play.after(0, &unseen), None);
        assert_eq!(play.after(180, &unseen), Some(FAILED));
        object["status"]["specHash"] = json!(spec_hash(&object["spec"]));
        assert_eq!(Play::new(Goal::Ready).after(0, &object), Some(DONE));
        // A rejected spec is not composed either, but is reported immediately.
        object["status"]["specHash"] = json!("0123456789abcdef");
        set(
            &mut object,
            "Provisioned",
            "False",
            "InvalidSpec",
            "spec.parameters.instanceType: found x",
        );
        assert_eq!(Play::new(Goal::Ready).after(0, &object), Some(INVALID));
    }

    #[test]
    fn stopped_environment_is_ready_and_not_running() {
        let mut object = ready();
        for (power, outcome) in [
            ("Stopped", None),
            ("Starting", None),
            ("Stopping", None),
            ("Unknown", Some(DONE)),
            ("Running", Some(DONE)),
        ] {
            object["status"]["power"] = json!(power);
            assert_eq!(Play::new(Goal::Running).after(0, &object), outcome, "{power}");
            assert_eq!(Play::new(Goal::Ready).after(0, &object), Some(DONE), "{power}");
        }
    }

    #[test]
    fn missing_capacity_is_an_outcome_of_a_start_only() {
        let mut leaf = refused_leaf();
        leaf["message"] = json!("InsufficientInstanceCapacity: no g4dn.xlarge in us-east-1a");
        for (goal, outcome) in [(Goal::Running, NO_CAPACITY), (Goal::Ready, FAILED)] {
            let mut play = Play::new(goal);
            assert_eq!(play.after(0, &half_made(&leaf)), None);
            let (code, told) = play.look(180, &half_made(&leaf), false);
            assert_eq!(code, Some(outcome));
            assert!(told.contains("has no capacity"), "{told}");
        }
        let mut play = Play::new(Goal::Running);
        assert_eq!(play.after(0, &half_made(&refused_leaf())), None);
        assert_eq!(play.after(180, &half_made(&refused_leaf())), Some(FAILED));
    }

    #[test]
    fn deletion_fails_a_wait_for_ready_and_ends_one_for_deleted() {
        let (code, told) = Play::new(Goal::Ready).look(0, &ready(), true);
        assert_eq!(code, Some(FAILED));
        assert!(told.contains("was deleted"), "{told}");
        let mut going = ready();
        going["metadata"]["deletionTimestamp"] = json!("2026-01-01T11:00:00Z");
        assert_eq!(Play::new(Goal::Ready).after(0, &going), Some(FAILED));
        let mut play = Play::new(Goal::Deleted);
        assert_eq!(play.after(0, &half_made(&refused_leaf())), None);
        assert_eq!(play.after(3600, &half_made(&refused_leaf())), None);
        assert_eq!(play.look(0, &going, true).0, Some(DONE));
    }

    #[test]
    fn wait_for_a_condition_ends_with_the_condition() {
        let goal = Goal::Condition { kind: "Provisioned".into(), status: "False".into() };
        assert_eq!(Play::new(goal.clone()).after(0, &half_made(&creating())), Some(DONE));
        assert_eq!(Play::new(goal).after(0, &ready()), None);
    }

    #[test]
    fn uncomposed_environment_ends_the_wait_after_patience() {
        for (object, words) in [
            (unsynced(), "Crossplane does not compose this environment. Ask the platform team"),
            (unsynced(), "cannot select a Composition"),
            (uncomposed(), "Crossplane does not compose this environment"),
        ] {
            let mut play = Play::new(Goal::Ready);
            assert_eq!(play.after(0, &object), None);
            assert_eq!(play.after(179, &object), None);
            let (code, told) = play.look(1, &object, false);
            assert_eq!(code, Some(FAILED));
            assert!(told.contains(words), "{told}");
        }
        // Crossplane has three minutes, although the patience with a rejected resource is two
        // seconds.
        for object in [unsynced(), uncomposed()] {
            let mut play = Play::with(Goal::Ready, Duration::from_secs(2));
            assert_eq!(play.after(0, &object), None);
            assert_eq!(play.after(179, &object), None);
            assert_eq!(play.after(1, &object), Some(FAILED));
        }
    }
}
