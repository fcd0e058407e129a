//! The end and the power state of an environment, as its status has them.

use function_paved_road::compose::{LifecycleStatus, PowerState, StopReason};
use function_paved_road::lifecycle::Span;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

/// End of an environment, and its last stop.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lifecycle {
    /// Time of the expiry; `None` without a time to live.
    pub expires_at: Option<Timestamp>,
    /// Time of the automatic deletion.
    pub deletes_at: Option<Timestamp>,
    /// Longest time from now to the expiry that a renewal can set.
    pub maximum: Option<Span>,
    /// Time of the last stop; `None` while the environment runs.
    pub stopped_at: Option<Timestamp>,
    /// Reason for the last stop; `None` while the environment runs.
    pub stop_reason: Option<StopReason>,
}

impl Lifecycle {
    /// Reads `status.lifecycle`. Times that cannot be read count as absent.
    pub(super) fn from_data(data: &Value) -> Option<Self> {
        let status = LifecycleStatus::deserialize(data.pointer("/status/lifecycle")?).ok()?;
        let time = |text: Option<String>| text.and_then(|text| text.parse().ok());
        Some(Self {
            expires_at: time(status.expires_at),
            deletes_at: time(status.deletes_at),
            maximum: status.maximum.and_then(|maximum| maximum.parse().ok()),
            stopped_at: time(status.stopped_at),
            stop_reason: status.stop_reason,
        })
    }

    /// Whether the environment is stopped, because a user, an expiry or idleness asked for it.
    pub fn is_stop_wanted(&self) -> bool {
        use StopReason::{Expired, Idle, Requested};
        matches!(self.stop_reason, Some(Requested | Expired | Idle))
    }
}

/// The word for a power state, as the status has it.
pub fn power_word(power: PowerState) -> &'static str {
    match power {
        PowerState::Running => "Running",
        PowerState::Stopped => "Stopped",
        PowerState::Starting => "Starting",
        PowerState::Stopping => "Stopping",
        PowerState::Unknown => "Unknown",
    }
}

/// Reads `status.power`.
pub(super) fn power(data: &Value) -> Option<PowerState> {
    PowerState::deserialize(data.pointer("/status/power")?).ok()
}
