//! The entry of a resource in the status.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::diagnosis::{Cause, Line};

/// One resource of an environment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceStatus {
    /// Permanent name of the resource in the environment.
    pub slot: String,
    /// Kubernetes kind of the resource.
    pub kind: String,
    /// Name of the resource's object in the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Name or ID of the resource in the cloud.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external_name: Option<String>,
    /// True if the resource is ready.
    pub ready: bool,
    /// Time since which the resource is in its expected state, or is not (RFC 3339).
    pub since: String,
    /// Reason why the resource is not in its expected state: Creating, Waiting, Failed,
    /// Unavailable, Deleting, Paused or NotAccepted. NotAccepted means that the API server has not
    /// accepted the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Details about the resource. If the provider rejected a request, the message quotes the
    /// provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Cause why the resource is not ready, or why a change to it failed. The cause has a code and
    /// parameters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
}

impl ResourceStatus {
    /// The resource in the diagnosis's form.
    pub fn line(&self) -> Line<'_> {
        Line {
            slot: &self.slot,
            kind: &self.kind,
            name: self.name.as_deref(),
            external_name: self.external_name.as_deref(),
            ready: self.ready,
            reason: self.reason.as_deref(),
            message: self.message.as_deref(),
        }
    }
}
