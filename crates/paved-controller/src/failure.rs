//! The failures of the controller as a program.

/// The controller cannot start.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// A flag or a file is invalid.
    #[error("{0}")]
    Usage(String),
    /// The cluster does not answer, or denies access.
    #[error(transparent)]
    Cluster(#[from] paved_client::Failure),
}
