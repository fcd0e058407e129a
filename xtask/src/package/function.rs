//! The Function's package.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

use super::{Architecture, Args, build::Place, image, xpkg};
use crate::{tools, workspace};

/// What lies beside the package's own files in `package/`, for people.
pub const NOT_PACKAGED: [&str; 3] = ["observability/*", "rbac/*", "runtime-config.yaml"];

/// Builds the package for one architecture; gives its file.
pub fn package(args: &Args, architecture: Architecture, place: &Place, output: &Path) -> Result<PathBuf> {
    let binary = binary(args, architecture, place)?;
    let binary = fs::read(&binary).with_context(|| format!("reading {}", binary.display()))?;
    let folder = tempfile::tempdir()?;
    let image = folder.path().join("image.tar");
    let effort = if args.debug { image::Effort::Quick } else { image::Effort::Best };
    fs::write(&image, image::of(&binary, architecture, &args.release, effort)?)?;
    let file = output.join(format!("function-paved-road-{}.xpkg", architecture.name()));
    let examples = folder.path().join("none");
    let crossplane = tools::path(&tools::CLI)?;
    let root = &workspace::root().join("package");
    xpkg::Build {
        crossplane: &crossplane,
        root,
        ignore: &NOT_PACKAGED,
        examples: &examples,
        image: Some(&image),
    }
    .write(&file)?;
    Ok(file)
}

fn binary(args: &Args, architecture: Architecture, place: &Place) -> Result<PathBuf> {
    if args.debug {
        return Ok(workspace::build(&["function"])?.join("function"));
    }
    place.static_binary("function-paved-road", "function", architecture)
}
