//! `cargo xtask opencv`: compares the table of OpenCV releases with PyPI.
//!
//! The newest Python of a release is the last one with wheels of both the release and its NumPy.
//! pip finds this out, also for another Python than its own, without an installation.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use function_paved_road::catalog::opencv::{RELEASES, Release, requirement};

use crate::workspace;

/// The newest Python of machine images. Releases without a limit work with it.
const NEWEST: &str = "3.14";

/// The platforms of the wheels, oldest first.
const PLATFORMS: [&str; 4] = [
    "manylinux2014_x86_64",
    "manylinux_2_17_x86_64",
    "manylinux_2_27_x86_64",
    "manylinux_2_28_x86_64",
];

/// Compares every release with PyPI, and fails for releases with a wrong limit.
pub fn run() -> Result<()> {
    let mut wrong = Vec::new();
    for release in RELEASES {
        let newest = release.newest_python.unwrap_or(NEWEST);
        let next = release.newest_python.map(next).transpose()?;
        let works = installs(release, newest)?;
        let works_later = next.as_deref().map_or(Ok(false), |next| installs(release, next))?;
        println!("{} for Python {newest}: {works}", release.version);
        if !works {
            wrong.push(format!("{} cannot be installed for Python {newest}", release.version));
        }
        if works_later {
            let next = next.unwrap_or_default();
            wrong.push(format!("{} can be installed for Python {next}, too", release.version));
        }
    }
    ensure!(wrong.is_empty(), "src/catalog/opencv.rs: {}", wrong.join("; "));
    Ok(())
}

/// Whether pip finds wheels of a release and of its NumPy for a version of Python.
fn installs(release: &Release, python: &str) -> Result<bool> {
    let asked = requirement(release.version).map_err(anyhow::Error::msg)?;
    let mut command = Command::new("python3");
    command.args([
        "-m",
        "pip",
        "install",
        "--dry-run",
        "--quiet",
        "--ignore-installed",
        "--no-deps",
    ]);
    command.args(["--only-binary", ":all:", "--implementation", "cp", "--python-version", python]);
    command.args(PLATFORMS.iter().flat_map(|platform| ["--platform", platform]));
    command
        .arg("--target")
        .arg(workspace::target().join("tmp/opencv"))
        .arg(&asked.opencv)
        .arg(asked.numpy);
    let done = command.output().context("could not run pip. Install Python 3")?;
    let words = String::from_utf8_lossy(&done.stderr);
    let missing = words.contains("No matching distribution found");
    ensure!(done.status.success() || missing, "pip, for {}: {words}", release.version);
    Ok(done.status.success())
}

/// The next version of Python: `3.13` after `3.12`.
fn next(python: &str) -> Result<String> {
    let minor = python.strip_prefix("3.").and_then(|minor| minor.parse::<u32>().ok());
    Ok(format!(
        "3.{}",
        minor.with_context(|| format!("{python} is not a version of Python 3"))? + 1
    ))
}
