//! The rights that the providers need in clouds, kind by kind.
//!
//! An import uses the rights to observe: a provider finds a resource by its external name and
//! reads it. A right is listed only if a provider needs it for the fields that we compose.

pub mod aws;
pub mod azure;
pub mod gcp;

use crate::models::Kind;

/// The rights that a kind needs.
#[derive(Clone, Copy, Debug)]
pub struct Rights<S: 'static> {
    /// The kind.
    pub kind: Kind,
    /// The rights, in the order of a resource's life.
    pub grants: &'static [Grant<S>],
}

/// Actions that are allowed in one scope.
#[derive(Clone, Copy, Debug)]
pub struct Grant<S: 'static> {
    /// When the provider uses the actions.
    pub operation: Operation,
    /// The actions, in the cloud's own words.
    pub actions: &'static [&'static str],
    /// The resources to which the grant is limited.
    pub scope: S,
}

/// An operation of a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// Reads a resource, also to import it.
    Observe,
    /// Creates a resource.
    Create,
    /// Changes a resource.
    Update,
    /// Deletes a resource.
    Delete,
}

const fn observe<S>(actions: &'static [&'static str], scope: S) -> Grant<S> {
    Grant { operation: Operation::Observe, actions, scope }
}

const fn create<S>(actions: &'static [&'static str], scope: S) -> Grant<S> {
    Grant { operation: Operation::Create, actions, scope }
}

const fn update<S>(actions: &'static [&'static str], scope: S) -> Grant<S> {
    Grant { operation: Operation::Update, actions, scope }
}

const fn delete<S>(actions: &'static [&'static str], scope: S) -> Grant<S> {
    Grant { operation: Operation::Delete, actions, scope }
}
