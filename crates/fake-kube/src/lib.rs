//! A Kubernetes API in memory, for the demo and for tests. It is test equipment: no product crate depends on it.

pub mod api;
mod fields;
pub mod json;
pub mod kinds;
pub mod store;

/// Who everybody is.
pub const USER: &str = "ada";
