//! The Function's package.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

use super::{
    Architecture, Args,
    crates::Graph,
    image::{Contents, Image},
    licenses, xpkg,
};
use crate::tools;

/// The crate of the program.
const CRATE: &str = "function-paved-road";

const DESCRIPTION: &str = "Crossplane composition function for self-service environments";

/// gRPC, and metrics.
const PORTS: [&str; 2] = ["9443/tcp", "8080/tcp"];

/// The folder with the package's manifest and the CRD of its input, and nothing else.
pub const ROOT: &str = "package/function";

/// Builds the package for one architecture, and returns its file.
pub fn package(args: &Args, architecture: Architecture, output: &Path) -> Result<PathBuf> {
    let binary = args.program(CRATE, "function", architecture)?;
    let binary = fs::read(&binary).with_context(|| format!("reading {}", binary.display()))?;
    pack(&binary, args, architecture, output)
}

/// Packs a program as the Function's package for one architecture, and returns its file.
pub fn pack(
    binary: &[u8],
    args: &Args,
    architecture: Architecture,
    output: &Path,
) -> Result<PathBuf> {
    let folder = tempfile::tempdir()?;
    let image = folder.path().join("image.tar");
    let licenses = licenses::text(args, &Graph::for_package(args.place.root(), CRATE)?)?;
    fs::write(&image, runtime(binary, &licenses, architecture, args)?.saved()?)?;
    let file = output.join(format!("function-paved-road-{}.xpkg", architecture.name()));
    let examples = folder.path().join("none");
    let crossplane = tools::path(&tools::CLI)?;
    let root = &args.place.root().join(ROOT);
    xpkg::Build { crossplane: &crossplane, root, examples: &examples, image: Some(&image) }
        .write(&file)?;
    Ok(file)
}

/// The Function writes no file and opens no connection. So its root can be read-only, and it needs
/// no certificates of authorities.
fn runtime(
    binary: &[u8],
    licenses: &str,
    architecture: Architecture,
    args: &Args,
) -> Result<Image> {
    let files = [("function", 0o755, binary), (licenses::IN_IMAGE, 0o644, licenses.as_bytes())];
    let contents = Contents {
        title: "function-paved-road",
        description: DESCRIPTION,
        files: &files,
        entry_point: &["/function"],
        ports: &PORTS,
    };
    Image::new(&contents, architecture, &args.release, args.effort())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::workspace;

    #[test]
    fn image_has_the_program_and_its_licences() {
        let image = runtime(b"binary", "texts", Architecture::Amd64, &Args::default()).unwrap();
        let layer = flate2::read::GzDecoder::new(&*image.layer);
        let mut archive = tar::Archive::new(layer);
        let paths = archive
            .entries()
            .unwrap()
            .map(|entry| entry.unwrap().path().unwrap().display().to_string());
        assert_eq!(paths.collect::<Vec<_>>(), ["function", licenses::IN_IMAGE]);
    }

    /// Otherwise `crossplane xpkg build --package-root` fails.
    #[test]
    fn folder_of_the_package_has_only_its_manifest_and_input() {
        let root = workspace::root().join(ROOT);
        let names = |folder: &Path| -> Vec<String> {
            let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
            let mut names: Vec<_> =
                entries.map(|name| name.to_string_lossy().into_owned()).collect();
            names.sort();
            names
        };
        assert_eq!(names(&root), ["crossplane.yaml", "input"]);
        assert_eq!(names(&root.join("input")), ["paved-road.fn.crossplane.io_settings.yaml"]);
    }

    #[test]
    fn dockerfile_has_the_toolchain_and_ports_of_the_package() {
        let read = |file: &str| fs::read_to_string(workspace::root().join(file)).unwrap();
        let (dockerfile, toolchain) = (read("Dockerfile"), read("rust-toolchain.toml"));
        let version = toolchain
            .lines()
            .find_map(|line| line.strip_prefix("channel = "))
            .unwrap()
            .trim_matches('"');
        assert!(dockerfile.contains(&format!("library/rust:{version}-alpine")), "{version}");
        assert!(dockerfile.contains(&format!("RUSTUP_TOOLCHAIN={version}\n")), "{version}");
        let ports = PORTS.map(|port| port.trim_end_matches("/tcp")).join(" ");
        assert!(dockerfile.contains(&format!("\nEXPOSE {ports}\n")), "{ports}");
    }
}
