//! The marks of the request that an environment was made by.

/// The label with the request's id.
pub(super) const REQUEST: &str = "request-id";

/// The annotation with the hash of the body that a claim was made from.
pub(super) const BODY: &str = "paved-road.fn.crossplane.io/request-body";
