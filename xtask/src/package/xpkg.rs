//! Packages, built by Crossplane's own command line.

use std::{path::Path, process::Command};

use anyhow::{Context, Result, ensure};

/// The input of a package, and the program that builds it.
pub struct Build<'a> {
    /// Crossplane's command line.
    pub crossplane: &'a Path,
    /// The folder with `crossplane.yaml` and the objects beside it.
    pub root: &'a Path,
    /// A folder of examples, which may be missing.
    pub examples: &'a Path,
    /// A runtime image in docker-save form.
    pub image: Option<&'a Path>,
}

impl Build<'_> {
    /// Builds the package. The command line adds no times and no names, so the same input gives the
    /// same file.
    pub fn write(&self, file: &Path) -> Result<()> {
        let mut command = Command::new(self.crossplane);
        command.args(["xpkg", "build"]).arg("--package-root").arg(self.root);
        command.arg("--examples-root").arg(self.examples).arg("--package-file").arg(file);
        if let Some(image) = self.image {
            command.arg("--embed-runtime-image-tarball").arg(image);
        }
        let answer = command.output().context("starting crossplane")?;
        let complaint = String::from_utf8_lossy(&answer.stderr);
        ensure!(
            answer.status.success(),
            "crossplane xpkg build {}: {}",
            file.display(),
            complaint.trim()
        );
        Ok(())
    }
}
