//! Environments as they change: one watch for each kind and process, which all readers share.

mod cause;
mod deleting;
mod known;
mod lifecycle;
mod reader;
mod store;
mod view;
mod watching;

pub(super) use deleting::follow as follow_deletions;
pub(super) use lifecycle::Price;
pub(super) use reader::{Feed, Next, Reader};
pub(super) use store::{Action, Change, Entry, Key, Live};
pub(super) use view::{Left, Part, View};
pub(super) use watching::follow;
