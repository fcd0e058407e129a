//! Signatures and attestations by cosign.
//!
//! In the registry they have the format before cosign 3. Crossplane's ImageConfigs verify only this
//! format (`pkg/xpkg/signature` of crossplane-runtime 2.4), and cosign 3 verifies both. Files get
//! the bundles of cosign 3.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::Result;

use super::output;
use crate::tools;

/// The types of the attestations, as `cosign verify-attestation --type` names them.
const PROVENANCE: &str = "slsaprovenance1";
const SBOM: &str = "cyclonedx";

/// The end of a signature's file name.
pub const SIGNATURE: &str = ".sigstore.json";

/// The end of a provenance's file name.
pub const ATTESTATION: &str = ".provenance.sigstore.json";

/// cosign with a signer: a key, or the identity of the workflow that runs this program.
pub struct Cosign {
    program: PathBuf,
    key: Option<PathBuf>,
}

impl Cosign {
    /// cosign, which is built if it does not exist.
    pub fn new(key: Option<PathBuf>) -> Result<Self> {
        Ok(Self { program: tools::path(&tools::COSIGN)?, key })
    }

    /// cosign with a new key pair `<name>.key` and `<name>.pub` without a password.
    pub fn with_new_key(folder: &Path, name: &str) -> Result<Self> {
        let prefix = folder.join(name);
        let cosign = Self::new(Some(prefix.with_extension("key")))?;
        let mut command = cosign.command(&["generate-key-pair"]);
        output(command.arg("--output-key-prefix").arg(&prefix).env("COSIGN_PASSWORD", ""))?;
        Ok(cosign)
    }

    /// Signs an artifact, and attests its provenance and its SBOM.
    pub fn endorse(&self, pinned: &str, provenance: &Path, sbom: Option<&Path>) -> Result<()> {
        output(self.signing("sign").arg("--new-bundle-format=false").arg(pinned))?;
        let sbom = sbom.map(|file| (SBOM, file));
        for (kind, predicate) in [(PROVENANCE, provenance)].into_iter().chain(sbom) {
            let mut command = self.signing("attest");
            command.args(["--new-bundle-format=false", "--type", kind, "--predicate"]);
            output(command.arg(predicate).arg(pinned))?;
        }
        Ok(())
    }

    /// Signs a file. The signature is beside it.
    pub fn sign_file(&self, file: &Path) -> Result<()> {
        let mut command = self.signing("sign-blob");
        output(command.arg("--bundle").arg(beside(file, SIGNATURE)).arg(file)).map(drop)
    }

    /// Attests the provenance of a file. The attestation is beside it.
    pub fn attest_file(&self, file: &Path, provenance: &Path) -> Result<()> {
        let mut command = self.signing("attest-blob");
        command.args(["--type", PROVENANCE, "--predicate"]).arg(provenance);
        output(command.arg("--bundle").arg(beside(file, ATTESTATION)).arg(file)).map(drop)
    }

    fn signing(&self, verb: &str) -> Command {
        // The services of the default flags are those of Sigstore's public instance. A signing
        // config excludes the older format.
        let mut command = self.command(&[verb, "--yes", "--use-signing-config=false"]);
        if let Some(key) = &self.key {
            command.arg("--tlog-upload=false").arg("--key").arg(key);
        }
        command
    }

    /// Without a password, cosign would ask for it.
    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        let password = env::var_os("COSIGN_PASSWORD").unwrap_or_default();
        command.args(args).env("COSIGN_PASSWORD", password);
        command
    }
}

fn beside(file: &Path, end: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(end);
    name.into()
}
