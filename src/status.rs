//! The status of an environment, and the rest of the answer: conditions, events, and the time of
//! the next call. The answer follows from the complete composition.

mod answer;
mod budget;
mod clock;
mod condition;
mod deletion;
mod excuse;
mod lifecycle;
mod limits;
mod outdated;
mod references;
mod resource_status;
mod resources;
mod revision;
mod stalled;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use answer::Answer;
pub use budget::{BUDGET, OVER_BUDGET, Spending};
pub use condition::{Condition, Event, PROVISIONED, undecided};
#[cfg(test)]
pub(crate) use deletion::has_data;
pub use deletion::{Deleted, Kept, OnDeletion};
pub use lifecycle::{EXPIRING, EndAction, LifecycleStatus, StopReason};
pub use outdated::OUTDATED;
pub use resource_status::ResourceStatus;
pub use revision::{AddedValue, Addition, COMMON as COMMON_ADDITIONS};
pub use stalled::STALLED;

use crate::observe::State;
use crate::power::PowerState;
use crate::pricing::Price;
use clock::ComposedResource;

/// Status fields that every environment has.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommonStatus {
    /// Phase of the environment: Pending, Provisioning, Ready, Failed, Stopping, Stopped, Starting
    /// or Expired. Pending means that no resource exists yet.
    pub phase: Phase,
    /// Number of ready resources and total number of resources, in the form `4/6`.
    pub progress: String,
    /// All resources of the environment, sorted by slot.
    pub resources: Vec<ResourceStatus>,
    /// Hash of the last composed spec: sixteen hexadecimal digits. The hash ignores fields that
    /// Crossplane adds. A claim shares its composite's status. The hash matches the claim's own
    /// spec once the newest spec is composed. Absent in a preview.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec_hash: Option<String>,
    /// Resources that a deletion of the environment deletes, and resources that it keeps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_deletion: Option<OnDeletion>,
    /// Power state of the environment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power: Option<PowerState>,
    /// End of the environment, and its last stop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifecycle: Option<LifecycleStatus>,
    /// Estimated price while the environment runs, in US dollars per hour, as a decimal number.
    /// Absent if a part has no price.
    #[serde(default, rename = "estimatedHourlyUSD", skip_serializing_if = "Option::is_none")]
    pub estimated_hourly_usd: Option<String>,
    /// Estimated price while the environment is stopped, in US dollars per hour, as a decimal
    /// number. Absent if a part has no price, or if the environment cannot be stopped.
    #[serde(
        default,
        rename = "estimatedStoppedHourlyUSD",
        skip_serializing_if = "Option::is_none"
    )]
    pub estimated_stopped_hourly_usd: Option<String>,
    /// Date of the oldest list price in the estimate. Absent if all prices are from Settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price_as_of: Option<String>,
}

impl CommonStatus {
    /// The names of the fields.
    pub const FIELDS: [&str; 10] = [
        "phase",
        "progress",
        "resources",
        "specHash",
        "onDeletion",
        "power",
        "lifecycle",
        "estimatedHourlyUSD",
        "estimatedStoppedHourlyUSD",
        "priceAsOf",
    ];

    /// Sets the estimated price.
    fn set_price(&mut self, price: &Price) {
        self.estimated_hourly_usd = Some(price.hourly.to_string());
        self.estimated_stopped_hourly_usd = price.stopped_hourly.map(|usd| usd.to_string());
        self.price_as_of = price.as_of.map(|date| date.to_string());
    }
}

/// Whether a status field belongs to every environment or to Crossplane, and not to one API.
pub fn is_common(field: &str) -> bool {
    CommonStatus::FIELDS.contains(&field) || crossplane::status::FIELDS.contains(&field)
}

/// Phase of an environment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Phase {
    /// No resource exists yet.
    #[default]
    Pending,
    /// The resources are being created.
    Provisioning,
    /// Every resource is ready.
    Ready,
    /// A resource was rejected, or its provider gave up.
    Failed,
    /// The environment is being stopped.
    Stopping,
    /// The environment is stopped, as its user wants.
    Stopped,
    /// The environment is being started.
    Starting,
    /// The environment has expired and still exists.
    Expired,
}

/// The common status. `exists` is true if a resource was observed.
fn common(resources: &[ComposedResource], exists: bool) -> CommonStatus {
    let counted = || resources.iter().filter(|resource| resource.counted);
    let ready = counted().filter(|resource| resource.status.ready).count();
    let phase = if resources.iter().any(|resource| resource.state == State::Failed) {
        Phase::Failed
    } else if resources.iter().all(|resource| resource.status.ready) {
        Phase::Ready
    } else if exists {
        Phase::Provisioning
    } else {
        Phase::Pending
    };
    CommonStatus {
        phase,
        progress: format!("{ready}/{}", counted().count()),
        resources: resources.iter().map(|resource| resource.status.clone()).collect(),
        ..CommonStatus::default()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::*;

    #[test]
    fn common_fields_are_those_of_the_type() {
        let schema = schemars::schema_for!(CommonStatus);
        let fields = schema.get("properties").and_then(Value::as_object).map(serde_json::Map::keys);
        let fields: BTreeSet<&str> = fields.into_iter().flatten().map(String::as_str).collect();
        assert_eq!(fields, CommonStatus::FIELDS.into());
    }
}
