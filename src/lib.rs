//! Paved Road: a Crossplane composition function that turns small claims into well-made
//! environments.
//!
//! | module | content |
//! |---|---|
//! | [`function`] | `RunFunction`: turns a request into a response |
//! | [`request`] | Crossplane's messages: reads the request, writes the response |
//! | [`apis`] | one file per API, and the list of them |
//! | [`observe`] | the observation of an environment: the data that Crossplane sent |
//! | [`plan`] | the plan of a call: the end of an environment, and whether it runs |
//! | [`compose`] | the operations that all APIs share. It depends on no API |
//! | [`power`] | stops and starts the composed resources |
//! | [`status`] | the answer: status, conditions and events |
//! | [`lifecycle`] | the end and the power state of environments |
//! | [`pricing`] | the estimated price of environments |
//! | [`diagnosis`] | causes of resources that are not ready, and remediations |
//! | [`reason`] | the reasons of conditions, resources and events |
//! | [`fingerprint`] | hashes of texts |
//! | [`models`] | managed resources, cut to the fields we set and read |
//! | [`offers`] | the values of fields that users can choose |
//! | [`catalog`] | facts as data: machine types, prices, releases |
//! | [`settings`] | the configuration of the platform team |
//! | [`check`] | checks of fields that users write |
//! | `server` | gRPC with mTLS, health and metrics. The only asynchronous code |
//! | `wire` | responses as bytes, always in the same order |
//! | [`manifests`] | XRDs, Compositions and documents, generated from the types |
//!
//! The feature `server` has the modules `server` and `wire`, and the program `function`. Without
//! it, the crate only composes, and has no TLS library among its dependencies.

pub mod apis;
pub mod catalog;
pub mod check;
pub mod compose;
pub mod diagnosis;
pub mod error;
pub mod fingerprint;
pub mod function;
pub mod lifecycle;
pub mod manifests;
#[cfg(feature = "server")]
mod metrics;
pub mod models;
pub mod observe;
pub mod offers;
#[cfg(feature = "server")]
mod outcome;
pub mod patterns;
pub mod plan;
pub mod power;
pub mod pricing;
pub mod reason;
pub mod request;
#[cfg(feature = "server")]
pub mod server;
pub mod settings;
pub mod status;
pub mod value;
#[cfg(feature = "server")]
pub mod wire;
