//! The artifacts that a release pushes to the registry.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};
use function_paved_road::{
    apis::{APIS, Flavour},
    manifests::FUNCTION,
};

use super::{Release, output};
use crate::{
    package::{Architecture, chart, names, portal},
    tools,
};

/// An artifact of the registry, and its files.
pub struct Artifact {
    /// The reference with its tag.
    reference: String,
    /// The SBOM, if the artifact has a program.
    sbom: Option<PathBuf>,
    content: Content,
}

/// An artifact in the registry.
pub struct Published {
    /// The reference with its tag.
    pub reference: String,
    /// The digest, with its algorithm: `sha256:…`.
    pub digest: String,
    /// The SBOM, if the artifact has a program.
    pub sbom: Option<PathBuf>,
}

enum Content {
    /// A package of Crossplane, with a file for each architecture.
    Package(Vec<PathBuf>),
    /// An OCI layout, as a tar file.
    Image(PathBuf),
    /// A chart, and its folder in the registry.
    Chart(PathBuf, String),
}

/// All artifacts of a release.
///
/// # Errors
/// A file is missing.
pub fn all(release: &Release<'_>) -> Result<Vec<Artifact>> {
    let Release { registry, version, folder } = release;
    let file = |name: &str| {
        let file = folder.join(name);
        ensure!(file.is_file(), "{} does not exist. Run `cargo xtask package`", file.display());
        Ok(file)
    };
    let sbom = |name: &str| file(&format!("{name}.cdx.json")).map(Some);
    let tagged = |repository: String| format!("{repository}:{version}");

    let architectures = [Architecture::Amd64, Architecture::Arm64];
    let function = architectures.map(|one| format!("{FUNCTION}-{}.xpkg", one.name()));
    let mut function: Vec<_> = function.iter().map(|name| folder.join(name)).collect();
    function.retain(|file| file.is_file());
    ensure!(!function.is_empty(), "{} has no {FUNCTION}", folder.display());

    let mut artifacts = vec![Artifact {
        reference: tagged(registry.function()),
        sbom: sbom(FUNCTION)?,
        content: Content::Package(function),
    }];
    for api in APIS {
        for flavour in Flavour::ALL {
            let name = names::configuration(*api, flavour);
            artifacts.push(Artifact {
                reference: tagged(registry.configuration(*api, flavour)),
                sbom: None,
                content: Content::Package(vec![file(&format!("{name}.xpkg"))?]),
            });
        }
    }
    for (repository, name) in
        [(registry.portal(), portal::NAME), (registry.demo(), portal::DEMO.name)]
    {
        artifacts.push(Artifact {
            reference: tagged(repository),
            sbom: sbom(name)?,
            content: Content::Image(file(&format!("{name}.oci.tar"))?),
        });
    }
    let number = chart::version(version);
    artifacts.push(Artifact {
        reference: format!("{}/{}:{number}", registry.charts(), chart::NAME),
        sbom: None,
        content: Content::Chart(file(&format!("{}-{number}.tgz", chart::NAME))?, registry.charts()),
    });
    Ok(artifacts)
}

/// The clients of the registry.
pub struct Clients {
    crane: PathBuf,
    crossplane: PathBuf,
    helm: PathBuf,
}

impl Clients {
    /// The clients, which are built if they do not exist.
    pub fn new() -> Result<Self> {
        Ok(Self {
            crane: tools::path(&tools::CRANE)?,
            crossplane: tools::path(&tools::CLI)?,
            helm: tools::path(&tools::HELM)?,
        })
    }

    /// Pushes an artifact.
    pub fn push(&self, artifact: Artifact) -> Result<Published> {
        let Artifact { reference, sbom, content } = artifact;
        match &content {
            Content::Package(files) => {
                let files: Vec<_> = files.iter().map(|file| file.display().to_string()).collect();
                let mut command = Command::new(&self.crossplane);
                command.args(["xpkg", "push", "--package-files", &files.join(","), &reference]);
                output(&mut command)?;
            }
            Content::Image(layout) => {
                let folder = tempfile::tempdir()?;
                let layout = fs::File::open(layout).context("opening an image")?;
                tar::Archive::new(layout).unpack(folder.path())?;
                self.crane(&["push", &folder.path().display().to_string(), &reference])?;
            }
            Content::Chart(file, folder) => self.push_chart(file, folder)?,
        }
        let digest = self.crane(&["digest", &reference])?.trim().to_owned();
        Ok(Published { reference, digest, sbom })
    }

    fn push_chart(&self, file: &Path, folder: &str) -> Result<()> {
        let mut helm = Command::new(&self.helm);
        helm.arg("push").arg(file).arg(format!("oci://{folder}"));
        // Helm speaks TLS even to loopback.
        if folder.starts_with("127.0.0.1:") {
            helm.arg("--plain-http");
        }
        output(&mut helm).map(drop)
    }

    /// Runs crane.
    pub fn crane(&self, args: &[&str]) -> Result<String> {
        output(Command::new(&self.crane).args(args))
    }
}
