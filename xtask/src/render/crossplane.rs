//! The real Crossplane: its command line, which starts the engine of Crossplane itself.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use serde_json::Value;
use tempfile::TempDir;

use super::example::{Example, is_composed};
use crate::{tools, workspace, yaml};

/// Long enough for a slow machine. Without it, each call would wait a minute for a function that
/// has ended.
const TIMEOUT: &str = "--timeout=20s";

/// The annotation of a Function with its address.
const TARGET: &str = "render.crossplane.io/runtime-development-target";

/// The field of an XR with the Secret for its connection details.
const CONNECTION: &str = "writeConnectionSecretToRef";

/// The schemas for the validation: the providers' and ours.
const SCHEMAS: [&str; 3] = ["tests/schemas", "xrd", "namespaced/xrd"];

/// The tools, and the address of the function that they call.
pub struct Crossplane {
    cli: PathBuf,
    old_cli: PathBuf,
    core: PathBuf,
    function: SocketAddr,
    scratch: TempDir,
}

/// The output of `crossplane resource validate -o json`.
#[derive(Deserialize)]
struct Validation {
    resources: Vec<Validated>,
}

#[derive(Deserialize)]
struct Validated {
    kind: String,
    name: String,
    status: String,
    #[serde(default)]
    errors: Vec<Invalid>,
}

#[derive(Deserialize)]
struct Invalid {
    message: String,
}

impl Crossplane {
    /// Builds the tools if they do not exist.
    pub fn new(function: SocketAddr) -> Result<Self> {
        let (cli, old_cli) = (tools::ensure(&tools::CLI)?, tools::ensure(&tools::OLD_CLI)?);
        let core = tools::ensure(&tools::CORE)?;
        Ok(Self { cli, old_cli, core, function, scratch: TempDir::new()? })
    }

    /// Renders an example: the XR, its composed resources, and the function's results.
    pub fn render(&self, example: &Example) -> Result<Vec<Value>> {
        let mut command = Command::new(&self.cli);
        command.args(["composition", "render", TIMEOUT, "-x", "-r"]);
        command.args([&example.xr, &example.composition, &example.functions]);
        command.arg("--crossplane-binary").arg(&self.core).arg("--xrd").arg(&example.xrd);
        command.args(["-a", "render.crossplane.io/runtime=Development"]);
        let target = format!("{TARGET}={}", self.function);
        command.args(["-a", &target]);
        self.add_state(&mut command, example)?;
        let output = succeed(&mut command)?;
        yaml::documents(&String::from_utf8(output.stdout)?)
    }

    /// Renders an example with the command line of Crossplane 1.20. It has no flags for annotations
    /// of the Function and for the XRD.
    pub fn render_with_1_20(&self, example: &Example) -> Result<Vec<Value>> {
        let mut functions = yaml::read(&example.functions)?;
        for function in &mut functions {
            function["metadata"]["annotations"][TARGET] = self.function.to_string().into();
        }
        let file = self.scratch.path().join("functions.yaml");
        yaml::write(&file, &functions)?;
        let mut command = Command::new(&self.old_cli);
        command.args(["render", TIMEOUT]).args([&example.xr, &example.composition, &file]);
        yaml::documents(&String::from_utf8(succeed(&mut command)?.stdout)?)
    }

    /// Adds the observed state. Composed resources are in one file. Secrets with their connection
    /// details are in another file, like the EnvironmentConfig.
    fn add_state(&self, command: &mut Command, example: &Example) -> Result<()> {
        let state =
            example.observed.as_ref().map_or_else(|| Ok(Vec::new()), |file| yaml::read(file))?;
        let (composed, others): (Vec<_>, Vec<_>) = state.into_iter().partition(is_composed);
        for (flag, name, documents) in
            [("-o", "observed.yaml", composed), ("-e", "others.yaml", others)]
        {
            if !documents.is_empty() {
                let file = self.scratch.path().join(name);
                yaml::write(&file, &documents)?;
                command.arg(flag).arg(file);
            }
        }
        command.args(example.environment.iter().flat_map(|file| [Path::new("-e"), file]));
        Ok(())
    }

    /// Validates rendered documents by XRDs and CRDs, and rejects unknown fields. Returns a line
    /// for each violation.
    ///
    /// Built-in kinds of Kubernetes have no CRD and are left out, like results.
    pub fn validate(&self, rendered: &[Value]) -> Result<Vec<String>> {
        let has_crd = |document: &&Value| {
            let group = crossplane::api_version::group_of(document);
            group.contains('.') && group != "render.crossplane.io"
        };
        let documents: Vec<_> = rendered.iter().filter(has_crd).cloned().collect();
        let file = self.scratch.path().join("rendered.yaml");
        yaml::write(&file, &documents)?;
        let mut command = Command::new(&self.cli);
        command
            .current_dir(workspace::root())
            .args(["resource", "validate", &SCHEMAS.join(",")])
            .arg(&file);
        command.args(["--crossplane-image=", "--error-on-missing-schemas", "-o", "json"]);
        let output = command.output()?;
        let validation: Validation = serde_json::from_slice(&output.stdout)
            .with_context(|| format!("{command:?}\n{}", String::from_utf8_lossy(&output.stderr)))?;
        let (all, valid) = (documents.len(), validation.resources.len());
        ensure!(all == valid, "validated {valid} of {all} documents");
        Ok(validation.resources.iter().flat_map(Validated::complaints).collect())
    }

    /// The XR that Crossplane creates from a claim. Its name, uid and connection Secret are those
    /// of the example's XR, because the API server and Crossplane would set them.
    pub fn xr_of(&self, claim: &Path, like: &Path) -> Result<PathBuf> {
        let [like] = &yaml::read(like)?[..] else {
            anyhow::bail!("{}: expected one document", like.display())
        };
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let mut command = Command::new(&self.cli);
        command.args(["xr", "generate"]).arg(claim);
        command.args(["--kind", &text(&like["kind"]), "--name", &text(&like["metadata"]["name"])]);
        let mut documents = yaml::documents(&String::from_utf8(succeed(&mut command)?.stdout)?)?;
        for document in &mut documents {
            document["metadata"]["uid"] = like["metadata"]["uid"].clone();
            document["spec"][CONNECTION] = like["spec"][CONNECTION].clone();
        }
        let file = self.scratch.path().join("xr.yaml");
        yaml::write(&file, &documents)?;
        Ok(file)
    }

    /// A folder for temporary files.
    pub fn scratch(&self) -> &Path {
        self.scratch.path()
    }
}

impl Validated {
    fn complaints(&self) -> Vec<String> {
        let Self { kind, name, status, errors } = self;
        match (status.as_str(), errors.is_empty()) {
            ("valid", _) => Vec::new(),
            (_, true) => vec![format!("{kind} {name}: {status}")],
            _ => errors.iter().map(|error| format!("{kind} {name}: {}", error.message)).collect(),
        }
    }
}

fn succeed(command: &mut Command) -> Result<Output> {
    let output = command.output().with_context(|| format!("starting {command:?}"))?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?}: {}\n{complaint}", output.status);
    Ok(output)
}
