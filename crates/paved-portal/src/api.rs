//! `/api/v1`: a file for each resource.

pub(super) mod changes;
pub(super) mod connection;
pub(super) mod environments;
pub(super) mod keys;
pub(super) mod kinds;
pub(super) mod lifecycle;
pub(super) mod me;
pub(super) mod preview;
pub(super) mod watch;
pub(super) mod write;

pub(super) use preview::Preview;
