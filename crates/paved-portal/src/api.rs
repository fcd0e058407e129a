//! `/api/v1`: a file for each resource.

mod budget;
pub(super) mod budgets;
pub(super) mod changes;
mod check;
mod composed;
mod composer;
pub(super) mod connection;
pub(super) mod environments;
pub(super) mod keys;
pub(super) mod kinds;
pub(super) mod lifecycle;
pub(super) mod me;
mod options;
pub(super) mod preview;
pub(super) mod watch;
pub(super) mod write;

pub(super) use composer::Composer;
