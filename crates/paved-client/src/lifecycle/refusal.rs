//! Requests that would have no effect.

use function_paved_road::lifecycle::{SINCE, Span};
use function_paved_road::manifests::SCHEMA_REVISION;
use jiff::Timestamp;

/// The reason why a change would have no effect. The text follows the title of the environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The environment is being deleted.
    #[error("is being deleted, and this request does not stop the deletion")]
    Deleting,
    /// The claim is paused: Crossplane does not copy the request to the composite.
    #[error(
        "is paused by the annotation crossplane.io/paused, so the request does not reach its \
         composite. The composite continues, and can expire. Remove the annotation first"
    )]
    PausedClaim,
    /// The composite is paused: Crossplane does not call the function.
    #[error(
        "is paused by the annotation crossplane.io/paused, so Crossplane does not act on the \
         request. Remove the annotation first"
    )]
    PausedComposite,
    /// The status has no lifecycle.
    #[error(
        "has no lifecycle in its status. Crossplane has not composed it yet, or its Composition has \
         a schemaRevision below {SINCE}, which carries no lifecycle. Ask the platform team to set \
         spec.pipeline[].input.schemaRevision to {SCHEMA_REVISION} in the Composition"
    )]
    NoLifecycle,
    /// The environment never expires.
    #[error(
        "has no time to live, so there is nothing to renew. Set spec.lifecycle.ttl in the claim \
         instead"
    )]
    NoTtl,
    /// Settings have no maximum.
    #[error("has no maximum in Settings. Use a duration instead, for example 4h")]
    NoMaximum,
    /// The expiry is not ahead of now.
    #[error("cannot expire at {0}; allowed: a time after now")]
    NotAhead(Timestamp),
    /// The API cannot stop this environment.
    #[error("cannot be stopped, because {0}")]
    CannotStop(&'static str),
    /// Settings have a maximum, which forbids `never`.
    #[error("spec.lifecycle.ttl: found never; allowed: at most {0}, the maximum in Settings")]
    Maximum(Span),
}
