//! The failure of a rendering.

/// The function rejects an environment.
#[derive(Debug, thiserror::Error)]
#[error("{what}: {message}")]
pub struct Rejected {
    /// The file, kind and name.
    pub what: String,
    /// The message of the function or of Crossplane.
    pub message: String,
    /// Warnings of the function. They may describe the cause.
    pub warnings: Vec<String>,
}
