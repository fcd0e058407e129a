//! A release to a registry on this machine, its documented verification, and attacks on it.

use std::{
    env, fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use anyhow::{Context, Result, ensure};
use function_paved_road::manifests::FUNCTION;

use super::{
    Release,
    artifact::{Clients, Published},
    cosign::Cosign,
    provenance,
    verification::Verification,
};
use crate::{
    package::{Registry, archive, chart, portal, sums},
    server::Server,
    tools,
};

/// Parts of the error messages of cosign and sha256sum.
const FOREIGN_SIGNATURE: &str = "no matching ";
const FOREIGN_BUNDLE: &str = "failed to verify signature";
const OTHER_DIGEST: &str = "did NOT match";

/// Publishes packages, verifies them, and changes one of each kind.
///
/// # Errors
/// The documented verification fails for the packages, or succeeds for a changed one.
pub fn run(packages: &Path, version: &str) -> Result<()> {
    let scratch = tempfile::tempdir()?;
    let folder = scratch.path().join("files");
    let files = link_files(packages, &folder)?;
    let provenance = provenance::write(scratch.path())?;
    let server = Server::start(&tools::path(&tools::CRANE)?, &["registry", "serve"])?;
    let registry = format!("{}/paved-road", server.address()).parse::<Registry>();
    let registry = registry.map_err(anyhow::Error::msg)?;
    let release = Release { registry: &registry, version, folder: &folder };
    let cosign = Cosign::with_new_key(scratch.path(), "ours")?;
    let clients = Clients::new()?;
    let published =
        release.publish(&cosign, &clients, &provenance).with_context(|| server.last_words())?;
    let verification = Verification::new(&release, &scratch.path().join("ours.pub"))?;
    verification.accepts()?;
    println!("the documented verification accepts the release");
    let installation = Installation {
        folder: &folder,
        key: scratch.path().join("ours.pub"),
        prefix: scratch.path().join("prefix"),
    };
    installation.succeeds()?;
    println!("install.sh installs the release");

    let attack = Attack {
        stranger: Cosign::with_new_key(scratch.path(), "stranger")?,
        clients,
        verification,
        provenance,
    };
    let names = [
        format!("{FUNCTION}:"),
        "configuration-".to_owned(),
        format!("{}:", portal::NAME),
        format!("{}:", portal::DEMO.name),
        format!("charts/{}:", chart::NAME),
    ];
    for name in &names {
        attack.change_artifact(name, &registry, &published)?;
    }
    let archive = release.archives()?.into_iter().next().context("no archive")?;
    attack.change_archive(&archive, &files)?;
    installation.fails("wrong signature of SHA256SUMS")?;
    println!("rejected: an installation with other digests");
    Ok(())
}

/// An installation by the release's script, with the release's key.
struct Installation<'a> {
    /// The folder of the release.
    folder: &'a Path,
    key: PathBuf,
    prefix: PathBuf,
}

impl Installation<'_> {
    fn succeeds(&self) -> Result<()> {
        let output = self.run()?;
        let text = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success() && self.prefix.join("bin/paved").is_file(), "{text}");
        Ok(())
    }

    fn fails(&self, error: &str) -> Result<()> {
        let output = self.run()?;
        let text = String::from_utf8_lossy(&output.stderr);
        ensure!(!output.status.success() && text.contains(error), "expected {error:?}: {text}");
        Ok(())
    }

    fn run(&self) -> Result<Output> {
        tools::link(&tools::COSIGN)?;
        let path = env::var_os("PATH").unwrap_or_default();
        let path = env::join_paths([tools::folder()?].into_iter().chain(env::split_paths(&path)))?;
        let mut shell = Command::new("sh");
        shell.arg(self.folder.join(archive::INSTALLER)).arg(self.folder);
        shell.arg("--key").arg(&self.key).arg("--prefix").arg(&self.prefix).env("PATH", path);
        shell.output().context("starting install.sh")
    }
}

/// Links the files of a folder into another one, so that an attack can replace them.
fn link_files(from: &Path, to: &Path) -> Result<Vec<PathBuf>> {
    fs::create_dir(to)?;
    let mut files = Vec::new();
    for entry in fs::read_dir(from).with_context(|| format!("reading {}", from.display()))? {
        let entry = entry?;
        let link = to.join(entry.file_name());
        symlink(entry.path(), &link)?;
        files.push(link);
    }
    Ok(files)
}

/// An attacker with write access to the registry and to the downloads, and with another key.
struct Attack {
    stranger: Cosign,
    clients: Clients,
    verification: Verification,
    provenance: PathBuf,
}

impl Attack {
    /// Replaces the first artifact with this name by a changed one, which the stranger endorses.
    /// Restores the artifact afterwards.
    fn change_artifact(
        &self,
        name: &str,
        registry: &Registry,
        published: &[Published],
    ) -> Result<()> {
        let prefix = format!("{registry}/{name}");
        let found = published.iter().find(|one| one.reference.starts_with(&prefix));
        let Published { reference, digest, sbom } =
            found.with_context(|| format!("no artifact is called {name}"))?;
        let crane = |args: &[&str]| self.clients.crane(args);
        crane(&["mutate", "--label", "changed=yes", "--tag", reference, reference])?;
        let changed = crane(&["digest", reference])?;
        ensure!(changed.trim() != digest, "{reference} did not change");
        let pinned = format!("{reference}@{}", changed.trim());
        self.stranger.endorse(&pinned, &self.provenance, sbom.as_deref())?;
        self.verification.rejects(&format!("$REGISTRY/{name}"), FOREIGN_SIGNATURE)?;
        println!("rejected: {pinned}");
        let tag = reference.rsplit(':').next().unwrap_or_default();
        crane(&["tag", &format!("{reference}@{digest}"), tag]).map(drop)
    }

    /// Changes an archive: first alone, then with its list of digests and its attestation.
    fn change_archive(&self, archive: &Path, files: &[PathBuf]) -> Result<()> {
        let folder = archive.parent().context("an archive has no folder")?;
        let mut content = fs::read(archive)?;
        content.push(0);
        replace(archive, &content)?;
        self.verification.rejects("$ARCHIVE", OTHER_DIGEST)?;
        println!("rejected: a changed archive");

        let listed: Vec<_> =
            files.iter().filter(|file| !file.ends_with(sums::FILE)).cloned().collect();
        fs::remove_file(folder.join(sums::FILE))?;
        sums::write(folder, &listed)?;
        self.stranger.sign_file(&folder.join(sums::FILE))?;
        self.stranger.attest_file(archive, &self.provenance)?;
        self.verification.rejects("$ARCHIVE", FOREIGN_BUNDLE)?;
        println!("rejected: a changed archive with other digests");
        Ok(())
    }
}

/// Replaces a link by a file.
fn replace(link: &Path, content: &[u8]) -> Result<()> {
    fs::remove_file(link)?;
    fs::write(link, content).with_context(|| format!("writing {}", link.display()))
}
