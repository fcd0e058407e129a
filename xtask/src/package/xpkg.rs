//! Packages as Crossplane's own command line builds them.

use std::{path::Path, process::Command};

use anyhow::{Context, Result, ensure};

/// What a package is built from, and with.
pub struct Build<'a> {
    /// Crossplane's command line.
    pub crossplane: &'a Path,
    /// The folder with `crossplane.yaml` and the objects beside it.
    pub root: &'a Path,
    /// Files in there that are not part of the package: paths, `*` allowed.
    pub ignore: &'a [&'a str],
    /// A folder of examples; it need not be there.
    pub examples: &'a Path,
    /// A runtime image in docker-save form.
    pub image: Option<&'a Path>,
}

impl Build<'_> {
    /// Builds the package. The command line adds neither times nor names of its own: the same input
    /// gives the same file.
    pub fn write(&self, file: &Path) -> Result<()> {
        let mut command = Command::new(self.crossplane);
        command.args(["xpkg", "build"]).arg("--package-root").arg(self.root);
        command.arg("--examples-root").arg(self.examples).arg("--package-file").arg(file);
        if !self.ignore.is_empty() {
            command.arg("--ignore").arg(self.ignore.join(","));
        }
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
