//! Paved Road: a Crossplane composition function that turns small claims into well-made environments.

pub mod apis;
pub mod catalog;
pub mod check;
pub mod function;
pub mod models;
