//! `cargo xtask released`: the packages of an earlier release, to upgrade from.
//!
//! They are built once from the commit of the release, with the tasks of that commit, and kept
//! with the tools. The clone needs the commit.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Instant,
};

use anyhow::{Context, Result, bail, ensure};
use function_paved_road::manifests::REGISTRY;

use crate::{tools, workspace};

/// The first release.
pub const FIRST: Release =
    Release { version: "v0.1.0", commit: "697f142b3db87d2b10fa0a18aab5059df6cc1586" };

/// A release: its version and its commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Release {
    /// The tag of its packages.
    pub version: &'static str,
    commit: &'static str,
}

/// Builds the first release, unless it is built already, and prints its folder.
pub fn run() -> Result<()> {
    println!("{}", FIRST.folder()?.display());
    Ok(())
}

impl Release {
    /// The folder of a release, which is built if it does not exist. `sources` has the files of
    /// the commit. `packages` has the Function's package for this machine, and the Configurations.
    ///
    /// # Errors
    /// If the clone lacks the commit, or if a program of the build fails.
    pub fn folder(&self) -> Result<PathBuf> {
        let Self { version, commit } = self;
        let tools = tools::folder()?;
        let folder = tools.join(format!("released-{version}-{}", &commit[..8]));
        if !folder.is_dir() {
            println!("released {version}: building: minutes, the first time");
            let start = Instant::now();
            let aside = tempfile::Builder::new().prefix(".building-").tempdir_in(&tools)?;
            let built = aside.path().join("release");
            self.build(&built, &aside.path().join("target"))
                .with_context(|| format!("building {version} of commit {commit}"))?;
            match fs::rename(&built, &folder) {
                // Another process was faster.
                Err(_) if folder.is_dir() => {}
                done => done.with_context(|| format!("making {}", folder.display()))?,
            }
            println!("released {version}: {} s", start.elapsed().as_secs());
        }
        Ok(folder)
    }

    /// The packages have the debug program, because only this machine runs it.
    fn build(&self, folder: &Path, target: &Path) -> Result<()> {
        let (sources, packages) = (folder.join("sources"), folder.join("packages"));
        fs::create_dir_all(&sources)?;
        self.unpack(&sources)?;
        let programs = target.join("debug");
        let mut cargo = Command::new("cargo");
        cargo.args(["build", "--quiet", "--locked", "--workspace"]);
        cargo.args(["--bin=xtask", "--bin=function"]);
        cargo.current_dir(&sources).env("CARGO_TARGET_DIR", target);
        cargo.env("CARGO_INCREMENTAL", "0").env("CARGO_PROFILE_DEV_DEBUG", "0");
        // The commit names its own toolchain.
        cargo.env_remove("RUSTUP_TOOLCHAIN").env_remove("CARGO");
        succeed(&mut cargo)?;
        let mut xtask = Command::new(programs.join("xtask"));
        xtask.args(["package", "--debug", "function", "configurations", "--release"]);
        // The first release was never published, and each team chose a registry. An upgrade keeps
        // it: a Configuration depends on the Function of its own registry.
        xtask.args([self.version, "--registry", REGISTRY, "--output"]).arg(&packages);
        xtask.current_dir(&sources).env(workspace::PROGRAMS, &programs);
        succeed(xtask.env(tools::FOLDER, tools::folder()?))
    }

    /// Writes the files of the commit.
    fn unpack(&self, sources: &Path) -> Result<()> {
        let git = || {
            let mut git = Command::new("git");
            git.current_dir(workspace::root());
            git
        };
        let commit = format!("{}^{{commit}}", self.commit);
        let found = git().args(["cat-file", "-e", &commit]).stderr(Stdio::null()).status();
        if !found.context("starting git")?.success() {
            bail!("this clone does not have the commit. Run `git fetch --unshallow`");
        }
        let mut archive = git().args(["archive", self.commit]).stdout(Stdio::piped()).spawn()?;
        let output = archive.stdout.take().context("git has no output")?;
        tar::Archive::new(output).unpack(sources).context("unpacking the commit")?;
        let status = archive.wait()?;
        ensure!(status.success(), "git archive: {status}");
        Ok(())
    }
}

fn succeed(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("starting {command:?}"))?;
    ensure!(status.success(), "{command:?}: {status}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A package of today's source with the version of a release would replace that release.
    #[test]
    fn version_is_later_than_the_first_release() {
        let numbers = |version: &str| -> Vec<u64> {
            version
                .trim_start_matches('v')
                .split('.')
                .filter_map(|part| part.parse().ok())
                .collect()
        };
        assert!(numbers(env!("CARGO_PKG_VERSION")) > numbers(FIRST.version));
    }
}
