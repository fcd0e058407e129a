//! Paved Road: a Crossplane composition function that turns small claims into well-made
//! environments.
//!
//! | module | what it holds |
//! |---|---|
//! | [`function`] | `RunFunction`: from a request to a response |
//! | [`apis`] | one file per API, and the list of them |
//! | [`compose`] | the engine: the verbs an API uses; it knows no API |
//! | [`lifecycle`] | when an environment ends, and whether it runs |
//! | [`pricing`] | what an environment costs |
//! | [`diagnosis`] | why something is not ready, and what to do about it |
//! | [`reason`] | the reasons of conditions, resources and events |
//! | [`models`] | managed resources, cut to the fields we set and read |
//! | [`catalog`] | facts as data: machine types, prices, releases |
//! | [`settings`] | what the platform team decides |
//! | [`check`] | checks of what users write |
//! | [`server`] | gRPC with mTLS, health and metrics; the only asynchronous code |
//! | [`wire`] | responses as bytes, always in the same order |
//! | [`manifests`] | XRDs, Compositions and documents, from the types |

pub mod apis;
pub mod catalog;
pub mod check;
pub mod compose;
pub mod diagnosis;
pub mod error;
pub mod function;
pub mod lifecycle;
pub mod manifests;
mod metrics;
pub mod models;
mod outcome;
pub mod pricing;
pub mod reason;
pub mod server;
pub mod settings;
pub mod value;
pub mod wire;
