//! Folders and programs of the workspace.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};

/// The variable with the folder of prebuilt programs.
pub const PROGRAMS: &str = "PAVED_ROAD_PROGRAMS";

/// The workspace's folder: this crate's parent.
pub fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here)
}

/// Cargo's target folder, or `CARGO_TARGET_DIR`.
pub fn target() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// A program of the workspace that was built together with this one, in the same folder.
pub fn built(program: &str) -> Result<PathBuf> {
    let own = env::current_exe().context("finding this program")?;
    let path = own.with_file_name(program);
    ensure!(
        path.is_file(),
        "{} does not exist. Run `cargo build --workspace --bins`",
        path.display()
    );
    Ok(path)
}

/// Builds binaries of the workspace with the optimizations of tests, and returns their folder. If
/// `PAVED_ROAD_PROGRAMS` names a folder, they are already there: CI builds them with its tests.
pub fn build(binaries: &[&str]) -> Result<PathBuf> {
    if let Some(folder) = env::var_os(PROGRAMS) {
        return Ok(folder.into());
    }
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["build", "--quiet", "--profile=test", "--workspace"]).current_dir(root());
    command.args(binaries.iter().flat_map(|binary| ["--bin", binary]));
    let status = command.status().context("starting cargo")?;
    ensure!(status.success(), "cargo build: {status}");
    Ok(target().join("debug"))
}
