//! Waits for environments: watches them, and evaluates their states.

mod remediation;
mod tracker;
mod trackers;
mod watch_set;

use std::str::FromStr;

pub use tracker::Ending;
pub use trackers::Trackers;
pub use watch_set::{WatchSet, Watched};

/// Goal of a wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Goal {
    /// The environment is ready, and has its newest spec.
    Ready,
    /// The environment is ready, and runs. A stopped environment can be ready.
    Running,
    /// The environment and all its resources are deleted.
    Deleted,
    /// A condition has this status.
    Condition {
        /// Type of the condition.
        kind: String,
        /// Status: `True`, `False` or `Unknown`.
        status: String,
    },
}

impl FromStr for Goal {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split('=').collect::<Vec<_>>().as_slice() {
            ["ready"] => Ok(Self::Ready),
            ["delete" | "deleted"] => Ok(Self::Deleted),
            ["condition", kind] if !kind.is_empty() => {
                Ok(Self::Condition { kind: (*kind).to_owned(), status: "True".to_owned() })
            }
            ["condition", kind, status] if !kind.is_empty() && !status.is_empty() => {
                Ok(Self::Condition { kind: (*kind).to_owned(), status: (*status).to_owned() })
            }
            _ => Err("allowed: ready, deleted, condition=TYPE, condition=TYPE=STATUS".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Goal;

    #[test]
    fn a_goal_is_ready_deleted_or_a_condition() {
        let condition =
            |kind: &str, status: &str| Goal::Condition { kind: kind.into(), status: status.into() };
        for (text, goal) in [
            ("ready", Goal::Ready),
            ("deleted", Goal::Deleted),
            ("condition=Synced", condition("Synced", "True")),
            ("condition=Synced=False", condition("Synced", "False")),
        ] {
            assert_eq!(text.parse(), Ok(goal));
        }
        for text in ["", "Ready", "condition", "condition=", "condition=A=B=C", "condition=A="] {
            assert!(text.parse::<Goal>().is_err(), "{text}");
        }
    }
}
