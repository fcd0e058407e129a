//! Simulates the surroundings of a composition function, offline: Crossplane's part ([`core`]) and
//! the providers' answers ([`provider`]). The crate `k8s-schema` has the API server's checks.
//!
//! It does not know the function's APIs. [`core`] does what Crossplane 2.3.4 does, and prints what
//! `composition render` of the command line 2.5.0 prints.

pub mod core;
pub mod provider;
