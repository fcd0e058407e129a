//! Offline rendering of environments: the function and a fake Crossplane, run on documents. This
//! crate reads no files and writes nothing to a terminal.

use std::collections::BTreeMap;

pub mod composed;
pub mod function;
pub mod providers;
pub mod redact;
mod rejected;
pub mod subject;

pub use rejected::Rejected;
pub use simulator::core::{Rendered, rendered};

/// How numbers and other plain values are written in a file, by path, where JSON writes them
/// differently.
pub type Written = BTreeMap<String, String>;
