//! The label and the annotation that link an environment to the request that created it.

/// The label with the request's id.
pub(super) const REQUEST: &str = "request-id";

/// The annotation with the hash of the body that a claim was made from.
pub(super) const BODY: &str = "paved-road.fn.crossplane.io/request-body";
