//! Paved Road: a Crossplane composition function that turns small claims into well-made environments.

pub mod function;
pub mod models;
pub mod wire;
