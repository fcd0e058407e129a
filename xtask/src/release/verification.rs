//! The documented verification for users.

use std::{
    env,
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};

use super::Release;
use crate::{guide, package::Architecture, package::archive, tools, workspace};

/// The workflow with the identity of the signatures.
const WORKFLOW: &str = ".github/workflows/release.yaml";

/// The shell blocks of the guide, without the first one, which has the variables.
pub struct Verification {
    blocks: Vec<String>,
    variables: String,
    folder: PathBuf,
    path: OsString,
}

impl Verification {
    /// The guide for a rehearsal: another registry, and a key instead of the workflow's identity.
    ///
    /// # Errors
    /// The guide's variables have another workflow or another release.
    pub fn new(release: &Release<'_>, key: &Path) -> Result<Self> {
        let mut blocks = guide::blocks(&guide::text(&[guide::VERIFICATION])?);
        ensure!(blocks.len() > 1, "{} has no commands", guide::VERIFICATION);
        let documented = blocks.remove(0);
        let workflow = format!("WORKFLOW={}/{WORKFLOW}", env!("CARGO_PKG_REPOSITORY"));
        for line in [workflow, format!("RELEASE={}", release.version)] {
            ensure!(
                documented.lines().any(|one| one == line),
                "{} lacks {line}",
                guide::VERIFICATION
            );
        }
        ensure!(workspace::root().join(WORKFLOW).is_file(), "{WORKFLOW} does not exist");
        let Release { registry, version, folder } = release;
        let archive = archive::name(Architecture::host());
        let key = key.display();
        let variables = format!(
            "REGISTRY={registry}\nRELEASE={version}\nARCHIVE={archive}.tar.gz\n\
             SIGNER=(--key '{key}' --insecure-ignore-tlog)\n"
        );
        tools::link(&tools::COSIGN)?;
        let path = env::var_os("PATH").unwrap_or_default();
        let path = env::join_paths([tools::folder()?].into_iter().chain(env::split_paths(&path)))?;
        Ok(Self { blocks, variables, folder: folder.to_path_buf(), path })
    }

    /// Fails if one of the commands fails.
    pub fn accepts(&self) -> Result<()> {
        for block in &self.blocks {
            let complaint = self.run(block)?;
            ensure!(complaint.is_none(), "{block}\n{}", complaint.unwrap_or_default());
        }
        Ok(())
    }

    /// Fails unless each block with a text fails, and its error contains the reason.
    pub fn rejects(&self, text: &str, reason: &str) -> Result<()> {
        let mut blocks = self.blocks.iter().filter(|block| block.contains(text)).peekable();
        ensure!(blocks.peek().is_some(), "no command in {} has {text}", guide::VERIFICATION);
        for block in blocks {
            let complaint = self.run(block)?;
            let complaint = complaint.with_context(|| format!("accepted a change:\n{block}"))?;
            ensure!(complaint.contains(reason), "failed for another reason: {complaint}\n{block}");
        }
        Ok(())
    }

    /// Runs a block. Returns its error output if it fails.
    fn run(&self, block: &str) -> Result<Option<String>> {
        run_as_user(&format!("{}{block}", self.variables), &self.folder, &self.path)
    }
}

/// Runs a script in bash without options, as a user pastes it. Returns its error output if it
/// fails.
fn run_as_user(script: &str, folder: &Path, path: &OsStr) -> Result<Option<String>> {
    let mut bash = Command::new("bash");
    bash.args(["-c", script]).current_dir(folder).env("PATH", path);
    let answer = bash.output().context("starting bash")?;
    if answer.status.success() {
        return Ok(None);
    }
    Ok(Some(String::from_utf8_lossy(&answer.stderr).into_owned()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::{fs, os::unix::fs::PermissionsExt};

    use super::*;

    /// Counts its calls in a file, and fails at the call with the number `$FAILING`.
    const PROGRAM: &str = "#!/bin/bash\n\
        echo >>calls; [[ $(wc -l <calls) != \"$FAILING\" ]] || { echo refused >&2; exit 1; }\n";

    /// How often a block calls a program, and its error output. One call fails.
    fn calls_with_failure(block: &str, failing: usize) -> (usize, Option<String>) {
        let folder = tempfile::tempdir().unwrap();
        for name in ["cosign", "sha256sum"] {
            let program = folder.path().join(name);
            fs::write(&program, PROGRAM).unwrap();
            fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let inherited = env::var_os("PATH").unwrap();
        let path = [folder.path().to_owned()].into_iter().chain(env::split_paths(&inherited));
        let script = format!("export FAILING={failing}\n{block}");
        let complaint =
            run_as_user(&script, folder.path(), &env::join_paths(path).unwrap()).unwrap();
        (fs::read_to_string(folder.path().join("calls")).unwrap().lines().count(), complaint)
    }

    #[test]
    fn documented_block_stops_at_the_first_failed_verification() {
        let blocks = guide::blocks(&guide::text(&[guide::VERIFICATION]).unwrap());
        let mut checks = Vec::new();
        for block in &blocks[1..] {
            let (count, complaint) = calls_with_failure(block, 0);
            assert_eq!(complaint, None, "{block}");
            for failing in 1..=count {
                let (calls, complaint) = calls_with_failure(block, failing);
                assert_eq!(calls, failing, "{block}");
                assert!(complaint.unwrap().contains("refused"), "{block}");
            }
            checks.push(count);
        }
        assert_eq!(checks, [11, 3, 3, 3]);
    }
}
