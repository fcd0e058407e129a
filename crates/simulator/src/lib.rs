//! Simulates the environment of a composition function, offline: Crossplane ([`core`]) and the
//! providers ([`provider`]). The crate `k8s-schema` has the API server's checks.
//!
//! It does not know the function's APIs. [`core`] behaves like Crossplane 2.3.4, and its output
//! matches `composition render` of the command line 2.5.0.

pub mod core;
pub mod provider;
