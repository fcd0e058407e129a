//! The portal's pages, which npm builds.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::time::SystemTime;

use anyhow::{Context, Result, ensure};

use crate::{node, workspace};

/// The sources of the pages, in `web/`.
const SOURCES: [&str; 7] = [
    "index.html",
    "package-lock.json",
    "package.json",
    "public",
    "src",
    "tsconfig.json",
    "vite.config.ts",
];

/// Builds the pages, and installs the programs that test them in a browser.
pub fn run() -> Result<()> {
    build()?;
    node::install(&workspace::root().join("e2e/browser"))
}

/// Builds the pages into `web/dist` if their sources are newer. Other callers wait until this is
/// done.
pub fn build() -> Result<()> {
    build_in(workspace::root())
}

/// The same for the sources below another root.
pub fn build_in(root: &Path) -> Result<()> {
    let home = root.join("web");
    node::install(&home)?;
    let _lock = node::lock()?;
    // Written after a complete build, because an interrupted build also leaves files.
    let built = home.join("node_modules/.built");
    let is_built = home.join("dist/index.html").is_file();
    let since = fs::metadata(&built).and_then(|stamp| stamp.modified()).ok().filter(|_| is_built);
    if since.is_some_and(|since| newest(&home).is_ok_and(|newest| newest < since)) {
        return Ok(());
    }
    eprintln!("building the pages in {} …", home.display());
    let mut command = Command::new("npm");
    command.args(["run", "build"]).current_dir(&home);
    let done = command.output().context("starting npm")?;
    let said = [done.stdout, done.stderr].concat();
    ensure!(done.status.success(), "{command:?}: {}", String::from_utf8_lossy(&said));
    File::create(built).context("marking the pages as built").map(drop)
}

/// The time of the last change of a source.
fn newest(home: &Path) -> Result<SystemTime> {
    let mut newest = SystemTime::UNIX_EPOCH;
    let mut left: Vec<_> = SOURCES.iter().map(|source| home.join(source)).collect();
    while let Some(path) = left.pop() {
        let about = fs::metadata(&path).with_context(|| format!("reading {}", path.display()))?;
        newest = newest.max(about.modified()?);
        if about.is_dir() {
            for entry in fs::read_dir(&path)? {
                left.push(entry?.path());
            }
        }
    }
    Ok(newest)
}
