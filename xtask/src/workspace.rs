//! Where things are.

use std::{
    env,
    path::{Path, PathBuf},
};

/// The workspace's folder: this crate's parent.
pub fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here)
}

/// Cargo's target folder, `CARGO_TARGET_DIR` respected.
pub fn target() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}
