//! `cargo xtask release`: pushes the packages of `cargo xtask package`, and signs them with cosign.
//!
//! Each artifact in the registry gets a signature and a provenance. Artifacts with a program also
//! get their SBOM. The archives get a provenance, and the list of digests gets a signature.

mod artifact;
mod cosign;
mod provenance;
mod rehearsal;
mod verification;

use std::{
    env,
    ffi::OsStr,
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Instant,
};

use anyhow::{Context, Result, ensure};

use crate::{
    package::{Registry, names, sums},
    tools, versions, workspace,
};
use artifact::{Clients, Published};
use cosign::Cosign;

/// The user and the password for the registry. Without them, an earlier login counts.
const LOGIN: [&str; 2] = ["REGISTRY_USER", "REGISTRY_PASSWORD"];

/// Flags of `cargo xtask release`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Without --key, cosign signs with the identity of the workflow that runs the task. COSIGN_PASSWORD
has the password of the key. REGISTRY_USER and REGISTRY_PASSWORD log in to the registry.")]
pub struct Args {
    /// Registry to push to.
    #[arg(long, default_value = Registry::DEFAULT)]
    registry: Registry,
    /// Version of the packages.
    #[arg(long, default_value = concat!("v", env!("CARGO_PKG_VERSION")), value_parser = names::release)]
    release: String,
    /// Folder with the packages of `cargo xtask package` [default: target/packages].
    #[arg(long, value_name = "FOLDER")]
    packages: Option<PathBuf>,
    /// Private key of cosign. Signatures by a key are not in the transparency log.
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Push to a registry on this machine, verify as documented, and change each package.
    #[arg(long, conflicts_with_all = ["registry", "key"])]
    rehearse: bool,
}

/// Publishes the release, or rehearses it.
///
/// # Errors
/// A package is missing, a program fails, the tag differs from the release, or a version of
/// `versions.yaml` is past its end. A rehearsal ignores the ends of versions. A rehearsal also
/// fails if the documented verification fails, or if it accepts a changed package.
pub fn run(args: &Args) -> Result<()> {
    let start = Instant::now();
    provenance::ensure_tag(&args.release)?;
    let folder = args.packages.clone().unwrap_or_else(|| workspace::target().join("packages"));
    let folder = folder.canonicalize().with_context(|| format!("finding {}", folder.display()))?;
    if args.rehearse {
        rehearsal::run(&folder, &args.release)?;
    } else {
        ensure!(
            !args.registry.host().ends_with("example.org"),
            "{} is not a real registry. Set REGISTRY in src/manifests.rs, or use --registry",
            args.registry
        );
        provenance::ensure_committed()?;
        versions::ensure_supported()?;
        login(&args.registry)?;
        let release = Release { registry: &args.registry, version: &args.release, folder: &folder };
        let scratch = tempfile::tempdir()?;
        let provenance = provenance::write(scratch.path())?;
        release.publish(&Cosign::new(args.key.clone())?, &Clients::new()?, &provenance)?;
    }
    println!("{:.1} s", start.elapsed().as_secs_f64());
    Ok(())
}

/// A built release, and its registry.
struct Release<'a> {
    registry: &'a Registry,
    version: &'a str,
    folder: &'a Path,
}

impl Release<'_> {
    /// Pushes and endorses each artifact, and endorses the files. Prints one line for each.
    fn publish(
        &self,
        cosign: &Cosign,
        clients: &Clients,
        provenance: &Path,
    ) -> Result<Vec<Published>> {
        let mut published = Vec::new();
        for artifact in artifact::all(self)? {
            let artifact = clients.push(artifact)?;
            let pinned = format!("{}@{}", artifact.reference, artifact.digest);
            cosign.endorse(&pinned, provenance, artifact.sbom.as_deref())?;
            println!("{pinned}");
            published.push(artifact);
        }
        for archive in self.archives()? {
            cosign.attest_file(&archive, provenance)?;
            println!("{}", archive.display());
        }
        cosign.sign_file(&self.folder.join(sums::FILE))?;
        Ok(published)
    }

    /// The archives of the command line.
    fn archives(&self) -> Result<Vec<PathBuf>> {
        let mut archives = Vec::new();
        for entry in fs::read_dir(self.folder)? {
            let file = entry?.path();
            let name = file.file_name().and_then(OsStr::to_str).unwrap_or_default();
            if name.starts_with("paved-") && name.ends_with(".tar.gz") {
                archives.push(file);
            }
        }
        ensure!(!archives.is_empty(), "{} has no archive", self.folder.display());
        archives.sort();
        Ok(archives)
    }
}

/// Logs in to the registry, for crane and the programs that read the same file.
fn login(registry: &Registry) -> Result<()> {
    let [Some(user), Some(password)] = LOGIN.map(|name| env::var(name).ok()) else {
        return Ok(());
    };
    let mut crane = Command::new(tools::path(&tools::CRANE)?)
        .args(["auth", "login", registry.host(), "--password-stdin", "--username", &user])
        .stdin(Stdio::piped())
        .spawn()
        .context("starting crane")?;
    if let Some(mut stdin) = crane.stdin.take() {
        stdin.write_all(password.as_bytes())?;
    }
    let status = crane.wait()?;
    ensure!(status.success(), "crane auth login {}: {status}", registry.host());
    Ok(())
}

/// Runs a program, and returns its output.
fn output(command: &mut Command) -> Result<String> {
    let answer = command.stdin(Stdio::null()).output();
    let answer = answer.with_context(|| format!("starting {}", command.get_program().display()))?;
    let complaint = String::from_utf8_lossy(&answer.stderr);
    ensure!(answer.status.success(), "{command:?}: {}\n{}", answer.status, complaint.trim());
    String::from_utf8(answer.stdout).context("reading the output of a program")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn workflows() -> Vec<(String, String)> {
        let entries = fs::read_dir(workspace::root().join(".github/workflows")).unwrap();
        let workflow =
            |path: PathBuf| (path.display().to_string(), fs::read_to_string(&path).unwrap());
        entries.map(|entry| workflow(entry.unwrap().path())).collect()
    }

    #[test]
    fn every_action_is_pinned_to_a_commit_and_names_its_version() {
        let mut pinned = 0;
        for (file, text) in workflows() {
            let actions = text.lines().filter_map(|line| line.split_once("uses: "));
            for (_, action) in actions.filter(|(_, action)| !action.starts_with("./")) {
                let (_, version) = action.split_once('@').unwrap();
                let (commit, tag) = version.split_once(" # v").unwrap();
                let is_commit = commit.len() == 40 && commit.chars().all(|c| c.is_ascii_hexdigit());
                assert!(is_commit && tag.split('.').count() == 3, "{file}: {action}");
                pinned += 1;
            }
        }
        assert!(pinned > 0);
    }

    #[test]
    fn workflows_grant_rights_to_single_jobs_only() {
        for (file, text) in workflows() {
            assert!(text.contains("\npermissions: {}\n"), "{file}");
        }
    }

    /// Build scripts and tests run with all rights of their job.
    #[test]
    fn job_with_an_identity_compiles_nothing() {
        let tools = ["cargo ", "rustc", "setup-go", "go build", "npm ", "make ", ".ci/run"];
        let mut found = 0;
        for (file, text) in workflows() {
            let jobs = regex_lite::Regex::new(r"(?m)^  [a-z-]+:$").unwrap();
            for job in jobs.split(&text).filter(|job| job.contains("id-token: write")) {
                let compiler = tools.iter().find(|compiler| job.contains(**compiler));
                assert_eq!(compiler, None, "{file}:{job}");
                found += 1;
            }
        }
        assert_eq!(found, 1);
    }

    /// Another workflow, branch or repository must not match.
    #[test]
    fn documented_signer_is_the_workflow_of_a_release() {
        let file = workspace::root().join("docs/how-to/verify-a-release.md");
        let text = fs::read_to_string(file).unwrap();
        let pattern = text.lines().find_map(|line| line.trim().strip_prefix("subjectRegExp: "));
        let script = workspace::root().join("package/install.sh");
        let script = fs::read_to_string(script).unwrap();
        assert!(script.contains(&format!("\nSIGNER='{}'\n", pattern.unwrap())));
        let pattern = regex_lite::Regex::new(pattern.unwrap()).unwrap();
        let start = "https://github.com/paved-road/paved-road/.github/workflows/release.yaml@";
        for (signer, is_ours) in [
            (format!("{start}refs/tags/v0.2.0"), true),
            (format!("{start}refs/tags/v1.10.2-rc.1"), true),
            (format!("{start}refs/heads/main"), false),
            (format!("{start}refs/tags/v0.2.0/../../heads/main"), false),
            (format!("{start}refs/tags/vnext"), false),
            (format!("evil-{start}refs/tags/v0.2.0"), false),
            (format!("{start}refs/tags/v0.2.0").replace("github.com", "github-com"), false),
            (format!("{start}refs/tags/v0.2.0").replace("workflows/", "workflows/x/"), false),
            (format!("{start}refs/tags/v0.2.0").replace("release.", "pre-release."), false),
        ] {
            assert_eq!(pattern.is_match(&signer), is_ours, "{signer}");
        }
    }

    #[test]
    fn workflow_of_changes_has_the_toolchain_of_the_repository() {
        let read = |file: &str| fs::read_to_string(workspace::root().join(file)).unwrap();
        let toolchain = read("rust-toolchain.toml");
        let version = toolchain.lines().find_map(|line| line.strip_prefix("channel = ")).unwrap();
        let image = format!("library/rust:{}-", version.trim_matches('"'));
        assert!(read(".github/workflows/ci.yaml").contains(&image), "{image}");
    }
}
