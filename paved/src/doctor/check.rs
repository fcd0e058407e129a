//! The result of one check.

use crate::style::{Leaf, Mark};

/// One line of the output.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Check {
    pub(super) mark: Mark,
    pub(super) what: String,
    pub(super) found: String,
}

impl Check {
    pub(super) fn good(what: impl Into<String>, found: impl Into<String>) -> Self {
        Self { mark: Mark::Good, what: what.into(), found: found.into() }
    }

    pub(super) fn bad(what: impl Into<String>, found: impl AsRef<str>, helps: &str) -> Self {
        Self { mark: Mark::Bad, what: what.into(), found: format!("{}; {helps}", found.as_ref()) }
    }

    /// A check that is neither good nor bad, because the object is not visible or not required.
    pub(super) fn open(what: impl Into<String>, found: impl Into<String>) -> Self {
        Self { mark: Mark::Busy, what: what.into(), found: found.into() }
    }

    pub(super) fn leaf(&self) -> Leaf {
        Leaf { mark: self.mark, cells: vec![self.what.clone()], note: self.found.clone() }
    }
}
