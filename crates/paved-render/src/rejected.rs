//! The failure of a rendering.

/// The function composes nothing of an environment.
#[derive(Debug, thiserror::Error)]
#[error("{what}: {message}")]
pub struct Rejected {
    /// File, kind and name.
    pub what: String,
    /// The message of the function or of Crossplane.
    pub message: String,
    /// Warnings of the function, which may name the cause.
    pub warnings: Vec<String>,
}
