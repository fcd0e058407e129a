//! Reasons: one word for the state of an environment or of a resource, or for an event.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

/// A reason of the condition `Provisioned` or `Stalled`, of `status.resources[]` or of an event.
/// A rejected environment has the name of its [`Code`](crate::diagnosis::Code) instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub enum Reason {
    /// All resources are ready.
    Available,
    /// The provider is working on the resource.
    Creating,
    /// Another object has to exist first.
    Waiting,
    /// The provider rejected the resource, or gave up.
    Failed,
    /// The resource exists, and cannot be used at present.
    Unavailable,
    /// The resource is being deleted.
    Deleting,
    /// The annotation `crossplane.io/paused` stops the provider.
    Paused,
    /// The API server has not accepted the object.
    NotAccepted,
    /// `Stalled`: a resource has failed for a while.
    ResourceFailed,
    /// `Stalled`: no resource has failed for a while.
    Recovered,
    /// The environment is stopped, as its user wants.
    Stopped,
    /// `Expiring`: the environment expires soon.
    Expiring,
    /// `Expiring`: the environment has expired.
    Expired,
    /// `Expiring`: the environment was renewed.
    NotExpiring,
    /// `OverBudget`: the namespace costs more than its budget.
    OverBudget,
    /// `OverBudget`: the namespace costs no more than its budget.
    WithinBudget,
    /// `OutdatedComposition`: its schema revision cannot carry a field or a limit.
    OldSchemaRevision,
    /// `OutdatedComposition`: its schema revision carries all fields and limits.
    UpToDate,
    /// Event: a field of the claim has no effect.
    NoEffect,
    /// Event: an annotation of the environment's user cannot be read.
    RequestIgnored,
    /// Event: the EnvironmentConfig with Settings does not exist.
    SettingsNotFound,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}
