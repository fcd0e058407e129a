//! Offline rendering of environments: the function and a fake Crossplane, run on documents. This
//! crate neither reads files nor writes to a terminal.

use std::collections::BTreeMap;

pub mod composed;
pub mod function;
pub mod packages;
pub mod providers;
pub mod redact;
pub mod regions;
mod rejected;
pub mod subject;

pub use rejected::Rejected;
pub use simulator::core::{Rendered, rendered};

/// The text of numbers and other plain values in a file, by path, if JSON writes them differently.
pub type Written = BTreeMap<String, String>;
