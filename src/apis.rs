//! One file per API.

pub mod gpu_workspace;
