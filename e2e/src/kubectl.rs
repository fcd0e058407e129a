//! `kubectl`, as a person uses it.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, bail};
use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use crate::objects::resource;

/// A failure of kubectl.
#[derive(Debug, thiserror::Error)]
#[error("kubectl {args}: {words}")]
pub struct Refusal {
    /// The arguments.
    args: String,
    /// The error message, without the arguments.
    pub words: String,
}

/// The variable with the folder of kubectl's cache. Without it, the cache stays in the user's home
/// permanently.
pub const CACHE: &str = "KUBECACHEDIR";

/// A cache folder beside the kubeconfig, which is deleted with it.
pub fn cache(kubeconfig: &Path) -> PathBuf {
    kubeconfig.with_extension("cache")
}

/// `kubectl` as one person uses it.
#[derive(Clone, Debug)]
pub struct Kubectl {
    /// The program.
    pub program: PathBuf,
    /// The administrator's kubeconfig.
    pub kubeconfig: PathBuf,
    /// The person who uses it, or none for the administrator. The API server applies this person's
    /// rights.
    pub person: Option<String>,
}

impl Kubectl {
    /// The same kubectl, run as `person`.
    pub fn for_person(&self, person: &str) -> Self {
        Self { person: Some(person.to_owned()), ..self.clone() }
    }

    /// Runs it and returns its output. A failure is a [`Refusal`].
    pub async fn run(&self, args: &[&str]) -> Result<String> {
        self.with(args, "").await
    }

    /// Runs it with a text on its standard input.
    pub async fn with(&self, args: &[&str], input: &str) -> Result<String> {
        let mut command = Command::new(&self.program);
        command
            .arg("--kubeconfig")
            .arg(&self.kubeconfig)
            .args(args)
            .env(CACHE, cache(&self.kubeconfig));
        if let Some(person) = &self.person {
            command.args(["--as", person]);
        }
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let mut child =
            command.spawn().with_context(|| format!("starting {}", self.program.display()))?;
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(input.as_bytes()).await.context("writing to kubectl")?;
        }
        let output = child.wait_with_output().await.context("waiting for kubectl")?;
        if !output.status.success() {
            let words = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return Err(Refusal { args: args.join(" "), words }.into());
        }
        String::from_utf8(output.stdout).context("kubectl's output is not text")
    }

    /// Runs it and expects a failure. Returns the error message.
    pub async fn refused(&self, args: &[&str], input: &str) -> Result<String> {
        match self.with(args, input).await {
            Ok(_) => bail!("kubectl {} succeeded and should have been rejected", args.join(" ")),
            Err(error) => Ok(error.downcast::<Refusal>()?.words),
        }
    }

    /// `kubectl apply` of an object.
    pub async fn apply(&self, object: &Value) -> Result<String> {
        self.with(&["apply", "-f", "-"], &object.to_string()).await
    }

    /// `kubectl delete` of an object, without waiting. A missing object is not an error.
    pub async fn delete(&self, object: &Value) -> Result<()> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let metadata = &object["metadata"];
        let (kind, name, namespace) =
            (resource(object), text(&metadata["name"]), text(&metadata["namespace"]));
        let mut args = vec!["delete", &kind, &name, "--wait=false", "--ignore-not-found"];
        if !namespace.is_empty() {
            args.extend(["-n", &namespace]);
        }
        self.run(&args).await.map(drop)
    }

    /// `kubectl get`, as JSON.
    pub async fn get(&self, args: &[&str]) -> Result<Value> {
        let text = self.run(&[&["get", "-o", "json"], args].concat()).await?;
        serde_json::from_str(&text).context("kubectl's output is not JSON")
    }
}
