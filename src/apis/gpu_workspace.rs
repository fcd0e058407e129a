//! GPU workspaces.

pub mod cloud_init;
