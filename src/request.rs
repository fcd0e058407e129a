//! The messages of Crossplane: reads a request, and writes the response to it.

mod ask;
mod read;
mod respond;

pub use ask::{SETTINGS_AT_FIRST, SETTINGS_REQUIREMENT};
pub use read::Request;
pub use respond::Response;
