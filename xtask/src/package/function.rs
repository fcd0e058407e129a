//! The Function's package.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

use super::{
    Architecture, Args,
    image::{Contents, Image},
    xpkg,
};
use crate::{tools, workspace};

const DESCRIPTION: &str = "Crossplane composition function: self-service environments from small claims";

/// gRPC, and metrics.
const PORTS: [&str; 2] = ["9443/tcp", "8080/tcp"];

/// What lies beside the package's own files in `package/`, for people.
pub const NOT_PACKAGED: [&str; 3] = ["observability/*", "rbac/*", "runtime-config.yaml"];

/// Builds the package for one architecture; gives its file.
pub fn package(args: &Args, architecture: Architecture, output: &Path) -> Result<PathBuf> {
    let binary = binary(args, architecture)?;
    let binary = fs::read(&binary).with_context(|| format!("reading {}", binary.display()))?;
    pack(&binary, args, architecture, output)
}

/// Packs a program as the Function's package for one architecture; gives its file.
pub fn pack(binary: &[u8], args: &Args, architecture: Architecture, output: &Path) -> Result<PathBuf> {
    let folder = tempfile::tempdir()?;
    let image = folder.path().join("image.tar");
    fs::write(&image, runtime(binary, architecture, args)?.saved()?)?;
    let file = output.join(format!("function-paved-road-{}.xpkg", architecture.name()));
    let examples = folder.path().join("none");
    let crossplane = tools::path(&tools::CLI)?;
    let root = &args.place.root().join("package");
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

/// It writes no file and opens no connection: a root that is read-only will do, and there are no certificates of authorities in it.
fn runtime(binary: &[u8], architecture: Architecture, args: &Args) -> Result<Image> {
    let files = [("function", 0o755, binary)];
    let contents = Contents {
        title: "function-paved-road",
        description: DESCRIPTION,
        files: &files,
        entry_point: &["/function"],
        ports: &PORTS,
    };
    Image::of(&contents, architecture, &args.release, args.effort())
}

fn binary(args: &Args, architecture: Architecture) -> Result<PathBuf> {
    if args.debug {
        return Ok(workspace::build(&["function"])?.join("function"));
    }
    args.place.static_binary("function-paved-road", "function", architecture)
}
