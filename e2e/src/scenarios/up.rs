//! `cargo xtask up`, the daily tool of contributors. It runs, prints how to use it, and leaves no
//! traces.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use anyhow::{Context, Result, anyhow, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::time::timeout;
use xtask::tools;

use crate::control_plane::ports;
use crate::eventually::{TIMEOUT, eventually};
use crate::fixture::Fixture;
use crate::kubectl::Kubectl;

pub(super) async fn it_runs_until_ctrl_c(fixture: Fixture) -> Result<()> {
    let contributor = Contributor::new(&fixture)?;
    // Crossplane without our packages, because only the start and the end are tested here.
    let mut up = contributor.command(&["up", "--no-install"]).stdout(Stdio::piped()).spawn()?;
    let kubeconfig = timeout(TIMEOUT, usage(&mut up)).await.context("it does not start")??;
    contributor.uses(&kubeconfig).await?;
    let pid =
        up.id().and_then(|id| Pid::from_raw(id.cast_signed())).context("it has ended early")?;
    kill_process(pid, Signal::INT)?;
    let status = timeout(TIMEOUT, up.wait()).await.context("it does not end")??;
    ensure!(status.success(), "Ctrl-C ends it with {status}");
    contributor.no_trace_is_left()
}

pub(super) async fn it_listens_on_loopback_alone(fixture: Fixture) -> Result<()> {
    let (own, others): (Vec<_>, Vec<_>) =
        ports::listeners()?.into_iter().partition(|listener| listener.is_loopback);
    ensure!(others.is_empty(), "these are reached from other machines: {others:#?}");
    let core = fixture.plane.workdir().tools.core.display().to_string();
    ensure!(
        own.iter().any(|listener| listener.command.starts_with(&core)),
        "Crossplane does not listen: {own:#?}"
    );
    Ok(())
}

pub(super) async fn it_stays_in_the_background_until_down(fixture: Fixture) -> Result<()> {
    let contributor = Contributor::new(&fixture)?;
    let detach = ["up", "--detach"];
    let result = async {
        let printed = contributor
            .types(&detach)
            .await?
            .map_err(|said| anyhow!("it does not start: {said}"))?;
        let kubeconfig =
            printed.lines().find_map(exported).context("it does not print how to use it")?;
        contributor.follows(&printed, &kubeconfig).await?;
        let Err(said) = contributor.types(&detach).await? else { anyhow::bail!("there are two") };
        ensure!(
            said.contains("is already running") && said.contains("cargo xtask down"),
            "the second start reports: {said}"
        );
        contributor.uses(&kubeconfig).await?;
        contributor.types(&["down"]).await?.map_err(|said| anyhow!("it does not end: {said}"))?;
        contributor.no_trace_is_left()
    };
    result.await?;
    let again = contributor.types(&["down"]).await?;
    ensure!(
        again.is_err_and(|said| said.contains("no control plane was started")),
        "it was stopped twice"
    );
    Ok(())
}

/// A contributor with a separate target folder, where `up` writes its state.
struct Contributor {
    target: PathBuf,
    /// The folder for its temporary files.
    temporary: TempDir,
    /// The folder of built tools.
    tools: PathBuf,
    kubectl: PathBuf,
}

impl Contributor {
    fn new(fixture: &Fixture) -> Result<Self> {
        let target = fixture.plane.workdir().subfolder(&fixture.namespace)?;
        // PostgreSQL runs as a user other than root.
        let mut temporary = tempfile::Builder::new();
        let temporary =
            temporary.prefix("up-").permissions(Permissions::from_mode(0o755)).tempdir()?;
        Ok(Self {
            target,
            temporary,
            tools: tools::folder()?,
            kubectl: fixture.admin.program.clone(),
        })
    }

    fn command(&self, args: &[&str]) -> Command {
        // This program itself, as `cargo xtask up` runs it.
        let mut command = Command::new("/proc/self/exe");
        command
            .args(args)
            .env("CARGO_TARGET_DIR", &self.target)
            .env("PAVED_ROAD_TOOLS", &self.tools);
        command.env("TMPDIR", self.temporary.path()).stdin(Stdio::null()).kill_on_drop(true);
        command
    }

    /// Runs a command. Returns its output, or its error if it fails.
    async fn types(&self, args: &[&str]) -> Result<Result<String, String>> {
        let output =
            timeout(TIMEOUT, self.command(args).output()).await.context("it does not return")??;
        let Output { status, stdout, stderr } = output;
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        Ok(if status.success() { Ok(text(&stdout)) } else { Err(text(&stderr)) })
    }

    fn kubectl(&self, kubeconfig: &Path) -> Kubectl {
        Kubectl { program: self.kubectl.clone(), kubeconfig: kubeconfig.to_owned(), person: None }
    }

    async fn uses(&self, kubeconfig: &Path) -> Result<()> {
        let kinds = self.kubectl(kubeconfig).run(&["get", "crds", "--output=name"]).await?;
        ensure!(
            kinds.contains("compositions.apiextensions.crossplane.io"),
            "found no Crossplane: {kinds}"
        );
        Ok(())
    }

    /// Runs the printed commands, and waits until their environment is ready.
    async fn follows(&self, printed: &str, kubeconfig: &Path) -> Result<()> {
        let kubectl = self.kubectl(kubeconfig);
        let commands: Vec<Vec<&str>> = printed
            .lines()
            .filter_map(|line| line.trim().strip_prefix("kubectl "))
            .map(|command| command.split(' ').collect())
            .collect();
        let [apply, get] = &commands[..] else { bail!("it prints other commands: {printed}") };
        kubectl.run(apply).await?;
        eventually("the applied environment is ready", async || {
            let table = kubectl.run(get).await?;
            Ok((table.contains("render") && table.contains("Available")).then_some(()))
        })
        .await
    }

    /// Checks that none of its files and processes exist any more.
    fn no_trace_is_left(&self) -> Result<()> {
        let folder = self.temporary.path();
        let files: Vec<_> = fs::read_dir(folder)?.flatten().map(|entry| entry.path()).collect();
        ensure!(files.is_empty(), "files are left: {files:?}");
        for process in fs::read_dir("/proc")? {
            let line = fs::read(process?.path().join("cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            ensure!(!line.contains(&*folder.to_string_lossy()), "a process is left: {line}");
        }
        Ok(())
    }
}

/// Ends the background process, even after a failure.
impl Drop for Contributor {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.command(&["down"]).into_std().output();
    }
}

/// The kubeconfig in a line `export KUBECONFIG=…`.
fn exported(line: &str) -> Option<PathBuf> {
    line.trim().strip_prefix("export KUBECONFIG=").map(PathBuf::from)
}

/// Waits until it prints how to use it.
async fn usage(up: &mut Child) -> Result<PathBuf> {
    let mut lines = BufReader::new(up.stdout.take().context("it prints nowhere")?).lines();
    while let Some(line) = lines.next_line().await? {
        if let Some(kubeconfig) = exported(&line) {
            // Read its further output, so that it does not block.
            tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
            return Ok(kubeconfig);
        }
    }
    Err(anyhow!("it has ended before it ran"))
}
