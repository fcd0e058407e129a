//! The failures of requests to a cluster.

use function_paved_road::error::FieldError;

/// A request to a cluster failed, or could not be sent.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// A name, a kind, a kubeconfig or a flag is invalid.
    #[error("{0}")]
    Usage(String),
    /// The API server rejected fields of an object.
    #[error("{what} is rejected")]
    Refused {
        /// File, kind and name.
        what: String,
        /// All errors. The path is empty if the error is about the whole object.
        violations: Vec<FieldError>,
    },
    /// The environment does not exist.
    #[error("{0}")]
    Absent(String),
    /// The API server rejected a change.
    #[error("{what} is rejected: {message}")]
    Declined {
        /// The object of the change.
        what: String,
        /// The API server's message.
        message: String,
    },
    /// The cluster does not answer, or denies access.
    #[error("{message}; check {check}")]
    NoAccess {
        /// The cause.
        message: String,
        /// The flags or components to check.
        check: String,
    },
}
