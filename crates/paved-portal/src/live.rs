//! Environments as they change: one watch for each kind and process, which all readers share.

mod cause;
mod deletion;
mod lifecycle;
mod reader;
mod resume_token;
mod store;
mod view;
mod watches;

pub(super) use deletion::follow as follow_deletions;
pub(super) use lifecycle::Price;
pub(super) use reader::{Feed, Next, Reader};
pub(super) use store::{Action, Change, Entry, Key, Live};
pub(super) use view::{DeletionProgress, Part, View};
pub(super) use watches::follow;
