//! Labels and annotations that Crossplane sets or reads. Source: `apis/common` and `pkg/meta` of
//! crossplane-runtime v2.3.3, and `internal/xcrd` of Crossplane v2.3.4.

/// Annotation: the name of the external resource, for example its ID in the cloud.
pub const EXTERNAL_NAME: &str = "crossplane.io/external-name";

/// Annotation: the slot that a composed resource fills in its composite.
pub const SLOT: &str = "crossplane.io/composition-resource-name";

/// Annotation: `true` pauses reconciliation.
pub const PAUSED: &str = "crossplane.io/paused";

/// Annotation: the time when the provider began to create the external resource.
pub const CREATE_PENDING: &str = "crossplane.io/external-create-pending";

/// Annotation: the time when the provider had created the external resource.
pub const CREATE_SUCCEEDED: &str = "crossplane.io/external-create-succeeded";

/// Annotation: the time when a creation of the external resource failed.
pub const CREATE_FAILED: &str = "crossplane.io/external-create-failed";

/// Label of composites and composed resources: the name of the composite.
pub const COMPOSITE: &str = "crossplane.io/composite";

/// Label of composites and composed resources: the name of the claim.
pub const CLAIM_NAME: &str = "crossplane.io/claim-name";

/// Label of composites and composed resources: the namespace of the claim.
pub const CLAIM_NAMESPACE: &str = "crossplane.io/claim-namespace";

/// Label of resources that a Usage protects from deletion.
pub const IN_USE: &str = "crossplane.io/in-use";
