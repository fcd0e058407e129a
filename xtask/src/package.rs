//! `cargo xtask package`: builds the release without a container engine.
//!
//! The same sources give the same bytes in every folder, because no file has a time, a path or a
//! random number.

pub mod activation;
pub mod archive;
pub mod build;
pub mod chart;
mod component;
pub mod configuration;
mod crates;
pub mod function;
pub mod image;
pub mod index;
mod licenses;
pub mod names;
mod npm;
pub mod portal;
pub mod rbac;
#[cfg(test)]
mod runtime;
pub mod sbom;
pub mod sums;
pub mod xpkg;

use std::{
    fs,
    path::{Path, PathBuf},
    time::Instant,
};

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use function_paved_road::apis::Flavour;
use function_paved_road::manifests::policy;

use crate::{eol, workspace};
use build::Place;
use crates::Graph;
pub use names::Registry;

/// Flags of `cargo xtask package`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Parts to build [default: all parts].
    #[arg(value_enum)]
    pub parts: Vec<Part>,
    /// Architecture to build for. Repeatable [default: both].
    #[arg(long = "arch", value_enum)]
    pub architectures: Vec<Architecture>,
    /// Registry of the packages, for the references in the Configurations and in the chart.
    #[arg(long, default_value = Registry::DEFAULT)]
    pub registry: Registry,
    /// Version to tag the packages with.
    #[arg(long, default_value = concat!("v", env!("CARGO_PKG_VERSION")), value_parser = names::release)]
    pub release: String,
    /// Flavour of the Configurations [default: both].
    #[arg(long)]
    pub flavour: Option<Flavour>,
    /// API group of your company, for example platform.example.org.
    #[arg(long, requires = "flavour", value_parser = function_paved_road::manifests::group)]
    pub group: Option<String>,
    /// User of Crossplane, for the admission policies of your company's group.
    #[arg(long, value_name = "USER", requires = "group", default_value = policy::CROSSPLANE, value_parser = policy::user)]
    pub crossplane_user: String,
    /// Pack this machine's debug binary. This is quick, and for tests that do not run the package.
    #[arg(long)]
    pub debug: bool,
    /// Build again from a copy of the sources and compare all files. This takes minutes longer.
    #[arg(long)]
    pub twice: bool,
    /// Folder to write to. Earlier packages there are deleted [default: target/packages].
    #[arg(long, value_name = "FOLDER")]
    pub output: Option<PathBuf>,
    /// The sources of all builds, except debug binaries.
    #[arg(skip = Place::here())]
    pub place: Place,
}

const EXAMPLES: &str = "\
Examples:
  cargo xtask package                                  build all parts for both architectures
  cargo xtask package function --arch amd64            build the Function's package for one
  cargo xtask package configurations --registry ghcr.io/acme --flavour namespaced --group platform.example.org \\
    --output target/packages/ours";

/// A part of the release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// The Function: one package for each architecture.
    Function,
    /// The APIs: one Configuration for each API and flavour.
    Configurations,
    /// The command line: one archive for each architecture, and the script that installs it.
    Paved,
    /// The chart of the platform.
    Chart,
    /// The portal: one image for all architectures, and its SBOM.
    Portal,
    /// The demo: one image for all architectures, and its SBOM.
    Demo,
    /// The SBOMs of the two programs.
    Sbom,
}

/// A processor architecture, with its name in OCI.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Architecture {
    /// x86_64
    Amd64,
    /// aarch64
    Arm64,
}

/// Builds the parts and prints one line for each file.
pub fn run(args: &Args) -> Result<()> {
    let start = Instant::now();
    if !args.debug {
        eol::warn()?;
    }
    let output = args.output()?;
    sums::forget(&output)?;
    let built = build(args, &output)?;
    let sums = sums::write(&output, &built)?;
    print!("{sums}");
    println!("{:.1} s, in {}", start.elapsed().as_secs_f64(), output.display());
    if args.twice { again(args, &built) } else { Ok(()) }
}

/// Builds the chosen parts and returns their files. Parts that need the fewest programs are first,
/// and only the last parts need Node.js.
fn build(args: &Args, output: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    if args.wants(Part::Configurations) {
        files.extend(configuration::packages(args, output)?);
    }
    if args.wants(Part::Chart) {
        files.push(chart::write(args, output)?);
    }
    if args.wants(Part::Sbom) {
        for package in ["function-paved-road", "paved"] {
            let root = args.place.root();
            files.push(sbom::write(root, &Graph::for_package(root, package)?, output)?);
        }
    }
    if args.wants(Part::Function) {
        for architecture in args.architectures() {
            files.push(function::package(args, architecture, output)?);
        }
    }
    if args.wants(Part::Paved) {
        for architecture in args.architectures() {
            files.push(archive::write(args, architecture, output)?);
        }
        files.push(archive::installer(args, output)?);
    }
    if args.wants(Part::Portal) {
        files.extend(portal::PORTAL.write(args, output)?);
    }
    if args.wants(Part::Demo) {
        files.extend(portal::DEMO.write(args, output)?);
    }
    Ok(files)
}

/// Builds all parts again in another folder, and fails if a file differs.
fn again(args: &Args, built: &[PathBuf]) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let second = folder.path().join("packages");
    fs::create_dir(&second)?;
    let again = build(&Args { place: Place::copy(folder.path())?, ..args.clone() }, &second)?;
    let differing = sums::differing(built, &again)?;
    ensure!(differing.is_empty(), "two builds differ: {}", differing.join(", "));
    println!("two builds are identical");
    Ok(())
}

impl Default for Args {
    /// The defaults of the flags.
    fn default() -> Self {
        Self {
            parts: Vec::new(),
            architectures: Vec::new(),
            registry: Registry::default(),
            release: concat!("v", env!("CARGO_PKG_VERSION")).to_owned(),
            flavour: None,
            group: None,
            crossplane_user: policy::CROSSPLANE.to_owned(),
            debug: false,
            twice: false,
            output: None,
            place: Place::here(),
        }
    }
}

impl Args {
    fn wants(&self, part: Part) -> bool {
        self.parts.is_empty() || self.parts.contains(&part)
    }

    /// A program of one of our crates: static, or this machine's debug binary.
    fn program(&self, krate: &str, name: &str, architecture: Architecture) -> Result<PathBuf> {
        if self.debug {
            return Ok(workspace::build(&[name])?.join(name));
        }
        self.place.static_binary(krate, name, architecture)
    }

    /// The compression effort.
    fn effort(&self) -> image::Effort {
        if self.debug { image::Effort::Quick } else { image::Effort::Best }
    }

    /// The chosen architectures.
    pub fn architectures(&self) -> Vec<Architecture> {
        match (self.debug, self.architectures.as_slice()) {
            (true, _) => vec![Architecture::host()],
            (_, []) => vec![Architecture::Amd64, Architecture::Arm64],
            (_, some) => some.to_vec(),
        }
    }

    /// The chosen flavours.
    pub fn flavours(&self) -> Vec<Flavour> {
        self.flavour.map_or_else(|| Flavour::ALL.to_vec(), |flavour| vec![flavour])
    }

    /// The output folder, which is created if it does not exist.
    pub fn output(&self) -> Result<PathBuf> {
        let folder = self.output.clone().unwrap_or_else(|| workspace::target().join("packages"));
        fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
        folder.canonicalize().with_context(|| format!("finding {}", folder.display()))
    }
}

impl Architecture {
    /// The name in OCI.
    pub fn name(self) -> &'static str {
        match self {
            Self::Amd64 => "amd64",
            Self::Arm64 => "arm64",
        }
    }

    /// Rust's target with a static libc.
    pub fn target(self) -> &'static str {
        match self {
            Self::Amd64 => "x86_64-unknown-linux-musl",
            Self::Arm64 => "aarch64-unknown-linux-musl",
        }
    }

    /// The architecture of this machine.
    pub fn host() -> Self {
        if cfg!(target_arch = "aarch64") { Self::Arm64 } else { Self::Amd64 }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::io::Read;

    use function_paved_road::apis::APIS;
    use serde_json::json;

    use super::*;

    /// Otherwise `--twice` would compare files of the same folder.
    #[test]
    fn packed_files_come_from_the_sources_of_the_build() {
        let folder = tempfile::tempdir().unwrap();
        let args = Args { place: Place::copy(folder.path()).unwrap(), ..Args::default() };
        for (file, from, to) in [
            ("package/function/crossplane.yaml", "The Paved Road maintainers", "elsewhere"),
            ("examples/gpu-workspace/claim.yaml", "team-vision", "elsewhere"),
            ("deploy/chart/values.yaml", "Origin of the portal in browsers", "elsewhere"),
            ("web/package-lock.json", "\"license\": \"MIT\"", "\"license\": \"elsewhere\""),
        ] {
            let file = args.place.root().join(file);
            let text = fs::read_to_string(&file).unwrap();
            assert!(text.contains(from), "{} lacks {from}", file.display());
            fs::write(file, text.replace(from, to)).unwrap();
        }
        let contents = configuration::Contents::new(&args, APIS[0], Flavour::Claims).unwrap();
        let chart = fs::File::open(chart::write(&args, folder.path()).unwrap()).unwrap();
        let mut files = Vec::new();
        flate2::read::GzDecoder::new(chart).read_to_end(&mut files).unwrap();
        let root = args.place.root();
        let bill =
            sbom::write(root, &Graph::for_package(root, "paved").unwrap(), folder.path()).unwrap();
        for (what, text) in [
            ("a Configuration's manifest", contents.meta.to_string()),
            ("a Configuration's example", json!(contents.examples).to_string()),
            ("the chart", String::from_utf8_lossy(&files).into_owned()),
            ("a bill", fs::read_to_string(bill).unwrap()),
        ] {
            assert!(text.contains("elsewhere"), "{what}");
        }
    }
}
