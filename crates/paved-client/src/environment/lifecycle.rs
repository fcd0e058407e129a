//! The end and the power state of an environment, as its status has them.

use std::fmt;

use crossplane::text::harmless;
use function_paved_road::lifecycle::{Span, TtlFrom};
use function_paved_road::power::PowerState;
use function_paved_road::status::{EndAction, LifecycleStatus, StopReason};
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
    /// Source of the time to live; `None` without a time to live.
    pub ttl_from: Option<TtlFrom>,
    /// Action at the end; `None` without a time to live.
    pub on_expiry: Option<EndAction>,
    /// Time of the last stop; `None` while the environment runs.
    pub stopped_at: Option<Timestamp>,
    /// Reason for the last stop; `None` while the environment runs.
    pub stop_reason: Option<StopReason>,
    /// Time of the last warning of the expiry.
    pub warned_at: Option<Timestamp>,
    /// Time of the last request to stop or start that the status follows.
    pub requested_at: Option<Timestamp>,
}

impl Lifecycle {
    /// Reads `status.lifecycle`. Times that cannot be read count as absent. A status with a power
    /// state has a lifecycle, which is absent if it has no fields.
    pub(super) fn from_data(data: &Value) -> Option<Self> {
        let status = match data.pointer("/status/lifecycle") {
            Some(status) => LifecycleStatus::deserialize(status).ok()?,
            None => data.pointer("/status/power").map(|_| LifecycleStatus::default())?,
        };
        let time = |text: Option<String>| text.and_then(|text| text.parse().ok());
        Some(Self {
            expires_at: time(status.expires_at),
            deletes_at: time(status.deletes_at),
            maximum: status.maximum.and_then(|maximum| maximum.parse().ok()),
            ttl_from: status.ttl_from,
            on_expiry: status.on_expiry,
            stopped_at: time(status.stopped_at),
            stop_reason: status.stop_reason,
            warned_at: time(status.warned_at),
            requested_at: time(status.requested_at),
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

/// Estimated price of an environment, in US dollars per hour, as decimal text.
#[derive(Clone, Debug, PartialEq)]
pub struct Price {
    /// The price while the environment runs.
    pub hourly: String,
    /// The price while it is stopped; `None` if it cannot be stopped.
    pub stopped_hourly: Option<String>,
    /// The date of the oldest list price; `None` if all prices are from Settings.
    pub as_of: Option<String>,
}

impl Price {
    /// Reads the price from `status`; `None` if it is not known.
    pub fn from_status(status: &Value) -> Option<Self> {
        let text = |field: &str| status[field].as_str().map(harmless);
        Some(Self {
            hourly: text("estimatedHourlyUSD")?,
            stopped_hourly: text("estimatedStoppedHourlyUSD"),
            as_of: text("priceAsOf"),
        })
    }

    /// The price at this power state.
    pub fn now(&self, power: Option<PowerState>) -> &str {
        let stopped = self.stopped_hourly.as_deref().filter(|_| power == Some(PowerState::Stopped));
        stopped.unwrap_or(&self.hourly)
    }
}

impl fmt::Display for Price {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} USD per hour", self.hourly)?;
        if let Some(stopped) = &self.stopped_hourly {
            write!(out, ", {stopped} while stopped")?;
        }
        match &self.as_of {
            Some(date) => write!(out, " (estimate, prices of {date})"),
            None => out.write_str(" (estimate)"),
        }
    }
}
