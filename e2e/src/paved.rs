//! `paved`, as a person or a pipeline runs it.

use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use crossplane::api_version::group_of;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, Command};
use xtask::workspace;

use crate::environment::Environment;
use crate::fixture::Fixture;

/// `paved` as one person uses it, in a scenario's namespace.
#[derive(Clone, Debug)]
pub struct Paved {
    program: PathBuf,
    kubeconfig: PathBuf,
    person: Option<String>,
    namespace: String,
}

/// The result of a run.
#[derive(Debug)]
pub struct Ran {
    /// The exit code.
    pub code: i32,
    /// Standard output and standard error, one after the other.
    pub told: String,
}

impl Ran {
    /// Requires an exit code, and all these words in the output.
    pub fn is(&self, code: i32, words: &[&str]) -> Result<()> {
        ensure!(self.code == code, "exit code {} instead of {code}: {}", self.code, self.told);
        for word in words {
            ensure!(self.told.contains(word), "the output lacks {word:?}: {}", self.told);
        }
        Ok(())
    }
}

impl Paved {
    /// `paved`, run as the fixture's user.
    pub fn from_fixture(fixture: &Fixture) -> Result<Self> {
        Ok(Self {
            program: workspace::built("paved")?,
            kubeconfig: fixture.user.kubeconfig.clone(),
            person: fixture.user.person.clone(),
            namespace: fixture.namespace.clone(),
        })
    }

    /// The same for another person, or for the administrator if no person is given.
    pub fn by(&self, person: Option<&str>) -> Self {
        Self { person: person.map(str::to_owned), ..self.clone() }
    }

    /// Runs it to its end.
    pub async fn run(&self, args: &[&str]) -> Result<Ran> {
        self.start(args, "").await?.ends().await
    }

    /// Applies the manifest of an environment, with these flags.
    pub async fn apply(&self, environment: &Environment, flags: &[&str]) -> Result<Ran> {
        let text = environment.manifest.to_string();
        self.start(&[&["apply", "-"], flags].concat(), &text).await?.ends().await
    }

    /// Runs a script in a folder. The kubeconfig there gives `paved` the cluster and the person,
    /// but no namespace.
    pub async fn script(
        &self,
        script: &str,
        folder: &Path,
        variables: &[(&str, String)],
    ) -> Result<Ran> {
        let text = std::fs::read_to_string(&self.kubeconfig).context("reading a kubeconfig")?;
        let mut kubeconfig: Value =
            serde_saphyr::from_str(&text).context("reading a kubeconfig")?;
        kubeconfig["users"][0]["user"]["as"] = self.person.as_deref().into();
        let own = folder.join("kubeconfig");
        std::fs::write(&own, kubeconfig.to_string()).context("writing a kubeconfig")?;
        let programs = self.program.parent().context("paved has no folder")?;
        let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap_or_default());
        let mut command = Command::new("bash");
        command.args(["-c", script]).current_dir(folder).env_remove("GITHUB_OUTPUT");
        command
            .env("KUBECONFIG", own)
            .env("PATH", path)
            .envs(variables.iter().map(|(key, value)| (key, value)));
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        Running(command.spawn().context("starting bash")?).ends().await
    }

    /// Starts it, with a text on its standard input. Without `--namespace`, in the fixture's
    /// namespace.
    pub async fn start(&self, args: &[&str], input: &str) -> Result<Running> {
        let mut command = Command::new(&self.program);
        command.args(args).arg("--kubeconfig").arg(&self.kubeconfig);
        if !args.contains(&"--namespace") {
            command.args(["-n", &self.namespace]);
        }
        if let Some(person) = &self.person {
            command.args(["--as", person]);
        }
        command.env_remove("GITHUB_OUTPUT").env_remove("KUBECONFIG");
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let mut child =
            command.spawn().with_context(|| format!("starting {}", self.program.display()))?;
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(input.as_bytes()).await.context("writing to paved")?;
        }
        Ok(Running(child))
    }
}

/// A run that has not ended yet.
pub struct Running(Child);

impl Running {
    /// Sends the signal that Ctrl-C sends.
    pub fn interrupt(&self) -> Result<()> {
        let pid = self
            .0
            .id()
            .and_then(|id| Pid::from_raw(id.cast_signed()))
            .context("paved has ended")?;
        kill_process(pid, Signal::INT).context("interrupting paved")
    }

    /// Kills it, as `kill -9` does.
    pub async fn kill(mut self) -> Result<()> {
        self.0.kill().await.context("killing paved")
    }

    /// Waits for its end. If a signal ended it, the code is the code that shells use.
    pub async fn ends(self) -> Result<Ran> {
        let output = self.0.wait_with_output().await.context("waiting for paved")?;
        let signal = output.status.signal().map(|signal| 128 + signal);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok(Ran {
            code: output.status.code().or(signal).context("paved has neither code nor signal")?,
            told: text(&output.stdout) + &text(&output.stderr),
        })
    }
}

/// `kind.group/name`, the unambiguous address of an environment.
pub fn address(environment: &Environment) -> String {
    let manifest = &environment.manifest;
    let group = group_of(manifest);
    let kind = manifest["kind"].as_str().unwrap_or_default();
    format!("{kind}.{group}/{}", environment.name()).to_lowercase()
}
