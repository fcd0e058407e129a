//! Controllers on a cluster in memory.
#![allow(clippy::unwrap_used, clippy::missing_panics_doc)]

mod budgets;
mod expiry;
mod health;
mod namespaces;
mod notifications;
mod replicas;
mod usages;
mod world;
