//! The failures of the portal as a program.

use std::io;

/// The portal cannot start, or stops.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// A flag or a file is invalid.
    #[error("{0}")]
    Usage(String),
    /// The cluster does not answer, or denies access.
    #[error(transparent)]
    Cluster(#[from] paved_client::Failure),
    /// The listener fails.
    #[error(transparent)]
    Listener(#[from] io::Error),
}
