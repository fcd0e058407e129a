//! Environments in a cluster, for the command line, the portal and controllers. This crate does not
//! write to a terminal.
//!
//! Without the feature `cluster`, it has only the modules that read an environment from an object,
//! and no Kubernetes client among its dependencies.

#[cfg(feature = "cluster")]
pub mod action;
#[cfg(feature = "cluster")]
pub mod apply;
#[cfg(feature = "cluster")]
pub mod budget;
#[cfg(feature = "cluster")]
pub mod cluster;
pub mod connection;
#[cfg(feature = "cluster")]
pub mod delete;
pub mod environment;
#[cfg(feature = "cluster")]
mod failure;
#[cfg(feature = "cluster")]
pub mod git;
#[cfg(feature = "cluster")]
pub mod lifecycle;
pub mod names;
#[cfg(feature = "cluster")]
pub mod owner;
pub mod restart;
#[cfg(all(feature = "cluster", any(test, feature = "test-util")))]
pub mod samples;
#[cfg(feature = "cluster")]
pub mod wait;

#[cfg(feature = "cluster")]
pub use failure::Failure;
