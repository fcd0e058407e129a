//! Crossplane's own fields of `status`. Source: `pkg/xcrd` of crossplane-runtime v2.3.3.

/// All fields that Crossplane adds to the status of a claim or a composite, sorted.
pub const FIELDS: [&str; 3] = ["claimConditionTypes", "conditions", "connectionDetails"];
