//! Paved Road: a Crossplane composition function that turns small claims into well-made environments.

pub mod function;
mod metrics;
pub mod models;
pub mod server;
pub mod wire;
