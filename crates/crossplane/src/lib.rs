//! The crate without dependencies on other crates of the workspace: facts about Kubernetes and
//! Crossplane that several crates need, and helpers for JSON values.

pub mod api_version;
pub mod command;
pub mod conditions;
pub mod json;
pub mod names;
pub mod object;
pub mod releases;
mod scope;
pub mod secrets;
pub mod spec;
mod spelling;
pub mod status;
pub mod suggest;
pub mod text;

pub use scope::Scope;
pub use spelling::{nearest, similar};
