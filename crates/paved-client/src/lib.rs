//! Environments in a cluster, for the command line, the portal and controllers. This crate does not
//! write to a terminal.

pub mod apply;
pub mod budget;
pub mod cluster;
pub mod connection;
pub mod delete;
pub mod environment;
mod failure;
pub mod git;
pub mod lifecycle;
pub mod names;
pub mod owner;
#[cfg(any(test, feature = "test-util"))]
pub mod samples;
pub mod wait;

pub use failure::Failure;
