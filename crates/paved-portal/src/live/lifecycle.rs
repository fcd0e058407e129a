//! Power, end and price of an environment as clients see them.

use function_paved_road::lifecycle::TtlFrom;
use function_paved_road::status::{EXPIRING, EndAction, StopReason};
use jiff::Timestamp;
use paved_client::environment::{self, Environment};
use serde::Serialize;
use utoipa::ToSchema;

/// The end of an environment, and its last stop. All times are in RFC 3339.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Lifecycle {
    /// Time of the expiry. Absent without a time to live.
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<String>,
    /// Time of the automatic deletion. Absent if the environment is not deleted automatically.
    #[serde(skip_serializing_if = "Option::is_none")]
    deletes_at: Option<String>,
    /// Longest time from now to the expiry that an extension can set, for example 14d. Absent if
    /// Settings have no maximum.
    #[serde(skip_serializing_if = "Option::is_none")]
    maximum: Option<String>,
    /// Source of the time to live: Claim or Settings.
    #[schema(value_type = Option<String>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl_from: Option<TtlFrom>,
    /// Action at the end: Stop, Delete or Mark. Absent without a time to live.
    #[schema(value_type = Option<String>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    on_expiry: Option<EndAction>,
    /// Time of the last stop. Absent while the environment runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    stopped_at: Option<String>,
    /// Reason for the last stop: Requested, Expired, Idle, Interrupted or Unknown.
    #[schema(value_type = Option<String>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    stop_reason: Option<StopReason>,
    /// Time of the last warning of the expiry.
    #[serde(skip_serializing_if = "Option::is_none")]
    warned_at: Option<String>,
}

impl From<environment::Lifecycle> for Lifecycle {
    fn from(seen: environment::Lifecycle) -> Self {
        let text = |time: Option<Timestamp>| time.map(|time| time.to_string());
        Self {
            expires_at: text(seen.expires_at),
            deletes_at: text(seen.deletes_at),
            maximum: seen.maximum.map(|maximum| maximum.to_string()),
            ttl_from: seen.ttl_from,
            on_expiry: seen.on_expiry,
            stopped_at: text(seen.stopped_at),
            stop_reason: seen.stop_reason,
            warned_at: text(seen.warned_at),
        }
    }
}

/// A warning that the environment expires soon, or that it has expired.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct Expiring {
    /// Expiring or Expired.
    reason: String,
    /// The time, and the command that renews the environment, in words.
    message: String,
}

impl Expiring {
    /// The warning of an environment, if there is one.
    pub(crate) fn of(seen: &Environment) -> Option<Self> {
        let condition = seen.condition(EXPIRING).filter(|condition| condition.status == "True")?;
        Some(Self { reason: condition.reason.clone(), message: condition.message.clone() })
    }
}

/// The estimated price of an environment, in US dollars per hour, as decimal text.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Price {
    /// The price while the environment runs.
    #[serde(rename = "hourlyUSD")]
    hourly: String,
    /// The price while it is stopped. Absent if the environment cannot be stopped.
    #[serde(rename = "stoppedHourlyUSD", skip_serializing_if = "Option::is_none")]
    stopped_hourly: Option<String>,
    /// Date of the oldest list price. Absent if all prices are from Settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    as_of: Option<String>,
}

impl From<environment::Price> for Price {
    fn from(price: environment::Price) -> Self {
        let environment::Price { hourly, stopped_hourly, as_of } = price;
        Self { hourly, stopped_hourly, as_of }
    }
}
